"""Declares columns: name, stored type, meaning, and the form in which users see the values."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ..schedules.schedule import ScheduleOptions


class Form(Enum):
    """The form in which users see the values of a column."""

    PLAIN = "as stored"
    TIME = "ms since 1970, UTC"  # seen as a timestamp
    DAY = "days since 1970, UTC"  # seen as a date
    CODE = "code"  # seen as a name
    HEX = "bytes"  # seen as hexadecimal text
    URL = "row key of a URL"  # seen as the URL


class Purged(Enum):
    """What a purge does with a text that has a purged name, in a row that stays."""

    VALUE = "it is removed; in a list the item that has it"
    LINES = "its lines with the name are removed"
    KEPT = "it stays: content of a page, or the name of a file"


class Planned(NamedTuple):
    """The times of a column are of something that is to happen, so they may be later than now.

    Attributes:
        after: Column with the time from which it was planned.
        latest: ``latest(now, options)`` returns the latest time that it may have at ``now`` (ms).
    """

    after: str
    latest: Callable[[int, ScheduleOptions], pl.Expr]


class Column(NamedTuple):
    """The declaration of a column.

    Attributes:
        name: Its name, in files and for users.
        type: Its type in files.
        meaning: One or two sentences for the data dictionary.
        unit: Unit of its numbers; that of times and days is in their form.
        form: The form in which users see the values.
        codes: Names of its values by number, if it has codes.
        purged: What a purge does with its texts. Texts of the form ``URL`` have a purged name if
            they are row keys of it, others if they contain it.
        planned: Of a time that may be later than now: until when. None: a later one is wrong.
        renewed: Whether what a time dates is read again if its age is unknown.
        items: If it is a list of structs, their fields, as far as these differ from it.
    """

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    form: Form = Form.PLAIN
    codes: Mapping[int, str] = {}
    purged: Purged = Purged.VALUE
    planned: Planned | None = None
    renewed: bool = False
    items: "tuple[Column, ...]" = ()

    def __hash__(self) -> int:
        return hash((self.name, self.type, self.form))  # a mapping of codes has no hash


def time_column(
    name: str, meaning: str, *, planned: Planned | None = None, renewed: bool = False
) -> Column:
    """Declares a column of times."""
    return Column(name, pa.int64(), meaning, form=Form.TIME, planned=planned, renewed=renewed)


def code_column(name: str, codes: Mapping[int, str], meaning: str) -> Column:
    """Declares a column of codes that have names."""
    return Column(name, pa.uint8(), meaning, form=Form.CODE, codes=codes)


class Columns(tuple[Column, ...]):
    """The columns of a kind of rows, in order.

    >>> some = Columns([Column("key", pa.string(), "A key."), time_column("time", "A time.")])
    >>> some.schema.names, [column.name for column in some.pick("time")]
    (['key', 'time'], ['time'])
    """

    __slots__ = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns as they are in files."""
        return pa.schema([(column.name, column.type) for column in self])

    def pick(self, *names: str) -> "Columns":
        """Returns the columns with these names, in this order."""
        by_name = {column.name: column for column in self}
        return Columns(by_name[name] for name in names)

    def pick_named(self, *names: str) -> "Columns":
        """Returns the columns that a user names, each once.

        Raises:
            ValueError: There is no such column; the message quotes it.
        """
        own_names = [column.name for column in self]
        for name in names:
            if name not in own_names:
                near = difflib.get_close_matches(name, own_names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"columns must be of {', '.join(own_names)}, got {name!r}{hint}")
        return self.pick(*dict.fromkeys(names))

    @property
    def times(self) -> "Columns":
        """The columns of times and of days."""
        return Columns(column for column in self if column.form in (Form.TIME, Form.DAY))

    def drop(self, *names: str) -> "Columns":
        """Returns the other columns."""
        return Columns(column for column in self if column.name not in names)


def join_columns(*parts: Iterable[Column]) -> Columns:
    """Returns several lists of columns as one."""
    return Columns(column for part in parts for column in part)
