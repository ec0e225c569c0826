"""Options of the wait for another job that sends requests for the same table."""

import dataclasses
import math

from ...web.base.options import seconds


@dataclasses.dataclass(frozen=True)
class LeaseOptions:
    """Options of waiting for another fetch."""

    GROUP = "fetch"

    max_lease_wait: float = seconds(
        3600.0,
        "Wait at most this long for another fetch of this table, then fail; -1: no limit. A "
        "fetch whose process died is waited for no longer than a minute.",
        minimum=-1.0,
    )


def longest_wait(options: LeaseOptions) -> float:
    """Returns the longest wait for another fetch, s."""
    return options.max_lease_wait if options.max_lease_wait >= 0 else math.inf
