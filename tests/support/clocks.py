"""What the tests of wrong clocks share: a clock of this process that is wrong for a while."""

import contextlib
import time

DAY = 86_400
YEAR = 365 * DAY
# By how much a clock is wrong, s.
WRONG = {
    "ten_days_ahead": 10 * DAY,
    "decades_ahead": 54 * YEAR,
    "before_1970": -62 * YEAR,
}


@contextlib.contextmanager
def clock_off(monkeypatch, seconds):
    """Sets this process's clock off by some seconds; servers and files keep the right time."""
    now, now_ns = time.time, time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now() + seconds)
        patch.setattr(time, "time_ns", lambda: now_ns() + seconds * 1_000_000_000)
        yield
