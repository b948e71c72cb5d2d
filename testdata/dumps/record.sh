#!/bin/bash
# Recreates the dumps: loads the trace buffer of ../examples/m0-crash-mtb into an emulated chip's memory, and reads the
# buffer with common tools. Needs QEMU 7.2 (qemu-system-arm), gdb-multiarch 13, arm-none-eabi-objcopy, and a Python
# that finds pyOCD.
set -euo pipefail
cd "$(dirname "$0")"

example=$PWD/../examples/m0-crash-mtb
work=$(mktemp -d)
trap 'rm -rf "$work"; kill "$emulator" 2>/dev/null || true' EXIT

# GDB writes the memory of the program's sections into a core file, so the buffer gets a section.
arm-none-eabi-objcopy --add-section .mtb="$example/trace.bin" --set-section-flags .mtb=alloc,load,data \
    --change-section-address .mtb=0x20001000 "$example/m0-crash.elf" "$work/m0-crash.elf" 2>/dev/null

timeout 60 qemu-system-arm -M microbit -kernel "$example/m0-crash.elf" -nographic -monitor none -serial none \
    -S -gdb tcp::34567 >/dev/null &
emulator=$!
sleep 2

cat >"$work/commands" <<EOF
set pagination off
target remote :34567
restore $example/trace.bin binary 0x20001000
set logging file gdb-x.txt
set logging redirect on
set logging enabled on
x/256wx 0x20001000
x/4wx 0x0
x/16bx 0x20001000
x/8hx 0x20001000
x/2gx 0x20001000
x/2wd 0x20001000
x/3i 0x154
x/4xw 0x20003ff0
printf "MTB_POSITION=0x%08x\n", 0x34
printf "MTB_MASTER=0x%08x\n", 0x80000006
printf "MTB_BASE=0x%08x\n", 0x20001000
set logging enabled off
$(for format in 256dw 512uh 1024db 128dg 256tw 512th; do
    printf 'set logging file gdb-x%s.txt\nset logging enabled on\n' "${format#"${format%%[a-z]*}"}"
    printf 'x/%s 0x20001000\nset logging enabled off\n' "$format"
done)
dump ihex memory gdb.hex 0x20001000 0x20001400
dump srec memory gdb.srec 0x20001000 0x20001400
generate-core-file gdb.core
kill
EOF
cd "$work" && timeout 40 gdb-multiarch -q -nx -batch -x commands m0-crash.elf >/dev/null
cp gdb-x*.txt gdb.hex gdb.srec gdb.core "$OLDPWD"
cd "$OLDPWD"

# A crash as a core file: the program of crashes/m0-null-pointer, stopped at its handler, with the trace buffer of that crash.
crash=$PWD/../firmware/crash/crash-m0.elf
${PYTHON:-python3} - ../crashes/m0-null-pointer/crash.log "$work/mtb.bin" <<'EOF'
import re, sys

memory = {}
for address, values in re.findall(r"^0x([0-9a-f]+)[^:\n]*:\t(.*)$", open(sys.argv[1]).read(), re.M):
    for index, value in enumerate(values.split("\t")):
        memory[int(address, 16) + 4 * index] = int(value, 16)
open(sys.argv[2], "wb").write(b"".join(memory[0x20001000 + at].to_bytes(4, "little") for at in range(0, 1024, 4)))
EOF
head -c 512 /dev/zero >"$work/stack.bin"
arm-none-eabi-objcopy --add-section .mtb="$work/mtb.bin" --set-section-flags .mtb=alloc,load,data \
    --change-section-address .mtb=0x20001000 --add-section .stack="$work/stack.bin" \
    --set-section-flags .stack=alloc,load,data --change-section-address .stack=0x20000060 \
    "$crash" "$work/crash-m0.elf" 2>/dev/null
cat >"$work/commands" <<EOF
set pagination off
set confirm off
target remote | exec qemu-system-arm -M microbit -kernel $crash -S -gdb stdio -nographic -monitor none -serial none
set var scenario = 0
break *HardFault_Handler
continue
restore $work/mtb.bin binary 0x20001000
generate-core-file $PWD/crash.core
kill
EOF
# If QEMU exits before it answers `kill`, GDB reports an error.
timeout 40 gdb-multiarch -q -nx -batch -x "$work/commands" "$work/crash-m0.elf" >/dev/null 2>&1 || true
test -s crash.core

${PYTHON:-python3} - "$example/trace.bin" <<'EOF'
import struct, sys
from pyocd.utility.hex import dump_hex_data_to_str

memory = open(sys.argv[1], "rb").read()
for width, kind in ((8, "B"), (16, "H"), (32, "I"), (64, "Q")):
    values = list(struct.unpack(f"<{len(memory) * 8 // width}{kind}", memory))
    with open(f"pyocd-read{width}.txt", "w") as file:
        file.write(dump_hex_data_to_str(values, start_address=0x20001000, width=width))
EOF

buffer="$example/trace.bin"
xxd "$buffer" > xxd.txt
xxd -e "$buffer" > xxd-e.txt
xxd -g1 -c 12 "$buffer" > xxd-g1-c12.txt
xxd -g4 -o 0x20001000 "$buffer" > xxd-g4-o.txt
xxd -p "$buffer" > xxd-p.txt
hexdump -C "$buffer" > hexdump-c.txt
hexdump "$buffer" > hexdump.txt
od -A x -t x1 "$buffer" > od-x1.txt
od -A x -t x4z "$buffer" > od-x4z.txt
od -A d -t x8 "$buffer" > od-d-x8.txt
