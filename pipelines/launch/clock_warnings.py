"""Warns of a wrong clock, and of impossible times that earlier jobs have left in a table."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import polars as pl

from ...io.snapshots.manifest import Manifest, load_manifest
from ...io.snapshots.table_clock import date_of
from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...io.tablets.file_lists import load_files
from ...io.tablets.tablets import tablets
from ...policy.schedules.schedule import LONGEST_RETRY_S, ScheduleOptions, horizon, latest_due
from ...web.base.clock import EARLIEST_MS, TOLERANCE_MS, clock_ms, now_ms
from ...web.base.errors import UserError
from ...web.base.wording import format_count

_LOG = logging.getLogger("nutbeam.clocks")


def warn_of_clocks(address: str, options: Any = None) -> None:
    """Warns of a wrong clock, and of impossible times in a table, one line each."""
    table = open_table(address)
    schedule = options if hasattr(options, "max_fetch_interval") else None
    with contextlib.suppress(UserError):  # there is no table yet, or the job reports the error
        manifest = load_manifest(table, table.latest_snapshot())
        for line in _clock_warnings(table, manifest, schedule):
            _LOG.warning("%s", line)


def _clock_warnings(
    table: WebTable, manifest: Manifest, options: ScheduleOptions | None
) -> Iterator[str]:
    """Yields a line for each defect of the clock, or of a table's times.

    It uses zone maps and the manifest, and reads rows only where a zone map has late times.
    """
    says, now = clock_ms(), now_ms(manifest.latest_time)
    if says < EARLIEST_MS:
        yield (
            f"the clock of this machine says {date_of(says)}, which cannot be: "
            f"{date_of(now)} counts as now; set the clock"
        )
    late, wrong = _count_late_rows(table, manifest, now, options)
    latest = max(manifest.latest_time, wrong)
    if latest > now + TOLERANCE_MS:
        yield (
            f"the table has times in the future, up to {date_of(latest)}; the clock says "
            f"{date_of(now)}: if that is right, nutbeam fsck {table} --repair sets them right"
        )
    if late and options is not None:
        yield (
            f"the next fetch of {format_count(late, 'URLs')} is later than --max_fetch_interval "
            f"{options.max_fetch_interval} allows, so generate takes such URLs now: give each job the "
            "--max_fetch_interval that updatedb had"
        )


def _count_late_rows(
    table: WebTable, manifest: Manifest, now: int, options: ScheduleOptions | None
) -> tuple[int, int]:
    """Finds due times beyond the horizon of the options.

    Returns:
        (number of rows whose own interval explains it, the latest due time, ms, that nothing explains;
        0: none).
    """
    options = options or ScheduleOptions()
    far = now + max(options.max_fetch_interval, LONGEST_RETRY_S) * 1000 + TOLERANCE_MS
    state = tablets(load_files(table, manifest.components.get("state")))
    late = [tablet for tablet in state if (tablet.max_time or 0) > far]
    if not late:
        return 0, 0
    columns = ("fetch_time", "last_fetch_time", "fetch_interval", "fixed_interval", "retries")
    then = now + TOLERANCE_MS
    rows = table.read("state", late, columns, lambda rows: rows.filter(
        pl.col("fetch_time") > horizon(then, options)
    ))  # fmt: skip
    wrong = rows.filter(pl.col("fetch_time") > latest_due(then, options)).get_column("fetch_time")
    return len(rows) - len(wrong), int(wrong.max() or 0)  # type: ignore[arg-type]
