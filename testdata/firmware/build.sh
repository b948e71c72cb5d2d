#!/bin/sh
# Builds the example programs. Needs gcc-arm-none-eabi and gcc-aarch64-linux-gnu. DW_AT_producer in the committed ELF files names
# the compiler version that built them; this version reproduces them byte for byte, in any directory.
set -eu
cd "$(dirname "$0")"

cc=${CC:-arm-none-eabi-gcc}
cc64=${CC64:-aarch64-linux-gnu-gcc}
common="-std=c11 -O2 -g -gdwarf-4 -Wall -Wextra -Werror -ffreestanding -fno-common -Icommon"
# The compiler does not pass its prefix map to the assembler.
common="$common -ffile-prefix-map=$PWD=. -Wa,--debug-prefix-map=$PWD=."
# -no-pie and similar options are not needed. The programs use no C library, and libgcc only for division.
link="-nostdlib -Wl,--build-id=sha1 -Wl,--fatal-warnings -Wl,--no-warn-rwx-segments"

# compile OUTPUT FLAGS... SOURCE
compile() {
    output=$1
    shift
    $cc $common "$@" -c -o "$output"
}

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

m3="-mcpu=cortex-m3 -mthumb"
compile "$build/m3-startup.o" $m3 m3/startup.s
compile "$build/m3-main.o" $m3 m3/main.c
compile "$build/m3-work.o" $m3 common/work.c
$cc $m3 $link -T m3/m3.ld -o m3/m3.elf "$build/m3-startup.o" "$build/m3-main.o" "$build/m3-work.o" -lgcc

# The same program, with the checksum of work.c in the line table: clang writes checksums, this compiler does not.
$cc $common -gdwarf-5 $m3 -S common/work.c -o "$build/m3-work.s"
# The assembler reads the checksum as a number and writes its lowest byte first.
md5=$(md5sum common/work.c | cut -d ' ' -f 1 | sed 's/../& /g' | tr ' ' '\n' | tac | tr -d '\n')
sed -i "s|^\(\t\.file 1 \"common/work.c\"\)$|\1 md5 0x$md5|" "$build/m3-work.s"
grep -q "work.c\" md5 0x" "$build/m3-work.s"
${cc%gcc}as -gdwarf-5 --debug-prefix-map="$PWD=." -mcpu=cortex-m3 -mthumb "$build/m3-work.s" -o "$build/m3-work-md5.o"
$cc $m3 $link -T m3/m3.ld -o m3/m3-checksums.elf "$build/m3-startup.o" "$build/m3-main.o" "$build/m3-work-md5.o" -lgcc

# main.c is ARM code, the rest Thumb. The program does not use floating point.
a9="-march=armv7-a -mfloat-abi=soft"
compile "$build/a9-startup.o" $a9 a9/startup.s
compile "$build/a9-main.o" $a9 -marm a9/main.c
compile "$build/a9-work.o" $a9 -mthumb common/work.c
$cc $a9 -marm $link -T a9/a9.ld -o a9/a9.elf "$build/a9-startup.o" "$build/a9-main.o" "$build/a9-work.o" -lgcc

m0="-mcpu=cortex-m0plus -mthumb"
compile "$build/m0-startup.o" $m0 m0-crash/startup.s
compile "$build/m0-main.o" $m0 m0-crash/main.c
compile "$build/m0-work.o" $m0 common/work.c
$cc $m0 $link -T m0-crash/m0-crash.ld -o m0-crash/m0-crash.elf \
    "$build/m0-startup.o" "$build/m0-main.o" "$build/m0-work.o" -lgcc

compile "$build/m-v6-startup.o" -mcpu=cortex-m0 -mthumb common/m-startup.s

# m_program NAME LINKER-SCRIPT FLAGS... OBJECT...: links with the startup code that the later Cortex-M programs share.
m_program() {
    name=$1
    script=$2
    shift 2
    $cc -mthumb $link -T "$script" -o "$name/$name.elf" "$build/m-v6-startup.o" "$@" -lgcc
}

compile "$build/m0-plain-main.o" -mcpu=cortex-m0 -mthumb m0/main.c
compile "$build/m0-plain-work.o" -mcpu=cortex-m0 -mthumb common/work.c
m_program m0 m0/m0.ld -mcpu=cortex-m0 "$build/m0-plain-main.o" "$build/m0-plain-work.o"

# A kernel with tasks, its types and objects under the names of two widespread kernels.
for names in f z; do
    compile "$build/kernel-startup.o" $m3 kernel/startup.s
    for source in kernel/kernel.c kernel/main.c common/work.c; do
        compile "$build/kernel-$(basename "${source%.c}").o" $m3 "-DNAMES=\"names-$names.h\"" "$source"
    done
    $cc $m3 $link -T kernel/kernel.ld -o "kernel/kernel-$names.elf" "$build/kernel-startup.o" "$build/kernel-kernel.o" \
        "$build/kernel-main.o" "$build/kernel-work.o" -lgcc
done

m4="-mcpu=cortex-m4 -mthumb -mfloat-abi=soft"
compile "$build/m4-switch.o" $m4 m4/switch.s
compile "$build/m4-main.o" $m4 m4/main.c
compile "$build/m4-work.o" $m4 common/work.c
m_program m4 m4/m4.ld $m4 "$build/m4-switch.o" "$build/m4-main.o" "$build/m4-work.o"

