#!/bin/bash
# Runs the programs of crash/hang.c in QEMU, with GDB attached as to a chip, until they have been in their last loop for a while.
# crash/NAME.record lists the instructions that they executed, ../hangs/NAME.log what GDB printed then. For the Cortex-M0+, the log has the
# buffer of an MTB, from tracewalk-generate. Needs QEMU 7.2, gdb-multiarch and cargo.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generate() {
    ${TRACEWALK_GENERATE:-cargo run --quiet --package tracewalk-generate --} "$@"
}

kinds=(wait wait-with-ticks wait-for-device timeout ticks idle assertion breakpoint)
places=(in_sensor in_sensor in_device in_timeout in_tick in_idle in_assertion in_breakpoint)
rounds=(400 700 400 400 300 400 300 0)

# hang NAME NUMBER
hang() {
    local name=$1 number=$2 machine=mps2-an385
    local program=hang-${name%%-*}
    if [ "$program" = hang-m0 ]; then machine=microbit; fi
    {
        printf 'set pagination off\nset confirm off\nset style enabled off\nset print address on\nset height 0\n'
        printf 'target remote | exec qemu-system-arm -M %s -kernel crash/%s.elf -S -gdb stdio' "$machine" "$program"
        printf ' -nographic -monitor none -serial none -icount shift=5,align=off,sleep=off -singlestep'
        printf ' -d exec,nochain,int,cpu,cpu_reset -D %s\n' "$work/qemu.log"
        printf 'set var scenario = %d\nbreak *&%s\n' "$number" "${places[number]}"
        if [ "${rounds[number]}" -gt 0 ]; then printf 'ignore 1 %d\n' "${rounds[number]}"; fi
        printf 'continue\nset logging file %s\nset logging enabled on\n' "$work/gdb.log"
        printf 'info registers\nx/16wx 0xe000ed00\nx/148wx 0x20000000\nset logging enabled off\nkill\n'
    } >"$work/script.gdb"
    rm -f "$work/gdb.log"
    QEMU_AUDIO_DRV=none timeout 120 gdb-multiarch -nx -batch "crash/$program.elf" -x "$work/script.gdb" >"$work/out" 2>&1 || true
    grep -q "^0x20000240" "$work/gdb.log" || { cat "$work/out" >&2; exit 2; }
    generate record --elf "crash/$program.elf" --log "$work/qemu.log" --output "crash/$name.record"
    mkdir -p ../hangs
    cp "$work/gdb.log" "../hangs/$name.log"
    if [ "$program" = hang-m0 ]; then
        rm -rf "$work/capture"
        generate capture --record "crash/$name.record" --elf "crash/$program.elf" --protocol mtb --mtb-size 1024 \
            --mtb-base 0x20001000 --output "$work/capture"
        {
            cat "$work/capture/registers.txt"
            od -An -v -tx4 -w16 "$work/capture/trace.bin" |
                awk '{ printf "0x%x:\t0x%s\t0x%s\t0x%s\t0x%s\n", 536875008 + 16 * (NR - 1), $1, $2, $3, $4 }'
        } >>"../hangs/$name.log"
    fi
}

for core in m0 m3; do
    for number in "${!kinds[@]}"; do
        hang "$core-${kinds[number]}" "$number"
    done
done
