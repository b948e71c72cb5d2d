#!/bin/bash
# Runs the example programs in QEMU and records the instructions that they execute in NAME/NAME.record. README.md
# describes the format. Needs QEMU 7.2 (qemu-system-arm, qemu-system-aarch64), cc for the plugin, cargo, and for the kernel
# gdb-multiarch and Python.
#
#     ./record.sh            all of them
#     ./record.sh m3 a9      these
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

${HOST_CC:-cc} -O1 -Wall -Wextra -shared -fPIC -fvisibility=hidden -o "$work/accesses.so" accesses.c

# emulate LOG OPTIONS...: runs one instruction at a time, with time counted in instructions so that every run is the same
emulate() {
    log=$1
    shift
    QEMU_AUDIO_DRV=none timeout 120 "${emulator:-qemu-system-arm}" "$@" -nographic -monitor none -serial none \
        -semihosting-config enable=on,target=native -icount shift=5,align=off,sleep=off -singlestep \
        -d exec,nochain,int,cpu,plugin -D "$log"
}

generate() {
    cargo run --quiet --package tracewalk-generate -- "$@"
}

[ $# -gt 0 ] || set -- m3 a9 m0-crash m0 m4 jumps a15 a53 m33 kernel-f kernel-z rust-m3 rust-a9 rev-old rev-new
for name in "$@"; do
    log=$work/$name.log folder=$name
    case $name in
    m3)
        emulate "$log" -M mps2-an385 -kernel m3/m3.elf -plugin "$work/accesses.so,limit=200000"
        ;;
    a9)
        emulate "$log" -M vexpress-a9,memory-backend=ram -m 128M -kernel a9/a9.elf \
            -object "memory-backend-file,id=ram,size=128M,mem-path=$work/ram,share=on" \
            -plugin "$work/accesses.so,limit=200000,ram=$work/ram,base=0x60000000"
        ;;
    m0-crash)
        # The program does not end: its last handler spins, and the record stops there.
        emulate "$log" -M microbit -kernel m0-crash/m0-crash.elf -plugin "$work/accesses.so,limit=40000"
        ;;
    m0)
        emulate "$log" -M microbit -kernel m0/m0.elf -plugin "$work/accesses.so,limit=60000"
        ;;
    rev-old | rev-new)
        emulate "$log" -M microbit -kernel "$name/$name.elf" -plugin "$work/accesses.so,limit=60000"
        ;;
    m4)
        emulate "$log" -M mps2-an386 -kernel m4/m4.elf -plugin "$work/accesses.so,limit=60000"
        ;;
    jumps)
        emulate "$log" -M mps2-an386 -kernel jumps/jumps.elf -plugin "$work/accesses.so,limit=60000"
        ;;
    a15)
        emulate "$log" -M vexpress-a15 -m 128M -kernel a15/a15.elf -plugin "$work/accesses.so,limit=60000"
        ;;
    a53)
        # The two processors execute the same.
        for cpu in cortex-a57 cortex-a53; do
            emulator=qemu-system-aarch64 emulate "$work/$cpu.log" -M virt,secure=on,virtualization=on,gic-version=2 \
                -cpu "$cpu" -m 128M -nic none -kernel a53/a53.elf -plugin "$work/accesses.so,limit=60000"
            generate record --elf a53/a53.elf --log "$work/$cpu.log" --output "$work/$cpu.record"
        done
        cmp "$work/cortex-a57.record" "$work/cortex-a53.record"
        log=$work/cortex-a53.log
        ;;
    m33)
        emulate "$log" -M mps2-an505 -kernel m33/m33.elf -plugin "$work/accesses.so,limit=60000"
        ;;
    kernel-f | kernel-z)
        emulate "$log" -M mps2-an385,memory-backend=ram -m 16M -kernel "kernel/$name.elf" \
            -object "memory-backend-file,id=ram,size=16M,mem-path=$work/$name.ram,share=on" \
            -plugin "$work/accesses.so,limit=300000,ram=$work/$name.ram,base=0x21000000,$(kernel/tasks.py --options "kernel/$name.elf")"
        kernel/tasks.py "kernel/$name.elf" "$log" >"kernel/$name.tasks"
        folder=kernel
        ;;
    rust-m3)
        emulate "$log" -M mps2-an385 -kernel rust-m3/rust-m3.elf -plugin "$work/accesses.so,limit=60000"
        ;;
    rust-a9)
        emulate "$log" -M vexpress-a9 -m 128M -kernel rust-a9/rust-a9.elf -plugin "$work/accesses.so,limit=60000"
        ;;
    *)
        echo "record.sh: no program \"$name\"; see the list above" >&2
        exit 2
        ;;
    esac
    generate record --elf "$folder/$name.elf" --log "$log" --output "$folder/$name.record"
done
