"""Gathers captures in a separate process, which reads the request from standard input and writes the result to standard output."""

import json
import sys

import tracewalk


def main() -> None:
    """Reads one JSON document; writes a line of JSON about the captures, then the saved sum."""
    wanted = json.load(sys.stdin)
    found = tracewalk.gather(wanted["paths"], answer=wanted["answer"], image=wanted["images"], **wanted["options"])
    head = json.dumps(found.captures.to_pylist())
    sys.stdout.buffer.write(head.encode() + b"\n" + found.to_bytes())


if __name__ == "__main__":
    main()
