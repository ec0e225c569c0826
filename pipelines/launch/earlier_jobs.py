"""Compares a job with what earlier jobs have left in its table: their options, impossible times."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from ...io.snapshots.manifest import Manifest, lineage, load_manifest
from ...io.snapshots.table_clock import date_of
from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...io.tablets.file_lists import load_files
from ...io.tablets.tablets import tablets
from ...policy.components.vocabulary import UPDATED_PHASE
from ...policy.recorded_rules import (
    chosen_options,
    has_link_rules,
    missing_rules,
    option_words,
    recorded_options,
)
from ...policy.schedules.schedule import LONGEST_RETRY_S, ScheduleOptions, horizon, latest_due
from ...web.base.clock import EARLIEST_MS, TOLERANCE_MS, clock_ms, now_ms
from ...web.base.errors import UsageError, UserError
from ...web.base.wording import format_count
from ..base.command import Invocation


def done_with(phase: str, options: Any, kind: type) -> dict[str, Any]:
    """Returns what a snapshot records of the options by which a batch got to a phase."""
    return {phase: recorded_options(options, kind)}


def check_done_alike(address: str, batch: str, phase: str, options: Any, kind: type) -> None:
    """Checks that a batch that has reached a phase has reached it with the options of a command.

    A batch of an older version, or whose snapshot was deleted, passes: its options are unknown.

    Args:
        address: Address of the table.
        batch: Id of the batch.
        phase: One of ``PHASES_WITH_OPTIONS``.
        options: Options of the command.
        kind: The class of the options that count.

    Raises:
        UsageError: It has reached the phase with other options.
    """
    newest, batch_manifest = None, None
    for manifest in lineage(open_table(address)):
        newest = newest or manifest
        if manifest.batch == batch and phase in manifest.options:
            batch_manifest = manifest
            break
    if newest is None or batch_manifest is None or batch not in newest.batches:
        return
    # Others are of another version, or a stranger's.
    options_then = chosen_options(batch_manifest.options[phase], kind)
    options_now = chosen_options(recorded_options(options, kind), kind)
    if options_then != options_now:
        raise UsageError(
            f"batch {batch!r} was {phase} with other options: "
            f"{_difference(options_then, options_now)}; "
            f"{_advice(address, batch, phase)}"
        )


def _difference(options_then: Mapping[str, Any], options_now: Mapping[str, Any]) -> str:
    then, now = (
        ", ".join(option_words({n: v for n, v in one.items() if other.get(n) != v}))
        for one, other in ((options_then, options_now), (options_now, options_then))
    )
    return f"with {then or 'the defaults'}, now {now or 'without'}"


def _advice(address: str, batch: str, phase: str) -> str:
    if phase == UPDATED_PHASE:
        return f"nutbeam filterdb {address} applies rules to the URLs that the table has"
    return f"nutbeam parse {address} --batch {batch} --reparse parses its bodies again with today's options"


def missing_rules_line(invocation: Invocation) -> str:
    """Returns a line about the rules that a job lacks; empty if it lacks none.

    It is for a job that has work: what does nothing takes in no URL.
    """
    options, table = invocation.options, open_table(str(invocation.table))
    if not _judges_links(invocation.command, options):
        return ""
    with contextlib.suppress(UserError):  # there is no table yet, or the job reports the error
        recorded_rules = load_manifest(table, table.latest_snapshot()).rules
        lost, dropping = missing_rules(recorded_rules, options, invocation.given_names)
        if lost:
            return (
                f"this job lacks {', '.join(lost)} of the job before, so it takes in or leaves out "
                "other URLs: give it again, or keep it in nutbeam.toml; "
                f"{' '.join(dropping)} drops it on purpose"
            )
    return ""


def _judges_links(command: str, options: Any) -> bool:
    """Returns whether a job applies rules for links, as far as its options say."""
    if_set = {"generate": "filter", "fetch": "parse_while_fetching"}.get(command)
    return has_link_rules(options) and (if_set is None or bool(getattr(options, if_set)))


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
