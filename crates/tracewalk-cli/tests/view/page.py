#!/usr/bin/env python3
"""Uses the page of `tracewalk view` in headless Chromium.

    page.py CHROMIUM use|gap|large|cores|exported|other-site URL
    page.py CHROMIUM pictures|picture-cores URL FOLDER
"""

import http.server
import os
import pathlib
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from browser import expect, opened  # noqa: E402


def size(browser, width, height, scale=1):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)


def visit(browser, url):
    browser.call("Page.navigate", url=url)
    browser.wait("document.body && document.body.dataset.ready", "the page", 300)
    browser.wait("document.body.dataset.counted", "what is counted", 300)
    settle(browser)


def settle(browser):
    browser.settled_text()


def step(browser):
    return browser.evaluate("state.step")


def here(browser):
    return browser.evaluate("state.here.row")


def press(browser, key):
    """Presses a key, and waits until the page shows another place or a message."""
    before = browser.evaluate("[state.step, going]")
    browser.key(key)
    browser.wait(f"going > {before[1]} || $('said').textContent", f"anything after {key}")
    browser.wait(f"state.step !== {before[0]} || $('said').textContent", f"another place after {key}")
    settle(browser)
    return step(browser)


def go(browser, to):
    browser.evaluate(f"go({to})")
    browser.wait(f"state.step === {to}", f"step {to}")
    settle(browser)


def search(browser, words):
    browser.key("/")
    browser.wait("document.activeElement.id === 'what'", "the search box")
    browser.evaluate("$('what').select()")
    browser.type(words)
    before = browser.evaluate("going")
    browser.key("Enter")
    browser.wait(f"going > {before} || $('said').textContent", "the search")
    settle(browser)
    browser.key("Escape")
    return step(browser)


def all_panes_agree(browser):
    row = here(browser)
    selected = browser.evaluate("document.querySelector('#rows [aria-selected=true]')?.dataset.step")
    expect(selected, str(row["step"]), "the selected row")
    if row.get("address"):
        current = browser.evaluate("document.querySelector('#instructions .current')?.dataset.address")
        expect(current, row["address"], "the current instruction")
        top = browser.evaluate("document.querySelector('#frames .function').textContent")
        expect(top, row["function"], "the innermost function")
        if browser.evaluate("panes.file"):
            line = browser.evaluate("document.querySelector('#lines .current')?.dataset.line")
            expect(line, str(row["line"]), "the current line")


