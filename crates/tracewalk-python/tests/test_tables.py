"""Every column of every table equals the command's, for every capture at hand."""

import warnings

import pyarrow
import pyarrow.parquet
import pytest
from conftest import WHOLE, captures, example, name

import tracewalk

# The answer, its table, and the command with the options for this table.
TABLES = [
    ("coverage", "lines", ["coverage", "--table", "lines"]),
    ("coverage", "files", ["coverage", "--table", "files"]),
    ("coverage", "functions", ["coverage", "--table", "functions"]),
    ("coverage", "branches", ["coverage", "--table", "branches"]),
    ("counts", "ranges", ["counts", "--table", "ranges"]),
    ("counts", "branches", ["counts", "--table", "branches"]),
    ("counts", "sources", ["counts", "--table", "sources"]),
    ("profile", "functions", ["profile", "--table", "functions"]),
    ("profile", "lines", ["profile", "--table", "lines"]),
    ("profile", "calls", ["profile", "--table", "calls"]),
    ("interrupts", "interrupts", ["interrupts"]),
    ("tasks", "tasks", ["tasks", "--table", "tasks"]),
    ("tasks", "switches", ["tasks", "--table", "switches"]),
    ("timeline", "timeline", ["timeline"]),
    ("crash", "crashes", ["crash", "--table", "crashes"]),
    ("crash", "stack", ["crash", "--table", "stack"]),
    ("crash", "path", ["crash", "--table", "path"]),
    ("crash", "last", ["crash", "--table", "last"]),
    ("crash", "registers", ["crash", "--table", "registers"]),
    ("crash", "proof", ["crash", "--table", "proof"]),
    ("info", "sources", ["info", "--table", "sources"]),
    ("info", "packets", ["info", "--table", "packets"]),
    ("info", "buffers", ["info", "--table", "buffers"]),
    ("info", "findings", ["info", "--table", "findings"]),
    ("info", "images", ["info", "--table", "images"]),
    ("info", "itms", ["info", "--table", "itms"]),
    ("info", "itm_packets", ["info", "--table", "itm_packets"]),
]

# Each capture is tested with one in this number of the tables.
SAMPLE = 6


def parquet(data):
    return pyarrow.parquet.read_table(pyarrow.BufferReader(data))


def plain(table):
    """The table without its metadata, in which the formats differ."""
    return table.replace_schema_metadata(None).combine_chunks()


@pytest.mark.parametrize("capture", captures(), ids=name)
def test_every_table_is_the_commands(capture, command):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            session = tracewalk.open(capture)
        except tracewalk.TracewalkError as error:
            status, _, said = command("--messages", "json", "flow", capture, "--format", "none")
            assert status != 0 and f'"kind":"{error.kind}"' in said
            return
        answers = {}
        for answer, table, arguments in TABLES if WHOLE else TABLES[captures().index(capture) % SAMPLE :: SAMPLE]:
            if answer not in answers:
                try:
                    answers[answer] = getattr(session, answer)()
                except tracewalk.TracewalkError as error:
                    answers[answer] = error
            verb, *options = arguments
            status, output, said = command(verb, capture, *options, "-q", "--format", "parquet")
            found = answers[answer]
            if isinstance(found, tracewalk.TracewalkError):
                assert status != 0 and not output, (answer, found, said)
                continue
            expected = parquet(output)
            ours = pyarrow.table(found[table])
            assert ours.schema.names == expected.schema.names, (answer, table)
            assert plain(ours).equals(plain(expected)), (answer, table)
            assert found.complete


@pytest.mark.parametrize("capture", captures(), ids=name)
def test_program_flow_is_the_commands(capture, command):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            session = tracewalk.open(capture)
        except tracewalk.TracewalkError:
            return
        if not session.sources:
            return
        flow = session.flow(rows=1000)
        try:
            parts = [pyarrow.table(part) for part in flow]
        except tracewalk.TracewalkError as error:
            status, _, said = command("--messages", "json", "flow", capture, "--format", "none")
            assert status != 0 and f'"kind":"{error.kind}"' in said
            return
        whole = pyarrow.table(session.flow())
    _, output, _ = command("flow", capture, "-q", "--format", "parquet")
    expected = plain(parquet(output))
    assert plain(whole).equals(expected)
    assert plain(pyarrow.concat_tables(parts) if parts else whole).equals(expected)
    assert all(part.num_rows <= 1000 for part in parts)
    assert flow.complete is True


