"""``nutbeam.read``, ``nutbeam.read_chunks``: read a table into frames, as users see its rows."""

import datetime
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, overload

import polars as pl
import pyarrow as pa

from ...io.batches.batches import live_file, named_rows
from ...io.rows.duckdb_tables import batches_frame, files_of
from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.pinned import Pinned, Snapshot
from ...io.storage.parquet_files import collect, row_groups, scan
from ...io.table.opening import open_table
from ...io.tablets.file_lists import DataFile
from ...io.tablets.tablets import tablets
from ...policy.base.key_columns import from_keys
from ...policy.chosen_text import ALL, MAIN
from ...policy.chunking.chunk_rows import CHUNK_COLUMNS, CHUNKED_COLUMNS, ChunkRules, chunk_rows
from ...policy.chunking.tokenizers import tokenizer_of
from ...policy.components.columns import Columns, join_columns
from ...policy.components.declaration import Kind, Owner
from ...policy.components.document_schema import DOCUMENTS, DOCUMENTS_COLUMNS
from ...policy.components.item_views import ITEM_VIEWS
from ...policy.components.kinds import components_of
from ...policy.components.schema import PAGES, Status, conform, empty, to_frame
from ...policy.components.views import View, views
from ...policy.components.vocabulary import CHANGE_COLUMNS, record_of, shown_frame, shown_schema
from ...policy.page_rows import PageChoice, page_rows, stored_names, with_markdown
from ...policy.structured.item_rows import item_rows
from ...web.base.errors import UsageError
from ..base.call_values import check_kind, table_address
from ..base.suggestions import suggestion

Into = Literal["polars", "arrow", "batches", "duckdb"]
TextOf = Literal["main", "all"]
Since: TypeAlias = int | str | datetime.date | None
INTO = ("polars", "arrow", "batches", "duckdb")
PAGES_AT_ONCE = 64  # that are cut into chunks
_FEW_PAGES = 10  # whose texts are not read together with all others of their file


@overload
def read(
    table: "str | os.PathLike[str]",
    what: str = "state",
    *,
    columns: Sequence[str] = (),
    snapshot: int | None = None,
    into: Literal["polars"] = "polars",
    text_of: TextOf = "all",
    markdown_links: bool = True,
    since: Since = None,
) -> pl.DataFrame: ...


@overload
def read(
    table: "str | os.PathLike[str]",
    what: str = "state",
    *,
    columns: Sequence[str] = (),
    snapshot: int | None = None,
    into: Literal["arrow", "batches", "duckdb"],
    text_of: TextOf = "all",
    markdown_links: bool = True,
    since: Since = None,
) -> Any: ...


def read(
    table: "str | os.PathLike[str]",
    what: str = "state",
    *,
    columns: Sequence[str] = (),
    snapshot: int | None = None,
    into: Into = "polars",
    text_of: TextOf = "all",
    markdown_links: bool = True,
    since: Since = None,
) -> Any:
    """Reads rows of a table in a folder, in a store or in Bigtable.

    Rows are those of one snapshot: runs are folded into their bases, and purged rows are gone.
    Columns have the names and values of docs/reference/data.md: statuses are names, and times are
    timestamps in UTC.

    Args:
        table: Address of the table.
        what: ``state``, ``hosts``, ``pages`` (the newest text of each URL that is alive),
            ``outlinks``, ``batches``, a type of structured data such as ``products``, or a component
            of batches such as ``batch_pages``.
        columns: Names of the columns to read. Only these are read from the files. None means all but
            ``markdown``; of pages all but the Markdown, the blocks, the parts, the structured data, the
            body, the headers, the batch and the key.
        snapshot: Number of the snapshot, as in ``nutbeam history``; None means the newest.
        into: ``polars`` gives a frame, ``arrow`` a pyarrow.Table, and ``duckdb`` a relation, whose
            rows are in memory. ``batches`` gives a pyarrow.RecordBatchReader, which reads a large
            table piece by piece.
        text_of: Which text of ``pages`` counts, and which Markdown is made: ``main`` is their main content,
            without navigation and the like.
        markdown_links: Whether Markdown has the targets of links, and images.
        since: Only the ``pages`` that are new, changed or gone since a snapshot: its number, or a date or
            time; without a zone it is UTC. First columns ``change`` and ``snapshot`` say so.

    Raises:
        UsageError: There is no such table, snapshot, component or column.
        UserError: A file is missing or damaged, or a store does not answer.
    """
    _check_form(into)
    _check_text(text_of)
    view, wanted = _choice(what, columns)
    if since is not None and what != "pages":
        raise UsageError(f"since is for pages, got what={what!r}")
    pinned = snapshot_to_read(table_address(table), snapshot)
    number = number_of_since(pinned, since)
    wanted = wanted if number is None else join_columns(CHANGE_COLUMNS, wanted)
    choice = PageChoice(wanted, text_of=text_of, markdown_links=markdown_links)
    frames = (
        _frames(pinned, what, view, choice)
        if number is None
        else changed_pages_of(pinned, number, choice)
    )
    return _in_form(into, shown_schema(wanted), _tables(pinned, frames, wanted))


