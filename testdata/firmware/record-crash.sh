#!/bin/bash
# Lets the programs in crash/ crash in QEMU, with GDB attached as it would be to a chip: crash/NAME.record is what they
# executed, and ../crashes/NAME has what would be saved of it, the trace of tracewalk-generate among it. Needs QEMU 7.2,
# gdb-multiarch and cargo.
#
#     ./record-crash.sh               all of them
#     ./record-crash.sh m0-divide     these
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
generate() {
    ${TRACEWALK_GENERATE:-cargo run --quiet --package tracewalk-generate --} "$@"
}

kinds=(null-pointer return-address unaligned divide stack-overflow undefined bus-fault missing-handler wild-jump watchdog)

# crash NAME CORE NUMBER: runs it up to the first instruction of the handler that it ends in
crash() {
    local name=$1 core=$2 number=$3 machine=microbit stop='HardFault_Handler Default_Handler Watchdog_Handler'
    if [ "$core" = m3 ]; then
        machine=mps2-an385
        stop='HardFault_Handler MemManage_Handler BusFault_Handler UsageFault_Handler Default_Handler Reset_Handler'
    fi
    {
        printf 'set pagination off\nset confirm off\nset style enabled off\nset print address on\nset height 0\n'
        printf 'target remote | exec qemu-system-arm -M %s -kernel crash/crash-%s.elf -S -gdb stdio' "$machine" "$core"
        printf ' -nographic -monitor none -serial none -icount shift=5,align=off,sleep=off -singlestep'
        printf ' -d exec,nochain,int,cpu,cpu_reset -D %s\n' "$work/qemu.log"
        printf 'set var scenario = %d\n' "$number"
        for handler in $stop; do printf 'break *%s\n' "$handler"; done
        printf 'continue\nset logging file %s\nset logging enabled on\n' "$work/gdb.log"
        printf 'info registers\nx/16wx 0xe000ed00\nx/148wx 0x20000000\nset logging enabled off\nkill\n'
    } >"$work/script.gdb"
    rm -f "$work/gdb.log"
    QEMU_AUDIO_DRV=none timeout 120 gdb-multiarch -nx -batch "crash/crash-$core.elf" -x "$work/script.gdb" >"$work/out" 2>&1 || true
    # Where QEMU ends before it has answered `kill`, GDB complains.
    grep -q "^0x20000240" "$work/gdb.log" || { cat "$work/out" >&2; exit 2; }
    generate record --elf "crash/crash-$core.elf" --log "$work/qemu.log" --output "crash/$name.record"
}

# trace NAME CORE: what of it would be saved
trace() {
    local name=$1 core=$2 folder=../crashes/$1
    local record=crash/$name.record elf=crash/crash-$core.elf
    rm -rf "$work/capture"
    mkdir -p "$folder"
    if [ "$core" = m0 ]; then
        generate capture --record "$record" --elf "$elf" --protocol mtb --mtb-size 1024 --mtb-base 0x20001000 \
            --output "$work/capture"
        # As `x/256wx 0x20001000` prints it.
        {
            cat "$work/gdb.log" "$work/capture/registers.txt"
            od -An -v -tx4 -w16 "$work/capture/trace.bin" |
                awk '{ printf "0x%x:\t0x%s\t0x%s\t0x%s\t0x%s\n", 536875008 + 16 * (NR - 1), $1, $2, $3, $4 }'
        } >"$folder/crash.log"
    else
        generate capture --record "$record" --elf "$elf" --protocol etmv3,cpu=cortex-m3 --synchronise 256 \
            --output "$work/capture"
        # The program is not beside it.
        sed -n '/\[\[image\]\]/q;p' "$work/capture/capture.toml" >"$folder/capture.toml"
        cp "$work/capture/trace.bin" "$folder/trace.bin"
        cp "$work/gdb.log" "$folder/crash.log"
    fi
}

if [ $# -eq 0 ]; then
    set -- "${kinds[@]/#/m0-}" "${kinds[@]/#/m3-}"
fi
for name in "$@"; do
    core=${name%%-*}
    for number in "${!kinds[@]}"; do
        if [ "${kinds[number]}" = "${name#*-}" ]; then
            crash "$name" "$core" "$number"
            trace "$name" "$core"
        fi
    done
done
