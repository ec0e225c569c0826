"""Finds the tablets and files in which pages may have changed their place in an index; reads their facts.

Its cost follows what has changed since the last run: rows in new files of the state, and in
Bigtable cells of later snapshots. It decides nothing.

Pages whose documents a writer has refused have dead letters, which are files of the table.
"""

import abc
import functools
from collections.abc import Callable, Collection, Iterable, Iterator

import polars as pl

from ...policy.components.index_schema import (
    DEAD_LETTERS,
    INDEXED,
    STATE_READ,
    CandidateFacts,
    CandidateKind,
    JournalRows,
    index_component,
)
from ...policy.components.kinds import KINDS
from ...policy.components.schema import empty
from ...web.base.dataclass import dataclass
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import Operation
from ..storage.file_errors import unreadable
from ..storage.files import LARGEST_BYTES, read_if_there
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder, Place
from ..tablets.file_lists import DataFile, load_files
from ..tablets.resolve import write_bases
from ..tablets.tablets import Tablet, tablets
from ..tablets.written import Written
from .index_run import IndexRun, journal_before
from .run_receipts import Intent, keys_of_bytes

# Rows of the journal that count: those of pages that were not deleted.
COUNTING = KINDS["indexed"].counting
_INTENTS_AT_ONCE = 64 << 20  # bytes of keys of unfinished runs that one item looks at
_KEYS_AT_ONCE, _SEED = 50_000, 17


@dataclass(frozen=True)
class CandidateItem(abc.ABC):
    """One item of work of a run: something that has pages which may be sent.

    Attributes:
        operation: The operation.
        number: Number of the item.
    """

    operation: Operation
    number: int

    @abc.abstractmethod
    def read_facts(self, index_run: IndexRun) -> Iterator[CandidateFacts]:
        """Yields what is known of the pages of the item, in pieces."""


@dataclass(frozen=True)
class _TabletCandidateItem(CandidateItem):
    tablet: Tablet


@dataclass(frozen=True)
class Changed(_TabletCandidateItem):
    """A tablet of the state, whose rows may have changed since the index was written.

    Attributes:
        since: The snapshot that the index shows; 0: all rows count.
        indexed_paths: Paths of the state's files in that snapshot.
    """

    since: int
    indexed_paths: frozenset[str] = frozenset()

    def read_facts(self, index_run: IndexRun) -> Iterator[CandidateFacts]:
        table = self.operation.table
        if self.since:
            changed = table.changed_since("state", self.tablet, self.since, self.indexed_paths)
        else:
            changed = ((rows["key"], rows) for rows in table.scan("state", self.tablet))
        for keys, rows in changed:
            journal = _read_journal(index_run, keys)
            yield CandidateFacts(CandidateKind.CHANGED, rows.select(STATE_READ), journal)


@dataclass(frozen=True)
class Removed(_TabletCandidateItem):
    """A tablet of the journal, some of whose pages may have left the table.

    Attributes:
        ranges: Ranges of keys, both ends included, that may have lost rows; None: everything.
    """

    ranges: tuple[tuple[str, str], ...] | None = None

    def read_facts(self, index_run: IndexRun) -> Iterator[CandidateFacts]:
        if index_run.batch:  # pages that have left the table are no matter of a single batch
            return
        wanted = COUNTING
        if self.ranges is not None:
            inside = [(pl.col("key") >= low) & (pl.col("key") <= high) for low, high in self.ranges]
            wanted = wanted & pl.any_horizontal(inside)
        for rows in self.operation.table.scan(index_run.journal, self.tablet):
            if len(journal := rows.filter(wanted)):
                state_rows = self.operation.find_rows("state", journal["key"], ("key",))
                yield CandidateFacts(CandidateKind.REMOVED, state_rows, journal)