compile "$build/jumps.o" $m4 jumps/jumps.s
compile "$build/jumps-main.o" $m4 jumps/main.c
compile "$build/jumps-work.o" $m4 common/work.c
m_program jumps m4/m4.ld $m4 "$build/jumps.o" "$build/jumps-main.o" "$build/jumps-work.o"

# Two revisions of one program, not optimised, so that every statement has code.
revision() {
    name=$1
    other=$2
    compile "$build/$name-control.o" -mcpu=cortex-m0 -mthumb -O0 "$name/control.c"
    compile "$build/$name-$other.o" -mcpu=cortex-m0 -mthumb -O0 "$name/$other.c"
    m_program "$name" m0/m0.ld -mcpu=cortex-m0 "$build/$name-control.o" "$build/$name-$other.o"
}

revision rev-old limits
revision rev-new range

# Thumb code, apart from startup.s and half of the work.
a15="-mcpu=cortex-a15 -mfloat-abi=soft"
compile "$build/a15-startup.o" $a15 a15/startup.s
compile "$build/a15-main.o" $a15 -mthumb a15/main.c
compile "$build/a15-work.o" $a15 -marm common/work.c
$cc $a15 -marm $link -T a15/a15.ld -o a15/a15.elf "$build/a15-startup.o" "$build/a15-main.o" "$build/a15-work.o" -lgcc

# A64, with a task in AArch32, which is linked separately.
compile "$build/a53-aarch32.o" -march=armv7-a -mfloat-abi=soft -mthumb a53/aarch32.c
compile "$build/a53-work32.o" -march=armv7-a -mfloat-abi=soft -mthumb common/work.c
$cc -march=armv7-a -mthumb -nostdlib -Wl,--build-id=none -Wl,--fatal-warnings -Wl,--no-warn-rwx-segments \
    -T a53/aarch32.ld -o "$build/a53-aarch32.elf" "$build/a53-aarch32.o" "$build/a53-work32.o"
${cc%gcc}objcopy -O binary "$build/a53-aarch32.elf" "$build/aarch32"
(
    cd "$build"
    ${cc64%gcc}objcopy -I binary -O elf64-littleaarch64 --redefine-sym _binary_aarch32_start=aarch32_task \
        --rename-section .data=.aarch32,contents,alloc,load,readonly,code aarch32 a53-task.o
)
a53="-march=armv8-a -mgeneral-regs-only -mstrict-align -fno-pic -fno-stack-protector -fno-asynchronous-unwind-tables"
for source in a53/startup.s a53/main.c common/work.c; do
    object=a53-$(basename "${source%.*}").o
    $cc64 $common $a53 -c -o "$build/$object" "$source"
done
$cc64 $link -static -no-pie -Wl,-z,max-page-size=4096 -T a53/a53.ld -o a53/a53.elf \
    "$build/a53-startup.o" "$build/a53-main.o" "$build/a53-work.o" "$build/a53-task.o"

# Two halves. The Non-secure half contains the work a second time, under other names.
m33="-mcpu=cortex-m33 -mthumb -mfloat-abi=soft"
compile "$build/m33-startup.o" $m33 m33/startup.s
compile "$build/m33-secure.o" $m33 m33/secure.c
compile "$build/m33-work.o" $m33 common/work.c
compile "$build/m33-nonsecure.o" $m33 m33/nonsecure.c -include m33/nonsecure.h
compile "$build/m33-nonsecure-work.o" $m33 common/work.c -include m33/nonsecure.h
$cc $m33 $link -T m33/m33.ld -o m33/m33.elf "$build/m33-startup.o" "$build/m33-secure.o" "$build/m33-work.o" \
    "$build/m33-nonsecure.o" "$build/m33-nonsecure-work.o" -lgcc

# The ten crashes, for a Cortex-M0+, a Cortex-M3, and a Cortex-M4 that uses its floating-point unit; and four whose cause
# cannot be proved. crash PROGRAM-CORE FLAGS...
crash() {
    name=$1
    shift
    compile "$build/$name-startup.o" "$@" -x assembler-with-cpp crash/startup.S
    compile "$build/$name-main.o" "$@" "crash/${name%-*}.c"
    compile "$build/$name-work.o" "$@" common/work.c
    $cc "$@" $link -Wl,--no-undefined -T crash/crash.ld -o "crash/$name.elf" \
        "$build/$name-startup.o" "$build/$name-main.o" "$build/$name-work.o" -lgcc
}

crash crash-m0 -mcpu=cortex-m0plus -mthumb
crash crash-m3 -mcpu=cortex-m3 -mthumb
crash crash-m4 -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16
crash unproven-m0 -DOWN_HARD_FAULT_HANDLER -mcpu=cortex-m0plus -mthumb
crash unproven-m3 -DOWN_HARD_FAULT_HANDLER -mcpu=cortex-m3 -mthumb
crash hang-m0 -DOWN_SYSTICK_HANDLER -mcpu=cortex-m0plus -mthumb
crash hang-m3 -DOWN_SYSTICK_HANDLER -mcpu=cortex-m3 -mthumb

# Threads and a handler that compute in floating point. The program has its own Reset_Handler.
float="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"
compile "$build/float-m4-main.o" $float crash/float.c
compile "$build/float-m4-work.o" $float common/work.c
$cc $float $link -Wl,--no-undefined -T crash/crash.ld -o crash/float-m4.elf \
    "$build/float-m4-main.o" "$build/float-m4-work.o" -lgcc
