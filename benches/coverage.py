#!/usr/bin/env python3
"""Measures the cost of coverage over plain flow: processor time of both commands in turn, for the same 50 MB.

    benches/coverage.py TRACEWALK [RUNS] [THREADS]

Repeats the captures of `../shared/corpus/synthetic`. Prints medians and the median of the pairs' ratios.
"""

import os
import pathlib
import shutil
import statistics
import sys
import tempfile

CASES = ["mix-m3-etmv3", "mix-a7-etmv3-alternative", "mix-a9-ptm"]
BYTES = 50 << 20
CORPUS = pathlib.Path(__file__).resolve().parents[2] / "shared/corpus/synthetic"


def processor_time(command):
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    if status:
        sys.exit(f"{' '.join(command)}: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def main():
    program, runs, threads = (sys.argv[1:] + ["5", "1"][len(sys.argv) - 2 :])[:3]
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            capture = pathlib.Path(folder) / case
            shutil.copytree(CORPUS / case, capture)
            trace = (capture / "trace.bin").read_bytes()
            (capture / "trace.bin").write_bytes(trace * (BYTES // len(trace) + 1))
            common = [str(capture), "--quiet", "--image", str(capture / "program.elf"), "--threads", threads]
            flow = [program, "flow", *common, "--format", "none"]
            coverage = [program, "coverage", *common, "--format", "json", "--output", os.devnull]
            pairs = [(processor_time(flow), processor_time(coverage)) for _ in range(int(runs))]
            medians = [statistics.median(times) for times in zip(*pairs)]
            ratio = statistics.median(b / a for a, b in pairs)
            print(f"{case}: flow {medians[0]:.2f} s, coverage {medians[1]:.2f} s, {ratio:.2f} times", flush=True)
            shutil.rmtree(capture)


if __name__ == "__main__":
    main()
