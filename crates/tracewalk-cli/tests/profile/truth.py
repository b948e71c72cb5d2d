#!/usr/bin/env python3
"""The calls and costs of a recorded run: the truth that the tests compare `tracewalk profile` with.

This script shares no code with tracewalk. The record lists the instructions that ran (testdata/firmware/README.md), pyelftools
reads symbols and inlined calls, Capstone decodes which instructions call and which branch. The script keeps a stack,
instruction by instruction: a call pushes its return address, a jump to an entry's return address returns, any other jump to
another function replaces the innermost one, an exception pushes and its return pops. A call of setjmp records the number of
entries, and longjmp restores it.

    truth.py --elf FILE --record FILE [--behind-first-run] [--count N] [--cycles FILE] [--contexts | --tasks]

--cycles names a file with the number of cycles that had passed after each step (`tracewalk-generate capture --times FILE` writes
it). --contexts keeps a stack for each context ID, --tasks one for each address at which handlers left a task. Prints JSON: chains of calls with their exclusive costs, without and with
inlined functions; functions, lines and edges with counts; the number of functions that each long jump left. Costs are lists:
instructions, and cycles if --cycles is given.
"""

import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
from collections import defaultdict

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "coverage"), str(HERE.parent / "support")]

from elftools.elf.elffile import ELFFile  # noqa: E402
from record import SYNCHRONOUS, lines  # noqa: E402
from truth import Code, Lines  # noqa: E402

EXCEPTIONS = {
    "m": {3: "HardFault", 5: "BusFault", 6: "UsageFault", 11: "SVCall", 14: "PendSV", 15: "SysTick"},
    "ar": {9: "Undefined instruction", 10: "SVC", 11: "Prefetch abort", 12: "Data abort", 14: "IRQ"},
    "a64": {2: "Call", 3: "Trap", 6: "Instruction debug", 11: "Instruction fault", 12: "Data fault", 14: "IRQ"},
}


class Program:
    def __init__(self, path):
        elf = ELFFile(open(path, "rb"))
        self.code, self.lines = Code(elf), Lines(elf)
        self.function = functools.cache(self.find_function)
        self.chain, self.place = functools.cache(self.lines.chain), functools.cache(self.lines.place)
        self.names = {}
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol.name and not symbol.name.startswith("$"):
                kind = symbol["st_info"]["type"]
                known = self.names.get(symbol["st_value"] & ~1)
                if known is None or (kind == "STT_FUNC" and known[0] != "STT_FUNC"):
                    self.names[symbol["st_value"] & ~1] = (kind, symbol.name)
        mangled = "\n".join(name for _, name in self.names.values())
        names = subprocess.run(["c++filt", "-s", "rust"], input=mangled, capture_output=True, text=True, check=True).stdout
        # Crates have hashes.
        names = re.sub(r"\[[0-9a-f]{16}\]", "", names)
        self.names = {start: (kind, name) for (start, (kind, _)), name in zip(self.names.items(), names.splitlines())}

    def find_function(self, address):
        """A function by its first address and its name."""
        found = self.code.function_of(address)
        if found:
            return (found[0], self.names[found[0]][1])
        return (address, f"0x{address:0{8 if address < 1 << 32 else 16}x} (in no image)")


def read(path, undefined=True):
    """The profile and the items: instructions, exceptions, returns from them, context IDs, in order."""
    profile, items = None, []
    for words in lines(path, undefined):
        if words[0] in "DLOS":
            continue
        if words[0] == "P":
            profile = words[1]
        elif words[0] == "R":
            items.append(("run", int(words[1], 16), int(words[2], 16), words[3]))
        elif words[0] == "X":
            items.append(("exception", int(words[1]), None if words[2] == "-" else int(words[2], 16)))
        elif words[0] == "T":
            items.append(("return",))
        elif words[0] == "C":
            items.append(("context", int(words[1], 16), int(words[2], 16)))
        else:
            raise ValueError(words)
    return profile, items


