"""Derives changes of the state and of hosts from the files of a batch."""

import dataclasses
from typing import NamedTuple

import polars as pl

from ...policy.components.batch_rows import unique_documents
from ...policy.components.blocklist import drop_blocked
from ...policy.components.schema import DOCUMENTS, FETCHLIST, PAGES, STATE, empty
from ...policy.hosting.merit import Merits, without_unvouched
from ...policy.hosting.page_findings import domain_links, linking_domains, page_findings
from ...policy.links import (
    COLUMNS_OF_PAGES,
    DOCUMENT_COLUMNS,
    LISTED,
    OF_UNCHANGED,
    BatchOrigin,
    Before,
    PageChanges,
    changes_of,
    in_file,
)
from ...policy.scoring.scorings import Scorings
from ...policy.updating.update_table_options import UpdateTableOptions
from ...web.exchange.status import FETCH_NOTMODIFIED
from ..parsing.plugins import scorings_of
from ..rows.blocklist import read_blocklist
from ..rows.domain_merit import domain_merits
from ..rows.hosts import read_seeds_hosts, seed_files
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..tablets.file_lists import DataFile
from ..tablets.tablets import tablets
from ..tablets.written import sum_counts
from .batches import named_documents
from .representatives import Representatives

_Counts = dict[str, int]


@dataclasses.dataclass(frozen=True)
class FilePair:
    """A file of pages, the file of their documents, if any, and the fetch list of its partition."""

    operation: Operation
    pages: DataFile
    documents: DataFile | None
    fetchlist: tuple[str, ...] = ()


class FileChanges(NamedTuple):
    """What a file of pages brings.

    Attributes:
        changes: The changes of the state, without those of ``unchanged``.
        hosts: What the pages say about hosts and domains: HOSTS rows.
        unchanged: Pages that answered 304 and have an older document, see ``changes_of_unchanged``.
        counts: Dropped targets and links, by reason.
    """

    changes: PageChanges
    hosts: pl.DataFrame
    unchanged: pl.DataFrame
    counts: _Counts


def changes_of_file(item: FilePair, options: UpdateTableOptions) -> FileChanges:
    """Reads a file of pages and their documents, and derives the changes from them."""
    operation, table = item.operation, item.operation.table
    pages = collect(scan([table / item.pages.path], PAGES).select(COLUMNS_OF_PAGES))
    document = item.documents.path if item.documents else None
    parsed = scan([table / document], DOCUMENTS) if document else empty(DOCUMENTS).lazy()
    needed = dict.fromkeys((*DOCUMENT_COLUMNS, *scorings_of(options).document_columns))
    merits = _merits(operation, options)
    documents, unvouched = _vouched(collect(parsed.select(*needed)), merits)
    hosts = _findings(pages, documents, merits)
    listed = _listed(item, pages)
    seeds = read_seeds_hosts(table, seed_files(operation))
    # Of all pages, because those that answered 304 may be shown as others of this file.
    alone = Representatives(operation, options, seeds, pages, documents).outdated(listed)
    pages, unchanged = _apart(in_file(pages, item.pages.path, item.pages.order), listed)
    lost = pages.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED).get_column("key").n_unique()
    origin = BatchOrigin(item.pages.order, str(operation.batch), document)
    before = Before(listed, alone=alone, followed=_followed(operation, pages, listed))
    changes, counts = _changes(operation, pages, documents, origin, before, options)
    return FileChanges(changes, hosts, unchanged, sum_counts([counts, unvouched, _missing(lost)]))


