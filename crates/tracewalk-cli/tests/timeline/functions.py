#!/usr/bin/env python3
"""How often a recorded run called functions and how many instructions each call took: the truth that the tests compare
`tracewalk interrupts --functions` with.

This script shares no code with tracewalk. tests/profile/truth.py keeps a stack, instruction by instruction; this script watches
the frames that are pushed and popped.

    functions.py --elf FILE --record FILE [--profile m|ar|a64] [--first N]

prints JSON: the figures of each function.
"""

import argparse
import importlib.util
import json
import pathlib
from collections import defaultdict

HERE = pathlib.Path(__file__).resolve().parent


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


profile_truth = load("profile_truth", HERE.parent / "profile" / "truth.py")


def figures(lengths):
    lengths = sorted(lengths)
    if not lengths:
        return {"count": 0, "sum": 0, "min": None, "p99": None, "max": None}
    p99 = lengths[-(-len(lengths) * 99 // 100) - 1]
    return {"count": len(lengths), "sum": sum(lengths), "min": lengths[0], "p99": p99, "max": lengths[-1]}


class Watched:
    """The lifetimes of a stack's frames."""

    def __init__(self, calls):
        self.calls, self.now = calls, 0
        self.open = {}
        self.found = defaultdict(lambda: {"starts": [], "with": [], "without": [], "cut": 0})
        self.taken = {}

    def step(self, item):
        self.calls.is_first = False
        self.calls.step(item, 0)
        if item[0] == "exception":
            # The handler's first instruction identifies its function, but the function begins here.
            self.taken[id(self.calls.stack[-1])] = self.now
        self.look()
        if item[0] == "instruction":
            self.now += 1
            self.spend()

    def look(self):
        stacks = [self.calls.stack, *(stack for _, stack in self.calls.suspended or ())]
        there = {id(frame): frame for stack in stacks for frame in stack if frame.function is not None}
        for key in [key for key in self.open if key not in there]:
            self.end(*self.open.pop(key))
        for key, frame in there.items():
            if key not in self.open:
                # The first function was already running; a later outermost function replaced another one.
                seen = not self.calls.is_first or frame.exception is not None
                since = self.taken.pop(key, self.now)
                # Keeping the frame prevents another one from getting its id.
                self.open[key] = (frame, since if seen else None, [0])
                if seen:
                    self.found[frame.function]["starts"].append(since)

    def spend(self):
        """Charges an instruction to every running function, up to the innermost interrupt."""
        synchronous = profile_truth.SYNCHRONOUS[self.calls.profile]
        for frame in reversed(self.calls.stack):
            if id(frame) in self.open:
                self.open[id(frame)][2][0] += 1
            if frame.exception is not None and frame.exception not in synchronous:
                return

    def end(self, frame, since, without):
        found = self.found[frame.function]
        if since is None:
            found["cut"] += 1
        else:
            found["with"].append(self.now - since)
            found["without"].append(without[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elf", required=True)
    parser.add_argument("--record", required=True)
    parser.add_argument("--profile", choices=["m", "ar", "a64"])
    parser.add_argument("--tasks", action="store_true", help="handlers return to other tasks")
    parser.add_argument("--without-undefined", action="store_true", help="undefined instructions do not count, as in ETMv4")
    parser.add_argument("--first", type=int, default=1 << 62)
    options = parser.parse_args()
    program = profile_truth.Program(options.elf)
    profile, items = profile_truth.read(options.record, not options.without_undefined)
    calls = profile_truth.Calls(program, profile or options.profile, False, options.tasks)
    watched = Watched(calls)
    find_returns = calls.profile == "ar" and ("return",) not in items
    for item in profile_truth.steps(program.code, items, find_returns):
        if watched.now >= options.first:
            break
        watched.step(item)
    for frame, _, _ in watched.open.values():
        watched.found[frame.function]["cut"] += 1
    result = {}
    for (_, name), found in watched.found.items():
        starts = found["starts"]
        result[name] = {
            "count": len(starts),
            "cut": found["cut"],
            "with_preemption": figures(found["with"]),
            "without_preemption": figures(found["without"]),
            "inter_arrival": figures([later - earlier for earlier, later in zip(starts, starts[1:])]),
        }
    print(json.dumps(result))


main()
