"""Finds the present round of a crawl, from the table's history only."""

from collections.abc import Callable, Iterator

from ...web.base.clock import Clock
from ..storage.files import size_of
from ..storage.places import Place
from ..table.web_table import TableRows
from ..tablets.file_lists import TableFiles, load_files
from ..tablets.tablets import Due, Tablet, tablets
from .entries import DEDUP
from .manifest import Manifest, load_manifest
from .operations import Operation, pinned_operation, since_pinned
from .table_clock import clock_of

STOP = ".STOP"  # Nutch's name


def stop_file(table: TableFiles) -> Place | None:
    """Returns the file that stops a crawl, or None if it does not exist.

    It is in the folder of the table's files, also in a store or for a table in Bigtable.
    """
    place = table.files / STOP
    return place if size_of(place) is not None else None


def history(
    operation: Operation, is_last: Callable[[Manifest], bool] = lambda _: False
) -> dict[str, Manifest]:
    """Returns the snapshots made since an operation was pinned, by operation id.

    Args:
        operation: The pinned operation.
        is_last: Returns whether those before a snapshot are not needed.
    """
    manifests: dict[str, Manifest] = {}
    for manifest in since_pinned(operation):
        manifests[manifest.operation] = manifest
        if is_last(manifest):
            break
    return manifests


def next_round(
    address: str,
    launched: str,
    rounds: int,
    due: Callable[[Clock], Due],
    last: str = "dedup",
    *,
    by_rows: bool = False,
) -> tuple[int, str | None] | None:
    """Returns the present round of a crawl.

    Batches that were open when the crawl was launched are finished first, each
    in a round of its own. If there is a ``stop_file``, no new round begins, but a
    round under way continues.

    Args:
        address: Address of the table.
        launched: Id of the launch; the operation ``ID.crawl`` is pinned.
        rounds: Largest number of rounds; negative is no limit.
        due: Function that returns the due times at a given time. A round begins only if
            a row may be due.
        last: The job that ends a round.
        by_rows: Whether rows are read to see whether one is due, see ``may_have_due``.

    Returns:
        (number, the batch to finish or None); None after the last round, or if the
        crawl must stop.
    """
    operation = pinned_operation(address, f"{launched}.crawl")
    if operation is None:
        return None
    done = history(operation, lambda one: _ended_round(one.operation, launched, last) > 0)
    number = 1 + max((_ended_round(name, launched, last) for name in done), default=0)
    if 0 <= rounds < number:
        return None
    begun = any(name.startswith(f"{launched}.{number}.") for name in done)
    if not begun and stop_file(operation.table) is not None:
        return None
    chosen = done.get(f"{launched}.{number}.generate")
    if chosen is not None and chosen.batch not in chosen.batches:
        return None  # nothing was due
    open_batches = unfinished_batches(operation.manifest(), operation.now)
    if number <= len(open_batches):
        return number, open_batches[number - 1]
    latest = load_manifest(operation.table, operation.table.latest_snapshot())
    if chosen is None and not may_have_due(operation.table, latest, due, by_rows=by_rows):
        return None
    return number, None


def _ended_round(operation: str, launched: str, last: str) -> int:
    """Returns the number of the round that an operation of a launch has ended; 0 if it has ended none.

    >>> _ended_round("a.12.dedup", "a", "dedup"), _ended_round("a.12.fetch", "a", "dedup")
    (12, 0)
    """
    number = operation.removeprefix(f"{launched}.").removesuffix(f".{last}")
    is_end = number.isdecimal() and operation == f"{launched}.{number}.{last}"
    return int(number) if is_end else 0


def may_have_due(
    table: TableRows, manifest: Manifest, due_at: Callable[[Clock], Due], *, by_rows: bool = False
) -> bool:
    """Returns whether a row may be due.

    Args:
        table: The table.
        manifest: Its snapshot.
        due_at: Returns the due times at a given time.
        by_rows: Whether to read the times of the rows where zone maps do not rule it out. Zone maps know
            the earliest time of each file, also of rows that newer files replace.
    """
    shown, due, may_have = _due_tablets(table, manifest, due_at)
    if not by_rows:
        return any(True for _ in may_have)
    return any(_count_due(shown, tablet, due) for tablet in may_have)


def count_due(table: TableRows, manifest: Manifest, due_at: Callable[[Clock], Due]) -> int:
    """Returns how many rows are due; arguments as for ``may_have_due``. It reads the times of rows."""
    shown, due, may_have = _due_tablets(table, manifest, due_at)
    return sum(_count_due(shown, tablet, due) for tablet in may_have)


def rows_to_look_at(table: TableRows, manifest: Manifest, due_at: Callable[[Clock], Due]) -> int:
    """Returns how many rows the tablets have that may have due rows; arguments as for ``may_have_due``."""
    return sum(tablet.rows for tablet in _due_tablets(table, manifest, due_at)[2])


def _due_tablets(
    table: TableRows, manifest: Manifest, due_at: Callable[[Clock], Due]
) -> tuple[TableRows, Due, Iterator[Tablet]]:
    """Returns the table at a snapshot, the due times, and the tablets that may have due rows."""
    state_tablets = tablets(load_files(table, manifest.components.get("state")))
    due, shown = due_at(clock_of(manifest)), table.at(manifest.snapshot)
    may_have = (one for one in state_tablets if shown.may_have_due("state", one, due))
    return shown, due, may_have


def _count_due(table: TableRows, tablet: Tablet, due: Due) -> int:
    times = table.read("state", [tablet], ("fetch_time",)).get_column("fetch_time")
    is_due = times <= due.until
    if due.far is not None:
        is_due |= times > due.far
    return int(is_due.fill_null(value=True).sum())


def unfinished_batches(manifest: Manifest, now: int) -> list[str]:
    """Returns the batches that a crawl finishes first: one that needs dedup, and all open ones."""
    return manifest.waiting_for(DEDUP)[:1] + manifest.open_batches(now)
