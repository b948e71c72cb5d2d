#!/usr/bin/env python3
"""Uses a coverage page as a reader does, in headless Chromium, and compares its contents with the JSON document.

    page.py CHROMIUM PAGE.html REPORT.json [FOLDER for screenshots]

Ends with status 1 and a message if they differ.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from browser import expect, visit  # noqa: E402


def is_gap(line):
    outcomes = [count for branch in line.get("branches", []) for count in (branch["taken"], branch["not_taken"])]
    return line["state"] in ("partly", "skipped", "unreached") or 0 in outcomes


def percent(tally):
    return f"{tally['covered'] * 1000 // tally['found'] / 10:.1f}%" if tally["found"] else "–"


def overview(browser, report):
    for metric in ("lines", "branches", "functions", "instructions"):
        card = f"[data-metric={metric}]"
        shown = browser.evaluate(f"document.querySelector('.card{card} .percent').textContent")
        expect(shown, percent(report["totals"][metric]), metric)
    rows = browser.evaluate("[...document.querySelectorAll('#files tbody tr')].map(r => r.cells[0].querySelector('a').textContent)")
    expect(rows, [file["name"] for file in report["files"]], "the table of files")
    stale = browser.evaluate("[...document.querySelectorAll('#files tbody tr:has(.stale) a')].map(a => a.textContent)")
    expect(stale, report.get("stale", []), "the files whose source is not the one that was compiled")
    entered = browser.evaluate(
        "[...document.querySelectorAll('#functions tbody tr')].map(r => [r.cells[0].textContent, r.cells[2].dataset.value])"
    )
    expect(entered, [[f["name"], str(f["entered"])] for f in report["functions"] if f["name"]], "the functions")
    browser.click("#functions th:nth-child(3)")
    sorted_by_count = browser.evaluate("[...document.querySelectorAll('#functions tbody tr')].map(r => +r.cells[2].dataset.value)")
    expect(sorted_by_count, sorted(sorted_by_count), "the functions sorted by entries")


def file_view(browser, file, report):
    """The file view shows the counts of the document."""
    stale = browser.evaluate("document.querySelectorAll('#file-head .stale').length")
    expect(stale, int(file["name"] in report.get("stale", [])), f"{file['name']}: whether the source is stale")
    expect(browser.evaluate("document.querySelector('#file-head h1').textContent"), file["name"], "the file's name")
    shown = browser.evaluate(
        "[...document.querySelectorAll('tr.source[data-line]')].map(r => [+r.dataset.line, +r.dataset.count, r.dataset.state])"
    )
    expect(shown, [[line["line"], line["count"], line["state"]] for line in file["lines"]], f"{file['name']}: counts")
    digits = browser.evaluate(
        "[...document.querySelectorAll('tr.source[data-line]')].map(r => r.cells[1].firstChild.textContent.replace(/\\D/g, ''))"
    )
    expect(digits, ["" if line["state"] == "unrecorded" else str(line["count"]) for line in file["lines"]], "what is written")
    for metric in ("lines", "branches", "functions", "instructions"):
        text = browser.evaluate(f"document.querySelector('#file-head [data-metric={metric}] b').textContent")
        expect(text, percent(file["totals"][metric]), f"{file['name']}: {metric}")


def instructions(browser, file, report):
    """The page shows the instructions of all lines on demand."""
    browser.key("d")
    browser.wait("document.querySelector('tr.detail')", "showing instructions")
    shown = browser.evaluate(
        "[...document.querySelectorAll('tr.detail')].map(r => [+r.dataset.of,"
        " [...r.querySelectorAll('.copy')].map(c => +c.dataset.count),"
        " [...r.querySelectorAll('[data-address]')].map(i => i.dataset.address),"
        " [...r.querySelectorAll('td.text')].every(t => t.textContent.length > 1)])"
    )
    expected = [
        [line["line"], [c["count"] for c in line["copies"]], [a for c in line["copies"] for a in c["instructions"]], True]
        for line in file["lines"]
    ]
    expect(shown, expected, f"{file['name']}: instructions")
    browser.key("d")
    expect(browser.evaluate("document.querySelectorAll('tr.detail').length"), 0, "hidden instructions")


def appearances(browser, page, screenshots):
    """The page follows the system's theme until the reader chooses one; a narrow window needs no horizontal scrolling."""
    browser.evaluate("localStorage.clear(); delete document.documentElement.dataset.theme")
    light = {}
    for scheme in ("dark", "light"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        light[scheme] = browser.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every(c => c > 127)"
        )
        contrast(browser, scheme)
    expect(light, {"dark": False, "light": True}, "the colours that the system prefers")
    browser.call("Emulation.setDeviceMetricsOverride", width=420, height=860, deviceScaleFactor=1, mobile=False)
    wide = browser.evaluate("document.documentElement.scrollWidth > innerWidth")
    expect(wide, False, "scrolling sideways in a narrow window")
    if screenshots:
        browser.screenshot(screenshots / "narrow.png")
    browser.call("Emulation.clearDeviceMetricsOverride")


