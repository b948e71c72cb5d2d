#!/usr/bin/env python3
"""The coverage of an ELF file by a recorded run: the truth that the tests compare `tracewalk coverage` with.

This script shares no code with tracewalk. The record lists the instructions that ran (testdata/firmware/README.md), pyelftools
reads symbols, line tables and inlined calls, Capstone decodes which instructions are conditional and which branch.
docs/coverage.md defines the counts.

    truth.py --elf FILE --record FILE [--conditions every|branches] [--first N | --last N --skip-end K]

prints JSON: for each instruction how often it was executed, skipped and passed unrecorded; for each line its count, its state
and the outcomes of its conditions; the totals. Records in the `runs` format do not say whether the conditions of instructions
that do not branch passed. "open" lists these instructions and their lines.

    truth.py --memory ADDRESS:FILE... --record FILE...

prints how often all records together passed each address, for programs that are only known as memory.
"""

import argparse
import itertools
import json
import pathlib
import posixpath
import sys
from bisect import bisect_right
from collections import defaultdict

import capstone
from elftools.dwarf.descriptions import describe_form_class
from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from record import lines as lines_of  # noqa: E402

IT = {"it" + "".join(further) for count in range(4) for further in itertools.product("t" + "e", repeat=count)}
CALLS = {"bl", "blx", "blr", "blxns"}
COMPARE_AND_BRANCH = {"cbz", "cbnz", "tbz", "tbnz"}
# The symbols that divide code from data (AAELF32 5.5.5, AAELF64 5.5.4).
MARKS = {"$a": "a32", "$t": "t32", "$x": "a64", "$d": None}


# ---- the record ------------------------------------------------------------------------------------------------------


def read_record(path, undefined=True):
    """Steps in order: (address, isa, failed, end of the run or None, what follows the run)."""
    runs, marks = [], []
    for fields in lines_of(path, undefined):
        if fields[0] == "R":
            failed = {int(word[1:], 16) for word in fields[4:] if word.startswith("!")}
            runs.append((int(fields[1], 16), int(fields[2], 16), fields[3], failed))
            marks.append([])
        elif fields[0] in "XTOUN" and marks:
            marks[-1].append(fields)
    return runs, marks


class Steps:
    """Every instruction that ran, with its outcome."""

    def __init__(self, code, runs, marks, failures_known):
        self.list = []
        for index, (start, end, isa, failed) in enumerate(runs):
            at = start
            while at < end:
                instruction = code.at(at, isa)
                next_address = at + instruction.size
                outcome = True
                if failures_known:
                    outcome = at not in failed
                elif instruction.branch and next_address < end:
                    # Without a jump the run goes on, so a branch inside the run was not taken, or went to the
                    # next address.
                    outcome = not instruction.conditional or instruction.target == next_address
                elif instruction.conditional and instruction.branch and marks[index][:1] and marks[index][0][0] == "X":
                    # The exception came after the branch: its return address shows the outcome.
                    outcome = marks[index][0][2] != f"{next_address:x}"
                self.list.append((at, isa, outcome))
                at = next_address
            assert at == end, f"run {start:x} {end:x} ends inside an instruction"


# ---- the code --------------------------------------------------------------------------------------------------------


class Instruction:
    def __init__(self, address, isa, size, conditional, branch, target, call):
        self.address, self.isa, self.size = address, isa, size
        self.conditional, self.branch, self.target, self.call = conditional, branch, target, call


