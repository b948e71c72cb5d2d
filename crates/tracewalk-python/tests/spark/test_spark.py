"""A cluster returns the result of one machine, even if it loses an executor."""

import csv
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import tracewalk
import tracewalk.spark

ROOT = pathlib.Path(__file__).parents[4]
EXAMPLES = ROOT / "testdata" / "examples"
CAPTURES = 200


@pytest.fixture(scope="module")
def spark():
    """Two executors in processes of their own."""
    # The workers use this Python's packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tracewalk")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4")
    # Tasks of a lost executor are repeated.
    session = builder.config("spark.task.maxFailures", "8").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Captures of two programs, each with a different length of trace; one is broken, and one is missing."""
    folder = tmp_path_factory.mktemp("fleet")
    paths = []
    for number in range(CAPTURES):
        name = ("m3-etmv3", "a7-etmv3")[number % 3 == 2]
        place = folder / f"{number:03}"
        shutil.copytree(EXAMPLES / name, place)
        trace = (place / "trace.bin").read_bytes()
        # Whole frames are kept, so that nothing is damaged.
        (place / "trace.bin").write_bytes(trace[: len(trace) - 16 * (number % 50)])
        paths.append(place / "capture.toml")
    paths[17].write_text("[capture")
    shutil.rmtree(paths[101].parent)
    return paths


def gathered(fleet, folder, answer):
    """The sum that one machine saves, and its table of captures."""
    command = os.environ.get("TRACEWALK", str(ROOT / "target" / "debug" / "tracewalk"))
    listed, saved, table = folder / "list.txt", folder / f"all.{answer}", folder / "captures.csv"
    listed.write_text("\n".join(map(str, fleet)))
    arguments = [answer, f"@{listed}", "--save", saved, "--captures", table, "-q"]
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, check=False)
    # Two captures are left out.
    assert done.returncode == 2, done.stderr
    return saved, list(csv.DictReader(io.StringIO(table.read_text())))


def executors(spark):
    """The processes of this cluster's executors."""
    wanted, found = spark.sparkContext.applicationId, []
    for process in pathlib.Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace") if process.name.isdigit() else ""
        except OSError:
            continue
        if "CoarseGrainedExecutorBackend" in command and wanted in command:
            found.append(int(process.name))
    return found


def kill_one(spark, done):
    """Kills an executor as soon as the cluster has completed a task."""
    tracker, deadline = spark.sparkContext.statusTracker(), time.monotonic() + 120
    while time.monotonic() < deadline:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage and stage.numTasks > 2 and stage.numCompletedTasks > 0 for stage in stages):
            running = executors(spark)
            os.kill(running[0], signal.SIGKILL)
            done.append(running[0])
            return
        time.sleep(0.01)


def ordered(rows):
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def test_counts_of_a_fleet_are_those_of_one_machine_though_an_executor_is_lost(spark, fleet, tmp_path):
    saved, captures = gathered(fleet, tmp_path, "counts")
    killed = []
    killer = threading.Thread(target=kill_one, args=(spark, killed))
    killer.start()
    begin = time.monotonic()
    result = tracewalk.spark.counts(spark, fleet, partitions=16)
    ranges = [row.asDict() for row in result.ranges.collect()]
    seconds = time.monotonic() - begin
    killer.join()
    assert len(killed) == 1, "no executor was killed"
    expected = tracewalk.read(saved).counts()
    assert ordered(ranges) == ordered(expected.ranges.to_pylist())
    branches = [row.asDict() for row in result.branches.collect()]
    assert ordered(branches) == ordered(expected.branches.to_pylist())
    rows = [row.asDict() for row in result.captures.collect()]
    found = {row["capture"]: row for row in rows}
    assert len(rows) == len(found) == CAPTURES
    for row in captures:
        one = found[row["capture"]]
        assert one["outcome"] == row["outcome"] and (one["error"] or "") == row["error"]
        assert str(one["instructions"] if one["instructions"] is not None else "") == row["instructions"]
    assert found[str(fleet[17])]["outcome"] == found[str(fleet[101])]["outcome"] == "left_out"
    result.save(tmp_path / "spark.twcounts")
    assert (tmp_path / "spark.twcounts").read_bytes() == saved.read_bytes()
    result.unpersist()
    instructions = sum(row["instructions"] or 0 for row in rows)
    print(f"{CAPTURES} captures, {instructions} instructions, {seconds:.1f} s on 2 executors, one of them killed")


def test_coverage_comes_with_the_images_of_each_capture(spark, fleet, tmp_path):
    image = [str(EXAMPLES / "m3-etmv3" / "m3.elf")]
    paths = [path for number, path in enumerate(fleet) if number % 3 != 2][:12]
    frame = spark.createDataFrame([(str(path), image) for path in paths], "path string, images array<string>")
    result = tracewalk.spark.coverage(spark, frame, partitions=3, isolate=True)
    lines = [row.asDict() for row in result.lines.collect()]
    expected = tracewalk.gather(paths, answer="coverage", image=image).coverage(image=image)
    assert ordered(lines) == ordered(expected.lines.to_pylist())
    with pytest.raises(AttributeError):
        _ = result.columns_of_nothing