def returns_from_exception(code, instruction):
    """Whether the encoding is RFE, MOVS PC and the like, or LDM with ^ (DDI 0406C, B9.3)."""
    word = int.from_bytes(code.bytes_at(instruction.address, 4), "little")
    if instruction.isa == "t32":
        word = word >> 16 | (word & 0xFFFF) << 16
        return instruction.size == 4 and (word & 0xFFD0FFFF in (0xE990C000, 0xE810C000) or word & 0xFFFFFF00 == 0xF3DE8F00)
    rfe = word & 0xFE50FFFF == 0xF8100A00
    load = word & 0x0E508000 == 0x08508000 and word >> 28 != 15
    move = word & 0x0C10F000 == 0x0010F000 and word >> 28 != 15 and word >> 23 & 3 != 2
    return rfe or load or move


def steps(code, items, find_returns):
    """The items, instruction by instruction; a context ID comes after the instruction that sets it."""
    for index, item in enumerate(items):
        if item[0] != "run":
            if item[0] != "context":
                yield item
            continue
        following = index + 1
        changes = {}
        while following < len(items) and items[following][0] == "context":
            changes[items[following][1]] = items[following][2]
            following += 1
        _, at, end, isa = item
        while at < end:
            instruction = code.at(at, isa)
            yield ("instruction", at, instruction)
            if find_returns and returns_from_exception(code, instruction):
                yield ("return",)
            if at in changes:
                yield ("context", changes[at])
            at += instruction.size


class Frame:
    def __init__(self, parent, function, returns_to, exception=None, site=None):
        self.function, self.returns_to, self.exception, self.site = function, returns_to, exception, site
        self.parent = parent