def use(browser, url):
    visit(browser, url)
    expect(step(browser), 0, "the first step")
    steps = browser.evaluate("summary().steps")
    # Each kind of move, forward and back.
    go(browser, 3000)
    for key in "ilfe":
        start = step(browser)
        on = press(browser, key)
        assert on > start, f"{key} went from {start} to {on}"
        all_panes_agree(browser)
        back = press(browser, key.upper())
        assert back < on, f"{key.upper()} went from {on} to {back}"
        all_panes_agree(browser)
    place = press(browser, "i")
    expect(press(browser, "I"), browser.evaluate(f"(async () => (await ask('move', {{step: {place}, what: 'instruction', back: true}})).step)()"), "back by an instruction")
    # To the call, and from the first step to nowhere.
    search(browser, "crc32")
    row = here(browser)
    expect((row["function"], row["offset"]), ("crc32", 0), "where crc32 is entered")
    all_panes_agree(browser)
    entered = step(browser)
    assert press(browser, "u") < entered, "the call stands before the function"
    assert browser.evaluate("state.here.row.text").startswith("bl"), "it is a call"
    second = search(browser, "crc32")
    expect(second, entered, "the next entry from the call")
    # A value leads to what wrote it.
    go(browser, 700)
    browser.wait("$('values').querySelector('button')", "values")
    register, value = browser.evaluate("[...$('values').children].slice(-2).map(made => made.textContent)")
    browser.evaluate("[...$('values').querySelectorAll('button')].at(-1).click()")
    browser.wait("state.step < 700", "what wrote it")
    settle(browser)
    browser.wait(f"[...$('values').querySelectorAll('dt')].some(made => made.textContent === '{register} ←')", "the write")
    written = browser.evaluate(f"[...$('values').querySelectorAll('dt')].find(made => made.textContent === '{register} ←').nextSibling.textContent")
    expect(written, value, "the value that was written")
    # The search also takes addresses, lines and instruction numbers.
    expect(here_after(browser, row["address"])["address"], row["address"], "an address")
    found = here_after(browser, f"{row['file'].split('/')[-1]}:{row['line']}")
    expect(found["line"], row["line"], "a line")
    expect(here_after(browser, "100")["number"], 100, "an instruction")
    expect(here_after(browser, "exception:SysTick")["kind"], "exception", "an exception")
    search(browser, "no_such_thing")
    assert "no_such_thing" in browser.evaluate("$('said').textContent")
    # Zoom: by keys, wheel and all.
    go(browser, steps // 2)
    browser.key("0")
    settle(browser)
    expect(browser.evaluate("[state.from, state.to]"), [0, steps], "all of the timeline")
    browser.key("+")
    browser.key("+")
    settle(browser)
    width = browser.evaluate("state.to - state.from")
    assert abs(width - steps / 4) < 4, f"{width} of {steps} after zooming twice"
    assert browser.evaluate("state.from <= state.step && state.step < state.to"), "the place stays in sight"
    middle = browser.evaluate("(() => { const r = $('lanes').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height - 12]; })()")
    browser.call("Input.dispatchMouseEvent", type="mouseWheel", x=middle[0], y=middle[1], deltaX=0, deltaY=-240)
    settle(browser)
    assert browser.evaluate("state.to - state.from") < width, "the wheel zooms"
    # A click in the timeline goes there.
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=middle[0], y=middle[1], button="left", clickCount=1)
    settle(browser)
    wanted = browser.evaluate("(state.from + state.to) / 2")
    assert abs(step(browser) - wanted) <= browser.evaluate("(state.to - state.from) / 50"), "the place under the pointer"
    all_panes_agree(browser)
    # The place stays visible when the window becomes smaller.
    size(browser, 1400, 500)
    browser.wait("$('rows').clientHeight < 300", "a smaller list")
    settle(browser)
    in_sight = browser.evaluate("(() => { const row = document.querySelector('#rows [aria-selected=true]')?.getBoundingClientRect(),"
                                " box = $('rows').getBoundingClientRect(); return row && row.bottom <= box.bottom + 1; })()")
    assert in_sight, "the selected row after the window became smaller"
    size(browser, 1400, 900)
    settle(browser)
    # The list has all steps, but draws only a few.
    expect(press(browser, "End"), steps - 1, "the last step")
    assert browser.evaluate("document.querySelectorAll('#rows .row').length") < 120
    # A link names the place.
    go(browser, 1234)
    link = browser.evaluate("(write_link(), location.href)")
    browser.call("Page.navigate", url="about:blank")
    visit(browser, link)
    expect(step(browser), 1234, "the step of the link")
    # The keyboard alone reaches every control.
    unreachable = browser.evaluate("[...document.querySelectorAll('button, input, select')].filter(e => e.offsetParent && e.tabIndex < 0).length")
    expect(unreachable, 0, "controls without the keyboard")
    browser.key("?")
    browser.wait("$('keys').open", "the list of keys")
    browser.key("Escape")
    browser.evaluate("$('keys').close()")
    browser.key("t")
    assert browser.evaluate("document.documentElement.dataset.theme")


def here_after(browser, words):
    browser.evaluate("go(0)")
    settle(browser)
    search(browser, words)
    return here(browser)


def gap(browser, url):
    visit(browser, url)
    press(browser, "g")
    expect(here(browser)["kind"], "gap", "the row after g")
    first = step(browser)
    assert browser.evaluate("timeline.answer.gaps.some(([at]) => at === state.step) || timeline.all.gaps.length > 0")
    selected = browser.evaluate("document.querySelector('#rows [aria-selected=true]').className")
    assert "gap" in selected, selected
    press(browser, "i")
    expect(press(browser, "G"), first, "back to the gap")