def changes_of_unchanged(
    operation: Operation, rows: pl.DataFrame, number: int, options: UpdateTableOptions
) -> tuple[PageChanges, _Counts]:
    """Derives the changes from pages that answered 304, whose links are in older documents.

    Each of the older files is read once, so call this for many pages, perhaps of several files.

    Args:
        operation: The operation.
        rows: ``FileChanges.unchanged`` of some files: columns of PAGES, ``page`` and ``order``, and
            ``LISTED``.
        number: Of this part of the pages, among all parts of the batch.
        options: The rules.

    Returns:
        (the changes, counts of dropped links and of documents that are not there any more).
    """
    # In the same order each time; a resumed attempt comes after the one before.
    rows = rows.sort("order", "key")
    found = named_documents(operation.table, operation.manifest(), rows, OF_UNCHANGED)
    documents, unvouched = _vouched(found, _merits(operation, options))
    # No file has such a position, so the order of links is always the same.
    origin = BatchOrigin(-1 - number, str(operation.batch))
    pages, before = rows.drop(LISTED[1:]), Before(rows.select(LISTED), documents)
    changes, counts = _changes(operation, pages, empty(DOCUMENTS), origin, before, options)
    return changes, sum_counts([counts, unvouched, _missing(len(rows) - len(found))])


def _changes(
    operation: Operation,
    pages: pl.DataFrame,
    documents: pl.DataFrame,
    origin: BatchOrigin,
    before: Before,
    options: UpdateTableOptions,
) -> tuple[PageChanges, _Counts]:
    """Returns the changes of pages, without URLs on the blocklist, and counts of what was left out."""
    scorings, blocklist = scorings_of(options), read_blocklist(operation)
    seeds = read_seeds_hosts(operation.table, seed_files(operation))
    before = before._replace(known=_known_rows(operation, pages.get_column("key"), scorings))
    found, counts = changes_of(pages, documents, origin, seeds, options, scorings, before)
    left, dropped = zip(*(drop_blocked(rows, blocklist) for rows in found), strict=True)
    return PageChanges(*left), sum_counts([counts, *dropped])


def _missing(documents: int) -> _Counts:
    return {"documents_missing": documents} if documents else {}


def _vouched(documents: pl.DataFrame, merits: Merits | None) -> tuple[pl.DataFrame, _Counts]:
    """Leaves out the links that lead to domains without merit; see ``without_unvouched``."""
    return (documents, {}) if merits is None else without_unvouched(documents, merits)


def _findings(pages: pl.DataFrame, documents: pl.DataFrame, merits: Merits | None) -> pl.DataFrame:
    """Returns what pages say about hosts, and who links to registered domains."""
    hosts = page_findings(pages)
    if merits is None:
        return hosts
    linked = linking_domains(domain_links(unique_documents(documents)), merits.vouching())
    return hosts.join(linked, on="key", how="full", coalesce=True)


def _merits(operation: Operation, options: UpdateTableOptions) -> Merits | None:
    return domain_merits(operation, options) if options.by_merit else None


def _listed(item: FilePair, pages: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of pages in the fetch list of their partition."""
    keys = pl.col("key").is_in(pages.get_column("key").implode())
    listed = scan([item.operation.table / path for path in item.fetchlist], FETCHLIST)
    return collect(listed.filter(keys).select(LISTED))


def _apart(pages: pl.DataFrame, listed: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (pages, those that answered 304 to the condition of a document, with ``LISTED``)."""
    # A file of a resumed attempt may have a key twice: the first row counts.
    once = pages.unique("key", keep="first", maintain_order=True)
    answered = once.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED)
    unchanged = answered.join(listed.drop_nulls("document"), on="key")
    return once.join(unchanged, on="key", how="anti", maintain_order="left"), unchanged


def _followed(operation: Operation, pages: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Returns the keys and signatures of known pages that are in no fetch list of the partition."""
    keys = pages.join(listed, on="key", how="anti").get_column("key").unique()
    if not len(keys):
        return empty(STATE)
    return operation.table.find(
        "state", tablets(operation.files("state")), keys, ("key", "signature")
    )


def _known_rows(operation: Operation, keys: pl.Series, scorings: Scorings) -> pl.DataFrame | None:
    """Returns the rows of pages, if a scoring needs them."""
    if not scorings.row_columns:
        return None
    known = tablets(operation.files("state"))
    return operation.table.find("state", known, keys, ("key", *scorings.row_columns))
