"""How long to wait before a request is sent again, and when to give up."""

import dataclasses
import random

from ..exchange.status import seconds_to_wait

_FIRST = 0.5  # s
_LONGEST = 60.0  # s
_MOST_RETRY_AFTER = 600.0  # s


@dataclasses.dataclass
class RetryPlan:
    """Waiting times that double, with jitter, until all of them are longer than the patience.

    Attributes:
        patience: Longest time without any progress, s.
        waited: Time since the last progress, s.
        attempt: Number of attempts since the last progress.
    """

    patience: float
    waited: float = 0.0
    attempt: int = 0
    rng: random.Random = dataclasses.field(default_factory=random.Random, repr=False)

    def progress(self) -> None:
        """Starts again: the server has taken something."""
        self.waited, self.attempt = 0.0, 0

    def wait(self, retry_after: str = "") -> float | None:
        """Returns how long to wait now, s; None: give up.

        >>> plan = RetryPlan(10)
        >>> plan.wait("3"), plan.wait("3"), plan.wait("3"), plan.wait("3")
        (3.0, 3.0, 3.0, None)
        """
        wished = seconds_to_wait(retry_after, _MOST_RETRY_AFTER)
        if wished is None:
            longest = min(_LONGEST, _FIRST * 2.0 ** min(self.attempt, 20))
            wished = longest * self.rng.uniform(0.5, 1.0)
        if self.waited + wished > self.patience:
            return None
        self.waited += wished
        self.attempt += 1
        return wished

    def add_lost_time(self, seconds: float) -> None:
        """Adds time lost without a result, such as that of a request without an answer."""
        self.waited += seconds