def large(browser, url):
    """A large page works like a small one: step, search, zoom, link, a gap. The variable STEPS holds the number of steps."""
    visit(browser, url)
    steps = browser.evaluate("summary().steps")
    expect(steps, int(os.environ["STEPS"]), "the number of steps")
    # The first picture is from the overview, and is marked as inexact.
    expect(browser.evaluate("$('lanes').dataset.exact"), "false", "a picture of everything")
    assert browser.evaluate("document.querySelectorAll('#rows .row').length") < 120
    go(browser, steps // 3 * 2)
    all_panes_agree(browser)
    press(browser, "f")
    press(browser, "e")
    all_panes_agree(browser)
    for _ in range(12):
        browser.key("+")
    settle(browser)
    browser.wait("$('lanes').dataset.exact === 'true'", "a picture of a part")
    settle(browser)
    # Large numbers fit.
    cut = browser.evaluate("[...document.querySelectorAll('#costs td.n, .code .count')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)")
    expect(cut, [], "numbers that are cut off")
    # Search, forwards and back.
    place = step(browser)
    entered = search(browser, "crc32")
    assert entered > place, f"crc32 is entered at {entered}, after {place}"
    expect((here(browser)["function"], here(browser)["offset"]), ("crc32", 0), "where crc32 is entered")
    all_panes_agree(browser)
    before = browser.evaluate("going")
    browser.click("#find-back")
    browser.wait(f"going > {before}", "the entry before")
    settle(browser)
    assert step(browser) < entered, "the entry before"
    # The gap in the middle, and back to it.
    go(browser, 0)
    lost = press(browser, "g")
    expect(here(browser)["kind"], "gap", "the row after g")
    assert abs(lost - steps / 2) < steps / 100, f"the gap is at {lost} of {steps}"
    assert browser.evaluate("timeline.all.gaps.length") > 0
    press(browser, "i")
    expect(press(browser, "G"), lost, "back to the gap")
    # A link names the place and what the timeline shows.
    go(browser, steps // 5)
    link, window = browser.evaluate("(write_link(), [location.href, [state.from, state.to]])")
    browser.call("Page.navigate", url="about:blank")
    visit(browser, link)
    expect((step(browser), browser.evaluate("[state.from, state.to]")), (steps // 5, window), "what the link names")
    all_panes_agree(browser)
    expect(press(browser, "End"), steps - 1, "the last step")


def cores(browser, url):
    """The other source is a lane; a click on the lane goes to that source."""
    visit(browser, url)
    browser.key("0")
    settle(browser)
    expect(browser.evaluate("$('lanes').dataset.cores"), "1", "the lanes of other sources")
    place = browser.evaluate(
        "(() => { const box = timeline.boxes.filter(box => box.source != null)[3], r = $('lanes').getBoundingClientRect();"
        " return [r.x + box[0] + 1, r.y + box[1] + 6, box.source, box.step]; })()")
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
    browser.wait(f"state.source === {place[2]} && state.step === {place[3]}", "the other source's step")
    settle(browser)
    expect(browser.evaluate("$('source').value"), str(place[2]), "the source that is selected")
    all_panes_agree(browser)


def exported(browser, url):
    visit(browser, url)
    all_panes_agree(browser)
    last = step(browser)
    assert press(browser, "I") < last
    press(browser, "L")
    press(browser, "F")
    all_panes_agree(browser)
    press(browser, "u")
    search(browser, "crc32")
    assert browser.evaluate("$('costs').tBodies[0].rows.length") > 0
    assert browser.evaluate("document.querySelectorAll('#lines .line').length") > 0


def other_site(browser, url):
    """A page of another site cannot read the trace, neither by requests nor in a frame."""
    split = urllib.parse.urlsplit(url)
    token = urllib.parse.parse_qs(split.fragment)["token"][0]
    page = b"<!doctype html><title>elsewhere</title><script>window.name='x'</script>"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/")
    browser.wait("document.title === 'elsewhere'", "the other site")
    target = f"http://{split.netloc}/api/rows?from=0&count=5"
    # The other site fails even with the token, which it cannot know.
    read = browser.evaluate(
        f"fetch('{target}', {{headers: {{'x-tracewalk-token': '{token}'}}}}).then(a => a.text()).catch(e => 'refused')")
    expect(read, "refused", "what a page of another site reads")
    opaque = browser.evaluate(f"fetch('{target}', {{mode: 'no-cors'}}).then(a => a.type + a.status).catch(e => 'refused')")
    assert opaque in ("refused", "opaque0"), opaque
    framed = browser.evaluate(
        f"new Promise(done => {{ const f = document.createElement('iframe'); f.src = 'http://{split.netloc}/'; f.onload = () => "
        "{ try { done(f.contentDocument ? f.contentDocument.body.innerText : 'closed'); } catch { done('closed'); } }; document.body.append(f); })")
    expect(framed, "closed", "the page in another page's frame")


def pictures(browser, url, folder):
    size(browser, 1440, 900)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    visit(browser, url)
    search(browser, "crc32")
    press(browser, "e")
    press(browser, "f")
    browser.evaluate("(set_window(state.step - 420, state.step + 420), $('rows').focus())")
    settle(browser)
    browser.screenshot(folder / "view.png")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.evaluate("(draw_strip(), draw_timeline())")
    settle(browser)
    browser.screenshot(folder / "view-dark.png")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    size(browser, 480, 900)
    settle(browser)
    browser.evaluate("(draw_strip(), load_timeline(), load_rows(), scroll_to(state.step))")
    settle(browser)
    browser.screenshot(folder / "view-narrow.png")


def picture_cores(browser, url, folder):
    size(browser, 1440, 900)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    visit(browser, url)
    search(browser, "crc32")
    browser.evaluate("(set_window(state.step - 900, state.step + 1500), $('rows').focus())")
    browser.wait("timeline.cores?.lanes.length === 1", "the other source's lane")
    settle(browser)
    browser.screenshot(folder / "view-cores.png")


def main():
    program, what, url, *rest = sys.argv[1:]
    with opened(program) as browser:
        if rest:
            {"pictures": pictures, "picture-cores": picture_cores}[what](browser, url, pathlib.Path(rest[0]))
        else:
            {"use": use, "gap": gap, "large": large, "cores": cores, "exported": exported, "other-site": other_site}[what](browser, url)
        complaints = browser.complaints()
    if what == "other-site":
        return
    # The page had no errors, and sent requests only to its own server.
    own = "request: http://" + urllib.parse.urlsplit(url).netloc + "/" if url.startswith("http") else "request: nobody"
    left = [complaint for complaint in complaints if not complaint.startswith(own)]
    if left:
        sys.exit("\n".join(left))


main()
