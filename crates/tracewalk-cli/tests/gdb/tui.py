"""Draws docs/pictures/gdb-tui.svg: GDB's own terminal view of the crash example, in tmux.

tui.py TRACEWALK REPOSITORY prints the picture.
"""

import html
import re
import subprocess
import sys
import time

TRACEWALK, REPOSITORY = sys.argv[1:]
COLUMNS, ROWS = 100, 32
SERVER = ["tmux", "-f", "/dev/null", "-L", "tracewalk-tui"]
EXAMPLE = f"{REPOSITORY}/testdata/examples/m0-crash-mtb"
COMMANDS = [
    "set style enabled off",
    "set remotetimeout 100",
    "set osabi none",
    f"directory {REPOSITORY}/testdata/firmware",
    f"target remote | {TRACEWALK} --quiet gdb {EXAMPLE}/capture.toml --listen - --cache none",
    "layout split",
    "winheight src 9",
    "winheight asm 7",
]
TYPED = ["reverse-stepi", "reverse-stepi", "bt"]


def tmux(*arguments):
    return subprocess.run(SERVER + list(arguments), check=True, capture_output=True, text=True).stdout


def wait_for(text):
    for _ in range(300):
        shown = tmux("capture-pane", "-p", "-t", "tui")
        if re.search(text, shown):
            return
        time.sleep(0.1)
    sys.exit(f"not shown: {text}\n{shown}")


def draw(lines):
    width, height, left = 8.4, 17, 10
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * width + 2 * left:.0f}" '
        f'height="{len(lines) * height + 14}" font-family="monospace" font-size="14">'
    )
    yield '<rect width="100%" height="100%" fill="#1d1f21"/>'
    for number, line in enumerate(lines):
        column, is_reversed = 0, False
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            if piece.startswith("\x1b"):
                for code in piece[2:-1].split(";"):
                    is_reversed = {"7": True, "27": False, "0": False, "": False}.get(code, is_reversed)
                continue
            if not piece:
                continue
            x, y = left + column * width, number * height + 18
            if is_reversed:
                yield f'<rect x="{x:.1f}" y="{y - 13}" width="{len(piece) * width:.1f}" height="{height}" fill="#c5c8c6"/>'
            if piece.strip():
                colour = "#1d1f21" if is_reversed else "#c5c8c6"
                yield (
                    f'<text x="{x:.1f}" y="{y}" fill="{colour}" xml:space="preserve" '
                    f'textLength="{len(piece) * width:.1f}">{html.escape(piece)}</text>'
                )
            column += len(piece)
    yield "</svg>"


arguments = " ".join(f"-ex '{command}'" for command in COMMANDS)
tmux("new-session", "-d", "-s", "tui", "-x", str(COLUMNS), "-y", str(ROWS), f"TERM=screen LC_ALL=C.UTF-8 gdb-multiarch -nx -q {EXAMPLE}/m0-crash.elf {arguments}")
try:
    wait_for(r"\(gdb\) *\n*$")
    for number, command in enumerate(TYPED):
        tmux("send-keys", "-t", "tui", command, "Enter")
        time.sleep(1)
    wait_for(r"#3 .*main")
    lines = tmux("capture-pane", "-p", "-e", "-t", "tui").rstrip("\n").split("\n")
finally:
    tmux("kill-server")
# Hides this machine's path to the repository.
print("\n".join(draw([line.replace(REPOSITORY, "…") for line in lines])))
