"""Commands in processes of their own, which tests end: what is left of them, and what they say."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 60.0  # s, for a machine on which other tests run


@contextlib.contextmanager
def command(temporary, *words, **more):
    """Starts a command in a session of its own, with a TMPDIR; kills what is left of it."""
    temporary.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam.pipelines", *map(str, words), "--progress", "false"],
        env=os.environ | {"TMPDIR": str(temporary)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True, **more,
    )  # fmt: skip
    try:
        yield process
    finally:
        for pid in session(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def session(number):
    """Returns the ids of all living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if int(words[3]) == number and words[0] not in (b"Z", b"X"):
                found.append(int(folder.name))
    return found


def wait_for(process, condition):
    """Waits for what a command is going to do."""
    deadline = time.monotonic() + 3 * PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(process, temporary, patience=PATIENCE):
    """Waits for the end of a command; returns (exit code, what it said), if nothing is left of it."""
    error = process.communicate(timeout=patience)[1]
    deadline = time.monotonic() + PATIENCE
    while left := session(process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
    assert list(temporary.iterdir()) == []
    return process.returncode, error
