"""Returns the present time for a table, and handles its notes of wrong clocks."""

import datetime
from typing import Any

from ...web.base.clock import TOLERANCE_MS, Clock, now_ms
from .manifest import Manifest


def clock_of(manifest: Manifest, now: int | None = None) -> Clock:
    """Returns the present time for a table, and its notes of clocks that were ahead.

    Args:
        manifest: A snapshot of the table.
        now: Time in ms; None means the clock's time, see ``now_ms``.
    """
    now = now_ms(manifest.latest_time) if now is None else now
    latest = manifest.latest_time if manifest.latest_time > now + TOLERANCE_MS else 0
    return Clock(now, latest, right_since(manifest, now))


def right_since(manifest: Manifest, now: int) -> int | None:
    """Returns the time since which the clock is right again; see ``Manifest.right_since``.

    Args:
        manifest: The newest snapshot.
        now: Time in ms, by a clock that is assumed to be right.
    """
    late = now + TOLERANCE_MS
    if manifest.latest_time <= late:
        return None
    if manifest.time <= late:
        return manifest.right_since  # noted in an earlier snapshot
    return now if (manifest.earliest or manifest.time) <= late else None


def clock_notes(previous: Manifest) -> dict[str, Any]:
    """Returns the notes of clocks for a snapshot that is committed now, as older ones may be deleted.

    Args:
        previous: The snapshot that the new one is made from.
    """
    now = now_ms(previous.latest_time)
    return {
        "latest": previous.latest_time,
        "earliest": min(now, previous.earliest or previous.time or now),
        "right_since": right_since(previous, now),
        "committed": now,
    }


def oldest_open(manifest: Manifest, now: int) -> int:
    """Returns the time of the oldest result that an update may still add, ms; at most now."""
    return min([now, *(batch.created for batch in manifest.unfinished.values())])


def date_of(time_ms: int) -> str:
    """Returns a time as readable text, to the minute.

    >>> date_of(0), date_of(1 << 62)
    ('1970-01-01 00:00', '4611686018427387904 ms')
    """
    try:
        return f"{datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):  # the year does not exist
        return f"{time_ms} ms"