class PurgedPages(_TabletCandidateItem):
    """A tablet of an older journal, some of whose rows a purge may have removed."""

    def read_facts(self, index_run: IndexRun) -> Iterator[CandidateFacts]:
        find_rows = self.operation.find_rows
        for rows in self.operation.table.scan(index_run.journal, self.tablet):
            earlier = rows.filter(COUNTING)
            keys = earlier.get_column("key")
            represented = earlier.filter(pl.col("repr_url").is_not_null()).get_column("key")
            yield CandidateFacts(
                CandidateKind.PURGED,
                find_rows("state", represented, STATE_READ),
                _read_journal(index_run, keys, every=True),
                earlier_rows=earlier,
                kept_keys=find_rows("state", keys, ("key",)),  # after an --unblock
            )


class IndexedPages(_TabletCandidateItem):
    """A tablet of the journal, all of whose pages are looked up, to delete those that must go."""

    def read_facts(self, index_run: IndexRun) -> Iterator[CandidateFacts]:
        for rows in self.operation.table.scan(index_run.journal, self.tablet):
            if len(journal := rows.filter(COUNTING)):
                state_rows = self.operation.find_rows("state", journal["key"], STATE_READ)
                yield CandidateFacts(CandidateKind.INDEXED, state_rows, journal)


@dataclass(frozen=True)
class Unfinished(CandidateItem):
    """Pages that runs have begun to send that never committed: a server may have them.

    Attributes:
        intents: The parts of these runs.
        share: Number of the item among those that share the pages, by hashes of their keys.
        shares: How many these are.
    """

    intents: tuple[Intent, ...]
    share: int = 0
    shares: int = 1

    def read_facts(self, index_run: IndexRun) -> Iterator[CandidateFacts]:
        for sent in self._sent_keys().iter_slices(_KEYS_AT_ONCE):
            yield _read_pages(CandidateKind.UNFINISHED, index_run, sent)

    def _sent_keys(self) -> pl.DataFrame:
        """Returns ``key``, and ``committed``: only a run that has committed has sent it."""
        sent = [pl.DataFrame(schema={"key": pl.String, "committed": pl.Boolean})]
        for intent in self.intents:
            data = read_if_there(intent.path, LARGEST_BYTES)
            if data is not None:
                keys = _keys_in(intent.path, data)
                mine = keys.filter(keys.hash(_SEED) % self.shares == self.share)
                sent.append(mine.to_frame("key").with_columns(committed=pl.lit(intent.committed)))
        return pl.concat(sent).group_by("key").agg(pl.col("committed").all()).sort("key")


@dataclass(frozen=True)
class RefusedPages(CandidateItem):
    """Files of dead letters, whose pages are sent again if they have not changed.

    Attributes:
        files: The files.
    """

    files: tuple[DataFile, ...]

    def read_facts(self, index_run: IndexRun) -> Iterator[CandidateFacts]:
        keys = sorted(letter_keys(self.operation.table, self.files))
        for key_rows in pl.DataFrame({"key": keys}, {"key": pl.String}).iter_slices(_KEYS_AT_ONCE):
            yield _read_pages(CandidateKind.REFUSED, index_run, key_rows)


def candidates(index_run: IndexRun) -> Iterator[CandidateItem]:
    """Yields the tablets and files that a run must read."""
    for number, make in enumerate(_candidate_makers(index_run)):
        yield make(index_run.operation, number)


def _candidate_makers(index_run: IndexRun) -> Iterator[Callable[[Operation, int], CandidateItem]]:
    """Yields functions that make items of an operation and their numbers."""
    # A page is in one item, so that it is not deleted twice.
    parts = () if index_run.full or not index_run.outside else tuple(index_run.receipts.intents())
    shares = 1 + sum(part.bytes for part in parts) // _INTENTS_AT_ONCE if parts else 0
    for share in range(shares):
        yield functools.partial(Unfinished, intents=parts, share=share, shares=shares)
    if index_run.cleans:
        for tablet in index_run.journal_tablets:
            yield functools.partial(IndexedPages, tablet=tablet)
        return
    operation = index_run.operation
    again = index_run.retries_refused and not index_run.full
    for file in index_run.files("dead_letters") if again else ():
        yield functools.partial(RefusedPages, files=(file,))
    old_files = _indexed_state_files(index_run)
    paths = frozenset(file.path for file in old_files)
    changed, ranges = operation.table.changed_tablets("state", old_files, operation.files("state"))
    for tablet in changed:
        yield functools.partial(Changed, tablet=tablet, since=index_run.since, indexed_paths=paths)
    for tablet in index_run.journal_tablets:
        near = _ranges_in(tablet, ranges) if index_run.since else None
        if near is None or near:
            yield functools.partial(Removed, tablet=tablet, ranges=near)
    for tablet in () if index_run.full else tablets(journal_before(operation, index_run.index)):
        yield functools.partial(PurgedPages, tablet=tablet)


