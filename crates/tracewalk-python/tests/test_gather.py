"""Gathering equals what the command adds up, even if captures are broken."""

import json
import shutil
import subprocess
import sys

import pytest
from conftest import EXAMPLES, example

import tracewalk
import tracewalk.spark

NAMES = ["m3-etmv3", "a7-etmv3", "m3-etmv3", "a15-pft", "m33-etmv4"]


@pytest.fixture
def fleet(tmp_path):
    """Captures of several programs, each in a directory of its own."""
    paths = []
    for number, name in enumerate(NAMES):
        shutil.copytree(EXAMPLES / name, tmp_path / str(number))
        paths.append(tmp_path / str(number) / "capture.toml")
    return paths


@pytest.mark.parametrize("answer", ["counts", "coverage", "profile"])
def test_what_is_gathered_is_what_the_command_gathers(fleet, tmp_path, command, answer):
    saved = tmp_path / "saved"
    status, _, _ = command(answer, *fleet, "--save", saved, "-q")
    assert status == 0
    for threads in (1, 3):
        gathered = tracewalk.gather(fleet, answer=answer, threads=threads)
        assert gathered.to_bytes() == saved.read_bytes()
    assert gathered.answer == answer and gathered.complete
    rows = gathered.captures.to_pylist()
    assert [row["capture"] for row in rows] == [str(path) for path in fleet]
    assert {row["outcome"] for row in rows} == {"whole"}
    assert answer in repr(gathered) and str(len(fleet)) in repr(gathered)


def test_parts_add_up_in_any_order_and_by_program(fleet):
    whole = tracewalk.gather(fleet)
    parts = [tracewalk.gather([path]) for path in reversed(fleet)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    assert merged.to_bytes() == whole.to_bytes()
    assert merged.captures.num_rows == len(fleet)
    alone = whole.by_program()
    # One of M profile, one of A profile.
    assert len(alone) == 2
    together = alone[0][1]
    for _, one in alone[1:]:
        together = together.merge(tracewalk.read(one.to_bytes()))
    assert together.to_bytes() == whole.to_bytes()
    with pytest.raises(tracewalk.TracewalkError) as raised:
        whole.merge(tracewalk.gather([], answer="profile"))
    assert raised.value.kind == "arguments"


def test_tables_are_those_of_one_capture_where_there_is_one():
    path, image = example("m3-etmv3"), EXAMPLES / "m3-etmv3" / "m3.elf"
    session = tracewalk.open(path)
    counts, counted = tracewalk.gather([path]).counts(), session.counts()
    assert [table.to_pylist() for table in counts.tables] == [table.to_pylist() for table in counted.tables]
    coverage = tracewalk.gather([path], answer="coverage").coverage(image=image)
    assert coverage.lines.to_pylist() == session.coverage().lines.to_pylist()
    profile = tracewalk.gather([path], answer="profile").profile(image=image, measure="instructions")
    assert profile.functions.to_pylist() == session.profile(measure="instructions").functions.to_pylist()
    for other in ("coverage", "profile"):
        with pytest.raises(tracewalk.TracewalkError) as raised:
            getattr(tracewalk.gather([path]), other)()
        assert raised.value.kind == "arguments"
    with pytest.raises(tracewalk.TracewalkError) as raised:
        tracewalk.gather([path], answer="coverage").coverage()
    assert raised.value.kind == "other_program"


def test_what_cannot_be_read_is_a_row(fleet):
    missing = fleet[0].parent / "none.toml"
    (fleet[1].parent / "trace.bin").unlink()
    gathered = tracewalk.gather([*fleet, missing])
    rows = gathered.captures.to_pylist()
    assert [row["outcome"] for row in rows] == ["whole", "left_out", "whole", "whole", "whole", "left_out"]
    assert rows[1]["error"] == rows[5]["error"] == "file_missing"
    assert rows[1]["bytes"] is None and "trace.bin" in rows[1]["message"]
    assert gathered.to_bytes() == tracewalk.gather([fleet[0], *fleet[2:]]).to_bytes()


def test_options_are_those_of_open(fleet):
    folder = EXAMPLES / "m3-etmv3"
    options = {"image": folder / "m3.elf", "source": "0x10=etmv3,cpu=cortex-m3", "container": "frames"}
    bare = tracewalk.gather([folder / "trace.bin"], **options)
    described = tracewalk.gather([folder / "capture.toml"])
    assert bare.counts().ranges.to_pylist() == described.counts().ranges.to_pylist()
    with pytest.raises(TypeError, match="no_such_option"):
        tracewalk.gather(fleet, no_such_option=1)
    with pytest.raises(tracewalk.TracewalkError):
        tracewalk.gather(fleet, answer="flow")
    with pytest.raises(tracewalk.TracewalkError):
        tracewalk.gather(fleet, container="box")


def test_programs_are_shared_and_change_nothing(fleet):
    programs = tracewalk.Programs()
    alone = tracewalk.gather(fleet).to_bytes()
    for _ in range(2):
        assert tracewalk.gather(fleet, programs=programs).to_bytes() == alone
    session = tracewalk.open(fleet[0], programs=programs)
    assert session.counts().ranges.to_pylist() == tracewalk.open(fleet[0]).counts().ranges.to_pylist()
    assert session.coverage().lines.to_pylist() == tracewalk.open(fleet[0]).coverage().lines.to_pylist()


def test_progress_counts_captures_and_may_end_the_work(fleet):
    reports = []
    tracewalk.gather(fleet * 40, progress=lambda done, of: reports.append((done, of)))
    assert all(of in (0, 40 * len(fleet)) for _, of in reports)

    def enough(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tracewalk.gather(fleet * 400, progress=enough, threads=1)


def test_what_was_saved_is_read(fleet, tmp_path, command):
    gathered = tracewalk.gather(fleet)
    gathered.save(tmp_path / "all.twcounts")
    assert tracewalk.read(tmp_path / "all.twcounts").to_bytes() == gathered.to_bytes()
    status, csv, _ = command("counts", tmp_path / "all.twcounts", "--format", "csv", "-q")
    assert status == 0 and len(csv.splitlines()) == gathered.counts().ranges.num_rows + 1
    for bad in (b"", b"nothing", gathered.to_bytes()[:-20]):
        with pytest.raises(tracewalk.TracewalkError):
            tracewalk.read(bad)
    with pytest.raises(OSError):
        tracewalk.read(tmp_path / "none")


def test_another_process_gathers_the_same(fleet):
    paths = [str(path) for path in fleet]
    found, rows = tracewalk.spark._apart(paths, "counts", None, {"threads": 1})
    assert found.to_bytes() == tracewalk.gather(fleet).to_bytes()
    assert [row["outcome"] for row in rows] == ["whole"] * len(fleet)


def test_a_capture_that_brings_its_process_down_is_a_row(fleet, monkeypatch):
    paths, run = [str(path) for path in fleet], subprocess.run

    def crash_at_one(command, *, input, **options):
        if paths[1] in json.loads(input)["paths"]:
            # Ends like native code that writes to forbidden memory.
            command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]
        return run(command, input=input, **options)

    monkeypatch.setattr(subprocess, "run", crash_at_one)
    found, rows = tracewalk.spark._apart(paths, "counts", None, {"threads": 1})
    assert [row["outcome"] for row in rows] == ["whole", "left_out", "whole", "whole", "whole"]
    assert rows[1]["error"] == "crashed" and "-11" in rows[1]["message"]
    assert found.to_bytes() == tracewalk.gather([fleet[0], *fleet[2:]]).to_bytes()
