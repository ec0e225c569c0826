"""Returns the present time for a table, and handles its notes of wrong clocks."""

import datetime
from typing import Any

import polars as pl

from ...policy.schedules.schedule import (
    LONGEST_RETRY_S,
    Clock,
    ScheduleOptions,
    horizon,
    latest_due,
)
from ...web.base.clock import EARLIEST_MS, TOLERANCE_MS, clock_ms, now_ms
from ...web.base.wording import format_count
from ..table.web_table import WebTable
from ..tablets.file_lists import load_files
from ..tablets.tablets import tablets
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


def clock_notes(before: Manifest) -> dict[str, Any]:
    """Returns the notes of clocks for a new snapshot, as older snapshots may be deleted.

    Args:
        before: The snapshot that the new one is made from.
    """
    now = now_ms(before.latest_time)
    return {
        "latest": before.latest_time,
        "earliest": min(now, before.earliest or before.time or now),
        "right_since": right_since(before, now),
    }


def oldest_open(manifest: Manifest, now: int) -> int:
    """Returns the time of the oldest result that an update may still add, ms; at most now."""
    made = [b.created for b in manifest.batches.values() if b.phase != "updated"]
    return min([now, *made])


def clock_warnings(
    table: WebTable, manifest: Manifest, options: ScheduleOptions | None = None
) -> list[str]:
    """Returns a line for each defect of the clock, or of a table's times.

    It uses zone maps and the manifest, and reads rows only where a zone map has late times.
    """
    says, now = clock_ms(), now_ms(manifest.latest_time)
    found = []
    if says < EARLIEST_MS:
        found.append(
            f"the clock of this machine says {date_of(says)}, which cannot be: "
            f"{date_of(now)} counts as now; set the clock"
        )
    late, wrong = _beyond(table, manifest, now, options)
    latest = max(manifest.latest_time, wrong)
    if latest > now + TOLERANCE_MS:
        found.append(
            f"the table has times in the future, up to {date_of(latest)}; the clock says "
            f"{date_of(now)}: if that is right, nutbeam fsck {table} --repair sets them right"
        )
    if late and options is not None:
        found.append(
            f"the next fetch of {format_count(late, 'URLs')} is later than --max_fetch_interval "
            f"{options.max_fetch_interval} allows, so generate takes such URLs now: give each job the "
            "--max_fetch_interval that updatedb had"
        )
    return found


def _beyond(
    table: WebTable, manifest: Manifest, now: int, options: ScheduleOptions | None
) -> tuple[int, int]:
    """Finds due times beyond the horizon of the options.

    Returns:
        (number of rows whose own interval explains it, the latest due time, ms, that nothing explains;
        0: none).
    """
    options = options or ScheduleOptions()
    far = now + max(options.max_fetch_interval, LONGEST_RETRY_S) * 1000 + TOLERANCE_MS
    known = tablets(load_files(table, manifest.components.get("state")))
    late = [tablet for tablet in known if (tablet.max_time or 0) > far]
    if not late:
        return 0, 0
    columns = ("fetch_time", "last_fetch_time", "fetch_interval", "fixed_interval", "retries")
    then = now + TOLERANCE_MS
    rows = table.read("state", late, columns, lambda rows: rows.filter(
        pl.col("fetch_time") > horizon(then, options)
    ))  # fmt: skip
    wrong = rows.filter(pl.col("fetch_time") > latest_due(then, options)).get_column("fetch_time")
    return len(rows) - len(wrong), int(wrong.max() or 0)  # type: ignore[arg-type]


def date_of(time_ms: int) -> str:
    """Returns a time as readable text, to the minute.

    >>> date_of(0), date_of(1 << 62)
    ('1970-01-01 00:00', '4611686018427387904 ms')
    """
    try:
        return f"{datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):  # the year does not exist
        return f"{time_ms} ms"