class Calls:
    """The stack, and its counts and costs."""

    def __init__(self, program, profile, contexts, tasks=False):
        self.program, self.profile = program, profile
        self.context, self.stacks = (0 if contexts else None), {}
        # With tasks: where each stack that does not run goes on, and the stack.
        self.suspended = [] if tasks else None
        self.stack, self.last, self.came = [], None, "start"
        self.own = defaultdict(lambda: [0, 0])
        self.own_inlined = defaultdict(lambda: [0, 0])
        self.lines = defaultdict(lambda: [0, 0])
        self.calls, self.edge_calls = defaultdict(int), defaultdict(int)
        self.total, self.edge_total = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0])
        self.before, self.is_first = None, False
        # The return address of each setjmp call, and the number of entries at that time.
        self.saved, self.jumps = {}, []

    # -- what happens

    def step(self, item, cycles):
        if item[0] == "instruction":
            self.arrive(item[1])
            self.spend(item[1], cycles)
            self.last, self.came = item[2], "on"
        elif item[0] == "exception":
            if item[2] is not None and self.stack:
                self.arrive(item[2])
            returns_to = item[2] if item[2] is not None else self.before
            self.stack.append(Frame(self.top(), None, returns_to, exception=item[1]))
            self.last, self.came = None, "exception"
        elif item[0] == "return" and all(frame.exception is None for frame in self.stack):
            # After a reset, software enters a lower exception level and its first task in this way.
            self.stack, self.last, self.came = [], None, "on"
        elif item[0] == "return":
            while self.stack and self.stack[-1].exception is None:
                self.stack.pop()
            if self.stack:
                self.before = self.stack.pop().returns_to
            self.last, self.came = None, "return"
        elif item[0] == "context" and self.context is not None:
            self.stacks[self.context], self.context = self.stack, item[1]
            self.stack = self.stacks.get(item[1], [])
            self.last, self.came = None, "context"

    def top(self):
        return self.stack[-1] if self.stack else None

    def arrive(self, at):
        function, last = self.program.function(at), self.last
        if self.came == "exception":
            # The handler's first function takes the exception's frame.
            self.stack[-1].function = function
            self.count(self.stack[-1])
        elif self.came == "context":
            inside = [i for i, frame in enumerate(self.stack) if frame.function == function]
            del self.stack[inside[-1] + 1 if inside else 0 :]
        elif self.came == "return" and self.suspended is not None:
            self.resume(at)
        elif self.came == "return" and at != self.before:
            # The handler of a call to nowhere returns to the instruction after the call.
            self.come_back(at)
        elif last is not None and last.branch and (at != last.address + last.size or not last.conditional):
            following = last.address + last.size
            # A call of the next instruction asks for an address.
            if last.call and last.target != following:
                self.stack.append(Frame(self.top(), function, following, site=last.address))
                self.count(self.stack[-1])
                if function[1] in ("setjmp", "save"):
                    self.saved[following] = len(self.stack) - 1
            elif last.target is None and self.stack[-1].function[1] in ("longjmp", "jump_back"):
                self.jumps.append(len(self.stack) - self.saved[at])
                del self.stack[self.saved[at] :]
            elif last.target is None:
                self.come_back(at)
        self.came, self.last = "on", None
        # Whether the outermost function was already running.
        self.is_first = not self.stack
        if not self.stack:
            self.stack.append(Frame(None, function, None))
        elif self.stack[-1].function != function:
            old = self.stack.pop()
            new = Frame(old.parent, function, old.returns_to, old.exception, old.site)
            self.stack.append(new)
            if function[0] == at:
                self.count(new)

    def resume(self, at):
        """Continues the stack that was left at this address: that of the exception that returned, another task's, or a new one."""
        stacks = [(self.before, self.stack), *self.suspended]
        found = [index for index, (address, _) in enumerate(stacks) if address == at]
        assert len(found) < 2, f"the record does not say which task goes on at {at:x}"
        if found:
            self.stack = stacks.pop(found[0])[1]
        elif self.stack and self.program.function(at) in {frame.function for frame in self.stack[-2:]}:
            # The handler of a fault left out the instruction, or a call of nothing.
            stacks.pop(0)
            self.come_back(at)
        else:
            self.stack = []
        self.suspended = stacks

    def come_back(self, at):
        for index in range(len(self.stack) - 1, -1, -1):
            frame = self.stack[index]
            if frame.exception is not None:
                return
            if frame.returns_to == at:
                del self.stack[index:]
                return

    # -- what is counted

    def count(self, frame):
        self.calls[frame.function] += 1
        caller = self.caller(frame)
        if caller:
            self.edge_calls[(caller, frame.function)] += 1

    def caller(self, frame):
        """The function that called or, by an instruction of its own, raised the exception."""
        if frame.exception is not None and frame.exception not in SYNCHRONOUS[self.profile]:
            return None
        return frame.parent and frame.parent.function

    def chain(self):
        """The frames up to the outermost, or up to an interrupt."""
        frames = []
        for frame in reversed(self.stack):
            frames.append(frame)
            if frame.exception is not None and frame.exception not in SYNCHRONOUS[self.profile]:
                break
        return frames[::-1]

    def spend(self, at, cycles):
        self.charge(at, (1, cycles))

    def charge(self, at, cost):
        frames = self.chain()
        names, inlined = [], []
        interrupted = frames[0].exception is not None
        if self.context is not None and not interrupted:
            names.append(f"[context 0x{self.context:x}]")
            inlined.append(names[0])
        for index, frame in enumerate(frames):
            if frame.exception is not None:
                name = self.name(frame.exception)
                names.append(f"[{name}]")
                inlined.append(f"[{name}]")
            names.append(frame.function[1])
            inlined.append(frame.function[1])
            # The call of the next frame, or the place of execution, may be in an inlined function.
            inner = frames[index + 1] if index + 1 < len(frames) else None
            place = at if inner is None else inner.site
            if place is not None:
                inlined += [f"{name}_[i]" for name, _, _ in self.program.chain(place)]
        add(self.own[";".join(names)], cost)
        add(self.own_inlined[";".join(inlined)], cost)
        file, line = self.program.place(at) if at is not None else (None, None)
        add(self.lines[(frames[-1].function[1], f"{file}:{line}" if file and line else "?")], cost)
        for function in {frame.function for frame in frames}:
            add(self.total[function], cost)
        edges = {(self.caller(frame), frame.function) for frame in frames}
        for edge in edges:
            if edge[0]:
                add(self.edge_total[edge], cost)

    def cancelled(self, cycles):
        """Charges the cycles of an instruction that the exception on the top of the stack cancelled."""
        exception = self.stack.pop()
        if self.stack and cycles:
            self.charge(None, (0, cycles))
        self.stack.append(exception)

    def name(self, exception):
        if self.profile == "m" and exception >= 16:
            return f"IRQ{exception - 16}"
        return EXCEPTIONS[self.profile][exception]


