#!/bin/bash
# Builds the example programs in Rust. Needs a Rust compiler with the sources of its library, and the arm-none-eabi binutils
# of build.sh. Debian 12's rustc-web and rust-web-src 1.96.0+dfsg1-1~deb12u2 (`apt-get install rustc-web rust-web-src`) built
# the committed ELF files, and reproduce them byte for byte.
#
#     RUSTC=/usr/bin/rustc LIBRARY=/usr/src/rustc-1.96.0/library ./build-rust.sh
#
# The script compiles the library's `core`, because no package has it for these processors.
set -euo pipefail
cd "$(dirname "$0")"

rustc=${RUSTC:-/usr/bin/rustc}
library=${LIBRARY:-/usr/src/rustc-1.96.0/library}
cc=${CC:-arm-none-eabi-gcc}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
export RUSTC_BOOTSTRAP=1

# core TARGET FLAGS...: compiles `core`, and the empty crate that every program without `std` needs
core() {
    local out=$build/$1/lib/rustlib/$1/lib
    mkdir -p "$out"
    "$rustc" --edition 2024 --crate-type rlib --crate-name core --cap-lints allow -O -C panic=abort -C codegen-units=1 \
        -Zforce-unstable-if-unmarked --remap-path-prefix "$library=/rust" --target "$@" --out-dir "$out" \
        "$library/core/src/lib.rs"
    printf '#![feature(compiler_builtins)]\n#![compiler_builtins]\n#![no_std]\n' >"$build/empty.rs"
    "$rustc" --edition 2024 --crate-type rlib --crate-name compiler_builtins --cap-lints allow --sysroot "$build/$1" \
        -Zforce-unstable-if-unmarked -C panic=abort --target "$@" --out-dir "$out" "$build/empty.rs"
}

# program NAME TARGET FLAGS...: compiles NAME/main.rs into an archive, with the parts of `core` that it uses
program() {
    local name=$1 target=$2
    "$rustc" --edition 2024 --crate-type staticlib --crate-name firmware -O -g -C panic=abort -C codegen-units=1 \
        --sysroot "$build/$target" --remap-path-prefix "$PWD=." --target "${@:2}" -o "$build/$name.a" "$name/main.rs"
}

link="-nostdlib -Wl,--build-id=sha1 -Wl,--fatal-warnings -Wl,--no-warn-rwx-segments -Wl,--gc-sections -Wl,-z,noexecstack"

core thumbv7m-none-eabi
program rust-m3 thumbv7m-none-eabi
$cc -mcpu=cortex-m3 -mthumb -Wa,--debug-prefix-map="$PWD=." -c common/m-startup.s -o "$build/startup.o"
$cc -mcpu=cortex-m3 -mthumb $link -T m4/m4.ld -o rust-m3/rust-m3.elf "$build/startup.o" "$build/rust-m3.a" -lgcc

core thumbv7a-none-eabi
program rust-a9 thumbv7a-none-eabi
$cc -mcpu=cortex-a9 -mfloat-abi=soft $link -T a9/a9.ld -Wl,-e,reset -Wl,--undefined=reset -o rust-a9/rust-a9.elf \
    -Wl,--whole-archive "$build/rust-a9.a" -Wl,--no-whole-archive -lgcc
arm-none-eabi-strip --strip-debug rust-m3/rust-m3.elf rust-a9/rust-a9.elf
