"""Computes the pause of a host after a turn."""

import random

from .host_queue import HostTurn
from .pace import FetchOptions

# Largest random extension of a back-off, as a share, so that crawlers do not return all at once.
_JITTER = 0.2
_MAX_LEVEL = 30


def back_off_after(turn: HostTurn, options: FetchOptions) -> tuple[float, bool, str | None]:
    """Counts a failure, or a success, which reduces the back-off.

    Returns:
        (seconds to wait in addition to the delay; whether a later run must wait, too; reason to
        drop the rest of the queue, or None).
    """
    queue, reason = turn.queue, turn.purge
    most_failures, most_wait = options.max_exceptions_per_host, options.max_retry_after
    wait = min(turn.wait, most_wait)
    rests = wait > 0 or turn.busy
    if turn.failed is not None:
        queue.exceptions = queue.exceptions + 1 if turn.failed else 0
    if turn.failed:
        # The exponent is bounded: 2.0 ** 1024 raises.
        queue.backoff_level = min(max(queue.backoff_level, 0) + 1, _MAX_LEVEL)
        more = 1 + _JITTER * random.random()
        first = options.exceptions_delay
        first = options.server_delay if first is None else first
        wait = max(wait, min(first * 2.0 ** (queue.backoff_level - 1) * more, most_wait))
        if 0 <= most_failures <= queue.exceptions:
            reason, rests = reason or "too_many_exceptions", True
    elif turn.failed is False:
        queue.backoff_level //= 2
    if wait > options.max_backoff >= 0:
        reason, rests = reason or "backoff", True
    return wait, rests, reason
