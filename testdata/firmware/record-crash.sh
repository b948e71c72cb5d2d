#!/bin/bash
# Crashes the programs in crash/ in QEMU, with GDB attached as to a chip. crash/NAME.record lists the instructions that they
# executed. ../crashes/NAME holds what a developer would save, including the trace of tracewalk-generate. Needs QEMU 7.2,
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
unproven=(overwritten unsaved cleared escalated)
float=(thread-divide handler-return thread-bus-fault thread-undefined)

# crash NAME PROGRAM NUMBER: runs the program up to the first instruction of its last handler; if no evidence of the cause may
# remain, runs it further into the handler
crash() {
    local name=$1 program=$2 number=$3 machine stop saved='info registers\nx/16wx 0xe000ed00\nx/148wx 0x20000000\n' rounds=0
    case ${program#*-} in
    m0) machine=microbit stop='HardFault_Handler Default_Handler Watchdog_Handler' ;;
    m3) machine=mps2-an385 ;;
    m4) machine=mps2-an386 saved=${saved/148/180} ;;
    esac
    : "${stop:=HardFault_Handler MemManage_Handler BusFault_Handler UsageFault_Handler Default_Handler Reset_Handler}"
    case ${name#*-} in
    overwritten) stop=report rounds=1500 ;;
    unsaved) saved='x/148wx 0x20000000\n' ;;
    cleared) stop=report rounds=2 ;;
    thread-* | handler-return) saved=${saved/180/256} stop=${stop% Default_Handler*} ;;
    esac
    {
        printf 'set pagination off\nset confirm off\nset style enabled off\nset print address on\nset height 0\n'
        printf 'target remote | exec qemu-system-arm -M %s -kernel crash/%s.elf -S -gdb stdio' "$machine" "$program"
        printf ' -nographic -monitor none -serial none -icount shift=5,align=off,sleep=off -singlestep'
        printf ' -d exec,nochain,int,cpu,cpu_reset -D %s\n' "$work/qemu.log"
        printf 'set var scenario = %d\n' "$number"
        for handler in $stop; do printf 'break *%s\n' "$handler"; done
        if [ $rounds -gt 0 ]; then printf 'ignore 1 %d\n' "$rounds"; fi
        printf 'continue\nset logging file %s\nset logging enabled on\n' "$work/gdb.log"
        printf "$saved"'set logging enabled off\n'
        if [ "$program" = float-m4 ]; then
            # QEMU does not show GDB the process stack pointer: an instruction reads it, after the record is complete.
            printf 'shell cp %s %s\nset $pc = read_process_stack\nstepi\nset logging enabled on\n' "$work/qemu.log" "$work/kept.log"
            printf 'printf "psp            0x%%x\\n", $r0\nset logging enabled off\nshell mv %s %s.kept\n' "$work/kept.log" "$work/qemu.log"
        fi
        printf 'kill\n'
    } >"$work/script.gdb"
    rm -f "$work/gdb.log"
    QEMU_AUDIO_DRV=none timeout 120 gdb-multiarch -nx -batch "crash/$program.elf" -x "$work/script.gdb" >"$work/out" 2>&1 || true
    # If QEMU exits before it answers `kill`, GDB reports an error.
    grep -q "^0x20000240" "$work/gdb.log" || { cat "$work/out" >&2; exit 2; }
    if [ -e "$work/qemu.log.kept" ]; then mv "$work/qemu.log.kept" "$work/qemu.log"; fi
    generate record --elf "crash/$program.elf" --log "$work/qemu.log" --output "crash/$name.record"
}

# trace NAME PROGRAM: writes the files that a developer would save
trace() {
    local name=$1 core=${2#*-} folder=../crashes/$1
    local record=crash/$name.record elf=crash/$2.elf cpu=cortex-m${2##*m}
    rm -rf "$work/capture"
    mkdir -p "$folder"
    if [ "$core" = m0 ]; then
        generate capture --record "$record" --elf "$elf" --protocol mtb --mtb-size 1024 --mtb-base 0x20001000 \
            --output "$work/capture"
        # The format in which `x/256wx 0x20001000` prints.
        {
            cat "$work/gdb.log" "$work/capture/registers.txt"
            od -An -v -tx4 -w16 "$work/capture/trace.bin" |
                awk '{ printf "0x%x:\t0x%s\t0x%s\t0x%s\t0x%s\n", 536875008 + 16 * (NR - 1), $1, $2, $3, $4 }'
        } >"$folder/crash.log"
    else
        # A buffer that wraps keeps the end of the trace; the other traces fit.
        local container=frames last=+1
        case $name in *-overwritten) container=raw last=1024 ;; esac
        generate capture --record "$record" --elf "$elf" --protocol "etmv3,cpu=$cpu" --synchronise 256 \
            --container $container --output "$work/capture"
        # The folder does not contain the program.
        sed -n '/\[\[image\]\]/q;p' "$work/capture/capture.toml" >"$folder/capture.toml"
        tail -c "$last" "$work/capture/trace.bin" >"$folder/trace.bin"
        cp "$work/gdb.log" "$folder/crash.log"
    fi
}

if [ $# -eq 0 ]; then
    set -- "${kinds[@]/#/m0-}" "${kinds[@]/#/m3-}" "${kinds[@]/#/m4-}" "${unproven[@]/#/m0-}" "${unproven[@]/#/m3-}" "${float[@]/#/m4-}"
fi
for name in "$@"; do
    core=${name%%-*}
    for program in crash unproven float; do
        case $program in
        crash) all=("${kinds[@]}") ;;
        unproven) all=("${unproven[@]}") ;;
        float) all=("${float[@]}") ;;
        esac
        for number in "${!all[@]}"; do
            if [ "${all[number]}" = "${name#*-}" ]; then
                crash "$name" "$program-$core" "$number"
                trace "$name" "$program-$core"
            fi
        done
    done
done
