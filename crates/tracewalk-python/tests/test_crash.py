"""Crashes without a trace."""

import pyarrow
import pytest
from conftest import ROOT

import tracewalk

LOG = ROOT / "testdata" / "crashes" / "m3-divide" / "crash.log"
IMAGE = ROOT / "testdata" / "firmware" / "crash" / "crash-m3.elf"


def test_a_log_without_a_trace_says_what_the_command_says(command):
    session = tracewalk.open(LOG, image=IMAGE)
    assert session.sources == []
    answer = session.crash()
    [crash] = answer.crashes.to_pylist()
    assert (crash["cause"], crash["function"], crash["protocol"]) == ("divide_by_zero", "average", "none")
    for name in ["crashes", "stack", "path", "last", "registers", "proof"]:
        options = ["--table", name, "--format", "csv", "-q"]
        status, output, _ = command("crash", LOG, "--image", IMAGE, *options)
        assert status == 0
        assert pyarrow.table(answer[name]).num_rows == output.decode().count("\n") - 1


@pytest.mark.parametrize("answer", ["coverage", "counts", "profile", "interrupts", "timeline", "info"])
def test_other_answers_need_a_trace(answer, command):
    session = tracewalk.open(LOG, image=IMAGE)
    with pytest.raises(tracewalk.TracewalkError) as error:
        getattr(session, answer)()
    _, _, said = command("--messages", "json", "flow", LOG, "--format", "none")
    assert f'"kind":"{error.value.kind}"' in said
    with pytest.raises(tracewalk.TracewalkError):
        list(session.flow())
