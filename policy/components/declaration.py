"""What a component's declaration says: ``Kind``. ``kinds.py`` has the declarations."""

import dataclasses
import functools
from enum import Enum
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from .columns import Column, Columns, Purged


class Flushed(Enum):
    """What happens to files that a fetch has written if it ends before it commits."""

    ADOPTED = "a later fetch of the batch adopts them"
    LAST_ADOPTED = "a later fetch of the batch adopts the last one of each attempt"
    REPLACED = "a later fetch writes others"


class Kept(Enum):
    """How long compact keeps files of a batch that is old enough and that dedup has seen."""

    ALWAYS = "as long as the table"
    NAMED = "as long as rows refer to the file"
    WITH_OTHERS = "as long as rows refer to a file of another kind of the batch"
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


@dataclasses.dataclass(frozen=True)
class Kind:
    """The declaration of a kind of component.

    Attributes:
        name: Its name, such as ``state``.
        columns: Its columns; ``key`` is the first.
        meaning: A row is this; for the data dictionary.
        of_hosts: Whether keys are hosts (reversed). If not, they are URLs.
        of_links: Whether keys are pairs of row keys, as ``policy/inlinks/link_keys.py`` makes them.
            The columns ``target`` and ``source`` have the two row keys.
        best_kept: Whether ``compact --keep_inlinks`` keeps only the best rows of each target; the
            column ``score`` ranks them.
        hashed: Whether keys are hashes instead.
        in_tablets: Whether it has one row per key, in tablets: bases with runs on them. If not, it
            is a list of files that are read separately.
        in_rows: Whether a table in Bigtable keeps it in rows. If not, it is in files there, too.
            Needs ``in_tablets``. Cannot be changed for a table that exists.
        in_order: Whether each file is in key order.
        of_batch: Whether each batch has its own component of this kind.
        of_index: Whether each index has its own component of this kind.
        flushed: What happens to files of it that a fetch writes before it commits; None: it
            writes none.
        kept: How long compact keeps files of a batch.
        kept_with: The other kind of ``Kept.WITH_OTHERS``.
        kept_until: A component that takes in batches: the record of a batch has its name then. If a
            table has this component, compact keeps files of a batch at least until then. Empty:
            none.
        refers: Columns that name files of batches. compact keeps the named files.
        partitioned: Whether a file belongs to a partition of its batch, which only the list knows.
        paired_with: The kind whose files have the same partitions and orders; empty if none.
        shards: Whether each file is a shard of a tantivy index. compact merges shards; a purge
            builds them again from the documents that they store.
        rebuilt_by: Command that makes a damaged or missing file again, with its options; the table
            and ``--index`` are added. Empty: there is none, and messages name ``fsck``.
        later_versions: The first new column of each later version of the schema. New columns go
            to the end; rows in Bigtable have the number of their version.
        due: Column with the time when a row is due, ms. In rows Bigtable selects by it, in files the
            zone is of it. Empty: there is none, and readers get all rows.
        zone: What the list of its files says of each file beside the keys; None: nothing.
        ended: Column that is null in all current rows. Readers never see a row with a value; it
            is left out when its tablet is rewritten, and at once from rows in Bigtable.
        merged: Whether compact merges its files into one, with one row per key.
        made_from: Kind whose rows are copied into files here when ``made_where`` is true; only if
            that kind is in rows. A copy of the table makes its own. Empty: it has rows of its own.
        made_where: A boolean column of ``made_from``.
        stays: Whether it is not rolled back.
        journal: Whether it only records that a job has run: the job has changed nothing by this.
        required: Whether a batch must have it until it is updated.
        view: Its name for users, if that is not its own.
        cell: Column family and column of its rows in Bigtable, ``FAMILY:COLUMN``; empty means
            ``NAME:row``.
        in_first_tables: Whether the oldest tables in Bigtable have its column family. Tables may be
            older than other components in rows; an operation that begins adds their families.
    """

    name: str
    columns: Columns
    meaning: str = ""
    of_hosts: bool = False
    of_links: bool = False
    best_kept: bool = False
    hashed: bool = False
    in_tablets: bool = False
    in_rows: bool = False
    in_order: bool = False
    of_batch: bool = False
    of_index: bool = False
    flushed: Flushed | None = None
    kept: Kept = Kept.ALWAYS
    kept_with: str = ""
    kept_until: str = ""
    refers: tuple[str, ...] = ()
    partitioned: bool = False
    paired_with: str = ""
    shards: bool = False
    rebuilt_by: str = ""
    later_versions: tuple[str, ...] = ()
    due: str = ""
    zone: Zone | None = None
    ended: str = ""
    merged: bool = False
    made_from: str = ""
    made_where: str = ""
    stays: bool = False
    journal: bool = False
    required: bool = False
    view: str = ""
    cell: str = ""
    in_first_tables: bool = False

    def __post_init__(self) -> None:
        if self.in_rows and (self.of_batch or self.of_index or not self.in_tablets):
            raise ValueError(f"a component in rows must be in tablets, {self.name!r} is not")
        needed = [
            *(("target", "source") if self.of_links else ()),
            *(("score",) if self.best_kept else ()),
        ]
        if lacking := [name for name in needed if name not in self.schema.names]:
            raise ValueError(f"component {self.name!r} lacks the column {lacking[0]!r}")
        if self.best_kept and not self.of_links:
            raise ValueError(f"component {self.name!r} keeps the best of links, and has none")
        if self.zone and not {*self.zone.columns} <= {*self.schema.names}:
            raise ValueError(f"component {self.name!r} lacks a column of its zone: {self.zone}")
        if self.zone and self.due not in ("", self.zone.time):
            raise ValueError(f"component {self.name!r} must be due by the time of its zone")
        if bool(self.made_from) != bool(self.made_where):
            raise ValueError(f"component {self.name!r} must have both, made_from and made_where")
        if bool(self.kept_with) != (self.kept is Kept.WITH_OTHERS):
            raise ValueError(f"component {self.name!r} must have both, kept_with and WITH_OTHERS")

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns of the component, as in files."""
        return self.columns.schema

    @property
    def shown_as(self) -> str:
        """Its name for users."""
        return self.view or (f"batch_{self.name}" if self.of_batch else self.name)

    @property
    def folder(self) -> str:
        """Folder of the batches or indexes that have components of it; empty if the table has it."""
        return "batches" if self.of_batch else "index" if self.of_index else ""

    @property
    def owner_column(self) -> str:
        """Column in which users see the batch or the index of its rows; empty if they have none."""
        return "batch_id" if self.of_batch else "index_name" if self.of_index else ""

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
    known = {column.name: column for column in kind.columns}
    return [
        field.name
        for field in schema
        if field.name == "key" or (has_texts(field.type) and not is_kept(known.get(field.name)))
    ]


def is_kept(declared: Column | None) -> bool:
    """Returns whether a purge keeps the content of a column."""
    return declared is not None and declared.purged is Purged.KEPT


def has_texts(kind: pa.DataType) -> bool:
    """Returns whether values of a type are texts, or have texts in them."""
    return pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_nested(kind)
