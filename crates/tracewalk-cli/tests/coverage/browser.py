#!/usr/bin/env python3
"""Uses a coverage page as a reader does, in headless Chromium, and compares what it shows with the JSON document.

    browser.py CHROMIUM PAGE.html REPORT.json [FOLDER for screenshots]

Needs nothing but Python: it speaks the DevTools protocol over Chromium's pipe. Ends with status 1 and a sentence where
something is not as it should be.
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


class Browser:
    """A Chromium with one page."""

    def __init__(self, program, profile):
        # Chromium reads commands from its descriptor 3 and writes answers to 4.
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        fixed = [os.dup2(fd, 100 + fd, inheritable=True) for fd in (theirs_in, theirs_out)]
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        # Nothing but the page: no request of the browser's own.
        options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        options += [f"--user-data-dir={profile}", "--window-size=1400,900", "about:blank"]
        redirect = f'exec "$@" 3<&{fixed[0]} 4>&{fixed[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", redirect, "bash", program, *options],
            pass_fds=fixed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, *fixed):
            os.close(fd)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer}"
                return answer["result"]
            self.events.append(answer)

    def receive(self):
        while b"\0" not in self.buffer:
            part = os.read(self.into, 1 << 16)
            assert part, "Chromium ended"
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{script}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, script, what):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if self.evaluate(f"!!({script})"):
                return
            time.sleep(0.05)
        raise AssertionError(f"{what} did not happen")

    def click(self, selector):
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        assert place, f"nothing is {selector}"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def key(self, key, code=None, text=None):
        names = {"Enter": (13, "\r"), "Escape": (27, None), "ArrowDown": (40, None), "ArrowUp": (38, None)}
        names |= {"ArrowLeft": (37, None), "ArrowRight": (39, None)}
        code, text = names.get(key, (ord(key.upper()) if len(key) == 1 else 0, key))
        event = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, words):
        self.call("Input.insertText", text=words)

    def screenshot(self, file):
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        try:
            self.session = None
            os.write(self.out, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()

    def complaints(self):
        """What went wrong in the page, and what it asked of the network."""
        self.evaluate("1")
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(f"exception: {parameters['exceptionDetails']}")
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(f"console: {parameters['args']}")
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {parameters['entry']}")
            elif method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "data:", "about:", "blob:")):
                    found.append(f"request: {url}")
        return found


def expect(found, expected, what):
    assert found == expected, f"{what}: found {found!r}, expected {expected!r}"


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
    rows = browser.evaluate("[...document.querySelectorAll('#files tbody tr')].map(r => r.cells[0].textContent.trim())")
    expect(rows, [file["name"] for file in report["files"]], "the table of files")
    entered = browser.evaluate(
        "[...document.querySelectorAll('#functions tbody tr')].map(r => [r.cells[0].textContent, r.cells[2].dataset.value])"
    )
    expect(entered, [[f["name"], str(f["entered"])] for f in report["functions"] if f["name"]], "the functions")
    browser.click("#functions th:nth-child(3)")
    sorted_by_count = browser.evaluate("[...document.querySelectorAll('#functions tbody tr')].map(r => +r.cells[2].dataset.value)")
    expect(sorted_by_count, sorted(sorted_by_count), "the functions sorted by entries")


def file_view(browser, file):
    """A file that is shown has the counts of the document."""
    expect(browser.evaluate("document.querySelector('#file-head h1').textContent"), file["name"], "the file's name")
    shown = browser.evaluate(
        "[...document.querySelectorAll('tr.source[data-line]')].map(r => [+r.dataset.line, +r.dataset.count, r.dataset.state])"
    )
    expect(shown, [[line["line"], line["count"], line["state"]] for line in file["lines"]], f"{file['name']}: counts")
    digits = browser.evaluate(
        "[...document.querySelectorAll('tr.source[data-line]')].map(r => r.cells[1].firstChild.textContent.replace(/\\D/g, ''))"
    )
    expect(digits, ["" if line["state"] == "untold" else str(line["count"]) for line in file["lines"]], "what is written")
    for metric in ("lines", "branches", "functions", "instructions"):
        text = browser.evaluate(f"document.querySelector('#file-head [data-metric={metric}] b').textContent")
        expect(text, percent(file["totals"][metric]), f"{file['name']}: {metric}")


def instructions(browser, file, report):
    """The instructions of all lines, on demand."""
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
    """Without a choice of the reader's the system's holds; a narrow window needs no scrolling sideways."""
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
    """Text can be read: a contrast of 4.5 to 1 at least (WCAG 2.1, 1.4.3), of whatever has text of its own."""
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
        file_view(browser, file)
        instructions(browser, file, report)
    # One line, by a click; then the next that is not covered, by the keyboard.
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
        # A folder may stand between two files.
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
    expect(browser.evaluate("document.querySelector('#results').hidden"), True, "the results behind a search")
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
    # What the reader's system prefers, and a narrow window.
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
    program, page, document, *rest = sys.argv[1:]
    report = json.load(open(document))
    screenshots = pathlib.Path(rest[0]) if rest else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            use(browser, page, report, screenshots)
            complaints = browser.complaints()
        finally:
            browser.close()
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
