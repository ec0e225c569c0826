"""Counts the work that a call does, where seconds would depend on the machine."""

import sys


def calls(function, *arguments):
    """Returns how many functions, Python's and C's, a call calls in this thread, and its result."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        result = function(*arguments)
    finally:
        sys.setprofile(None)
    return count, result
