"""Waits until pages of a table are due: crawl --wait."""

import sys
import time

from ...io.snapshots.manifest import load_manifest
from ...io.snapshots.rounds import may_have_due, stop_file
from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...policy.choosing.selection import GenerateOptions
from ...policy.components.vocabulary import iso
from ...web.base.clock import now_ms, pause
from ...web.base.progress import PROGRESS
from ..generating.survey import due_at
from .next_due import next_url

# Looking for due pages takes at most a twentieth of the time.
_SHARE = 20
# Pause after rounds that fetched nothing, doubled by each further one, s.
_FIRST_S, _LONGEST_S = 60.0, 3600.0


def wait_for_due(address: str, options: GenerateOptions, until: int | None, idle: int = 0) -> bool:
    """Waits until a page may be due; returns False if the crawl ends instead.

    It ends because of a stop file, because its time is over, or because the table has no URL.

    Args:
        address: Address of the table.
        options: Options of generate.
        until: Time at which the crawl ends, ms; None is no limit.
        idle: How many times in a row pages were due, and none was fetched. They are still due, so
            the next try waits for longer, unless another page becomes due.
    """
    table, earliest = open_table(address), 0
    waiting = next_url(address, options, after_now=idle > 0)
    if waiting is None and not idle:
        return False
    if idle:
        earliest = now_ms() + int(1000 * min(_LONGEST_S, _FIRST_S * 2.0 ** min(idle - 1, 20)))
        earliest = min(earliest, waiting.time) if waiting is not None else earliest
    when = max(earliest, 0 if idle or waiting is None else waiting.time)
    print(f"waiting for pages that are due: until {iso(when)}", file=sys.stderr)
    PROGRESS.start("wait")
    try:
        return _wait(table, options, until, earliest)
    finally:
        PROGRESS.finish()


def _wait(table: WebTable, options: GenerateOptions, until: int | None, earliest: int) -> bool:
    poll = table.files.look_interval
    while stop_file(table) is None and (until is None or now_ms() < until):
        if now_ms() >= earliest:
            began = time.monotonic()
            if _may_be_due(table, options):
                return True
            earliest = now_ms() + int(1000 * _SHARE * (time.monotonic() - began))
        pause(poll if until is None else max(0.0, min(poll, (until - now_ms()) / 1000)))
    return False


def _may_be_due(table: WebTable, options: GenerateOptions) -> bool:
    newest = load_manifest(table, table.latest_snapshot())
    return may_have_due(table, newest, lambda clock: due_at(clock, options))