class Code:
    """The instructions of the functions, as the mapping symbols divide them from data."""

    def __init__(self, elf):
        self.memory = [
            (segment["p_vaddr"], segment.data())
            for segment in elf.iter_segments()
            if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]
        ]
        self.symbols(elf)
        # Code outside of functions, or that nothing divides from data, counts if it ran.
        self.instructions, self.elsewhere = {}, {}
        # How many instructions of an IT block follow from an address on.
        self.blocks = {}
        for start, end, isa in self.stretches:
            for function in self.functions:
                low, high = max(start, function[0]), min(end, function[1])
                if low < high:
                    self.disassemble(low, high, isa, self.instructions)

    def symbols(self, elf):
        marks, functions, labels = [], {}, {}
        table = elf.get_section_by_name(".symtab")
        for symbol in table.iter_symbols():
            index = symbol["st_shndx"]
            if not isinstance(index, int):
                continue
            section = elf.get_section(index)
            if not section["sh_flags"] & 2:
                continue
            executable = bool(section["sh_flags"] & 4)
            limit = section["sh_addr"] + section["sh_size"]
            value, name, kind = symbol["st_value"], symbol.name, symbol["st_info"]["type"]
            if name[:2] in MARKS and (len(name) == 2 or name[2] == "."):
                marks.append((value, MARKS[name[:2]], limit))
            elif kind == "STT_FUNC":
                start = value & ~1
                known = functions.get(start, (0, limit))
                functions[start] = (max(known[0], symbol["st_size"]), limit)
            elif kind == "STT_NOTYPE" and executable and not name.startswith("$") and value < limit:
                labels[value & ~1] = (0, limit)
        # If several share an address, the last one in the symbol table holds: the others' parts are empty.
        marks = sorted({mark[0]: mark for mark in marks}.values())
        self.stretches = []
        for (start, isa, limit), following in zip(marks, marks[1:] + [(1 << 32, None, 0)]):
            end = min(following[0], limit)
            if isa and start < end:
                self.stretches.append((start, end, isa))
        inside = [(start, start + size) for start, (size, _) in functions.items()]
        code = self.stretches
        for start, extent in labels.items():
            in_function = any(low <= start < high for low, high in inside)
            # Nothing divides a section that was a binary file.
            marked = any(mark[0] < extent[1] and start < mark[2] for mark in marks)
            in_code = not marked or any(low <= start < high for low, high, _ in code)
            if start not in functions and not in_function and in_code:
                functions[start] = extent
        self.has_arm_code = any(isa == "a32" for _, _, isa in self.stretches)
        starts = sorted(functions)
        self.functions = []
        for start, following in zip(starts, starts[1:] + [1 << 32]):
            size, limit = functions[start]
            end = start + size if size else min(following, limit)
            if end > start:
                self.functions.append((start, end))

    def bytes_at(self, address, count):
        for start, data in self.memory:
            if start <= address < start + len(data):
                return data[address - start : address - start + count]
        return b""

    def disassemble(self, low, high, isa, found_in, count=0):
        engine = self.engine(isa)
        engine.detail = True
        engine.skipdata = True
        in_block = self.blocks.get(low, 0)
        for found in engine.disasm(self.bytes_at(low, high - low), low, count):
            instruction = classified_a64(found) if isa == "a64" else classified(found, isa)
            # Capstone gives no condition to undefined instructions.
            instruction.conditional |= in_block > 0
            in_block = len(found.mnemonic) - 1 if found.mnemonic in IT else max(in_block - 1, 0)
            found_in[(found.address, isa)] = instruction
            self.blocks[found.address + found.size] = in_block

    def engine(self, isa):
        if isa == "a64":
            return capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
        mode = capstone.CS_MODE_THUMB if isa == "t32" else capstone.CS_MODE_ARM
        # A program without ARM code is one of M profile, whose system registers Capstone does not know by itself.
        profile = capstone.CS_MODE_V8 if self.has_arm_code else capstone.CS_MODE_MCLASS
        return capstone.Cs(capstone.CS_ARCH_ARM, mode | profile)

    def at(self, address, isa):
        key = (address, isa)
        if key not in self.instructions and key not in self.elsewhere:
            self.disassemble(address, address + 4, isa, self.elsewhere, 1)
        return self.instructions.get(key) or self.elsewhere[key]

    def function_of(self, address):
        """The innermost function around an address, as (start, end)."""
        around = [function for function in self.functions if function[0] <= address < function[1]]
        return max(around) if around else None


def classified_a64(found):
    name = found.mnemonic.split(".")[0]
    conditional = name in COMPARE_AND_BRANCH or found.mnemonic.startswith("b.")
    branch = conditional or name in ("b", "bl", "br", "blr", "ret", "eret")
    target = found.operands[-1].imm if conditional or name in ("b", "bl") else None
    return Instruction(found.address, "a64", found.size, conditional, branch, target, name in CALLS)


