#!/usr/bin/env python3
"""Reads QEMU's log of a run of kernel-f or kernel-z; prints its stores to the current-task pointer, and the runs of its tasks.

    tasks.py --options ELF       the options of ../accesses.c that list the stores
    tasks.py ELF LOG

../README.md describes the output. Nothing in it depends on tracewalk. Needs gdb-multiarch, for the layout of a control block.
"""

import re
import subprocess
import sys

MEMBERS = {
    "kernel-f.elf": ("pxCurrentTCB", "pcTaskName", "usNumber", "pxEntry"),
    "kernel-z.elf": ("_kernel.cpus[0].current", "name", "base.number", "entry.pEntry"),
}


def gdb(elf, *commands):
    options = [option for command in commands for option in ("-ex", command)]
    return subprocess.run(["gdb-multiarch", "-nx", "-batch", elf, *options], check=True, capture_output=True, text=True).stdout


def layout(elf):
    """The pointer's address, a control block's size, and the offsets of name, number and entry."""
    pointer, *members = MEMBERS[elf.rsplit("/", 1)[-1]]
    values = [f"&{pointer}", "sizeof(task_t)", *(f"&((task_t *)0)->{member}" for member in members)]
    return [int(word) for word in gdb(elf, *(f'printf "%u\\n", {value}' for value in values)).split()]


def functions(elf):
    lines = subprocess.run(["arm-none-eabi-nm", elf], check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(address, 16) & ~1: name for address, kind, name in map(str.split, lines) if kind in "tT"}


class Runs:
    """The runs of the tasks: what a task executes in thread mode between two switches."""

    def __init__(self):
        self.task = self.start = self.length = 0
        self.exceptions = []
        self.lines = []

    def end(self):
        self.lines.append(("R", self.start, self.length, self.task, *self.exceptions))

    def executes(self, task, instruction, exceptions):
        if task != self.task:
            self.end()
            self.task, self.start, self.length, self.exceptions = task, instruction, 0, exceptions
        self.length += 1


def main(elf, log):
    _, size, name_at, number_at, entry_at = layout(elf)
    names = functions(elf)
    executed = current = 0
    # Whether the instruction that was logged last is in thread mode, until it is known whether it ran.
    pending = None
    # The first task begins with the first return from an exception; before, the kernel only chooses it.
    began = False
    exceptions, runs = [], Runs()

    def settle():
        nonlocal executed, exceptions, pending
        if pending:
            runs.executes(current if began else 0, executed, exceptions)
            exceptions = []
        executed += pending is not None
        pending = None

    for line in open(log, encoding="latin-1"):
        if line.startswith("Trace "):
            settle()
        elif line.startswith("XPSR="):
            pending = line.rstrip().endswith("-thread")
        elif line.startswith(("Stopped execution of TB chain before", "cpu_io_recompile: rewound")):
            pending = None
        elif line.startswith("Access ") and line.endswith(" 0\n"):
            print("S", executed, 0)
        elif line.startswith("Object "):
            address, data = line.split()[1:]
            data = bytes.fromhex(data)
            name = data[name_at:size].split(b"\0")[0].decode()
            number = int.from_bytes(data[number_at : number_at + 2], "little")
            entry = names[int.from_bytes(data[entry_at : entry_at + 4], "little") & ~1]
            current = number
            print("S", executed, address, number, entry, name)
        elif match := re.match(r"\.\.\.taking pending nonsecure exception (\d+)", line):
            settle()
            exceptions.append(int(match[1]))
        elif line.startswith("...successful exception return"):
            settle()
            began = True
        elif line.startswith("Taking exception 16 "):
            break
    runs.end()
    for line in runs.lines:
        print(*line)


if __name__ == "__main__":
    if sys.argv[1] == "--options":
        pointer, size = layout(sys.argv[2])[:2]
        print(f"stores={pointer},object={size}")
    else:
        main(*sys.argv[1:])
