"""Where the rows of pages go: all of them into a file, what has changed into a table of another database."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ...io.snapshots.manifest import Manifest
from ...io.storage.places import Place
from ...web.base.errors import UsageError
from ...web.base.wording import time_of
from ..base.command import Invocation
from ..outputs.output_files import Output, output_of
from ..outputs.output_tables import TABLE_PARTS, Load, TableOutput, source_of_load
from ..outputs.table_addresses import names_table, table_output_of
from .changed_pages import changed_items, since_of_run
from .reading_job import Reading, ReadItem, tablets_of

ENDINGS = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")


class DestinationOptions(Protocol):
    """The options that say where rows go, and which."""

    @property
    def output(self) -> str:
        """File or table that gets the rows; ``-`` is standard output."""

    @property
    def catalog(self) -> str:
        """As ``CatalogOptions.catalog``."""

    @property
    def since(self) -> str:
        """Older snapshot, by number or time, of which only changes are written; empty: none."""


class RowsDestination(NamedTuple):
    """Where the rows of a run go, and which they are.

    Attributes:
        address: Address of the table of nutbeam.
        output: The file; of a table of another database, what workers write for it.
        table: The table of another database; None: the rows go to the file.
        since: Snapshot with which pages are compared; None: all are written.
        choice: As ``Load.choice``.
    """

    address: str
    output: Output
    table: TableOutput | None
    since: int | None
    choice: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The file or the table, as users write it; empty: standard output."""
        return self.table.address if self.table else str(self.output.path or "")

    @property
    def divide(self) -> Callable[[Reading], Iterator[ReadItem]]:
        """Divides a snapshot into the items whose rows are written."""
        if self.since is None:
            return tablets_of
        return functools.partial(changed_items, since=self.since)

    def bring(self, parts: list[Place], schema: pa.Schema, manifest: Manifest) -> int:
        """Brings the rows of part files of a snapshot to their place; returns their number.

        Raises:
            UserError: The table of another database cannot take them.
        """
        if self.table is None:
            return self.output.join(parts, schema.names, schema)
        load = Load(source_of_load(self.address), manifest.snapshot, self.since or 0, self.choice,
                    manifest.operation)  # fmt: skip
        return self.table.append_parts(parts, schema, load)


def destination_of(invocation: Invocation, name: str, choice: Mapping[str, Any]) -> RowsDestination:
    """Returns where the rows of a run go.

    Args:
        invocation: The command, with ``DestinationOptions``.
        name: Name of the table in a database, if ``output`` has none.
        choice: As ``Load.choice``.

    Raises:
        UserError: The place cannot be written, there was no such snapshot, or the rows do not fit
            those that the table of another database has.
    """
    address, options = str(invocation.table), invocation.options
    if options.output == "-" and invocation.take_record is not None:
        raise UsageError("output must name a file or a table: a call prints no rows")
    table = table_output_of(options.output, options.catalog, name)
    output = TABLE_PARTS if table else output_of(options.output, "--output")
    since = since_of_run(address, options.since, table, choice)
    return RowsDestination(address, output, table, since, choice)


def shows_changes(options: DestinationOptions) -> bool:
    """Returns whether only pages that have changed are written, with what became of them."""
    return bool(options.since) or names_table(options.output)


def check_destination(options: DestinationOptions) -> None:
    """Checks the options that say where rows go.

    Raises:
        ValueError: One is wrong; the message quotes it.
    """
    output, since = options.output, options.since
    if output != "-" and not output.endswith(ENDINGS) and not names_table(output):
        raise ValueError(
            f"--output must end in {', '.join(ENDINGS)} or .duckdb, or be "
            f"iceberg:NAMESPACE.TABLE, got {output!r}"
        )
    if since and not since.isdecimal():
        try:
            time_of(since)
        except ValueError as error:
            raise ValueError(f"--since {error}, or the number of a snapshot") from error
