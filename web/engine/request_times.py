"""How long the requests of this process took: a histogram, which metrics show."""

import bisect
import operator
import threading
from collections.abc import Iterable
from typing import NamedTuple

# Upper bounds of its buckets, s.
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BOUNDS_MS = tuple(1000 * bound for bound in BOUNDS)


class TimesSoFar(NamedTuple):
    """The times of all requests up to now.

    Attributes:
        buckets: Number of requests by bucket: up to each of ``BOUNDS``, and longer ones.
        seconds: Sum of the times, s.
    """

    buckets: tuple[int, ...]
    seconds: float

    def since(self, earlier: "TimesSoFar") -> "TimesSoFar":
        """Returns the times of the requests after an earlier look.

        >>> TimesSoFar((3, 1), 2.5).since(TimesSoFar((1, 1), 2.0))
        TimesSoFar(buckets=(2, 0), seconds=0.5)
        """
        buckets = map(operator.sub, self.buckets, earlier.buckets)
        return TimesSoFar(tuple(buckets), self.seconds - earlier.seconds)


class RequestTimes:
    """Counts requests by their time; every method is safe to call from any thread.

    >>> times = RequestTimes()
    >>> times.add([40, 50, 51, 90_000])
    >>> times.so_far()
    TimesSoFar(buckets=(2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1), seconds=90.141)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._ms = 0

    def add(self, times_ms: Iterable[int]) -> None:
        """Adds requests, by their times in ms."""
        with self._lock:
            for ms in times_ms:
                self._buckets[bisect.bisect_left(_BOUNDS_MS, ms)] += 1
                self._ms += ms

    def add_counted(self, times: TimesSoFar) -> None:
        """Adds requests that another process has counted."""
        with self._lock:
            self._buckets = list(map(operator.add, self._buckets, times.buckets))
            self._ms += round(1000 * times.seconds)

    def so_far(self) -> TimesSoFar:
        """Returns the times of all requests up to now."""
        with self._lock:
            return TimesSoFar(tuple(self._buckets), self._ms / 1000)


REQUEST_TIMES = RequestTimes()
