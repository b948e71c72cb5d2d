"""Sessions: opening captures, notices and errors, and ending work early."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
from conftest import EXAMPLES, example

import tracewalk


def test_a_session_says_what_it_is():
    session = tracewalk.open(example("m3-etmv3"))
    [source] = session.sources
    assert (source.id, source.protocol, source.cpu) == (0x10, "etmv3", "cortex-m3")
    assert "etmv3" in repr(session) and "etmv3" in repr(source)
    answer = session.coverage()
    assert answer.statistics["instructions"] > 0 and answer.statistics["gaps"] == 0
    assert [table.name for table in answer.tables] == ["files", "functions", "lines", "branches"]
    assert answer["lines"].num_rows == answer.lines.num_rows
    assert "lines" in repr(answer) and "rows" in repr(answer.lines)
    with pytest.raises(KeyError):
        answer["columns"]


def test_a_notebook_shows_tables():
    page = tracewalk.open(example("m3-etmv3")).profile().functions._repr_html_()
    assert page.startswith("<table>") and "<th>function</th>" in page and page.count("<tr>") <= 21
    assert "0x" in page and "<script" not in page


def test_what_is_stated_is_the_commands_options(command):
    folder = EXAMPLES / "m3-etmv3"
    session = tracewalk.open(
        folder / "trace.bin", image=folder / "m3.elf", source="0x10=etmv3,cpu=cortex-m3", container="frames"
    )
    assert session.sources[0].id == 0x10
    described = tracewalk.open(folder / "capture.toml")
    assert session.counts().ranges.to_pylist() == described.counts().ranges.to_pylist()
    only = tracewalk.open(folder / "capture.toml", ids=[0x10], threads=1, memory="1G")
    assert len(only.sources) == 1


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"container": "box"}, "arguments"),
        ({"ids": [0]}, "arguments"),
        ({"source": "0x10=etmv9"}, "arguments"),
        ({"memory": "much"}, "arguments"),
        ({"doubtful": "perhaps"}, "arguments"),
        ({"image": "no-such.elf"}, "file_missing"),
    ],
)
def test_mistakes_are_named(options, kind):
    with pytest.raises(tracewalk.TracewalkError) as raised:
        tracewalk.open(example("m3-etmv3"), **options)
    assert raised.value.kind == kind


def test_what_cannot_be_opened_has_the_commands_sentence(command, tmp_path):
    nothing = tmp_path / "nothing.bin"
    for missing in [nothing, tmp_path]:
        with pytest.raises(tracewalk.TracewalkError) as raised:
            tracewalk.open(missing)
        status, _, said = command("flow", missing)
        assert status != 0
        assert said.strip().splitlines()[-1] == f"error: {raised.value}"


def test_doubts_are_warnings(tmp_path):
    folder = EXAMPLES / "m3-etmv3"
    damaged = bytearray((folder / "trace.bin").read_bytes())
    damaged[len(damaged) // 2 : len(damaged) // 2 + 64] = bytes(64)
    (tmp_path / "trace.bin").write_bytes(damaged)
    with pytest.warns(tracewalk.TracewalkWarning):
        session = tracewalk.open(
            tmp_path / "trace.bin", image=folder / "m3.elf", source="0x10=etmv3,cpu=cortex-m3", container="frames"
        )
        answer = session.coverage()
    assert any(notice.severity != "note" for notice in session.notices)
    assert answer.notices and all(notice.message and notice.kind for notice in answer.notices)
    assert hash(answer.notices[0]) == hash(answer.notices[0]) and answer.notices[0] == answer.notices[0]


def test_threads_share_a_session():
    session = tracewalk.open(example("m3-etmv3"))
    expected = session.coverage().lines.to_pylist()
    found, errors = [], []

    def work():
        try:
            found.append(session.coverage().lines.to_pylist())
            found.append(tracewalk.open(example("m3-etmv3")).coverage().lines.to_pylist())
        except BaseException as error:  # noqa: BLE001: whatever it is, it is shown
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(found) == 12 and all(lines == expected for lines in found)


def long_capture(folder, times):
    """An example, repeated until its decoding takes measurable time."""
    trace = (EXAMPLES / "m3-etmv3" / "trace.bin").read_bytes()
    path = folder / "long.bin"
    path.write_bytes(trace * times)
    return path


def opened(path, **options):
    return tracewalk.open(
        path,
        image=EXAMPLES / "m3-etmv3" / "m3.elf",
        source="0x10=etmv3,cpu=cortex-m3",
        container="frames",
        threads=1,
        **options,
    )


def test_progress_is_reported_and_may_end_the_work(tmp_path):
    path = long_capture(tmp_path, 400)
    reports = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = opened(path, progress=lambda done, all: reports.append((done, all)))
        session.profile()
        assert all(0 <= done for done, _ in reports)

        class Enough(Exception):
            pass

        def end(done, all):
            raise Enough

        with pytest.raises(Enough):
            session = opened(path, progress=end)
            for _ in range(100):
                session.profile()
        # Work that was ended does not affect later sessions.
        assert opened(path).info().complete


def test_a_flow_can_be_left_and_does_not_run_ahead(tmp_path):
    path = long_capture(tmp_path, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = opened(path)
        with session.flow(rows=100) as flow:
            first = next(flow)
            assert first.num_rows == 100 and flow.complete is None
        assert list(flow) == []
        with pytest.raises(tracewalk.TracewalkError):
            flow.__arrow_c_stream__()


def test_control_c_ends_the_work(tmp_path):
    path = long_capture(tmp_path, 2000)
    program = f"""
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from test_session import opened
session = opened({str(path)!r})
print("begun", flush=True)
try:
    while True:
        session.profile()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output == "interrupted\n", output
    assert process.returncode == 0


def test_a_flow_of_any_length_needs_little_memory(tmp_path):
    resource = pytest.importorskip("resource")
    path = long_capture(tmp_path, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, session = 0, opened(path)
        for index, part in enumerate(session.flow(names=False)):
            rows += part.num_rows
            if index == 5:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert rows > 20 * 16384
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 32 << 10, (before, after)


def test_the_package_has_its_types():
    folder = pathlib.Path(tracewalk.__file__).parent
    assert (folder / "py.typed").is_file() and (folder / "_native.pyi").is_file()
    assert os.environ.get("TRACEWALK_VERSION", tracewalk.__version__) == tracewalk.__version__
