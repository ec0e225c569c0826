"""Limits of time that fetch and sitemap share: the rest of their crawl, the wait for each other."""

import dataclasses
import math
from typing import TypeVar

from ...web.base.clock import now_ms
from ...web.base.options import seconds
from ...web.engine.pace import FetchOptions

_Of = TypeVar("_Of", bound=FetchOptions)


def in_time_left(options: _Of, until: int | None) -> _Of:
    """Returns options of a fetch that ends no later than its crawl.

    Args:
        options: The options of the fetch.
        until: Time at which the crawl ends, ms; None is no limit.

    >>> in_time_left(FetchOptions(fetch_time_limit=60.0), None).fetch_time_limit
    60.0
    >>> in_time_left(FetchOptions(fetch_time_limit=-1.0), 0).fetch_time_limit
    0.0
    """
    if until is None:
        return options
    rest_s = max(0.0, (until - now_ms()) / 1000)
    limit = rest_s if options.fetch_time_limit < 0 else min(options.fetch_time_limit, rest_s)
    return dataclasses.replace(options, fetch_time_limit=limit)


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
