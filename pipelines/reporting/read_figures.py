"""Reads the figures of a crawl: the state once, few columns of pages and documents, the manifests."""

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from ...io.batches.batches import batch_files, live_file
from ...io.reading.host_rows import host_frames
from ...io.rows.duckdb_tables import files_of
from ...io.snapshots.lineage import commit_times, lineage
from ...io.snapshots.manifest import Manifest, newest_manifest, readable_manifests
from ...io.snapshots.past_jobs import past_jobs
from ...io.snapshots.pinned import Snapshot
from ...io.storage.parquet_files import collect, scan
from ...io.table.opening import open_table
from ...io.tablets.file_lists import DataFile
from ...io.tablets.tablets import tablets
from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.kinds import KINDS
from ...policy.components.schema import HOSTS, PAGES
from ...policy.reporting.crawl_figures import (
    CrawlFigures,
    FetchFigures,
    HostLinks,
    JobFigures,
    PageSample,
)
from ...policy.reporting.job_figures import dropped_figures, figures_of_rounds
from ...policy.reporting.page_figures import (
    FETCH_NEEDED,
    count_host_links,
    count_languages,
    fetch_figures,
    host_links,
    in_count_order,
    newest_documents,
    page_samples,
)
from ...policy.reporting.state_counts import (
    NO_NAME,
    ROBOTS_NEEDED,
    STATE_NEEDED,
    TOP,
    StateCounts,
    ages_in_order,
    count_state,
    counts_by_name,
    due_figures,
    host_figures,
    hosts_with_failing_robots,
    in_number_order,
    media_types,
    ranked_hosts,
    sum_state_counts,
    top_pages,
)
from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ...web.urls.row_keys import shown_url
from ..views.reader import snapshot_to_read

# The newest of each are read.
_MOST_JOBS, _MOST_FETCHES = 2_000, 20
# Files of documents that are read, the newest ones, and pages whose links are counted.
_MOST_FILES = 300
_MOST_LINKING_PAGES = 50_000
_LINKED_HOSTS = 12


def read_crawl_figures(address: str, snapshot: int | None = None) -> CrawlFigures:
    """Returns the figures of a snapshot of a table, by default the newest.

    Times and ages refer to now, or, for an older snapshot, to its own time.

    Args:
        address: Address of the table.
        snapshot: Number of the snapshot.

    Raises:
        UserError: There is no such table or snapshot, or its state is damaged. Damaged files of batches
            are noted in the figures.
    """
    pinned = snapshot_to_read(address, snapshot)
    manifest, notes = pinned.manifest(), list[str]()
    is_newest = manifest.snapshot == newest_manifest(address).snapshot
    now = max(now_ms(), manifest.time) if is_newest else manifest.time
    with pinned.reading():
        counts = read_state_counts(pinned, now)
    jobs = tuple(read_jobs(pinned, notes))
    languages, links = _read_documents(pinned, counts, notes)
    figures = counts.counts
    duplicates = list(counts_by_name(figures, "duplicates").items())[:TOP]
    return CrawlFigures(
        address=address,
        snapshot=manifest.snapshot,
        time=manifest.time,
        now=now,
        urls=counts.rows,
        hosts=counts.hosts,
        statuses=counts_by_name(figures, "statuses"),
        codes=counts_by_name(figures, "codes"),
        types=media_types(counts_by_name(figures, "types")),
        languages=languages,
        depths=in_number_order(counts_by_name(figures, "depths")),
        ages=ages_in_order(counts_by_name(figures, "ages")),
        due=due_figures(counts_by_name(figures, "due")),
        duplicates=tuple((shown_url(key), number) for key, number in duplicates if key != NO_NAME),
        biggest=host_figures(counts.host_rows, "biggest"),
        slowest=host_figures(counts.host_rows, "slowest"),
        failing=host_figures(counts.host_rows, "failing"),
        blocking=host_figures(counts.host_rows, "blocking"),
        blocks=counts_by_name(figures, "blocks"),
        guards=counts_by_name(figures, "guards"),
        jobs=jobs,
        rounds=figures_of_rounds(jobs),
        fetches=tuple(_read_fetches(pinned, notes)),
        dropped=dropped_figures(jobs),
        links=links,
        top_pages=top_pages(counts.pages),
        samples=tuple(_read_samples(pinned, counts, notes)),
        notes=tuple(dict.fromkeys(notes)),
    )


def read_state_counts(pinned: Snapshot, now: int) -> StateCounts:
    """Returns what is counted of the state; memory holds one tablet at a time."""
    others = frozenset(HOSTS.names) - set(ROBOTS_NEEDED)
    failing = [hosts_with_failing_robots(rows) for rows in host_frames(pinned, without=others)]
    failing_robots = pl.concat([pl.Series("key", [], pl.String), *failing])
    return sum_state_counts(
        [
            count_state(rows, now, failing_robots)
            for tablet in tablets(pinned.files("state"))
            for rows in pinned.table.read_in_frames("state", tablet, STATE_NEEDED)
            if len(rows)
        ]
    )