def classified(found, isa):
    if found.id == 0:
        return Instruction(found.address, isa, found.size, False, False, None, False)
    name = found.mnemonic.split(".")[0]
    always = (capstone.arm.ARM_CC_AL, capstone.arm.ARM_CC_INVALID)
    is_it = found.id == capstone.arm.ARM_INS_IT
    conditional = not is_it and (found.cc not in always or name in COMPARE_AND_BRANCH)
    groups = set(found.groups)
    jumps = {capstone.arm.ARM_GRP_JUMP, capstone.arm.ARM_GRP_CALL, capstone.CS_GRP_RET} & groups
    interrupt = capstone.arm.ARM_GRP_INT in groups
    _, written = found.regs_access()
    between_states = name.startswith(("bxns", "blxns"))
    branch = (bool(jumps) or between_states or capstone.arm.ARM_REG_PC in written) and not interrupt and not is_it
    target = None
    immediates = [o.imm & 0xFFFFFFFF for o in found.operands if o.type == capstone.arm.ARM_OP_IMM]
    if branch and immediates and capstone.arm.ARM_GRP_JUMP in groups | ({capstone.arm.ARM_GRP_JUMP} if name.startswith("bl") else set()):
        if name.startswith(("b", "cb")) and not any(o.type == capstone.arm.ARM_OP_REG for o in found.operands if not name.startswith("cb")):
            target = immediates[-1]
    call = any(name == c or (name.startswith(c) and len(name) == len(c) + 2) for c in CALLS)
    return Instruction(found.address, isa, found.size, conditional, branch, target, call)


# ---- the debugging information ---------------------------------------------------------------------------------------


def clean(path):
    """A normalized path."""
    path = posixpath.normpath(path.replace("\\", "/"))
    return "" if path == "." else path


class Lines:
    def __init__(self, elf):
        self.rows, self.starts, self.inlined = [], [], []
        if not elf.has_dwarf_info():
            return
        dwarf = elf.get_dwarf_info()
        self.ranges = dwarf.range_lists()
        for unit in dwarf.iter_CUs():
            top = unit.get_top_DIE()
            folder = text(top, "DW_AT_comp_dir")
            program = dwarf.line_program_for_CU(unit)
            files = file_names(program, folder) if program else {}
            if program:
                self.add_rows(program, files)
            self.walk(top, unit, top, files, 0)
        self.rows.sort(key=lambda row: row[0])
        self.starts = [row[0] for row in self.rows]

    def add_rows(self, program, files):
        sequence = {}
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if state.end_sequence:
                addresses = sorted(sequence)
                for start, end in zip(addresses, addresses[1:] + [state.address]):
                    file, line = sequence[start]
                    if start < end:
                        self.rows.append((start, end, files.get(file), line or None))
                sequence = {}
            else:
                # If several rows share an address, the last one gives the source of the code there.
                sequence[state.address] = (state.file, state.line)

    def walk(self, die, unit, top, files, depth):
        for child in die.iter_children():
            inner = depth
            if child.tag == "DW_TAG_inlined_subroutine":
                inner = depth + 1
                call = (
                    origin_name(child),
                    files.get(value(child, "DW_AT_call_file")),
                    value(child, "DW_AT_call_line"),
                )
                for low, high in self.extents(child, unit, top):
                    self.inlined.append((low, high, inner, call))
            self.walk(child, unit, top, files, inner)

    def extents(self, die, unit, top):
        if "DW_AT_ranges" in die.attributes:
            attribute = die.attributes["DW_AT_ranges"]
            base = value(top, "DW_AT_low_pc") or 0
            found = []
            for entry in self.ranges.get_range_list_at_offset(attribute.value, cu=unit):
                if isinstance(entry, BaseAddressEntry):
                    base = entry.base_address
                    continue
                offset = 0 if getattr(entry, "is_absolute", False) else base
                found.append((entry.begin_offset + offset, entry.end_offset + offset))
            return found
        low = value(die, "DW_AT_low_pc")
        if low is None:
            return []
        high = die.attributes["DW_AT_high_pc"]
        absolute = describe_form_class(high.form) == "address"
        return [(low, high.value if absolute else low + high.value)]

    def place(self, address):
        index = bisect_right(self.starts, address) - 1
        # Sequences of other units may begin at the same address, or before.
        while index >= 0:
            start, end, file, line = self.rows[index]
            if start <= address < end:
                return (file and clean(file), line)
            if address - start > 1 << 16:
                break
            index -= 1
        return (None, None)

    def chain(self, address):
        """The inlined calls around an address, from the outermost."""
        around = [(depth, call) for low, high, depth, call in self.inlined if low <= address < high]
        around.sort(key=lambda item: item[0])
        return tuple((name, file and clean(file), line) for _, (name, file, line) in around)


