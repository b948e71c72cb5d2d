"""Where the captures and the command are."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "testdata" / "examples"
CORPUS = ROOT.parent / "shared" / "corpus"


@pytest.fixture(scope="session")
def command():
    """Runs the command, whose answers are the ones to compare with."""
    program = os.environ.get("TRACEWALK", str(ROOT / "target" / "debug" / "tracewalk"))

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    return run


def captures():
    """The examples, and the corpus' captures where it is there."""
    found = sorted(EXAMPLES.glob("*/capture.toml"))
    if CORPUS.is_dir():
        found += sorted(CORPUS.glob("**/capture.toml"))
        found += sorted(path.parent for path in CORPUS.glob("**/snapshot.ini"))
        found += sorted(CORPUS.glob("linux/**/*.data"))
    elif "CI" in os.environ:
        raise FileNotFoundError(CORPUS)
    return found


def name(capture):
    """What a capture is called among others."""
    return "-".join(capture.parts[-3:])


def example(name):
    return EXAMPLES / name / "capture.toml"
