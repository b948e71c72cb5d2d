"""Gathers captures in a process of its own: what is wanted comes by standard input, what was found goes to standard output."""

import json
import sys

import tracewalk


def main() -> None:
    """Reads one document of JSON; writes a line of JSON about the captures, and the saved sum after it."""
    wanted = json.load(sys.stdin)
    found = tracewalk.gather(wanted["paths"], answer=wanted["answer"], image=wanted["images"], **wanted["options"])
    head = json.dumps(found.captures.to_pylist())
    sys.stdout.buffer.write(head.encode() + b"\n" + found.to_bytes())


if __name__ == "__main__":
    main()
