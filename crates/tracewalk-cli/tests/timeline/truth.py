#!/usr/bin/env python3
"""How often a recorded run took exceptions and how long they took: the truth that the tests compare `tracewalk interrupts`
and `tracewalk timeline` with.

This script shares no code with tracewalk. A record lists the code that ran (testdata/firmware/README.md), and the ELF file's bytes
give the number of instructions; or the generator gives the number of cycles at each step (`tracewalk-generate --times`).

    truth.py --elf FILE --record FILE [--first N]     in instructions, of the first N
    truth.py --times FILE [--first N]                 in cycles

prints JSON: the figures of each exception number, and the spans of all exceptions in order.
"""

import argparse
import json
import pathlib
import struct
import sys
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from record import SYNCHRONOUS, lines  # noqa: E402


def segments(path):
    """The bytes of an ELF file's loadable segments, by address (ELF 1.2, figures 1-3 and 2-1)."""
    data = open(path, "rb").read()
    assert data[:4] == b"\x7fELF" and data[5] == 1, "a little-endian ELF file"
    wide = data[4] == 2
    offset = struct.unpack_from("<Q", data, 32)[0] if wide else struct.unpack_from("<I", data, 28)[0]
    size, count = struct.unpack_from("<HH", data, 54 if wide else 42)
    for index in range(count):
        if wide:
            kind, _, start, address, _, length = struct.unpack_from("<IIQQQQ", data, offset + index * size)
        else:
            kind, start, address, _, length = struct.unpack_from("<IIIII", data, offset + index * size)
        if kind == 1:
            yield address, data[start : start + length]


class Code:
    def __init__(self, path):
        self.segments = list(segments(path))
        self.known = {}

    def instructions(self, start, end, isa):
        """The number of instructions in a run."""
        if isa != "t32":
            return (end - start) // 4
        key = (start, end)
        if key not in self.known:
            count, at = 0, start
            while at < end:
                count += 1
                # The first halfword of a 32-bit Thumb instruction begins with 0b11101, 0b11110 or 0b11111.
                at += 4 if self.halfword(at) >> 11 in (0b11101, 0b11110, 0b11111) else 2
            assert at == end, f"run {start:x} {end:x} ends inside an instruction"
            self.known[key] = count
        return self.known[key]

    def halfword(self, address):
        for start, data in self.segments:
            if start <= address < start + len(data):
                return struct.unpack_from("<H", data, address - start)[0]
        raise SystemExit(f"no code at {address:x}")


class Events:
    """Exceptions taken and returned from: (when, number or None for a return, whether nothing ran since a return).

    If a record does not contain returns, an exception has returned when execution continues at its return address. An exception
    that is taken immediately at that address replaced the return.
    """

    def __init__(self, returns_are_traced):
        self.list = []
        self.returns_are_traced = returns_are_traced
        self.open = []
        self.returned = None

    def taken(self, now, number, returns_to):
        if not self.returns_are_traced and self.open and self.open[-1] == returns_to:
            self.back(now)
        # Nothing ran since the exception before returned, to the same place or to another task.
        chained = returns_to == "-" or self.returned is not None and self.returned[0] == now
        self.list.append((now, number, chained))
        if returns_to == "-" and self.returned:
            returns_to = self.returned[1]
        self.open.append(returns_to)

    def back(self, now):
        self.returned = (now, self.open.pop() if self.open else None)
        self.list.append((now, None, False))

    def at(self, now, address):
        if not self.returns_are_traced and self.open and self.open[-1] == address:
            self.back(now)


def from_record(elf, record, first, undefined):
    """The events, each after a number of instructions."""
    items = list(lines(record, undefined))
    code, now = Code(elf), 0
    events = Events(any(fields[0] == "T" for fields in items))
    for fields in items:
        if now >= first:
            break
        if fields[0] == "R":
            events.at(now, fields[1])
            now += code.instructions(int(fields[1], 16), int(fields[2], 16), fields[3])
        elif fields[0] == "X":
            events.taken(now, int(fields[1]), fields[2])
        elif fields[0] == "T":
            events.back(now)
    return events.list, min(now, first)


def from_times(times, first):
    """The events, each at a number of cycles."""
    events, now, ran = Events(True), 0, 0
    for line in open(times):
        fields = line.split()
        if fields[0] not in "IXT":
            continue
        if ran >= first:
            break
        now = int(fields[-1])
        if fields[0] == "I":
            ran += 1
        elif fields[0] == "X":
            events.taken(now, int(fields[1]), fields[2])
        else:
            events.back(now)
    return events.list, now


def figures(lengths):
    lengths = sorted(lengths)
    if not lengths:
        return {"count": 0, "sum": 0, "min": None, "p99": None, "max": None}
    return {
        "count": len(lengths),
        "sum": sum(lengths),
        "min": lengths[0],
        "p99": lengths[-(-len(lengths) * 99 // 100) - 1],
        "max": lengths[-1],
    }


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--elf")
    arguments.add_argument("--record")
    arguments.add_argument("--times")
    arguments.add_argument("--profile", choices=["m", "ar", "a64"], required=True)
    arguments.add_argument("--without-undefined", action="store_true", help="undefined instructions do not count, as in ETMv4")
    arguments.add_argument("--first", type=int, default=1 << 62)
    arguments = arguments.parse_args()
    if arguments.times:
        events, end = from_times(arguments.times, arguments.first)
    else:
        events, end = from_record(arguments.elf, arguments.record, arguments.first, not arguments.without_undefined)

    taken = defaultdict(lambda: {"starts": [], "with": [], "without": [], "chained": 0, "preempting": 0, "cut": 0})
    spans, stack = [], []
    synchronous = SYNCHRONOUS[arguments.profile]
    for now, number, chained in events:
        if number is None:
            if stack:
                number, start, interrupted = stack.pop()
                taken[number]["with"].append(now - start)
                taken[number]["without"].append(now - start - interrupted)
                spans.append([number, start, now])
                if stack:
                    # The time of an interrupt is not the outer exception's own; the time of a supervisor call is.
                    stack[-1][2] += interrupted if number in synchronous else now - start
            continue
        taken[number]["preempting"] += number not in synchronous and bool(stack)
        # What an instruction raises itself is not chained to what returned to this instruction.
        taken[number]["chained"] += chained and number not in synchronous
        taken[number]["starts"].append(now)
        stack.append([number, now, 0])
    for number, _, _ in stack:
        taken[number]["cut"] += 1

    result = {}
    for number, found in taken.items():
        starts = found["starts"]
        result[number] = {
            "count": len(starts),
            "tail_chained": found["chained"],
            "preempting": found["preempting"],
            "cut": found["cut"],
            "with_preemption": figures(found["with"]),
            "without_preemption": figures(found["without"]),
            "inter_arrival": figures([later - earlier for earlier, later in zip(starts, starts[1:])]),
        }
    print(json.dumps({"exceptions": result, "spans": sorted(spans, key=lambda span: (span[1], -span[2])), "end": end}))


main()