def read_chunks(
    table: "str | os.PathLike[str]",
    limit: int = 512,
    *,
    tokenizer: str = "words",
    columns: Sequence[str] = (),
    text_of: TextOf = "all",
    markdown_links: bool = True,
    snapshot: int | None = None,
    into: Into = "polars",
) -> Any:
    """Reads chunks of the pages that ``read`` has as ``pages``, as ``nutbeam pages --chunks`` writes them.

    Args:
        table: Address of the table.
        limit: Most tokens of a chunk, at least 1.
        tokenizer: ``words``, ``characters``, the file ``tokenizer.json`` of a model, or the name of a
            plug-in.
        columns: Names of the columns to read; none means all.
        text_of: As for ``read``.
        markdown_links: As for ``read``.
        snapshot: Number of the snapshot; None means the newest.
        into: As for ``read``.

    Raises:
        UsageError: There is no such table, snapshot, column or tokenizer.
        UserError: A file is missing or damaged, a store does not answer, or a plug-in fails.
    """
    _check_form(into)
    _check_text(text_of)
    check_kind("limit", limit, int)
    check_kind("tokenizer", tokenizer, str)
    if limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit!r}")
    wanted = _picked(View("a chunk", CHUNK_COLUMNS), columns)
    try:
        in_file = tokenizer.endswith(".json")
        counter = tokenizer_of("", tokenizer) if in_file else tokenizer_of(tokenizer)
    except ValueError as error:
        raise UsageError(str(error)) from error
    pinned = snapshot_to_read(table_address(table), snapshot)
    rules = ChunkRules(limit, counter, wanted, markdown_links)
    frames = (
        chunk_rows(part, rules)
        for pages in living_pages(pinned, PageChoice(CHUNKED_COLUMNS, text_of=text_of))
        for part in pages.iter_slices(PAGES_AT_ONCE)
    )
    return _in_form(into, shown_schema(wanted), _tables(pinned, frames, wanted))


def _check_form(into: str) -> None:
    if into not in INTO:
        advice = ": read(…).to_pandas() gives a pandas frame, if pandas is installed"
        advice = advice if into == "pandas" else ""
        raise UsageError(f"into must be one of {', '.join(INTO)}, got {into!r}{advice}")


def _check_text(text_of: str) -> None:
    if text_of not in (MAIN, ALL):
        raise UsageError(f"text_of must be {MAIN} or {ALL}, got {text_of!r}")


def _in_form(into: Into, schema: pa.Schema, parts: Iterator[pa.Table]) -> Any:
    """Returns rows in the form that was asked for."""
    if into == "batches":
        batches = (batch for part in parts for batch in part.to_batches())
        return pa.RecordBatchReader.from_batches(schema, batches)
    whole = pa.concat_tables([schema.empty_table(), *parts])
    if into == "arrow":
        return whole
    return to_frame(whole) if into == "polars" else _relation(whole)


def _choice(what: str, columns: Sequence[str]) -> tuple[View, Columns]:
    check_kind("what", what, str)
    views_by_name = views()
    if what not in views_by_name:
        names = ", ".join(views_by_name)
        raise UsageError(
            f"what must be one of {names}, got {what!r}{suggestion(what, views_by_name)}"
        )
    view = views_by_name[what]
    return view, _picked(view, columns)


def _picked(view: View, names: Sequence[str]) -> Columns:
    """Returns the columns of a view that were asked for."""
    if isinstance(names, str):
        raise UsageError(f"columns must be a list of names, got {names!r}")
    try:
        return view.pick(names)
    except ValueError as error:
        raise UsageError(str(error)) from error


