"""Reads all facts on which the changes of a batch may depend; decides nothing."""

import functools

import polars as pl
import pyarrow as pa

from ...policy.components.document_schema import DOCUMENTS, DocumentRows
from ...policy.components.host_rows import number_of_urls
from ...policy.components.page_facts import (
    COLUMNS_OF_PAGES,
    DOCUMENT_COLUMNS,
    EARLIER_COLUMNS,
    FETCH_LIST_COLUMNS,
    BatchOrigin,
    DomainFacts,
    FactNeeds,
    PageFacts,
    TableFacts,
    in_file,
)
from ...policy.components.schema import (
    BLOCKLIST,
    HOST_COUNTS,
    HOSTS,
    PAGES,
    STATE,
    PageRows,
    StateRows,
    empty,
)
from ...web.base.dataclass import dataclass
from ..batches.batches import named_documents, read_fetch_list
from ..rows.seed_hosts import read_seed_hosts
from ..rows.small_components import BLOCKLIST_COMPONENT, HOST_COUNTS_COMPONENT
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..tablets.file_lists import DataFile
from ..tablets.tablets import tablets

_DOMAIN_COLUMNS = ("key", "linking_domains", "domain_urls")


@dataclass(frozen=True)
class PageFiles:
    """A file of pages, the file of their documents, if any, and the fetch list of its partition.

    Attributes:
        unchanged_parts: Into how many parts the work on pages of the batch that answered 304 is
            divided.
    """

    operation: Operation
    pages: DataFile
    documents: DataFile | None
    fetchlist: tuple[str, ...] = ()
    unchanged_parts: int = 1


def read_page_facts(files: PageFiles, needs: FactNeeds) -> PageFacts:
    """Reads a file of pages, and what the batch and the table say about them."""
    operation, table = files.operation, files.operation.table
    pages, documents = files.pages, files.documents.path if files.documents else None
    table_facts = read_table_facts(operation, needs)
    page_rows = collect(scan([table / pages.path], PAGES).select(COLUMNS_OF_PAGES))
    keys = page_rows.get_column("key")
    columns = list(dict.fromkeys((*DOCUMENT_COLUMNS, *needs.documents)))
    stored = scan([table / documents] if documents else [], DOCUMENTS)
    fetch_list_rows = read_fetch_list(table, files.fetchlist, keys, FETCH_LIST_COLUMNS)
    followed = keys.filter(~keys.is_in(fetch_list_rows.get_column("key").implode())).unique()
    return PageFacts(
        BatchOrigin(pages.order, str(operation.batch), documents),
        in_file(page_rows, pages.path, pages.order),
        collect(stored.select(columns)),
        fetch_list_rows,
        _read_state_rows(operation, followed, ("signature",)),
        state_rows=_read_state_rows(operation, keys, needs.state),
        table=table_facts,
    )


def read_unchanged_facts(
    operation: Operation, unchanged_rows: PageRows, number: int, needs: FactNeeds
) -> PageFacts:
    """Reads the earlier documents of pages that answered 304.

    Each of the earlier files is read once, so call this for many pages, perhaps of several files.

    Args:
        operation: The operation.
        unchanged_rows: PAGES rows with ``FETCH_LIST_COLUMNS``.
        number: Of this part of the pages, among all parts of the batch.
        needs: What decisions need.
    """
    # In the same order each time; a resumed attempt comes after the one before.
    rows, table = unchanged_rows.sort("order", "key"), operation.table
    keys = rows.get_column("key")
    return PageFacts(
        # No file has such a position, so the order of links is always the same.
        BatchOrigin(-1 - number, str(operation.batch)),
        rows.drop(FETCH_LIST_COLUMNS[1:]),
        empty(DOCUMENTS),
        rows.select(FETCH_LIST_COLUMNS),
        earlier_document_rows=named_documents(table, operation.manifest(), rows, EARLIER_COLUMNS),
        state_rows=_read_state_rows(operation, keys, needs.state),
        table=read_table_facts(operation, needs),
    )


@functools.lru_cache(maxsize=2)
def read_table_facts(operation: Operation, needs: FactNeeds) -> TableFacts:
    """Reads what the table says to all files of a batch; each process reads it once."""
    blocklist = _scan_component(operation, BLOCKLIST_COMPONENT, BLOCKLIST)
    domains = _read_domain_facts(operation) if needs.domains else None
    return TableFacts(read_seed_hosts(operation), collect(blocklist), domains)


def _read_domain_facts(operation: Operation) -> DomainFacts:
    """Reads three columns of the whole host table, and numbers of URLs that are not in it yet."""
    pending = _scan_component(operation, HOST_COUNTS_COMPONENT, HOST_COUNTS)
    frames, urls = [], int(collect(pending.select(number_of_urls().sum())).item())
    for tablet in tablets(operation.files("hosts")):
        rows = operation.table.read("hosts", [tablet], _DOMAIN_COLUMNS).select(_DOMAIN_COLUMNS)
        urls += int(rows.get_column("domain_urls").sum())
        frames.append(rows.drop("domain_urls").drop_nulls())
    return DomainFacts(pl.concat([empty(HOSTS).select("key", "linking_domains"), *frames]), urls)


def read_redirect_answers(operation: Operation, keys: pl.Series) -> StateRows:
    """Reads where URLs led when they were last fetched.

    Returns:
        STATE rows: ``key``, ``protocol_status``, ``protocol_message``, ``document``; and of that
        document ``refresh`` and ``has_text``, which is false if it was deleted.
    """
    columns = ("protocol_status", "protocol_message", "document")
    rows = _read_state_rows(operation, keys, columns)
    texts = _read_refreshes(operation, rows)
    return rows.join(texts, on="key", how="left").with_columns(pl.col("has_text").fill_null(False))


def _read_refreshes(operation: Operation, state_rows: StateRows) -> DocumentRows:
    columns = ("key", "refresh")
    rows = named_documents(operation.table, operation.manifest(), state_rows, columns)
    return rows.with_columns(has_text=pl.lit(True))


def _scan_component(operation: Operation, component: str, schema: pa.Schema) -> pl.LazyFrame:
    """Returns all rows in the files of a component."""
    return scan([operation.table / file.path for file in operation.files(component)], schema)


def _read_state_rows(operation: Operation, keys: pl.Series, columns: tuple[str, ...]) -> StateRows:
    """Reads ``key`` and other columns of the rows with some keys; no columns: no rows are needed."""
    if not columns or not len(keys):
        return empty(STATE).select("key", *columns)
    return operation.find_rows("state", keys, ("key", *columns))
