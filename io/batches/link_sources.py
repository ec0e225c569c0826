"""What a batch says about links: its documents, and those that they supersede."""

from collections.abc import Iterator

import polars as pl

from ...policy.components.link_rows import EDGES_OF
from ...policy.components.schema import OUTCOME, Status, empty, to_frame
from ...web.base.dataclass import dataclass
from ..snapshots.lineage import lineage
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..tablets.file_lists import DataFile
from ..tablets.tablets import Tablet
from .batches import batch_component, documents_with_keys, live_file

# Statuses of URLs that are no longer pages, so that their links end; an index drops these, too.
WITHOUT_LINKS = (Status.DB_GONE, Status.DB_REDIR_TEMP, Status.DB_REDIR_PERM, Status.DB_ORPHAN)
_DEAD = pl.col("status").is_in([int(status) for status in WITHOUT_LINKS])
# Jobs that remove no row from the state. A purge does; the blocklist names what it has removed.
_REMOVE_NOTHING = ("updatedb", "generate", "fetch", "parse", "dedup", "invertlinks", "mergelinkdb",
                   "compact", "purge", "webgraph", "linkrank", "scoreupdater", "index", "clean")  # fmt: skip
# The batch in the name of a file of documents.
_BATCH = r"^batches/([^/]+)/"
# If more snapshots were made since an update, they are not read one by one.
_NEAR = 32


@dataclass(frozen=True)
class NewDocuments:
    """A file of documents of the batch; with ``probe`` the state says which are the newest."""

    operation: Operation
    file: DataFile
    probe: bool


@dataclass(frozen=True)
class OldDocuments:
    """A file of documents that were there before the batch, under the name that rows have."""

    operation: Operation
    path: str
    probe: bool


def list_document_files(operation: Operation) -> Iterator[NewDocuments | OldDocuments]:
    """Yields the files whose links a batch changes, those of the batch first."""
    batch = str(operation.batch)
    probe = not operation.manifest().is_newest(batch) or _may_have_left(operation, batch)
    for file in operation.files(batch_component(batch, "documents")):
        yield NewDocuments(operation, file, probe)
    own = f"{batch_component(batch, 'documents')}/"
    named = collect(_outcome(operation).select("document", "old_document").unique())
    paths = pl.concat([named["document"], named["old_document"]]).drop_nulls().unique().sort()
    for path in paths:
        if not path.startswith(own):
            yield OldDocuments(operation, path, probe)


def _may_have_left(operation: Operation, batch: str) -> bool:
    """Returns whether pages may have left the table since the update of a batch."""
    updated = operation.manifest().batches[batch].updated
    if operation.snapshot - updated > _NEAR:
        return True
    return any(
        manifest.job not in _REMOVE_NOTHING for manifest in lineage(operation.table, updated)
    )


def documents_in(operation: Operation, path: str, keys: pl.Series) -> Iterator[pl.DataFrame]:
    """Yields the documents with some keys in a file; none if the file is gone.

    Args:
        operation: The operation.
        path: Name of the file in rows.
        keys: The keys.
    """
    file = live_file(operation.table, operation.manifest(), path)
    if file is not None and len(keys):
        yield from _documents(operation, file, keys)


def new_documents(item: NewDocuments) -> Iterator[pl.DataFrame]:
    """Yields the documents that the update has taken from a file of the batch, in pieces."""
    names = [item.file.path, item.file.formerly or item.file.path]
    rows = _outcome(item.operation).filter(pl.col("document").is_in(names) & ~_DEAD)
    keys = collect(rows.select("key")).get_column("key")
    if item.probe:
        keys = _still_newest(item.operation, keys, names)
    yield from _documents(item.operation, item.file, keys)


