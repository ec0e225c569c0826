"""Reads what earlier rounds of a table took: answers of hosts, the last fetch, the times of phases."""

import itertools
from collections.abc import Iterator, Sequence

import polars as pl

from ...policy.components.schema import PAGES, empty
from ...policy.components.vocabulary import PHASES
from ..batches.batches import batch_files
from ..snapshots.lineage import commit_times
from ..snapshots.manifest import Manifest, readable_manifests
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..table.web_table import WebTable
from ..tablets.tablets import tablets

_LONGEST_PHASE_S = 86_400.0
# Snapshots in which the last run of each phase is looked for.
_LOOKED_AT = 50


def answer_frames(operation: Operation) -> Iterator[pl.DataFrame]:
    """Yields ``key`` and ``response_ms`` of the URLs that have answered, a frame per tablet."""
    for tablet in tablets(operation.files("state")):
        yield operation.table.read("state", [tablet], ("key", "response_ms")).drop_nulls()


def last_requests(table: WebTable, manifest: Manifest) -> pl.DataFrame:
    """Returns ``key`` and ``fetch_time`` of the pages of the last batch that was fetched."""
    fetched = PHASES[PHASES.index("fetched") :]
    names = [name for name, batch in manifest.batches.items() if batch.phase in fetched]
    for name in sorted(names, key=lambda name: manifest.batches[name].created, reverse=True):
        files = batch_files(table, manifest, name, "pages")
        if files:
            pages = scan([table / file.path for file in files], PAGES)
            return collect(pages.select("key", "fetch_time"))
    return empty(PAGES).select("key", "fetch_time")


def phase_seconds(table: WebTable, jobs: Sequence[str]) -> dict[str, list[tuple[float, int]]]:
    """Returns (seconds, URLs of its batch) of the last runs of each job, from its start to its commit."""
    manifests = list(itertools.islice(readable_manifests(table), _LOOKED_AT))
    committed = commit_times(table, manifests)
    times: dict[str, list[tuple[float, int]]] = {}
    for manifest in manifests:
        batch = manifest.batches.get(str(manifest.batch))
        seconds = committed.get(manifest.snapshot, 0.0) - manifest.time / 1000
        is_known = 0 <= seconds < _LONGEST_PHASE_S
        if manifest.job in jobs and batch is not None and is_known:
            times.setdefault(manifest.job, []).append((seconds, batch.urls))
    return times
