"""What a component's declaration says: ``Kind``. ``kinds.py`` has the declarations."""

import functools
from enum import Enum
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ...web.base.dataclass import dataclass
from .columns import Column, Columns, Purged


class RowKey(Enum):
    """What the keys of rows are."""

    URL = "row keys of URLs"
    HOST = "hosts, reversed"
    LINK = (
        "pairs of row keys, as policy/components/link_rows.py makes them; the columns target and source "
        "have the two"
    )
    HASH = "hashes"


class Owner(Enum):
    """What has components of a kind: the table, or each batch or index.

    Attributes:
        folder: Folder of the batches or indexes; empty if the table has the component.
        column: Column in which users see the batch or the index of a row; empty if there is none.
    """

    TABLE = ("", "")
    BATCH = ("batches", "batch_id")
    INDEX = ("index", "index_name")

    def __init__(self, folder: str, column: str) -> None:
        self.folder, self.column = folder, column


class RowLayout(Enum):
    """How the rows of a component lie. It cannot be changed for a table that exists."""

    FILES = "a list of files that are read separately"
    SORTED_FILES = "files that are read separately, each in key order"
    SHARDS = (
        "files, each a shard of a tantivy index; compact merges them, and a purge builds them again "
        "from the documents that they store"
    )
    TABLETS = "tablets, with one row per key: bases in key order with runs on them"
    ROWS = "tablets in files; in Bigtable rows"


class Flushed(Enum):
    """What happens to files that a fetch has written if it ends before it commits."""

    ADOPTED = "a later fetch of the batch adopts them"
    LAST_ADOPTED = "a later fetch of the batch adopts the last one of each attempt"
    REPLACED = "a later fetch writes others"


class Kept(Enum):
    """How long compact keeps files of a batch that is old enough and that dedup has seen."""

    ALWAYS = "as long as the table"
    NAMED = "as long as rows refer to the file"
    WITH_DOCUMENTS = "as long as rows refer to a file of documents of the batch"
    NO_LONGER = "not at all"


class Zone(NamedTuple):
    """Columns of which the list of files says what each file has, so that readers can skip files.

    Attributes:
        time: Times, ms; the list has the earliest and the latest one.
        score: Scores; the list has the best one. Empty: none.
        status: Numbers from 0 to 62; the list has those that occur. Empty: none.
    """

    time: str
    score: str = ""
    status: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(filter(None, self))


@dataclass(frozen=True)
class Kind:
    """The declaration of a kind of component.

    Attributes:
        name: Its name, such as ``state``.
        columns: Its columns; ``key`` is the first.
        meaning: A row is this; for the data dictionary.
        key: What its keys are.
        owner: What has components of this kind.
        layout: How its rows lie.
        flushed: What happens to files of it that a fetch writes before it commits; None: it
            writes none.
        kept: How long compact keeps files of a batch.
        later_versions: The first new column of each later version of the schema. New columns go
            to the end; rows in Bigtable have the number of their version.
        due: Column with the time when a row is due, ms. In rows Bigtable selects by it, in files the
            zone is of it. Empty: there is none, and readers get all rows.
        zone: What the list of its files says of each file beside the keys; None: nothing.
        ended: Column that is null in all current rows. Readers never see a row with a value; it
            is left out when its tablet is rewritten, and at once from rows in Bigtable.
        made_from: Kind whose rows are copied into files here when ``made_where`` is true; only if
            that kind is in rows. A copy of the table makes its own. Empty: it has rows of its own.
        made_where: A boolean column of ``made_from``.
        journal: Whether it only records that a job has run: the job has changed nothing by this.
        view: Its name for users, if that is not its own.
        cell: Column family and column of its rows in Bigtable, ``FAMILY:COLUMN``; empty means
            ``NAME:row``.
    """

    name: str
    columns: Columns
    meaning: str = ""
    key: RowKey = RowKey.URL
    owner: Owner = Owner.TABLE
    layout: RowLayout = RowLayout.FILES
    flushed: Flushed | None = None
    kept: Kept = Kept.ALWAYS
    later_versions: tuple[str, ...] = ()
    due: str = ""
    zone: Zone | None = None
    ended: str = ""
    made_from: str = ""
    made_where: str = ""
    journal: bool = False
    view: str = ""
    cell: str = ""

    def __post_init__(self) -> None:
        if self.layout is RowLayout.ROWS and self.owner is not Owner.TABLE:
            raise ValueError(f"a component in rows must be one of the table, {self.name!r} is not")
        pair = ("target", "source") if self.key is RowKey.LINK else ()
        if lacking := [name for name in pair if name not in self.schema.names]:
            raise ValueError(f"component {self.name!r} lacks the column {lacking[0]!r}")
        if self.zone and not {*self.zone.columns} <= {*self.schema.names}:
            raise ValueError(f"component {self.name!r} lacks a column of its zone: {self.zone}")
        if self.zone and self.due not in ("", self.zone.time):
            raise ValueError(f"component {self.name!r} must be due by the time of its zone")
        if bool(self.made_from) != bool(self.made_where):
            raise ValueError(f"component {self.name!r} must have both, made_from and made_where")

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns of the component, as in files."""
        return self.columns.schema

    @property
    def in_tablets(self) -> bool:
        """Whether it has one row per key, in tablets; if not, it is a list of files."""
        return self.layout in (RowLayout.TABLETS, RowLayout.ROWS)

    @property
    def in_order(self) -> bool:
        """Whether each file is in key order."""
        return self.in_tablets or self.layout is RowLayout.SORTED_FILES

    @property
    def shown_as(self) -> str:
        """Its name for users."""
        return self.view or (f"batch_{self.name}" if self.owner is Owner.BATCH else self.name)

    @property
    def counting(self) -> pl.Expr:
        """The condition of current rows."""
        return pl.col(self.ended).is_null() if self.ended else pl.lit(True)

    @property
    def adopted(self) -> bool:
        """Whether a fetch adopts files of an earlier one; their names have their partition."""
        return self.flushed in (Flushed.ADOPTED, Flushed.LAST_ADOPTED)


def columns_to_search(schema: pa.Schema, kind: Kind) -> list[str]:
    """Returns the columns that may have names to purge; a body or a text is not read for it."""
    columns_by_name = {column.name: column for column in kind.columns}
    return [
        field.name
        for field in schema
        if field.name == "key"
        or (has_texts(field.type) and not is_kept(columns_by_name.get(field.name)))
    ]


def is_kept(declared: Column | None) -> bool:
    """Returns whether a purge keeps the content of a column."""
    return declared is not None and declared.purged is Purged.KEPT


def has_texts(kind: pa.DataType) -> bool:
    """Returns whether values of a type are texts, or have texts in them."""
    return pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_nested(kind)