def unchanged_documents(item: OldDocuments) -> Iterator[pl.DataFrame]:
    """Yields the documents in a file whose pages have answered that they are unchanged."""
    rows = _outcome(item.operation).filter((pl.col("document") == item.path) & ~_DEAD)
    times = collect(rows.select("key", time=pl.col("last_fetch_time")))
    keys = times.get_column("key")
    if item.probe:
        keys = _still_newest(item.operation, keys, [item.path])
    file = live_file(item.operation.table, item.operation.manifest(), item.path)
    if file is None or not len(keys):
        return
    times = times.with_columns(pl.col("time").fill_null(item.operation.now))
    for documents in _documents(item.operation, file, keys):
        dated_documents = documents.join(times, on="key", how="left", maintain_order="left")
        yield dated_documents.with_columns(fetch_time=pl.col("time")).drop("time")


def superseded_documents(item: OldDocuments) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yields the documents in a file that are no longer the newest of their pages.

    Yields:
        (DOCUMENTS rows, ``key`` and ``time`` of each).
    """
    times = replaced_pages(item)
    for documents in documents_in(item.operation, item.path, times.get_column("key")):
        yield documents, times


def replaced_pages(item: OldDocuments) -> pl.DataFrame:
    """Returns the pages with a newer document, and those that are over: ``key`` and ``time``.

    A page without a document in the outcome was not parsed: its row still names the one before.
    """
    rows = _outcome(item.operation).filter(pl.col("old_document") == item.path)
    other = (pl.col("document") != pl.col("old_document")).fill_null(False)
    time = pl.col("last_fetch_time").fill_null(item.operation.now)
    return collect(rows.filter(other | _DEAD).select("key", time=time))


def read_source_rows(operation: Operation, sources: pl.Series) -> pl.DataFrame:
    """Reads what the state says about the sources of links: a row per source that is in the state.

    Reads no documents. A link of the newest document was seen after the batch of that document was
    made; a link that was last seen before is not in that document.

    Returns:
        ``source``; ``since``, a time in ms: links that were last seen before it have ended (0:
        unknown, because the newest document is not inverted yet); ``lives``, whether the source is
        a page with a document.
    """
    columns = ("key", "document", "status", "last_fetch_time")
    rows = operation.find_rows("state", sources.unique(), columns)
    created = {
        name: batch.created if "links" in batch.taken_in or name == operation.batch else 0
        for name, batch in operation.manifest().batches.items()
    }
    times = pl.DataFrame(
        {"batch": list(created), "created": list(created.values())},
        {"batch": pl.String, "created": pl.Int64},
    )
    named = rows.with_columns(batch=pl.col("document").str.extract(_BATCH))
    ended = pl.col("last_fetch_time").fill_null(0) + 1
    return named.join(times, on="batch", how="left", maintain_order="left").select(
        source="key",
        since=pl.when(_DEAD).then(ended).otherwise(pl.col("created").fill_null(0)),
        lives=pl.col("document").is_not_null() & ~_DEAD,
    )


def read_unseen_links(operation: Operation, tablet: Tablet, limit: int) -> pl.DataFrame:
    """Reads the links of a tablet that were last seen before a time (ms).

    Returns:
        Rows of the link table: ``key``, ``source``, ``last_seen``.
    """
    is_old = pl.col("gone_since").is_null() & (pl.col("last_seen") < limit)
    columns = ("key", "source", "last_seen")
    return operation.table.read("links", [tablet], columns, lambda links: links.filter(is_old))


def is_there(item: OldDocuments) -> bool:
    """Returns whether the table still has a file of documents."""
    return live_file(item.operation.table, item.operation.manifest(), item.path) is not None


def _outcome(operation: Operation) -> pl.LazyFrame:
    files = operation.files(batch_component(str(operation.batch), "outcome"))
    if not files:
        return empty(OUTCOME).lazy()
    return scan([operation.table / file.path for file in files], OUTCOME)


def _still_newest(operation: Operation, keys: pl.Series, names: list[str]) -> pl.Series:
    """Returns the keys of living pages whose newest document is in one of the files."""
    if not len(keys):
        return keys
    rows = operation.find_rows("state", keys, ("key", "document", "status"))
    return rows.filter(pl.col("document").is_in(names) & ~_DEAD).get_column("key")


def _documents(operation: Operation, file: DataFile, keys: pl.Series) -> Iterator[pl.DataFrame]:
    return map(to_frame, documents_with_keys(operation.table, file, keys, EDGES_OF))