def test_values_are_the_commands(command):
    capture = example("m3-etmv3")
    whole = pyarrow.table(tracewalk.open(capture).flow(values=True))
    _, output, _ = command("flow", capture, "--values", "--format", "parquet")
    assert plain(whole).equals(plain(parquet(output)))
    written = [row for row in whole.to_pylist() if row["element"] == "write"]
    assert sum(row["value"] is not None for row in written) > 10_000


def test_parts_differences_and_checks_are_the_commands(command, tmp_path):
    capture = example("m3-etmv3")
    session = tracewalk.open(capture)
    options = ["--from", "1000", "--to", "exception:SysTick#3", "-q", "--format", "parquet"]
    for answer, table in [("profile", "functions"), ("interrupts", "interrupts"), ("timeline", "timeline")]:
        _, output, _ = command(answer, capture, *options)
        part = getattr(session, answer)(start="1000", end="exception:SysTick#3")[table]
        assert plain(pyarrow.table(part)).equals(plain(parquet(output))), answer
        assert part.num_rows > 0
    for start, kind in [("no_such_function", "no_such_function"), ("exception:SysTick#9999", "place_fewer_times")]:
        with pytest.raises(tracewalk.TracewalkError) as error:
            session.profile(start=start)
        assert error.value.kind == kind
    # The base is the whole run; the other one lacks its second half.
    half = tmp_path / "half.bin"
    half.write_bytes((capture.parent / "trace.bin").read_bytes()[:2944])
    options = {"image": capture.parent / "m3.elf", "source": "0x10=etmv3,cpu=cortex-m3", "container": "frames"}
    arguments = ["--image", options["image"], "--source", options["source"], "--container", "frames", "-q"]
    whole = capture.parent / "trace.bin"
    difference = tracewalk.diff(whole, half, **options)
    assert difference.unmet and not tracewalk.diff(whole, whole, **options).unmet
    for table in ["functions", "lines", "sources"]:
        _, output, _ = command("diff", whole, half, *arguments, "--format", "parquet", "--table", table)
        assert plain(pyarrow.table(difference[table])).equals(plain(parquet(output))), table
    base = tmp_path / "base.info"
    command("coverage", whole, *arguments, "-o", base)
    checks = {"base": base, "fail_under": {"lines": 99.9}, "fail_on": ["regression"]}
    checked = tracewalk.open(half, **options).coverage(**checks)
    _, output, said = command("coverage", half, *arguments, "--diff", base, "--fail-on", "regression", "--format",
                              "parquet", "--table", "difference", "--fail-under", "lines=99.9")
    assert plain(pyarrow.table(checked["difference"])).equals(plain(parquet(output)))
    assert checked.unmet and all(sentence in said for sentence in checked.unmet)
    assert not tracewalk.open(whole, **options).coverage(base=base, fail_on="regression").unmet


def test_a_table_goes_to_pandas_polars_and_duckdb():
    import duckdb
    import polars

    lines = tracewalk.open(example("m3-etmv3")).coverage().lines
    rows = lines.to_pylist()
    assert len(rows) == len(lines) == lines.num_rows > 0
    assert list(rows[0]) == lines.column_names == ["file", "line", "count", "state"]
    frame = lines.to_pandas()
    assert frame.to_dict("records") == rows
    assert lines.to_polars().rows(named=True) == rows
    assert polars.DataFrame(lines).rows(named=True) == rows
    table = pyarrow.table(lines)
    counted = duckdb.sql("select count(*), sum(count) from lines").fetchall()
    assert counted == [(len(rows), sum(row["count"] for row in rows))]
    assert table.schema.metadata[b"tracewalk.table"] == b"lines"
    assert table.schema.metadata[b"tracewalk.version"] == b"1"


def test_memory_is_given_back():
    import gc

    before = pyarrow.total_allocated_bytes()
    session = tracewalk.open(example("m3-etmv3"))
    for _ in range(20):
        table = pyarrow.table(session.coverage().lines)
        capsule = session.profile().functions.__arrow_c_stream__()
        del table, capsule
    gc.collect()
    assert pyarrow.total_allocated_bytes() <= before + (1 << 16)
