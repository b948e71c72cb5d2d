#!/bin/sh
# Recreates the example captures from the records of the example firmware:
#
#     ./generate.sh            in this folder
#     ./generate.sh FOLDER     in FOLDER
#
# The same input gives the same bytes; a test compares them with the committed files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here}
firmware=$here/../firmware

generate() {
    ${TRACEWALK_GENERATE:-cargo run --quiet --package tracewalk-generate --} capture "$@"
}

# A Cortex-M3 with its ETM on trace ID 0x10 and its ITM on 0x01, through a formatter.
generate --record "$firmware/m3/m3.record" --elf "$firmware/m3/m3.elf" --protocol etmv3,cpu=cortex-m3 \
    --id 0x10 --itm "0x01:a round of work; another one; the last one" --output "$output/m3-etmv3"
cp "$firmware/m3/m3.record" "$output/m3-etmv3/"

# A Cortex-A7's ETM, cycle accurate, with context IDs and timestamps.
generate --record "$firmware/a9/a9.record" --elf "$firmware/a9/a9.elf" --protocol etmv3,cpu=cortex-a7 \
    --cycle-accurate --context-id-bytes 1 --timestamps 200 --id 0x10 --output "$output/a7-etmv3"

# A Cortex-A15's PTM with a return stack.
generate --record "$firmware/a9/a9.record" --elf "$firmware/a9/a9.elf" --protocol pft,cpu=cortex-a15 \
    --return-stack --timestamps 200 --id 0x13 --output "$output/a15-pft"

# A Cortex-M33's ETM, ETMv4.2, with a return stack and timestamps.
generate --record "$firmware/m3/m3.record" --elf "$firmware/m3/m3.elf" --protocol etmv4,cpu=cortex-m33 \
    --return-stack --timestamps 200 --id 0x10 --output "$output/m33-etmv4"

# A Cortex-A53's ETM as it would be if it traced speculatively: wrong paths, with cycle counts and context IDs.
generate --record "$firmware/a9/a9.record" --elf "$firmware/a9/a9.elf" --protocol etmv4,cpu=cortex-a53,trcidr8=0x1e \
    --cycle-accurate --context-ids --id 0x10 --output "$output/a53-etmv4"

# A Cortex-A57's ETM: tasks in A64 and one in AArch32, a kernel, a hypervisor and a monitor; contexts and a return stack.
generate --record "$firmware/a53/a53.record" --elf "$firmware/a53/a53.elf" --protocol etmv4,cpu=cortex-a57 \
    --return-stack --context-ids --timestamps 500 --id 0x12 --output "$output/a57-etmv4"

# The crash in the buffer of a Cortex-M0+'s MTB, which holds the last 128 packets before the debugger stopped the
# processor at the entry of HardFault_Handler (vector catch).
generate --record "$firmware/m0-crash/m0-crash.record" --elf "$firmware/m0-crash/m0-crash.elf" --protocol mtb \
    --mtb-size 1024 --mtb-base 0x20001000 --output "$output/m0-crash-mtb"
