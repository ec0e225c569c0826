"""``nutbeam.read``: reads a table into frames, as users see its rows."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

import polars as pl
import pyarrow as pa

from ...policy.components.columns import Columns
from ...policy.components.declaration import Kind, Owner
from ...policy.components.kinds import components_of
from ...policy.components.schema import DOCUMENTS_COLUMNS, Status, conform, to_frame
from ...policy.components.view_columns import PAGE_COLUMNS
from ...policy.components.vocabulary import View, shown_frame, shown_schema, views
from ...policy.page_rows import PageChoice
from ...web.base.errors import UsageError
from ...web.urls.key_columns import from_keys
from ..rows.duckdb_views import batches_frame, files_of
from ..snapshots.manifest import Pinned, newest_manifest
from ..storage.parquet_files import row_groups
from ..table.opening import open_table
from ..tablets.tablets import tablets
from .living_pages import living_pages

Into = Literal["polars", "arrow", "batches", "duckdb"]
INTO = ("polars", "arrow", "batches", "duckdb")


@dataclasses.dataclass(frozen=True)
class Snapshot(Pinned):
    """A snapshot that is read."""

    address: str
    snapshot: int


@overload
def read(
    table: "str | os.PathLike[str]",
    what: str = "state",
    *,
    columns: Sequence[str] = (),
    snapshot: int | None = None,
    into: Literal["polars"] = "polars",
) -> pl.DataFrame: ...


@overload
def read(
    table: "str | os.PathLike[str]",
    what: str = "state",
    *,
    columns: Sequence[str] = (),
    snapshot: int | None = None,
    into: Literal["arrow", "batches", "duckdb"],
) -> Any: ...


def read(
    table: "str | os.PathLike[str]",
    what: str = "state",
    *,
    columns: Sequence[str] = (),
    snapshot: int | None = None,
    into: Into = "polars",
) -> Any:
    """Reads rows of a table in a folder, in a store or in Bigtable.

    Rows are those of one snapshot: runs are folded into their bases, and purged rows are gone.
    Columns have the names and values of docs/reference/data.md: statuses are names, and times are
    timestamps in UTC.

    Args:
        table: Address of the table.
        what: ``state``, ``hosts``, ``pages`` (the newest text of each URL that is alive),
            ``outlinks``, ``batches``, or a component of batches such as ``batch_pages``.
        columns: Names of the columns to read. Only these are read from the files. None means all;
            of pages all but the body, the headers, the batch and the key.
        snapshot: Number of the snapshot, as in ``nutbeam history``; None means the newest.
        into: ``polars`` gives a frame, ``arrow`` a pyarrow.Table, and ``duckdb`` a relation, whose
            rows are in memory. ``batches`` gives a pyarrow.RecordBatchReader, which reads a large
            table piece by piece.

    Raises:
        UsageError: There is no such table, snapshot, component or column.
        UserError: A file is missing or damaged, or a store does not answer.
    """
    if into not in INTO:
        advice = ": read(…).to_pandas() gives a pandas frame, if pandas is installed"
        advice = advice if str(into) == "pandas" else ""
        raise UsageError(f"into must be one of {', '.join(INTO)}, got {into!r}{advice}")
    view, wanted = _choice(what, columns)
    pinned = _pinned(os.fspath(table), snapshot)
    schema = shown_schema(wanted)
    parts = _tables(pinned, what, view, wanted, schema)
    if into == "batches":
        batches = (batch for part in parts for batch in part.to_batches())
        return pa.RecordBatchReader.from_batches(schema, batches)
    whole = pa.concat_tables([schema.empty_table(), *parts])
    if into == "arrow":
        return whole
    return to_frame(whole) if into == "polars" else _relation(whole)


def _choice(what: str, columns: Sequence[str]) -> tuple[View, Columns]:
    known = views()
    if what not in known:
        raise UsageError(f"what must be one of {', '.join(known)}, got {what!r}")
    if isinstance(columns, str):
        raise UsageError(f"columns must be a list of names, got {columns!r}")
    if not columns:
        return known[what], PAGE_COLUMNS if what == "pages" else known[what].columns
    try:
        return known[what], known[what].columns.pick_named(*columns)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _pinned(address: str, snapshot: int | None) -> Snapshot:
    if snapshot is None:
        return Snapshot(address, newest_manifest(address).snapshot)
    known = open_table(address).snapshots()
    if snapshot not in known:
        raise UsageError(
            f"no snapshot {snapshot!r} in {address!r}: nutbeam history lists those that are kept"
        )
    return Snapshot(address, snapshot)


def _relation(rows: pa.Table) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise UsageError("into='duckdb' needs DuckDB: pip install 'nutbeam[sql]'") from error
    return duckdb.from_arrow(rows)


def _tables(
    pinned: Pinned, what: str, view: View, wanted: Columns, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yields the rows as users see them, in frames."""
    with pinned.reading():
        for frame in _frames(pinned, what, view, wanted):
            yield conform(shown_frame(frame, wanted), schema)


def _frames(pinned: Pinned, what: str, view: View, wanted: Columns) -> Iterator[pl.DataFrame]:
    """Yields the rows as stored, in frames."""
    if what == "batches":
        yield batches_frame(pinned.manifest())
    elif what == "pages":
        yield from living_pages(pinned, PageChoice(wanted))
    elif what == "outlinks":
        yield from _links(pinned)
    else:
        assert view.kind is not None
        names = [column.name for column in wanted]
        stored = list(dict.fromkeys(["key", *(n for n in names if n in view.kind.schema.names)]))
        in_tablets = view.kind.in_tablets or view.kind.owner is Owner.TABLE
        yield from (_of_tablets if in_tablets else _of_files)(pinned, view.kind, stored)


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