def contrast(browser, scheme):
    """Every element with text of its own has a contrast of at least 4.5 to 1 (WCAG 2.1, 1.4.3)."""
    found = browser.evaluate(
        """(() => {
        const light = (colour) => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3)
                .map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const paper = (e) => {
            for (; e; e = e.parentElement) {
                const colour = getComputedStyle(e).backgroundColor;
                if (!/, 0\\)$/.test(colour)) return colour;
            }
            return "rgb(255, 255, 255)";
        };
        const weak = [];
        for (const e of document.querySelectorAll("#side *, #overview *")) {
            if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
            const [a, b] = [light(getComputedStyle(e).color), light(paper(e))].sort((x, y) => y - x);
            if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(e.textContent.trim().slice(0, 30));
        }
        return weak;
        })()"""
    )
    expect(found, [], f"text that can hardly be read, {scheme}")


def use(browser, page, report, screenshots):
    browser.call("Page.navigate", url=pathlib.Path(page).resolve().as_uri())
    browser.wait("document.documentElement?.dataset.ready === 'true'", "reading the page")
    overview(browser, report)
    if screenshots:
        browser.screenshot(screenshots / "overview.png")
    # Every file, by the tree.
    for index, file in enumerate(report["files"]):
        browser.click(f"#tree [data-file='{index}'] > .node")
        browser.wait(f"document.querySelector('#file-head h1')?.textContent === {json.dumps(file['name'])}", "opening a file")
        file_view(browser, file, report)
        instructions(browser, file, report)
    # Click one line, then go to the next uncovered one by the keyboard.
    file = report["files"][-1]
    line = file["lines"][0]["line"]
    browser.click(f"#L{line} td:nth-child(4)")
    expect(browser.evaluate("document.querySelector('tr.detail').dataset.of"), str(line), "the line that was clicked")
    gaps = [line["line"] for line in file["lines"] if is_gap(line)]
    if gaps:
        browser.key("n")
        after = [gap for gap in gaps if gap > line] or gaps
        expect(browser.evaluate("document.querySelector('tr.cursor').dataset.line"), str(after[0]), "the next gap")
    if screenshots:
        browser.key("Enter")
        browser.screenshot(screenshots / "file.png")
    # The tree, by the keyboard.
    browser.key("f")
    while True:
        browser.key("ArrowUp")
        # A folder may be between two files.
        if browser.evaluate("document.activeElement.dataset.file") == str(len(report["files"]) - 2):
            break
    browser.key("Enter")
    browser.wait(f"document.querySelector('#file-head h1').textContent === {json.dumps(report['files'][-2]['name'])}", "moving in the tree")
    # Search: a function, a line, nothing.
    function = max((f for f in report["functions"] if f["name"] and f["file"] is not None), key=lambda f: len(f["name"]))
    browser.key("/")
    browser.type(function["name"][:-1].upper())
    browser.wait("document.querySelectorAll('#results a').length > 0", "finding a function")
    found = browser.evaluate("document.querySelector('#results a[aria-selected=true]').textContent")
    assert function["name"] in found, f"search found {found}"
    if screenshots:
        browser.screenshot(screenshots / "search.png")
    browser.key("Enter")
    name = report["files"][function["file"]]["name"]
    browser.wait(f"document.querySelector('#file-head h1').textContent === {json.dumps(name)}", "opening what was found")
    expect(browser.evaluate("document.querySelector('#results').hidden"), True, "the results after a search")
    browser.key("/")
    browser.type("no such thing in here")
    expect(browser.evaluate("document.querySelector('#results').textContent"), "Nothing found", "a search in vain")
    browser.key("Escape")
    # Dark and light.
    paper = "getComputedStyle(document.body).backgroundColor"
    before = browser.evaluate(paper)
    browser.key("t")
    assert browser.evaluate(paper) != before, "the theme did not change"
    if screenshots:
        browser.screenshot(screenshots / "dark.png")
    browser.key("t")
    expect(browser.evaluate(paper), before, "the theme")
    # The system's preferred theme, and a narrow window.
    browser.key("h")
    browser.wait("!document.querySelector('#overview').hidden", "going back to the overview")
    appearances(browser, page, screenshots)
    browser.evaluate(f"location.hash = 'file=' + encodeURIComponent({json.dumps(report['files'][0]['name'])})")
    browser.wait("!document.querySelector('#file').hidden", "opening a file by its address")
    # Help, and back to the overview.
    browser.key("?")
    expect(browser.evaluate("document.querySelector('#help').open"), True, "help")
    if screenshots:
        browser.screenshot(screenshots / "help.png")
    browser.key("Escape")
    browser.key("h")
    browser.wait("!document.querySelector('#overview').hidden", "going back to the overview")


def main():
    program, page, document, *screenshots = sys.argv[1:]
    report = json.load(open(document))
    visit(program, lambda browser, folder: use(browser, page, report, folder), screenshots)


if __name__ == "__main__":
    main()
