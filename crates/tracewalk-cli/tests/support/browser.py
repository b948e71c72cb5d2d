"""A headless Chromium, driven through the DevTools protocol over its pipe. Needs only Python."""

import base64
import contextlib
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
        # Only the page makes requests, not the browser itself.
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

    def wait(self, script, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.evaluate(f"!!({script})"):
                return
            time.sleep(0.05)
        raise AssertionError(f"{what} did not happen")

    def settled_text(self):
        """The page's text, after it has stopped changing."""
        before = None
        while (text := self.evaluate("document.body.innerText")) != before:
            before = text
            time.sleep(0.25)
        return text

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
        """The page's errors, and its network requests."""
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


@contextlib.contextmanager
def opened(program):
    """A browser with a temporary profile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            yield browser
        finally:
            browser.close()


def visit(program, use, screenshots):
    """Passes `use` a browser, and a folder for screenshots if there is one; fails if the page has errors or network requests."""
    with opened(program) as browser:
        use(browser, pathlib.Path(screenshots[0]) if screenshots else None)
        complaints = browser.complaints()
    if complaints:
        sys.exit("\n".join(complaints))


def expect(found, expected, what):
    assert found == expected, f"{what}: found {found!r}, expected {expected!r}"
