#!/bin/sh
# Makes the example captures again, from the records of what the example firmware executed:
#
#     ./generate.sh            here
#     ./generate.sh FOLDER     there
#
# The same input gives the same bytes; a test compares them with the committed ones.
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
