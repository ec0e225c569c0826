"""Limits on the time and the rate of one exchange with a server."""

import time
from typing import NamedTuple


class TooSlow(OSError):
    """A request took longer than its time limit."""


class LowRate(TooSlow):
    """A response was slower than the minimum rate."""


class Limits(NamedTuple):
    """Limits on a request.

    Attributes:
        patience: Longest wait for a connection or the next bytes, in s.
        whole: Longest time for the whole request, in s.
        rate: Minimum rate of a response in bytes per second, 0 for no limit.
        grace: Seconds after the first byte before ``rate`` is checked.
    """

    patience: float = 10.0
    whole: float = 60.0
    rate: float = 0.0
    grace: float = 10.0


class Stopwatch:
    """Measures one exchange against its limits; starts when it is created.

    Args:
        limits: The limits.
        deadline: Time on the monotonic clock at which the exchange must have ended, instead of
            ``limits.whole``.

    Attributes:
        deadline: That moment.
    """

    __slots__ = ("_first", "_limits", "_received", "deadline")

    def __init__(self, limits: Limits, deadline: float | None = None) -> None:
        self._limits = limits
        self.deadline = time.monotonic() + limits.whole if deadline is None else deadline
        self.restart()

    def restart(self) -> None:
        """Starts to measure the rate of another response; the deadline stays."""
        self._first = 0.0
        self._received = 0

    def count(self, number: int) -> None:
        """Counts received bytes."""
        self._received += number
        self._first = self._first or time.monotonic()

    def time_left(self) -> float:
        """Returns the longest time for the next wait, in s.

        Raises:
            TooSlow: The deadline has passed, or too few bytes have arrived.
        """
        patience, _, rate, grace = self._limits
        now = time.monotonic()
        seconds_left = self.deadline - now
        if seconds_left <= 0:
            raise TooSlow("the time for the whole request is over")
        took = now - self._first
        if rate and self._first and took > grace and self._received < rate * took:
            raise LowRate(f"{self._received} bytes in {took:.1f} s")
        return min(patience, seconds_left)

    def timed_out(self) -> OSError:
        """Returns the error for a wait that took as long as ``time_left`` allowed."""
        late = time.monotonic() >= self.deadline
        return TooSlow("the time for the whole request is over") if late else TimeoutError()
