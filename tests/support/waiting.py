"""Waiting for what other processes and threads are going to do."""

import time

PATIENCE = 300.0  # s, for a machine on which other tests run


def wait_until(condition, process=None):
    """Waits until a condition is true, and returns what it gave; not longer than a process lives."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()) and (process is None or process.poll() is None):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain"
        time.sleep(0.005)
    return found


def wait_until_none(left):
    """Waits until a function gives nothing any more, such as the processes that are left."""
    deadline = time.monotonic() + PATIENCE
    while found := left():
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
