"""What a table tells of clocks that were wrong."""

import datetime
import functools

from ...policy.schedule import LONGEST_RETRY_S, TOLERANCE_MS, Clock, ScheduleOptions
from ...web.base.clock import EARLIEST_MS, clock_ms, now_ms
from ...web.base.errors import UserError
from ..table.web_table import WebTable
from ..tablets.file_lists import load_files
from ..tablets.tablets import tablets
from .manifest import Manifest, lineage


def clock_of(root: WebTable, manifest: Manifest, now: int | None = None) -> Clock:
    """Returns the time for a table, and what it knows of clocks that were ahead.

    Args:
        root: The table.
        manifest: A snapshot of it.
        now: ms; None is what the clock says, see ``now_ms``.
    """
    now = now_ms(manifest.latest_time) if now is None else now
    if manifest.latest_time <= now + TOLERANCE_MS:
        return Clock(now)
    return Clock(now, manifest.latest_time, _back(root, manifest.snapshot, now))


@functools.lru_cache(maxsize=4)
def _back(root: WebTable, snapshot: int, now: int) -> int | None:
    """Returns when the clock was right again, of a table where it was right, then ahead."""
    try:
        times = [made.time for made in lineage(root) if made.snapshot <= snapshot][::-1]
    except UserError:  # of what cannot be read nothing is known
        return None
    ahead = [at for at, time in enumerate(times) if time > now + TOLERANCE_MS]
    if not ahead or ahead[0] == 0:
        return None
    return times[ahead[-1] + 1] if ahead[-1] + 1 < len(times) else now


def oldest_open(manifest: Manifest, now: int) -> int:
    """Returns the time of the oldest result that may still come in, ms: not later than now."""
    made = [b.created for b in manifest.batches.values() if b.phase != "updated"]
    return min([now, *made])


def clock_warnings(
    root: WebTable, manifest: Manifest, options: ScheduleOptions | None = None
) -> list[str]:
    """Returns a line for each thing that is wrong with the clock, or with a table's times.

    Zone maps and the manifest tell; no row is read.
    """
    says, now = clock_ms(), now_ms(manifest.latest_time)
    found = []
    if says < EARLIEST_MS:
        found.append(
            f"the clock of this machine says {date_of(says)}, which cannot be: "
            f"{date_of(now)} counts as now; set the clock"
        )
    latest = max(manifest.latest_time, _due(root, manifest, now, options))
    if latest > now + TOLERANCE_MS:
        found.append(
            f"the table has times of the future, up to {date_of(latest)}; the clock says "
            f"{date_of(now)}: if that is right, nutbeam fsck {root} --repair sets them right"
        )
    return found


def _due(root: WebTable, manifest: Manifest, now: int, options: ScheduleOptions | None) -> int:
    """Returns the latest due time by zone maps, ms, if it is one that no option allows; else 0."""
    longest = max((options or ScheduleOptions()).max_fetch_interval, LONGEST_RETRY_S)
    known = tablets(load_files(root, manifest.components.get("state")))
    latest = max((tablet.max_fetch_time or 0 for tablet in known), default=0)
    return latest if latest > now + longest * 1000 + TOLERANCE_MS else 0


def date_of(time_ms: int) -> str:
    """Returns a time, to the minute, as people read it.

    >>> date_of(0), date_of(1 << 62)
    ('1970-01-01 00:00', '4611686018427387904 ms')
    """
    try:
        return f"{datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):  # of no year that there is
        return f"{time_ms} ms"
