"""Leases that are waited for in threads."""

import threading

from leasing import TIMES

NEVER = TIMES._replace(stale=1e6)  # who is waited for must end, or be found dead


def begin(function, *args, **kwargs):
    """Runs a function in a thread; returns the list that its result will be in."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*args, **kwargs)), daemon=True)
    thread.start()
    return found
