"""The pages that are new, changed or gone since an older snapshot, as items of work."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...io.reading.state_changes import (
    changed_rows,
    changed_tablets,
    earlier_snapshot,
    removed_rows,
)
from ...io.snapshots.manifest import load_manifest, newest_manifest
from ...io.snapshots.pinned import Snapshot
from ...io.table.opening import open_table
from ...io.tablets.checksums import verify_tablets
from ...policy.compared_pages import changed_pages
from ...policy.components.schema import StateRows
from ...policy.page_rows import PageChoice
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ...web.base.wording import time_of
from ..outputs.output_tables import TableOutput, source_of_load
from .reading_job import Reading, ReadItem


@dataclass(frozen=True)
class ChangedItem(ReadItem):
    """A tablet that may have changed since an older snapshot; or one of that, which may have lost rows.

    Attributes:
        since: Number of the older snapshot.
        removed: Whether the tablet is one of the older snapshot.
    """

    since: int = 0
    removed: bool = False


def changed_items(reading: Reading, since: int) -> Iterator[ChangedItem]:
    """Yields the tablets that may have changed since a snapshot."""
    changed, lost = changed_tablets(reading, since)
    for number, tablet in enumerate([*changed, *lost]):
        removed = number >= len(changed)
        yield ChangedItem(reading, number, tablet, since=since, removed=removed)


def read_changed_pages(item: ChangedItem, choice: PageChoice) -> Iterator[StateRows]:
    """Yields rows of pages that have changed, with ``CHANGE_COLUMNS``; gone ones have no document."""
    assert item.tablet is not None
    reading, read = item.reading, removed_rows if item.removed else changed_rows
    with Snapshot(reading.address, item.since).reading():
        verify_tablets(reading.table, item.tablet)  # damaged rows are not exported
        for rows, earlier_rows in read(reading, item.since, item.tablet, choice.compared_columns):
            pages = changed_pages(choice, rows, earlier_rows)
            yield pages.with_columns(snapshot=reading.snapshot)


def since_of_run(
    address: str, since: str, table: TableOutput | None, choice: Mapping[str, Any]
) -> int | None:
    """Returns the snapshot with which a run compares pages; None: it writes all pages.

    Args:
        address: Address of the table of nutbeam.
        since: The option ``--since``; empty: it was not given.
        table: The table that rows are appended to, if it is one: what it has is not brought again.
        choice: As ``Load.choice``.

    Raises:
        UserError: There was no such snapshot, or it is gone; or the rows do not fit those of the table.
    """
    last = table.last_load(source_of_load(address)) if table else None
    if table is None or last is None:
        since = since or ("0" if table else "")
        return since_of(address, since) if since else None
    table.check_choice(last, choice)
    try:
        number = since_of(address, str(last.snapshot))
    except UserError as error:
        raise type(error)(
            f"{error}; {table.address} has its rows: bring all rows into another table"
        ) from error
    if load_manifest(open_table(address), number).operation != last.operation:
        raise UsageError(
            f"{address!r} is another table than the one whose rows {table.address} has: it was made "
            "again since then; use another table there, too"
        )
    if since and since_of(address, since) != number:
        raise UsageError(
            f"{table.address} has the rows of snapshot {number}: leave out --since {since}, or use "
            "another table"
        )
    return number


def since_of(address: str, text: str) -> int:
    """Returns the number of the snapshot that ``--since`` means.

    Args:
        address: Address of the table.
        text: A number, or a date or time: the newest snapshot of that time or before.

    Raises:
        UserError: There was no such snapshot, or it is gone.
    """
    manifest = newest_manifest(address)
    if text.isdecimal():
        return earlier_snapshot(address, manifest, int(text))
    return earlier_snapshot(address, manifest, None, time_of(text))