class Cycles:
    """The cycles of each instruction, exception and return; an exception's cycles are those of the instruction that it cancelled."""

    def __init__(self, path):
        self.left, before = [], 0
        for line in open(path) if path else ():
            words = line.split()
            now = int(words[-1])
            self.left.append((words[0], words[1] if words[0] == "I" else None, now - before))
            before = now
        self.left.reverse()

    def of(self, item):
        if not self.left or item[0] == "context":
            return 0
        kind, at, count = self.left.pop()
        expected = {"instruction": "I", "exception": "X", "return": "T"}[item[0]]
        assert (kind, at) == (expected, f"{item[1]:x}" if kind == "I" else None), f"{item} has the time of {kind} {at}"
        return count


def add(sum_, cost):
    sum_[0] += cost[0]
    sum_[1] += cost[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elf", required=True)
    parser.add_argument("--record", required=True)
    parser.add_argument("--profile", choices=["m", "ar", "a64"])
    parser.add_argument("--behind-first-run", action="store_true", help="what ran before the first branch is not known")
    parser.add_argument("--count", type=int, help="how many instructions are known")
    parser.add_argument("--cycles")
    parser.add_argument("--contexts", action="store_true")
    parser.add_argument("--tasks", action="store_true", help="handlers return to other tasks")
    parser.add_argument("--without-undefined", action="store_true", help="undefined instructions do not count, as in ETMv4")
    options = parser.parse_args()
    program = Program(options.elf)
    profile, items = read(options.record, not options.without_undefined)
    cycles = Cycles(options.cycles)
    calls = Calls(program, profile or options.profile, options.contexts, options.tasks)
    # Traces of A profile do not mark returns from exceptions, and neither do runs.
    find_returns = calls.profile == "ar" and ("return",) not in items
    all_steps = list(steps(program.code, items, find_returns))
    count = sum(item[0] == "instruction" for item in all_steps)
    start = 0
    if options.behind_first_run:
        first_run = next(item for item in items if item[0] == "run")
        # The branch itself is traced.
        start = sum(item[0] == "instruction" for item in steps(program.code, [first_run], False)) - 1
    end = count if options.count is None else start + options.count
    done = 0
    for item in all_steps:
        if item[0] == "instruction":
            if done >= end:
                break
            if done == start:
                # Earlier execution is unknown.
                calls = Calls(program, profile or options.profile, options.contexts, options.tasks)
            done += 1
        spent = cycles.of(item)
        calls.step(item, spent)
        if item[0] == "exception":
            calls.cancelled(spent)
    named = lambda found: {f"{start:x} {name}": value for (start, name), value in found.items()}
    edges = lambda found: {f"{a[0]:x} {a[1]} > {b[0]:x} {b[1]}": value for (a, b), value in found.items()}
    json.dump(
        {
            "steps": count,
            "folded": calls.own,
            "folded_inlined": calls.own_inlined,
            "calls": named(calls.calls),
            "total": named(calls.total),
            "edge_calls": edges(calls.edge_calls),
            "edge_total": edges(calls.edge_total),
            "lines": {f"{function} {line}": value for (function, line), value in calls.lines.items()},
            "jumps": calls.jumps,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