def file_names(program, folder):
    header = program.header
    version5 = header.version >= 5
    names = {}
    for index, entry in enumerate(header["file_entry"]):
        parts = [folder or ""]
        if version5:
            directory = header["include_directory"][entry.dir_index]
            if entry.dir_index != 0:
                parts.append(as_text(directory))
        elif entry.dir_index != 0:
            parts.append(as_text(header["include_directory"][entry.dir_index - 1]))
        parts.append(as_text(entry.name))
        names[index if version5 else index + 1] = posixpath.join(*parts)
    return names


def as_text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def value(die, name):
    attribute = die.attributes.get(name)
    return None if attribute is None else attribute.value


def text(die, name):
    found = value(die, name)
    return None if found is None else as_text(found)


def origin_name(die):
    while die is not None:
        if "DW_AT_name" in die.attributes:
            return text(die, "DW_AT_name")
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in die.attributes:
                die = die.get_DIE_from_attribute(link)
                break
        else:
            return None


# ---- what was covered ------------------------------------------------------------------------------------------------


def passes(code, steps, conditions):
    counts = defaultdict(lambda: [0, 0, 0])
    for address, isa, outcome in steps:
        instruction = code.at(address, isa)
        unrecorded = conditions == "branches" and instruction.conditional and not instruction.branch
        counts[(address, isa)][2 if unrecorded else 0 if outcome else 1] += 1
    return counts


def effects(code, instruction, counts):
    executed, skipped, _ = counts
    if instruction.branch and instruction.target is not None and not instruction.call:
        function = code.function_of(instruction.address)
        if function and function[0] <= instruction.target < function[1]:
            return executed + skipped
    return executed


def outcomes(instruction, counts, conditions):
    """The count of each outcome of a condition; None if no trace contains it."""
    found = []
    for count in counts[:2]:
        judged = count > 0 or not (counts[2] > 0 or (conditions == "branches" and not instruction.branch))
        found.append(count if judged else None)
    return found


def copy_state(instructions):
    """The count and state of one copy of a line, from (effects, counts) of its instructions."""
    count = max(effect for effect, _ in instructions)
    if count:
        complete = all(effect or counts[2] for effect, counts in instructions)
        return count, "covered" if complete else "partly"
    if any(counts[2] for _, counts in instructions):
        return 0, "unrecorded"
    return 0, "skipped" if any(sum(counts) for _, counts in instructions) else "unreached"


def tally(verdicts):
    """found, covered, unrecorded, from a list of True, False and None."""
    judged = [verdict for verdict in verdicts if verdict is not None]
    return [len(judged), sum(judged), len(verdicts) - len(judged)]