def read_jobs(pinned: Snapshot, notes: list[str]) -> Iterator[JobFigures]:
    """Yields the jobs that led to a snapshot, the oldest first.

    Args:
        pinned: The snapshot.
        notes: Gets a sentence if a manifest cannot be read.
    """
    table = open_table(pinned.address)
    with _noting(notes, "the jobs whose snapshots have expired"):
        for past in past_jobs(table):
            if not past.undone:
                yield _job_of(past.manifest, None)
    try:
        manifests = list(itertools.islice(lineage(table), _MOST_JOBS))
    except UserError as error:
        notes.append(f"some jobs are missing: {error}")
        manifests = list(itertools.islice(readable_manifests(table), _MOST_JOBS))
    committed = commit_times(table, manifests)
    for manifest in reversed(manifests):
        if manifest.snapshot <= pinned.snapshot:
            yield _job_of(manifest, committed.get(manifest.snapshot))


def _job_of(manifest: Manifest, committed: float | None) -> JobFigures:
    """Returns the figures of a job; ``committed`` is the time of its commit, s."""
    state = manifest.components.get("state")
    return JobFigures(
        snapshot=manifest.snapshot,
        job=manifest.job,
        time=manifest.time,
        seconds=None if committed is None else max(0.0, committed - manifest.time / 1000),
        batch=manifest.batch,
        urls=None if committed is None else (state.totals[1] if state else 0),
        counts=manifest.counts,
    )


@contextlib.contextmanager
def _noting(notes: list[str], what: str) -> Iterator[None]:
    """Notes an error of reading inside the block, and goes on."""
    try:
        yield
    except UserError as error:
        notes.append(f"{what} cannot be read: {error}")


def _read_fetches(pinned: Snapshot, notes: list[str]) -> Iterator[FetchFigures]:
    """Yields the figures of the newest fetches whose pages are stored, the oldest first."""
    table, manifest = pinned.table, pinned.manifest()
    batches = sorted(manifest.batches, key=lambda name: (manifest.batches[name].created, name))
    for batch in batches[-_MOST_FETCHES:]:
        with _noting(notes, f"the pages of batch {batch}"):
            places = [table / file.path for file in batch_files(table, manifest, batch, "pages")]
            if places and (
                figures := fetch_figures(batch, collect(scan(places, PAGES).select(FETCH_NEEDED)))
            ):
                yield figures


def _read_documents(
    pinned: Snapshot, counts: StateCounts, notes: list[str]
) -> tuple[dict[str, int], HostLinks]:
    """Returns living pages by language, and the links between the hosts with most URLs."""
    languages: Counter[str] = Counter()
    hosts = ranked_hosts(counts.host_rows, "biggest").get_column("host").to_list()[:_LINKED_HOSTS]
    living = counts.living.partition_by("document", as_dict=True)
    named = [
        (file, [living[(name,)] for name in {file.path, file.formerly} if (name,) in living])
        for _, file in reversed(files_of(pinned.table, pinned.manifest(), KINDS["documents"]))
    ]
    parts, linking = list[pl.DataFrame](), 0
    for file, rows in [pair for pair in named if pair[1]][:_MOST_FILES]:
        with _noting(notes, f"the documents in {file.path}"):
            more = ("outlinks",) if linking < _MOST_LINKING_PAGES else ()
            documents = _newest_of_file(pinned, file, pl.concat(rows), ("language", *more))
            languages.update(count_languages(documents))
            if more:
                linking += len(documents)
                parts.append(count_host_links(documents, hosts))
    links = host_links(parts, hosts, linking, len(counts.living))
    return dict(in_count_order(languages)), links


def _newest_of_file(
    pinned: Snapshot, file: DataFile, living: pl.DataFrame, columns: Sequence[str]
) -> pl.DataFrame:
    documents = scan([pinned.table / file.path], DOCUMENTS).select("key", "part_of", *columns)
    return newest_documents(collect(documents), living)


def _read_samples(pinned: Snapshot, counts: StateCounts, notes: list[str]) -> Iterator[PageSample]:
    """Yields some pages as text."""
    for (document,), rows in counts.samples.sort("hash").group_by("document", maintain_order=True):
        with _noting(notes, f"the documents in {document}"):
            file = live_file(pinned.table, pinned.manifest(), str(document))
            if file is not None:
                keys = rows.get_column("key").implode()
                documents = scan([pinned.table / file.path], DOCUMENTS)
                chosen = documents.filter(pl.col("key").is_in(keys) & pl.col("part_of").is_null())
                yield from page_samples(collect(chosen.select("key", "title", "text")))