def snapshot_to_read(address: str, snapshot: int | None) -> Snapshot:
    """Returns a snapshot of a table, by default the newest.

    Raises:
        UsageError: There is no such table or snapshot.
    """
    if snapshot is None:
        return Snapshot(address, newest_manifest(address).snapshot)
    if snapshot not in open_table(address).snapshots():
        raise UsageError(
            f"no snapshot {snapshot!r} in {address!r}: its history lists those that are kept"
        )
    return Snapshot(address, snapshot)


def number_of_since(pinned: Snapshot, since: Since) -> int | None:
    """Returns the number of the snapshot with which pages are compared; None without one.

    Args:
        pinned: The snapshot that is read.
        since: Number of an older snapshot, or a date or time.

    Raises:
        UserError: It is no such value, there was no such snapshot, or it is gone.
    """
    if since is None:
        return None
    from .changed_pages import since_of  # late: it loads Beam

    text = since.isoformat() if isinstance(since, datetime.date) else since
    check_kind("since", text, int, str)
    try:
        number = since_of(pinned.address, str(text))
    except ValueError as error:
        raise UsageError(f"since {error}, or the number of a snapshot") from error
    if number > pinned.snapshot:
        raise UsageError(
            f"since must be at most the snapshot that is read, {pinned.snapshot}, got {since!r}"
        )
    return number


def _relation(rows: pa.Table) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise UsageError("into='duckdb' needs DuckDB: pip install 'nutbeam[sql]'") from error
    return duckdb.from_arrow(rows)


def _tables(pinned: Pinned, frames: Iterable[pl.DataFrame], wanted: Columns) -> Iterator[pa.Table]:
    """Yields stored rows as users see them."""
    with pinned.reading():
        for frame in frames:
            yield conform(shown_frame(frame, wanted), shown_schema(wanted))


def _frames(pinned: Pinned, what: str, view: View, choice: PageChoice) -> Iterator[pl.DataFrame]:
    """Yields the rows as stored, in frames."""
    if what == "batches":
        yield batches_frame(pinned.manifest())
    elif what == "pages":
        yield from living_pages(pinned, choice)
    elif what == "outlinks":
        yield from _links(pinned)
    elif what in ITEM_VIEWS:
        stored_items = PageChoice(DOCUMENTS_COLUMNS.pick("structured_data"))
        for pages in living_pages(pinned, stored_items):
            yield item_rows(what, pages)
    else:
        assert view.kind is not None
        stored = stored_names_of(view.kind, (column.name for column in choice.columns))
        in_tablets = view.kind.in_tablets or view.kind.owner is Owner.TABLE
        for frame in (_of_tablets if in_tablets else _of_files)(pinned, view.kind, stored):
            yield with_markdown(frame, choice.columns, choice.markdown_links)


def _of_tablets(pinned: Pinned, kind: Kind, stored: Sequence[str]) -> Iterator[pl.DataFrame]:
    for component in components_of(kind, pinned.manifest().components):
        for tablet in tablets(pinned.files(component)):
            rows = pinned.table.read(
                component, [tablet], stored, lambda rows: rows.filter(kind.counting)
            )
            owner = component.split("/")[1] if kind.owner.column else ""
            yield with_owner(rows.sort("key"), kind, owner)


def _of_files(pinned: Pinned, kind: Kind, stored: Sequence[str]) -> Iterator[pl.DataFrame]:
    for batch, file in files_of(pinned.table, pinned.manifest(), kind):
        for group in row_groups(pinned.table / file.path, kind.schema, stored):
            yield with_owner(to_frame(group), kind, batch)


def stored_names_of(kind: Kind, shown: Iterable[str]) -> list[str]:
    """Returns the names of the columns of a kind to read, so that some can be shown.

    >>> from ...policy.components.kinds import KINDS
    >>> stored_names_of(KINDS["documents"], ["url", "markdown"]), stored_names_of(KINDS["page_edges"], ["links"])
    (['key', 'text', 'blocks'], ['key', 'links'])
    """
    own = kind.schema.names
    names = (name for one in shown for name in ([one] if one in own else stored_names([one])))
    return list(dict.fromkeys(["key", *(name for name in names if name in own)]))


def with_owner(rows: pl.DataFrame, kind: Kind, owner: str) -> pl.DataFrame:
    """Returns rows with their batch or their index, if they have one."""
    column = kind.owner.column
    return rows.with_columns(pl.lit(owner).alias(column)) if column else rows


