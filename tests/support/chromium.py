"""Chromium, driven through a pipe: pages, keys, sizes, colours, pictures."""

import base64
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
_OWN_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_KEYS = {"ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27, "Tab": 9}
_LONGEST_S = 30.0


class Browser:
    """A browser with one page; it ends with its context.

    Args:
        profile: Folder for its profile.
    """

    def __init__(self, profile):
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        command = [
            "bash",
            "-c",
            shell,
            "chromium",
            PROGRAM,
            *_OWN_FLAGS,
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._read, self._number, self._session, self.requested = b"", 0, None, []
        targets = self.send("Target.createTarget", url="about:blank")
        attached = self.send("Target.attachToTarget", targetId=targets["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._session = None
        with contextlib.suppress(OSError, EOFError):
            self.send("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def send(self, method, **parameters):
        """Sends a command; returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self):
        while b"\0" not in self._read:
            data = os.read(self._answers, 1 << 20)
            if not data:
                raise EOFError("the browser has ended")
            self._read += data
        message, _, self._read = self._read.partition(b"\0")
        answer = json.loads(message)
        if answer.get("method") == "Network.requestWillBeSent":
            self.requested.append(answer["params"]["request"]["url"])
        return answer

    def open(self, url):
        """Opens a page, and waits until it is loaded."""
        self.send("Page.navigate", url=url)
        self.wait_for(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def evaluate(self, script):
        """Returns the value of an expression in the page; a promise is awaited."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait_for(self, script):
        """Waits until an expression in the page is true."""
        end = time.monotonic() + _LONGEST_S
        while not self.evaluate(f"Boolean({script})"):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)

    def type(self, text):
        """Types a text where the focus is."""
        for letter in text:
            self.send("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def press(self, key):
        """Presses a key, such as ``ArrowDown``."""
        code = _KEYS[key]
        more = {"text": "\r"} if key == "Enter" else {}
        fields = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **fields, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", **fields)

    def resize(self, width, height=900, *, dark=False):
        """Sets the size of the page, and the colours that the person prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path, *, whole=False):
        """Writes a picture of the page."""
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def faults(self):
        """Returns what axe-core finds wrong with the page for people with disabilities."""
        package = importlib.util.find_spec("axe_core_python")
        script = pathlib.Path(package.origin).with_name("axe.min.js").read_text("utf-8")
        self.send("Runtime.evaluate", expression=script)
        results = self.evaluate("axe.run(document)")
        assert results["passes"]
        return [
            (fault["id"], [node["html"] for node in fault["nodes"]])
            for fault in results["violations"]
        ]


def browser_of_module():
    """Returns a fixture: a browser for the tests of a module."""

    @pytest.fixture(scope="module")
    def browser(tmp_path_factory):
        with Browser(tmp_path_factory.mktemp("profile")) as one:
            yield one

    return browser
