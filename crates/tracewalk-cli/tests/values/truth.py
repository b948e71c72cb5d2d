"""Compares the values that `flow --values --format jsonl` states with the registers that QEMU logged before each instruction.

    truth.py LOG VALUES     LOG: -singlestep -d exec,nochain,cpu; VALUES: the objects

Prints how many register values were compared, and how many instructions of the log were not found among the objects. Fails if a value
differs. Shares no code with tracewalk."""

import json
import re
import sys

TRACE = re.compile(r"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/")
NARROW = re.compile(r"R(\d\d)=([0-9a-f]{8})")
WIDE = re.compile(r"(X\d\d|SP)=([0-9a-f]{16})")


def states(path):
    """The address and the registers before each instruction."""
    address, registers = None, {}
    for line in open(path, errors="replace"):
        if found := TRACE.match(line):
            if address is not None:
                yield address, registers
            address, registers = int(found[1], 16), {}
        else:
            for number, value in NARROW.findall(line):
                name = {"13": "sp", "14": "lr"}.get(number, f"r{int(number)}")
                registers[name] = int(value, 16)
            for name, value in WIDE.findall(line):
                registers["sp" if name == "SP" else f"x{int(name[1:])}"] = int(value, 16)


def main():
    log = states(sys.argv[1])
    compared = passed = 0
    wrong = []
    ahead = next(log)
    after_exception = False
    previous = None
    for line in open(sys.argv[2]):
        element = json.loads(line)
        if element["element"] != "instruction":
            after_exception |= element["element"] in ("exception", "gap", "exception_return")
            continue
        address = int(element["addr"], 16)
        # An instruction that an interrupt prevented is in the log twice.
        while ahead[0] & ~1 != address:
            passed += 1
            ahead = next(log, None)
            if ahead is None:
                print(compared, passed, "the log ends")
                return
        registers = ahead[1]
        if previous is not None:
            for name, value in previous["writes"].items():
                if after_exception and name in ("sp", "lr"):
                    continue
                if name not in registers:
                    continue
                compared += 1
                if registers[name] != int(value, 16):
                    wrong.append((previous, name, hex(registers[name])))
        previous, after_exception = element, False
        ahead = next(log, None)
        if ahead is None:
            break
    print(compared, passed)
    for difference in wrong[:5]:
        print(*difference)
    if wrong:
        sys.exit(f"{len(wrong)} values differ")


main()
