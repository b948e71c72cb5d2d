"""Code that uses the package and passes a type checker. The tests check this file and do not run it."""

from pathlib import Path

import tracewalk


def lines(capture: Path) -> int:
    session = tracewalk.open(capture, image=[Path("firmware.elf")], ids=[0x10], measure_is_not=None)  # type: ignore[call-arg]
    session = tracewalk.open(capture, image="firmware.elf", progress=lambda done, all: print(done / all))
    coverage: tracewalk.Coverage = session.coverage()
    table: tracewalk.Table = coverage.lines
    rows: list[str] = [str(row["file"]) for row in table.to_pylist()]
    counted: int = sum(part.num_rows for part in session.flow(rows=1000))
    kinds: list[str] = [notice.kind for notice in session.notices if notice.severity != "note"]
    instructions: int = coverage.statistics["instructions"]
    return len(rows) + counted + len(kinds) + instructions


def wrong(session: tracewalk.Session) -> None:
    session.profile(measure="seconds")  # type: ignore[arg-type]
    session.coverage().rows  # type: ignore[attr-defined]