def report(code, lines, counts, conditions):
    by_line = defaultdict(lambda: defaultdict(list))
    branches = defaultdict(list)
    all_instructions, all_outcomes = [], []
    functions = {function: False for function in code.functions}
    seen_functions = set()
    for key, instruction in sorted(code.instructions.items()):
        counted = counts.get(key, [0, 0, 0])
        effect = effects(code, instruction, counted)
        all_instructions.append(True if effect else None if counted[2] else False)
        function = code.function_of(instruction.address)
        seen_functions.add(function)
        if function:
            functions[function] |= sum(counted) > 0
        file, line = lines.place(instruction.address)
        judged = outcomes(instruction, counted, conditions) if instruction.conditional else []
        all_outcomes += [None if count is None else count > 0 for count in judged]
        if not file or not line:
            continue
        copy = (function, lines.chain(instruction.address))
        by_line[(file, line)][copy].append((effect, counted))
        if judged:
            branches[(file, line)].append([f"0x{instruction.address:08x}", *judged])
    files = defaultdict(dict)
    order = ["covered", "partly", "unrecorded", "skipped", "unreached"]
    verdicts = []
    for (file, line), copies in sorted(by_line.items()):
        states = [copy_state(instructions) for instructions in copies.values()]
        state = min((state for _, state in states), key=order.index)
        files[file][line] = [sum(count for count, _ in states), state, sorted(branches[(file, line)])]
        verdicts.append(True if state in ("covered", "partly") else None if state == "unrecorded" else False)
    totals = {
        "lines": tally(verdicts),
        "branches": tally(all_outcomes),
        "functions": tally([reached for function, reached in functions.items() if function in seen_functions]),
        "instructions": tally(all_instructions),
    }
    return files, totals


def open_parts(code, lines, counts):
    """The instructions and lines whose coverage is unknown if the record does not say which conditions failed."""
    instructions, of_lines = [], defaultdict(set)
    for key, instruction in sorted(code.instructions.items()):
        if instruction.conditional and not instruction.branch and sum(counts.get(key, [0])):
            instructions.append(f"0x{instruction.address:08x}")
            file, line = lines.place(instruction.address)
            if file and line:
                of_lines[file].add(line)
    return {"instructions": instructions, "lines": {file: sorted(found) for file, found in of_lines.items()}}


def memory_passes(memory, records):
    """How often the records passed each address. The first halfword gives an instruction's size (ARM DDI 0406C.d, A6.1)."""
    regions = []
    for region in memory:
        address, file = region.split(":", 1)
        regions.append((int(address, 0), open(file, "rb").read()))
    passes = defaultdict(int)
    for record in records:
        for at, end, isa, _ in read_record(record)[0]:
            while at < end:
                passes[f"0x{at:08x}"] += 1
                start, data = next((start, data) for start, data in regions if start <= at < start + len(data))
                halfword = int.from_bytes(data[at - start : at - start + 2], "little")
                at += 2 if isa == "t32" and halfword >> 11 < 0b11101 else 4
    return passes


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--elf")
    arguments.add_argument("--memory", action="append", default=[])
    arguments.add_argument("--record", action="append", required=True)
    arguments.add_argument("--conditions", choices=["every", "branches"], default="every")
    arguments.add_argument("--without-undefined", action="store_true", help="undefined instructions do not count, as in ETMv4")
    arguments.add_argument("--first", type=int, help="only the first N instructions")
    arguments.add_argument("--last", type=int, help="only the last N instructions")
    arguments.add_argument("--skip-end", type=int, default=0, help="and not the last K of all")
    arguments = arguments.parse_args()
    if arguments.memory:
        print(json.dumps(memory_passes(arguments.memory, arguments.record)))
        return
    [record] = arguments.record
    with open(arguments.elf, "rb") as file:
        elf = ELFFile(file)
        code, lines = Code(elf), Lines(elf)
        runs, marks = read_record(record, not arguments.without_undefined)
        failures_known = open(record).readline().startswith("# tracewalk record")
        steps = Steps(code, runs, marks, failures_known).list
    every = len(steps)
    if arguments.skip_end:
        steps = steps[: -arguments.skip_end]
    if arguments.first is not None:
        steps = steps[: arguments.first]
    if arguments.last is not None:
        steps = steps[-arguments.last :]
    counts = passes(code, steps, arguments.conditions)
    code.instructions |= {key: instruction for key, instruction in code.elsewhere.items() if key in counts}
    files, totals = report(code, lines, counts, arguments.conditions)
    unknown = not failures_known and arguments.conditions == "every"
    print(
        json.dumps(
            {
                "steps": every,
                "instructions": {
                    f"0x{address:08x}": counts.get((address, isa), [0, 0, 0])
                    for address, isa in sorted(code.instructions)
                },
                "files": files,
                "totals": totals,
                "open": open_parts(code, lines, counts) if unknown else {"instructions": [], "lines": {}},
            }
        )
    )


if __name__ == "__main__":
    main()
