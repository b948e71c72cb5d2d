"""The Python in the documents runs as printed, block after block, as in a notebook."""

import re
import shutil
import warnings

from conftest import EXAMPLES, ROOT

import tracewalk


def blocks(document, section=None):
    """The Python blocks of a document, or of one of its sections."""
    text = (ROOT / "docs" / document).read_text()
    if section is not None:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_page_on_python_is_a_notebook_that_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names = {}
    found = blocks("python.md")
    assert len(found) >= 4
    # The last block turns warnings into errors, which `catch_warnings` undoes.
    with warnings.catch_warnings():
        for number, block in enumerate(found):
            exec(compile(block, f"python.md, block {number}", "exec"), names)
    assert "unreached" in capsys.readouterr().out
    assert names["coverage"].lines.num_rows > 0


def test_the_page_on_fleets_is_a_notebook_that_runs(monkeypatch, tmp_path):
    for number in range(3):
        shutil.copytree(EXAMPLES / "m3-etmv3", tmp_path / "nightly" / str(number))
    monkeypatch.chdir(tmp_path)
    names = {}
    [block] = blocks("fleets.md", "Python")
    exec(compile(block, "fleets.md", "exec"), names)
    assert tracewalk.read("all.twcounts").to_bytes() == names["gathered"].to_bytes()
    assert names["gathered"].captures.num_rows == 3