def _indexed_state_files(index_run: IndexRun) -> list[DataFile]:
    """Returns the state's files in the snapshot that the index shows."""
    table = index_run.operation.table
    components = load_manifest(table, index_run.since).components if index_run.since else {}
    return load_files(table, components.get("state"))


def _ranges_in(tablet: Tablet, ranges: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    first, last = str(tablet.first), str(tablet.last)
    return tuple((low, high) for low, high in ranges if low <= last and first <= high)


def _read_pages(kind: CandidateKind, index_run: IndexRun, sent: pl.DataFrame) -> CandidateFacts:
    keys = sent.get_column("key")
    state_rows = index_run.operation.find_rows("state", keys, STATE_READ)
    return CandidateFacts(kind, state_rows, _read_journal(index_run, keys), sent)


def _read_journal(index_run: IndexRun, keys: pl.Series, *, every: bool = False) -> JournalRows:
    """Reads the rows of the journal with some keys; ``every``: deleted ones, too."""
    if not index_run.journal_tablets or not len(keys):
        return empty(INDEXED)
    rows = index_run.operation.table.find(index_run.journal, index_run.journal_tablets, keys)
    return rows if every else rows.filter(COUNTING)


def _keys_in(path: Place, data: bytes) -> pl.Series:
    try:
        return keys_of_bytes(data)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise unreadable(path, error) from error


def letter_keys(table: Folder, files: Iterable[DataFile]) -> frozenset[str]:
    """Returns the row keys of the pages in files of dead letters."""
    paths = [table / file.path for file in files]
    if not paths:
        return frozenset()
    return frozenset(collect(scan(paths, DEAD_LETTERS).select("key")).get_column("key"))


def refused_pages(table: Folder, manifest: Manifest, index: str) -> int:
    """Returns how many pages of an index have dead letters in a snapshot."""
    component = manifest.components.get(index_component(index, "dead_letters"))
    return len(letter_keys(table, load_files(table, component)))


def outdated_letters(index_run: IndexRun, journal: pl.DataFrame) -> list[str]:
    """Returns the keys of a part's pages that have dead letters of earlier runs.

    The journal and the new dead letters record these pages again.
    """
    refused_keys = (
        frozenset() if index_run.full else _letter_keys(index_run.operation, index_run.index)
    )
    return [key for key in journal.get_column("key") if key in refused_keys] if refused_keys else []


@functools.lru_cache(maxsize=4)
def _letter_keys(operation: Operation, index: str) -> frozenset[str]:
    return letter_keys(operation.table, operation.files(index_component(index, "dead_letters")))


def without_letters(index_run: IndexRun, keys: Collection[str]) -> Iterator[Written]:
    """Yields the files of dead letters that are written again without those of some pages."""
    component, root = index_run.component("dead_letters"), index_run.operation.table.files
    gone = pl.Series("key", sorted(keys), dtype=pl.String)
    for file in index_run.files("dead_letters") if len(gone) else ():
        rows = collect(scan([index_run.operation.table / file.path], DEAD_LETTERS))
        remaining_rows = rows.join(gone.to_frame(), on="key", how="anti", maintain_order="left")
        if len(remaining_rows) < len(rows):
            files = write_bases(root, component, [remaining_rows]) if len(remaining_rows) else ()
            yield Written(component, files, (file.path,))
