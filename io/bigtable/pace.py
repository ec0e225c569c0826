"""Limits the rate of writes as Bigtable demands (batch write flow control)."""

import random
import time
from collections.abc import Callable

# The same values as in Google's clients.
_FIRST, _LEAST, _MOST = 10.0, 0.1, 100_000.0
_SLOWER, _FASTER = 0.7, 1.3
_PERIOD_S = 10.0


class Pace:
    """Limits the rate of requests, once the server demands it.

    Attributes:
        rate: Requests a second; None until the server limits them.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rate: float | None = None
        self._clock = clock
        self._sleep = sleep
        self._next = self._learns = clock()

    def wait(self) -> None:
        """Waits until the next request may be sent."""
        if self.rate is None:
            return
        now = self._clock()
        if self._next > now:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + 1 / self.rate

    def learn(self, factor: float, period_s: float = _PERIOD_S) -> None:
        """Changes the rate, at most once a period.

        Args:
            factor: The factor of the new rate; below 1 is slower.
            period_s: Time in s before the rate may change again.
        """
        now = self._clock()
        if now < self._learns:
            return
        factor = min(max(factor, _SLOWER), _FASTER)
        self.rate = min(max((self.rate or _FIRST) * factor, _LEAST), _MOST)
        self._learns = now + period_s

    def failed(self) -> None:
        """Slows down after an overload of the server; does nothing without a limit so far."""
        if self.rate is not None:
            self.learn(_SLOWER)


def back_off(failed: int, sleep: Callable[[float], None] = time.sleep) -> None:
    """Waits for a random time before a retry; longer after each failure, at most about 6 s."""
    sleep(random.random() * 0.1 * 2 ** min(failed, 6))
