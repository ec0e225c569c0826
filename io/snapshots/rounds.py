"""Finds the round of a crawl from the table's history alone."""

from collections.abc import Callable

from ...policy.schedule import Clock
from ..storage.files import size_of
from ..storage.places import Place
from ..table.web_table import WebTable
from ..tablets.file_lists import load_files
from ..tablets.tablets import Due, tablets
from .manifest import Manifest, load_manifest
from .operations import Operation, find, since_pinned
from .table_clock import clock_of

STOP = ".STOP"  # Nutch's name


def stop_file(table: WebTable) -> Place | None:
    """Returns the file that ends a crawl's loop, if it is in the table.

    It is in the folder of the table's files, in a store or of a table in Bigtable, too.
    """
    place = table.files / STOP
    return place if size_of(place) is not None else None


def history(operation: Operation) -> dict[str, Manifest]:
    """Returns the snapshots made since an operation was pinned, by operation id."""
    return {manifest.operation: manifest for manifest in since_pinned(operation)}


def next_round(
    table: str, launched: str, rounds: int, due: Callable[[Clock], Due]
) -> tuple[int, str | None] | None:
    """Returns the present round of a crawl.

    Batches that were open when the crawl was launched are finished first, each
    in a round of its own. Where there is a ``stop_file``, no round is begun; one
    that is under way goes on.

    Args:
        table: Address of the table.
        launched: Id of the launch; the operation ``ID.crawl`` is pinned.
        rounds: How many there are at most; negative is no limit.
        due: Returns when a row may be due at a time; a round is not begun for nothing.

    Returns:
        (number, the batch to finish or None), or None after the last round, or
        where the crawl is to stop.
    """
    operation = find(table, f"{launched}.crawl")
    if operation is None:
        return None
    done = history(operation)
    number = 1
    while f"{launched}.{number}.dedup" in done:
        number += 1
    if 0 <= rounds < number:
        return None
    begun = any(name.startswith(f"{launched}.{number}.") for name in done)
    if not begun and stop_file(operation.root) is not None:
        return None
    chosen = done.get(f"{launched}.{number}.generate")
    if chosen is not None and chosen.batch not in chosen.batches:
        return None  # nothing was due
    open_batches = unfinished(operation.manifest(), operation.now)
    if number <= len(open_batches):
        return number, open_batches[number - 1]
    latest = load_manifest(operation.root, operation.root.latest_snapshot())
    if chosen is None and not may_have_due(operation.root, latest, due):
        return None
    return number, None


def may_have_due(table: WebTable, manifest: Manifest, due_at: Callable[[Clock], Due]) -> bool:
    """Returns whether a row may be due."""
    known = tablets(load_files(table, manifest.components.get("state")))
    due = due_at(clock_of(manifest))
    shown = table.at(manifest.snapshot)
    return any(shown.may_have_due(tablet, due) for tablet in known)


def unfinished(manifest: Manifest, now: int) -> list[str]:
    """Returns the batches that a crawl finishes first; one stands for all that lack a dedup."""
    return manifest.without_dedup()[:1] + manifest.open_batches(now)
