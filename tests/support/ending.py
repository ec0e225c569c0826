"""Commands in processes of their own, which tests end: what is left of them, and what they say."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
from crawling import asked
from waiting import PATIENCE, wait_until, wait_until_none

from nutbeam.web.urls.row_keys import from_key


@contextlib.contextmanager
def command(temporary, *words, **more):
    """Starts a command in a session of its own, with a TMPDIR; kills what is left of it."""
    temporary.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam", *map(str, words), "--progress", "false"],
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


def kill_at(words, web, requests):
    """Starts a command and kills it once a server has been asked so often since."""
    before = len(asked(web))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam", *map(str, words), "--progress", "false"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        wait_until(lambda: len(asked(web)) - before >= requests, process)
    finally:
        process.kill()  # else it would go on asking while other tests look
    error = process.communicate()[1].decode()
    assert (process.returncode, error) == (-signal.SIGKILL, "")


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
    assert wait_until(condition, process), process.communicate()[1]


def ended(process, temporary):
    """Waits for the end of a command; returns (exit code, what it said), if nothing is left of it."""
    error = process.communicate(timeout=PATIENCE)[1]
    wait_until_none(lambda: session(process.pid))
    assert list(temporary.iterdir()) == []
    return process.returncode, error


def flushed(table):
    """Returns the URLs in whole files of pages, committed or not."""
    paths = sorted(table.glob("batches/*/pages/[!.]*.parquet"))
    return [
        from_key(key) for path in paths for key in pl.read_parquet(path, columns=["key"])["key"]
    ]