def _links(pinned: Pinned) -> Iterator[pl.DataFrame]:
    """Yields the links in the newest text of each URL of any status."""
    choice = PageChoice(DOCUMENTS_COLUMNS.pick("outlinks"), tuple(Status))
    for pages in living_pages(pinned, choice):
        rows = pages.select("key", "outlinks").explode("outlinks").drop_nulls("outlinks")
        link = pl.col("outlinks").struct
        target = link.field("key").alias("target_key")
        links = rows.select("key", target, link.field("anchor"), link.field("rel"))
        yield links.with_columns(target_url=from_keys(links.get_column("target_key")))


def living_pages(pinned: Pinned, choice: PageChoice) -> Iterator[pl.DataFrame]:
    """Yields pages as stored, a frame for each file of documents; memory holds one file's texts."""
    state = tablets(pinned.files("state"))
    rows = pinned.table.read("state", state, choice.state_columns, choice.in_state).sort("key")
    yield from _pages_of_rows(pinned, rows, choice)


def changed_pages_of(pinned: Snapshot, since: int, choice: PageChoice) -> Iterator[pl.DataFrame]:
    """Yields the pages that are new, changed or gone since a snapshot, as stored, with ``CHANGE_COLUMNS``.

    Pages that are gone have only the columns of their row in the state.
    """
    from .changed_pages import changed_items, read_changed_pages  # late: they load Beam
    from .reading_job import Reading

    reading = Reading(pinned.address, "", pinned.snapshot)
    for item in changed_items(reading, since):
        for rows in read_changed_pages(item, choice):
            is_gone = pl.col("document").is_null()
            yield from _pages_of_rows(reading, rows.filter(~is_gone), choice)
            yield rows.filter(is_gone)


def _pages_of_rows(
    pinned: Pinned, rows: pl.DataFrame, choice: PageChoice
) -> Iterator[pl.DataFrame]:
    for (document,), group in rows.group_by("document", maintain_order=True):
        file = live_file(pinned.table, pinned.manifest(), str(document))
        if file is not None:  # else compact has dropped it: there is no text
            yield pages_of_file(pinned, file, choice, group)


def page_of_url(pinned: Pinned, key: str, choice: PageChoice) -> dict[str, Any] | None:
    """Returns the newest text of one URL, as users see it; None if there is none.

    Args:
        pinned: The snapshot.
        key: Row key of the URL.
        choice: The wanted columns and statuses.
    """
    with pinned.reading():
        rows = pinned.find_rows("state", pl.Series("key", [key]))
        rows = choice.in_state(rows.lazy()).select(choice.state_columns).collect()
        document = rows.get_column("document").item() if len(rows) else None
        file = live_file(pinned.table, pinned.manifest(), document) if document else None
        pages = pages_of_file(pinned, file, choice, rows) if file else None
    if pages is None or pages.is_empty():
        return None
    return record_of(pages.row(0, named=True), choice.columns)


def pages_of_file(
    pinned: Pinned, file: DataFile, choice: PageChoice, rows: pl.DataFrame
) -> pl.DataFrame:
    """Returns the pages of one file of documents, as stored.

    Args:
        pinned: The snapshot.
        file: The file.
        choice: The wanted pages and columns.
        rows: Rows of the state that name the file, with ``choice.state_columns``.
    """
    documents = scan([pinned.table / file.path], DOCUMENTS).select(choice.document_columns)
    if len(rows) <= _FEW_PAGES:
        documents = documents.filter(pl.col("key").is_in(rows.get_column("key").implode()))
    pages = page_rows(choice, rows, collect(documents))
    if not choice.body_columns:
        return pages
    bodies = pl.concat(_bodies(pinned, choice, pages))
    return pages.join(bodies, on=["key", "page"], how="left", maintain_order="left")


def _bodies(pinned: Pinned, choice: PageChoice, pages: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yields the newest bodies of pages, with ``key`` and ``page``."""
    columns = ["key", *choice.body_columns]
    yield empty(PAGES).select(columns).with_columns(page=pl.lit(None, pl.String))
    for page, rows in named_rows(pinned.table.files, pinned.manifest(), pages, "page"):
        bodies = collect(rows.select(columns)).unique("key", keep="first", maintain_order=True)
        yield bodies.with_columns(page=pl.lit(page, pl.String))
