#!/usr/bin/env python3
"""Uses a flame graph as a reader does, in headless Chromium, and compares its rectangles with the folded chains.

    flamegraph.py CHROMIUM GRAPH.svg FOLDED [FOLDER for screenshots]

Ends with status 1 and a message if they differ.
"""

import json
import pathlib
import sys
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from browser import expect, visit  # noqa: E402

SHOWN = """[...document.querySelectorAll('#frames g:not(.hidden)')].map(g => {
    const r = g.querySelector('rect').getBoundingClientRect();
    return {name: g.dataset.n, cost: +g.dataset.w, x: r.x, y: r.y, width: r.width, height: r.height,
            text: g.querySelector('text').textContent, title: g.querySelector('title').textContent,
            wide: g.querySelector('text').getComputedTextLength()};
})"""


def totals(path):
    """The inclusive cost of each chain, and the total cost."""
    costs, whole = defaultdict(int), 0
    for line in open(path):
        chain, _, cost = line.rstrip().rpartition(" ")
        whole += int(cost)
        names = chain.split(";")
        for length in range(1, len(names) + 1):
            costs[tuple(names[:length])] += int(cost)
    return costs, whole


def shown_name(name):
    return name[: -len("_[i]")] + " (inlined)" if name.endswith("_[i]") else name


def nested(frames):
    """The chains of calls, from the stacking of the rectangles."""
    rows = defaultdict(list)
    for frame in frames:
        rows[round(frame["y"])].append(frame)
    chains, below = {}, None
    for y in sorted(rows, reverse=True):
        for frame in rows[y]:
            middle = frame["x"] + frame["width"] / 2
            outside = [f for f in below or [] if f["x"] - 0.1 <= middle <= f["x"] + f["width"] + 0.1]
            assert below is None or len(outside) == 1, f"{frame['name']} stands on {len(outside)} rectangles"
            frame["chain"] = outside[0]["chain"] + (frame["name"],) if outside else ()
            chains[frame["chain"]] = frame
        below = rows[y]
    return chains


def use(browser, graph, folded, screenshots):
    browser.call("Page.navigate", url=pathlib.Path(graph).resolve().as_uri())
    browser.wait("window.flamegraph", "the script's start")
    costs, whole = totals(folded)
    frames = browser.evaluate(SHOWN)
    chains = nested(frames)
    width = chains[()]["width"]
    expect(chains[()]["cost"], whole, "the whole")
    # Every chain wide enough to be visible is there, with a width according to its cost.
    for chain, cost in costs.items():
        if cost * 1000 > whole:
            frame = chains.get(tuple(shown_name(name) for name in chain))
            assert frame, f"{chain} is not shown"
            expect(frame["cost"], cost, f"{chain}: cost")
            assert abs(frame["width"] - width * cost / whole) < 0.5, f"{chain}: width {frame['width']}"
    for frame in frames:
        assert frame["wide"] <= frame["width"] + 1, f"{frame['name']}: the text is wider than the rectangle"
        assert f"{frame['cost']} " in frame["title"], frame["title"]
    if screenshots:
        browser.screenshot(screenshots / "flamegraph.png")
    # A click makes the widest function that was called by another one fill the window.
    deep = max((chain for chain in chains if len(chain) > 2), key=lambda chain: (chains[chain]["cost"], chain))
    target = chains[deep]
    press(browser, target["x"] + target["width"] / 2, target["y"] + target["height"] / 2)
    zoomed = nested(browser.evaluate(SHOWN))
    assert abs(zoomed[deep]["width"] - width) < 0.5, "the clicked rectangle is as wide as the window"
    for chain, frame in zoomed.items():
        assert chain[: len(deep)] == deep[: len(chain)], f"{chain} is outside what was clicked"
        if chain[: len(deep)] == deep:
            expected = width * frame["cost"] / target["cost"]
            assert abs(frame["width"] - expected) < 0.5, f"{chain}: width {frame['width']}, not {expected}"
    if screenshots:
        browser.screenshot(screenshots / "zoomed.png")
    browser.key("Escape")
    expect(len(browser.evaluate(SHOWN)), len(frames), "the number of rectangles after the reset")
    # The matches of a search are marked, and their part of the whole is shown.
    name = target["name"].removesuffix(" (inlined)")
    browser.evaluate(f"window.prompt = () => {json.dumps('^' + name)}")
    browser.click("#search")
    matching = [chain for chain in chains if chain and chain[-1].startswith(name)]
    marked = browser.evaluate("[...document.querySelectorAll('#frames g.match')].length")
    expect(marked, len(matching), "the marked rectangles")
    outermost = [c for c in matching if not any(o != c and c[: len(o)] == o for o in matching)]
    part = 100 * sum(chains[chain]["cost"] for chain in outermost) / whole
    found = browser.evaluate("document.querySelector('#found').textContent")
    expect(found, f"matching: {part:.1f}%", "the part that matches")
    if screenshots:
        browser.screenshot(screenshots / "search.png")
    # The function under the pointer is described in full.
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=target["x"] + 3, y=target["y"] + 3)
    details = browser.evaluate("document.querySelector('#details').textContent")
    expect(details, target["title"], "the details")


def press(browser, x, y):
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def main():
    program, graph, folded, *screenshots = sys.argv[1:]
    visit(program, lambda browser, folder: use(browser, graph, folded, folder), screenshots)


if __name__ == "__main__":
    main()
