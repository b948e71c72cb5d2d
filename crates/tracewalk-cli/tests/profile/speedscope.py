#!/usr/bin/env python3
"""Opens a profile in speedscope, as its users do, in headless Chromium, and compares its table with the folded chains.

    speedscope.py CHROMIUM SPEEDSCOPE/index.html PROFILE FOLDED

The suffix of PROFILE names its format. Ends with status 1 and a message if they differ.
"""

import pathlib
import re
import sys
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from browser import expect, opened  # noqa: E402

# A row of the "sandwich" view: total, self, name.
ROW = re.compile(r"([\d,]+) \([^)]*\)\s+([\d,]+) \([^)]*\)\s+(\S[^\n]*)")


def functions(path, name_of):
    """The inclusive and the exclusive cost of each function; a recursive function's total contains its cost once."""
    costs = defaultdict(lambda: [0, 0])
    for line in open(path):
        chain, _, cost = line.rstrip().rpartition(" ")
        names = [name_of(name) for name in chain.split(";")]
        for name in set(names):
            costs[name][0] += int(cost)
        costs[names[-1]][1] += int(cost)
    return dict(costs)


def table(browser, page, profile):
    browser.call("Page.navigate", url=page.as_uri())
    browser.wait("document.readyState === 'complete' && document.querySelector('input[type=file]')", "speedscope's start")
    found = browser.call("Runtime.evaluate", expression="document.querySelector('input[type=file]')")
    browser.call("DOM.setFileInputFiles", objectId=found["result"]["objectId"], files=[str(profile)])
    browser.wait("document.body.innerText.includes('Sandwich')", "opening the file")
    browser.key("3")
    # The head of the table appears before its rows.
    browser.wait("/[0-9] \\([^)]*%\\)/.test(document.body.innerText)", "the table of functions")
    text = browser.settled_text()
    number = lambda digits: int(digits.replace(",", ""))
    return {name: [number(total), number(own)] for total, own, name in ROW.findall(text)}


def main():
    program, page, profile, folded = sys.argv[1:]
    page, profile = pathlib.Path(page).resolve(), pathlib.Path(profile).resolve()
    kind = profile.suffix[1:]
    expected = functions(folded, lambda name: name.replace("_[i]", " (inlined)") if kind == "speedscope" else name)
    with opened(program) as browser:
        found = table(browser, page, profile)
    expect(found, expected, f"the functions in {kind}")


if __name__ == "__main__":
    main()
