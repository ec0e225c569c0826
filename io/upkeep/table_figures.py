"""Reads what metrics say about a table: the counts of its jobs, and figures of its newest snapshot.

The counts of all snapshots that the table has ever had are summed, also of those that have expired or were
undone. So the sums never fall, whichever process reads them.
"""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping

import polars as pl

from ...policy.components.schema import HOSTS, STATUS_COUNTS, STATUS_NAMES, URL_COUNTS
from ...policy.components.table_figures import TableFigures
from ...web.base.errors import UserError
from ..reading.host_rows import host_frames
from ..snapshots.lineage import commit_times
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.past_jobs import past_jobs
from ..snapshots.pinned import Snapshot
from ..table.web_table import WebTable
from .rollback import sizes

# Protocol statuses of answers that are pages.
PAGE_STATUSES = ("success", "notmodified")


def read_table_figures(table: WebTable, earlier: TableFigures | None) -> TableFigures:
    """Reads the figures of a table.

    Args:
        table: The table.
        earlier: The figures that were read before, to which those of later snapshots are added; None
            reads all snapshots.

    Returns:
        The earlier figures themselves if there is no newer snapshot.

    Raises:
        UserError: The table cannot be read, or its newest snapshot is damaged.
    """
    newest = table.latest_snapshot()
    if earlier is not None and newest == earlier.snapshot:
        return earlier
    manifests = list(manifests_after(table, earlier.snapshot if earlier else 0, newest))
    if earlier is None:
        manifests = [*(job.manifest for job in past_jobs(table)), *manifests]
    if not newest:
        return TableFigures()
    summed = add_manifests(earlier or TableFigures(), manifests)
    committed = commit_times(table, manifests)
    with_pages = [m for m in manifests if any(m.counts.get(f"protocol/{s}") for s in PAGE_STATUSES)]
    page_times = [committed.get(m.snapshot, m.time / 1000) for m in with_pages]
    shown = dataclasses.replace(
        summed,
        snapshot=newest,
        committed=committed.get(newest, 0.0),
        last_pages=max([summed.last_pages, *page_times]),
    )
    return _with_content(table, load_manifest(table, newest), shown)


def manifests_after(table: WebTable, after: int, newest: int) -> Iterable[Manifest]:
    """Yields the snapshots after one, oldest first, without those that are damaged or deleted."""
    for number in table.snapshots():
        if after < number <= newest:
            with contextlib.suppress(UserError):
                yield load_manifest(table, number)


def add_manifests(figures: TableFigures, manifests: Iterable[Manifest]) -> TableFigures:
    """Returns figures with the counts of further snapshots."""
    counts, commits = Counter(figures.counts), Counter(figures.commits)
    last_commits = dict(figures.last_commits)
    for manifest in manifests:
        commits[manifest.job] += 1
        last_commits[manifest.job] = max(manifest.time, last_commits.get(manifest.job, 0))
        counts.update({(manifest.job, name): n for name, n in manifest.counts.items()})
    return dataclasses.replace(figures, counts=counts, commits=commits, last_commits=last_commits)


def _with_content(table: WebTable, manifest: Manifest, figures: TableFigures) -> TableFigures:
    """Returns figures with those of the content of a snapshot."""
    batches: dict[str, tuple[int, int]] = {}
    for batch in manifest.batches.values():
        number, urls = batches.get(batch.phase, (0, 0))
        batches[batch.phase] = (number + 1, urls + batch.urls)
    hosts, urls_by_status = _count_urls(Snapshot(str(table), manifest.snapshot))
    return dataclasses.replace(
        figures, sizes=sizes(manifest), batches=batches, hosts=hosts, urls=urls_by_status
    )


def _count_urls(snapshot: Snapshot) -> tuple[int, Mapping[str, int]]:
    """Returns (number of hosts with URLs, URLs by status), from the host table.

    Cost: a pass over the host table, a few columns of it; the state is not read.
    """
    others = frozenset(HOSTS.names) - {"key", *URL_COUNTS}
    hosts, sums = 0, Counter[str]()
    for rows in host_frames(snapshot, without=others):
        counts = rows.select(STATUS_COUNTS.values())
        hosts += counts.select(pl.any_horizontal(pl.all() > 0).sum()).item() or 0
        sums.update({name: int(n or 0) for name, n in counts.sum().row(0, named=True).items()})
    return hosts, {name: sums[column] for name, column in _columns_of_statuses()}


def _columns_of_statuses() -> list[tuple[str, str]]:
    return [(STATUS_NAMES[code], column) for code, column in STATUS_COUNTS.items()]
