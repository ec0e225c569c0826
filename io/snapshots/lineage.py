"""The history of a table, which is a line: each snapshot was made from the one before it."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from ...web.base.mappings import SizeCache
from ..table.table_snapshots import TableSnapshots
from .manifest import Manifest, read_once

# By search: the newest snapshot from which it has found nothing, see ``first_in_lineage``.
_SEARCHED: SizeCache[Hashable, int] = SizeCache(256)


def lineage(table: TableSnapshots, since: int = 0, reader: Hashable = None) -> Iterator[Manifest]:
    """Yields the table's lineage: the newest snapshot, the one that it was made from, and so on.

    Snapshots that a rollback has undone, or that have expired, are not yielded.

    Args:
        table: The table.
        since: Number of the snapshot at which to stop; it is not yielded.
        reader: The operation that reads them, or None; it reads each of them once in a process.

    Raises:
        UserError: One of the manifests is missing or damaged.
    """
    numbers = table.snapshots()
    number, lost = max(numbers, default=0), set[int]()
    while numbers and number > since and number >= numbers[0]:
        if number in lost:
            number -= 1
            continue
        manifest = read_once(table, number, reader, listed=True)
        yield manifest
        lost.update(manifest.lost)
        number = number - 1 if manifest.restores is None else manifest.restores


def first_in_lineage(
    manifests: Iterable[Manifest], is_wanted: Callable[[Manifest], bool], search: Hashable
) -> Manifest | None:
    """Returns the newest wanted snapshot, or None; the next search ends where this one has begun.

    Manifests never change, so what was not found from a snapshot on is not there.

    Args:
        manifests: A lineage down to a fixed snapshot.
        is_wanted: Returns whether a snapshot is wanted.
        search: What is searched, unique also after the table was made again; None does not end early.
    """
    searched, newest = _SEARCHED.get(search), None
    for manifest in manifests:
        newest = newest or manifest.snapshot
        if manifest.snapshot == searched:
            break
        if is_wanted(manifest):
            return manifest
    if search is not None and newest is not None:
        _SEARCHED.put(search, newest)
    return None


def commit_times(table: TableSnapshots, manifests: Sequence[Manifest]) -> dict[int, float]:
    """Returns when snapshots of a table were committed, s, by number: at least those of some manifests.

    A manifest says it itself. For the others the time of the record counts, which is later in a
    table that was copied or restored.

    Args:
        table: The table.
        manifests: Manifests that were read; those of older versions do not say it.
    """
    said = {one.snapshot: one.committed / 1000 for one in manifests if one.committed}
    return said if len(said) == len(manifests) else dict(table.commit_times()) | said


def purged_since(table: TableSnapshots, snapshot: int, reader: Hashable = None) -> bool:
    """Returns whether a purge was committed after a snapshot."""
    return any(manifest.job == "purge" for manifest in lineage(table, snapshot, reader))


def undone_by(table: TableSnapshots, snapshot: int, reader: Hashable = None) -> int | None:
    """Returns the number of the rollback that has undone a snapshot, or None.

    Args:
        table: The table.
        snapshot: Number of the snapshot.
        reader: The operation that has pinned it, or None.
    """

    def undoes(manifest: Manifest) -> bool:
        return manifest.restores is not None and manifest.restores < snapshot

    search = None if reader is None else ("undone", reader)
    rollback = first_in_lineage(lineage(table, snapshot, reader), undoes, search)
    return None if rollback is None else rollback.snapshot
