"""Thins files of old batches: drops versions of pages that were fetched again, and old bodies.

A file of a batch is dropped as a whole when no row of the state refers to it. As long as one does, it
may hold mostly versions of pages that newer batches have replaced. Such a file is written again
without them.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...policy.components.kinds import KINDS, kinds_of_batches
from ...policy.components.lost_files import STATE_FILES
from ...policy.components.schema import DROPPED_BODY
from ...web.base.dataclass import dataclass
from ..batches.batches import batch_component
from ..snapshots.operations import Operation
from ..storage.files import new_name
from ..storage.parquet_files import collect, columns_with_values, scan
from ..table.edits import rewrite
from ..tablets.checksums import verify_file
from ..tablets.file_lists import DataFile, below
from ..tablets.tablets import tablets
from ..tablets.written import Written
from .file_shares import LiveRows

# A file is written again when at most this share of its rows is left.
_LEFT = 0.5
# The column of the state that names a file of a kind.
_REFERRING = {kind: column for column, kind in STATE_FILES.items()}
_BODY_COLUMNS = ("body", "wire", "wire_head")


@dataclass(frozen=True)
class FileToThin:
    """A file of a batch that may be written again.

    Attributes:
        operation: The operation.
        component: Its component.
        file: The file.
        bodies_before: Bodies of pages that were fetched before this time go, ms; 0: none go.
    """

    operation: Operation
    component: str
    file: DataFile
    bodies_before: int


def files_to_thin(
    operation: Operation, batches: Sequence[str], live_rows: LiveRows, bodies_before: int
) -> Iterator[FileToThin]:
    """Yields the files of old batches that may have more than the rows of the state refer to.

    Args:
        operation: The operation; its snapshot is read.
        batches: Ids of the batches; see ``spent_batches``.
        live_rows: Numbers of rows of the state that refer to files of these batches.
        bodies_before: See ``FileToThin``.
    """
    kinds = [name for name in kinds_of_batches() if name in _REFERRING]
    for component in (batch_component(batch, kind) for batch in batches for kind in kinds):
        for file in operation.files(component):
            live = live_rows.of(file)
            ages = bodies_before > 0 and component.endswith("/pages")
            if live and (live <= _LEFT * file.rows or ages):
                yield FileToThin(operation, component, file, bodies_before if ages else 0)


def thin_file(item: FileToThin) -> Iterator[Written]:
    """Writes a file again without superseded rows, or without bodies, if that frees enough."""
    operation, file = item.operation, item.file
    path, kind = operation.table / file.path, KINDS[item.component.rpartition("/")[2]]
    parts = ["part_of"] if "part_of" in kind.schema.names else []
    rows = collect(scan([path], kind.schema).select("key", "fetch_time", *parts))
    live = _live_keys(operation, item, rows)
    kept = int(rows.select(_is_live(live, parts).sum()).item())
    drops = kept <= _LEFT * len(rows)
    newest = rows.get_column("fetch_time").max()
    ages = isinstance(newest, int) and newest < item.bodies_before
    ages = ages and bool(columns_with_values(path, set(_BODY_COLUMNS)))
    if not (drops or ages):
        return
    verify_file(operation.table, file)
    new = operation.table.files / item.component / new_name()
    thin = Thin(live if drops else None, ages, tuple(parts))
    facts = rewrite(path, new, thin)
    formerly = file.formerly or file.path
    thinned = dataclasses.replace(
        file, path=below(operation.table, new), formerly=formerly, **facts
    )
    counts = {f"superseded/{kind.name}": len(rows) - kept if drops else 0, "bodies": thin.bodies}
    yield Written(
        item.component, (thinned,), (file.path,),
        {f"dropped/{name}": number for name, number in counts.items() if number}, tidies=True,
    )  # fmt: skip


def _live_keys(operation: Operation, item: FileToThin, rows: pl.DataFrame) -> pl.Series:
    """Returns the keys, of rows of a file and of the pages that they are a part of, that refer to it."""
    name = _REFERRING[item.component.rpartition("/")[2]]
    keys = pl.concat([rows.get_column(column) for column in rows.columns if column != "fetch_time"])
    state = operation.table.find(
        "state", tablets(operation.files("state")), keys.drop_nulls().unique(), ("key", name)
    )
    paths = [item.file.path, *filter(None, [item.file.formerly])]
    return state.filter(pl.col(name).is_in(paths)).get_column("key")


def _is_live(keys: pl.Series, parts: Sequence[str]) -> pl.Expr:
    live = pl.col("key").is_in(keys.implode())
    for part in parts:
        live |= pl.col(part).is_in(keys.implode()).fill_null(False)
    return live


class Thin:
    """Drops the rows that are not live, and the bodies.

    Args:
        live: Keys of the rows to keep; None keeps all.
        without_bodies: Whether to drop the bodies.
        parts: Columns with keys of pages whose parts stay with them.

    Attributes:
        bodies: Number of bodies that were dropped.
    """

    def __init__(self, live: pl.Series | None, without_bodies: bool, parts: Sequence[str]) -> None:
        self._live, self._without_bodies, self._parts = live, without_bodies, parts
        self.bodies = 0

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Returns the rows of a row group that are left."""
        if self._live is not None:
            names = ["key", *self._parts]
            frame = pl.DataFrame(pl.from_arrow(rows.select(names)))
            mask = frame.select(_is_live(self._live, self._parts)).to_series()
            rows = rows.filter(mask.to_arrow())
        if self._without_bodies:
            had_body = pc.is_valid(rows["body"])
            self.bodies += pc.sum(had_body).as_py() or 0
            mark = pc.if_else(had_body, DROPPED_BODY, rows["truncated"])
            at = rows.schema.get_field_index("truncated")
            rows = rows.set_column(at, rows.schema.field(at), mark.cast(rows.schema.field(at).type))
            for name in set(_BODY_COLUMNS) & set(rows.schema.names):
                field = rows.schema.field(name)
                nulls = pa.nulls(len(rows), field.type)
                rows = rows.set_column(rows.schema.get_field_index(name), field, nulls)
        return rows
