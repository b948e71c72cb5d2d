"""Finds the captures and the command."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "testdata" / "examples"
CORPUS = ROOT.parent / "shared" / "corpus"

# All tables of all captures take a quarter of an hour. By default each capture has some tables, and large captures are
# left out.
WHOLE = "TRACEWALK_WHOLE" in os.environ
LARGE = 3 << 20
# Few bytes, but many millions of instructions.
LONG = {"a55-test-tpiu", "infrastructure", "juno_r1_1", "test-file-mem-offsets"}


@pytest.fixture(scope="session")
def command():
    """Runs the command, whose output the tests compare with."""
    program = os.environ.get("TRACEWALK", str(ROOT / "target" / "debug" / "tracewalk"))

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    return run


def captures():
    """The examples, and the captures of the corpus if it exists."""
    found = sorted(EXAMPLES.glob("*/capture.toml"))
    if CORPUS.is_dir():
        found += sorted(CORPUS.glob("**/capture.toml"))
        found += sorted(path.parent for path in CORPUS.glob("**/snapshot.ini"))
        found += sorted(CORPUS.glob("linux/**/*.data"))
    elif "CI" in os.environ:
        raise FileNotFoundError(CORPUS)
    return [capture for capture in found if WHOLE or (size(capture) < LARGE and capture.name not in LONG)]


def size(capture):
    """The number of bytes in a capture's folder."""
    folder = capture if capture.is_dir() else capture.parent
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def name(capture):
    """A name for the capture in test IDs."""
    return "-".join(capture.parts[-3:])


def example(name):
    return EXAMPLES / name / "capture.toml"
