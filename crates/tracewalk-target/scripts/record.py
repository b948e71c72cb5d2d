# Records what a chip executes, into trace.bin and capture.toml, with pyOCD: python3 THIS-FILE [PROBE] [TARGET]
import os
import struct
import sys
import time

from pyocd.core.helpers import ConnectHelper
from pyocd.core.target import Target

PROBE, TARGET = (sys.argv[1:] + [None, None])[:2]
OPTIONS = {"connect_mode": "attach", "resume_on_disconnect": False}
if TARGET:
    OPTIONS["target_override"] = TARGET
session = ConnectHelper.session_with_chosen_probe(unique_id=PROBE, options=OPTIONS)
session.open()
target = session.target
was = {}


def tw_fail(name):
    sys.exit(f"{name} is not as it has to be")


def tw_append(file, contents):
    with open(file, "ab") as out:
        out.write(contents)


def tw_describe(line):
    tw_append("capture.toml", f"{line}\n".encode())


def tw_begin():
    for file in ["trace.bin", "capture.toml"]:
        if os.path.exists(file):
            os.remove(file)
    target.halt()


def tw_note(name, at):
    tw_describe(f"{name} = {target.read32(at):#x}")


def tw_write(name, at, value):
    target.write32(at, value)


def tw_set(name, at, value, mask):
    target.write32(at, value)
    if (target.read32(at) ^ value) & mask:
        tw_fail(name)


def tw_keep(name, at, key=0):
    was.setdefault(at, target.read32(at) | key)


def tw_change(name, at, clear, set, key):
    tw_keep(name, at, key)
    target.write32(at, target.read32(at) & ~clear & 0xFFFFFFFF | set | key)


def tw_restore(name, at):
    if at in was:
        target.write32(at, was.pop(at))


def tw_expect(name, at, mask, value):
    if target.read32(at) & mask != value:
        tw_fail(name)


def tw_forbid(name, at, mask, value):
    if target.read32(at) & mask == value:
        tw_fail(name)


def tw_poll(name, at, mask, value):
    for _ in range(1000):
        if target.read32(at) & mask == value:
            return
    tw_fail(name)


def tw_run():
    print("Press Ctrl-C to end the recording.")
    target.resume()
    try:
        while target.get_state() != Target.State.HALTED:
            time.sleep(0.01)
    except KeyboardInterrupt:
        target.halt()


def tw_run_for(milliseconds):
    target.resume()
    time.sleep(milliseconds / 1000)
    target.halt()


def tw_run_to(address):
    target.set_breakpoint(address)
    tw_run()
    target.remove_breakpoint(address)


def tw_read(address, size):
    tw_append("trace.bin", bytes(target.read_memory_block8(address, size)))


def tw_read_etb(base):
    first, words = 0, target.read32(base + 0x18)
    if target.read32(base + 0x0C) & 1:
        first, words = words, target.read32(base + 0x04)
    target.write32(base + 0x14, first)
    for _ in range(words):
        tw_append("trace.bin", struct.pack("<I", target.read32(base + 0x10)))


def tw_read_tmc(base):
    width = target.read32(base + 0xFC8) >> 8 & 7
    group = 1 if width < 2 else 1 << width - 2
    for index in range(target.read32(base + 0x04)):
        word = target.read32(base + 0x10)
        if word == 0xFFFFFFFF and index % group == 0:
            break
        tw_append("trace.bin", struct.pack("<I", word))


def tw_read_etr(base, address, size):
    end = target.read32(base + 0x18)
    if target.read32(base + 0x0C) & 1:
        tw_read(end, address + size - end)
    tw_read(address, end - address)


def tw_read_ring(address, size, pointer, left, of, count):
    end = target.read32(pointer)
    rest = target.read32(left) & of
    if rest and (count - rest) * 4 >= size:
        # Frames keep their places: the oldest is the first whole one.
        oldest = end + 15 & ~15
        tw_read(oldest, address + size - oldest)
    tw_read(address, end - address)


def tw_read_nothing():
    print("The trace left through the pins.")


