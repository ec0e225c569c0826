"""Tables of other databases that rows are appended to: what a snapshot has brought, once.

The table itself keeps, for each table of nutbeam, the snapshot whose rows it has: in the commit that
has the rows. So a run that was killed has brought all its rows or none, and the next one brings what
is new, changed and gone since the snapshot that the table has.
"""

import abc
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from ...io.storage.parquet_files import row_groups
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ...web.base.options import option
from ...web.base.safe_json import json_object
from .output_files import Output

DEFAULT_CATALOG = "./iceberg"
# What workers write for a table.
TABLE_PARTS = Output(None, ".parquet")


@dataclass(frozen=True)
class CatalogOptions:
    """Options of commands that append to tables of Iceberg."""

    GROUP = "iceberg"

    catalog: str = option(
        DEFAULT_CATALOG,
        "Catalog of the Iceberg table: its name in the configuration of pyiceberg, or a folder, with a / "
        "in it, for the tables and a catalog in SQLite.",
        takes="path",
    )


class Load(NamedTuple):
    """What one run brings into a table.

    Attributes:
        source: Address of the table of nutbeam.
        snapshot: Number of its snapshot that the rows are from.
        since: Number of the snapshot whose rows the table has already; 0: none.
        choice: What chooses the rows, such as ``--status``, by its name in messages.
        operation: Id of the operation that made the snapshot: another table at the same address, made
            again from nothing, has others.
    """

    source: str
    snapshot: int
    since: int = 0
    choice: Mapping[str, Any] = {}
    operation: str = ""

    def to_json(self) -> str:
        """Returns the load as the table keeps it."""
        return json.dumps(self._asdict(), sort_keys=True)


def source_of_load(address: str) -> str:
    """Returns the address of a table of nutbeam, the same wherever a command runs."""
    return open_table(address).worker_address()


def load_of_json(text: str, address: str) -> Load:
    """Returns a load that a table has kept.

    Raises:
        UserError: It is damaged, or of a newer nutbeam.
    """
    try:
        load = Load(**json_object(text.encode()))
        if type(load.snapshot) is not int or type(load.choice) is not dict:
            raise ValueError("its snapshot must be a number, and its choice an object")
        return load
    except (ValueError, TypeError) as error:
        raise UserError(
            f"{address} has a damaged note of what nutbeam brought: {text[:200]!r}: use another table"
        ) from error


class TableOutput(abc.ABC):
    """A table of another database, to which the rows of part files are appended."""

    @property
    @abc.abstractmethod
    def address(self) -> str:
        """The address of the table, as users write it."""

    @abc.abstractmethod
    def last_load(self, source: str) -> Load | None:
        """Returns the last load of a source; None: there is none, perhaps not even the table.

        Raises:
            UserError: The database cannot be read.
        """

    @abc.abstractmethod
    def append(self, rows: pa.RecordBatchReader, load: Load) -> int:
        """Appends rows, and the note of their load, in one commit; returns the number of rows.

        The table is made if it is not there. Columns that it lacks are added.

        Raises:
            UserError: The rows do not fit the table, another load came between, or the database cannot
                be written.
        """

    def append_parts(self, parts: Iterable[Place], schema: pa.Schema, load: Load) -> int:
        """Appends the rows of part files, as ``append`` does; none if the table has the snapshot."""
        if load.since == load.snapshot:
            return 0
        return self.append(pa.RecordBatchReader.from_batches(schema, _batches(parts, schema)), load)

    def check_last(self, last: Load | None, load: Load) -> None:
        """Checks, before a commit, that no other run has brought rows.

        Args:
            last: The last load, as the commit finds it.
            load: The load that is brought.

        Raises:
            UserError: Another run has.
        """
        if last is not None and last.snapshot != load.since:
            raise UserError(
                f"another run has brought snapshot {last.snapshot} of {load.source!r} to {self.address} "
                "meanwhile: run this one again"
            )

    def check_columns(
        self, there: Collection[str], wanted: Collection[str], of_nutbeam: bool
    ) -> None:
        """Checks that a table is not one of something else.

        Args:
            there: Its columns; none if it is not there yet.
            wanted: Columns of the rows.
            of_nutbeam: Whether it has rows of nutbeam.

        Raises:
            UsageError: It has no rows of nutbeam, and lacks columns.
        """
        missing = [name for name in wanted if name not in there]
        if there and missing and not of_nutbeam:
            raise UsageError(
                f"{self.address} is a table of something else: it lacks the columns {', '.join(missing)}; "
                "use another table, or choose --columns"
            )

    def check_choice(self, last: Load | None, choice: Mapping[str, Any]) -> None:
        """Checks that rows are chosen as in the load before.

        Raises:
            UsageError: They are not: the message names the option.
        """
        for name in sorted({*choice, *(last.choice if last else ())}) if last else ():
            before, now = last.choice.get(name) if last else None, choice.get(name)
            if before != now:
                raise UsageError(
                    f"{self.address} has rows by {_flag(name, before)}, and these are by "
                    f"{_flag(name, now)}: use the same, or another table"
                )


def _flag(name: str, value: Any) -> str:
    shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
    return f"{name} {shown}" if shown or shown == 0 else f"no {name}"


def _batches(parts: Iterable[Place], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for part in parts:
        for group in row_groups(part, schema):
            yield from group.to_batches()
