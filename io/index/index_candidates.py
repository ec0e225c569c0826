"""Finds the pages whose place in an index may have changed, by what has changed in the table.

Its cost follows what has changed since the last run: rows in new files of the state, and in Bigtable
cells of later snapshots.
"""

import dataclasses
import functools
import io
from collections.abc import Callable, Iterator, Sequence

import polars as pl
import pyarrow as pa

from ...policy.components.index_schema import INDEXED
from ...policy.components.kinds import KINDS
from ...policy.components.schema import STATE, empty, to_frame
from ...policy.indexing.index_changes import (
    PURGED_REASON,
    STATE_READ,
    UNFINISHED_REASON,
    decide_changes,
    lost_pages,
)
from ...policy.indexing.index_decision import ADD, DELETE, IndexDecisionOptions
from ..snapshots.manifest import load_manifest
from ..snapshots.operations import Operation
from ..storage.files import read_if_there
from ..tablets.file_lists import DataFile, load_files
from ..tablets.tablets import Tablet, tablets
from .dead_letters import letter_keys
from .index_pass import IndexPass, journal_before
from .unfinished_runs import Intent, intents

# Rows on their way to the documents, or to the writers that delete them.
CANDIDATES = pa.schema(
    [
        *(STATE.field(name) for name in STATE_READ),
        ("known", pa.bool_()),
        ("writers", INDEXED.field("writers").type),
        ("action", pa.large_string()),
        ("reason", pa.large_string()),
    ]
)
# Bytes of keys of unfinished runs that one item looks at, and the keys in one step.
_INTENTS_AT_ONCE, _KEYS_AT_ONCE, _SEED = 64 << 20, 50_000, 17
# Deletes of one part of the work, and what they need: so a part has at most some 40 MB.
_DELETES_IN_PART = 20_000
_OF_DELETES = ("key", "document", "signature", "known", "writers", "action", "reason")
# Pages that are sent again with the same text: a run that lost may have sent an older one after it, or
# a writer has refused it.
AGAIN_REASON = "sent_again"
# Rows of the journal that count: those of pages that were not deleted.
COUNTING = KINDS["indexed"].counting


@dataclasses.dataclass(frozen=True)
class Changed:
    """A tablet of the state, whose rows may have changed since the index was written.

    Attributes:
        operation: The operation.
        number: Number of the item.
        tablet: The tablet.
        since: The snapshot that the index shows; 0: all rows count.
        before: Paths of the state's files in that snapshot.
    """

    operation: Operation
    number: int
    tablet: Tablet
    since: int
    before: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Removed:
    """A tablet of the journal, some of whose pages may have left the table.

    Attributes:
        operation: The operation.
        number: Number of the item.
        tablet: The tablet.
        ranges: Ranges of keys, both ends included, that may have lost rows; None: everything.
    """

    operation: Operation
    number: int
    tablet: Tablet
    ranges: tuple[tuple[str, str], ...] | None = None


@dataclasses.dataclass(frozen=True)
class PurgedPages:
    """A tablet of an older journal, some of whose rows a purge may have removed."""

    operation: Operation
    number: int
    tablet: Tablet


@dataclasses.dataclass(frozen=True)
class Held:
    """A tablet of the journal, all of whose pages are looked up, to delete those that must go."""

    operation: Operation
    number: int
    tablet: Tablet


@dataclasses.dataclass(frozen=True)
class Unfinished:
    """Pages that runs have begun to send that never committed: a server may have them.

    Attributes:
        operation: The operation.
        number: Number of the item.
        intents: The parts of these runs.
        share: Number of the item among those that share the pages, by hashes of their keys.
        shares: How many these are.
    """

    operation: Operation
    number: int
    intents: tuple[Intent, ...]
    share: int = 0
    shares: int = 1


@dataclasses.dataclass(frozen=True)
class Refused:
    """Files of dead letters, whose pages are sent again if they have not changed.

    Attributes:
        operation: The operation.
        number: Number of the item.
        files: The files.
    """

    operation: Operation
    number: int
    files: tuple[DataFile, ...]


Candidate = Changed | Removed | PurgedPages | Held | Unfinished | Refused


def candidates(task: IndexPass) -> Iterator[Candidate]:
    """Yields the tablets and files that a run must read."""
    for number, make in enumerate(_items(task)):
        yield make(task.operation, number)


def _items(task: IndexPass) -> Iterator[Callable[[Operation, int], Candidate]]:
    """Yields functions that make items of an operation and their numbers."""
    # A page is in one item, so that it is not deleted twice.
    some = () if task.full or not task.outside else tuple(intents(task))
    shares = 1 + sum(intent.bytes for intent in some) // _INTENTS_AT_ONCE if some else 0
    for share in range(shares):
        yield functools.partial(Unfinished, intents=some, share=share, shares=shares)
    if task.cleans:
        for tablet in tablets(task.files("indexed")):
            yield functools.partial(Held, tablet=tablet)
        return
    operation = task.operation
    letters = task.files("dead_letters") if task.retries_refused else ()
    for file in letters if not task.full else ():
        yield functools.partial(Refused, files=(file,))
    before, ranges = _state_before(task)
    for tablet in tablets(operation.files("state")):
        if task.since and operation.root.in_files("state") and set(tablet.paths) <= before:
            continue
        yield functools.partial(Changed, tablet=tablet, since=task.since, before=before)
    for tablet in tablets(task.files("indexed")):
        near = ranges if ranges is None else _near(tablet, ranges)
        if near is None or near:
            yield functools.partial(Removed, tablet=tablet, ranges=near)
    for tablet in () if task.full else tablets(journal_before(operation, task.index)):
        yield functools.partial(PurgedPages, tablet=tablet)


def _state_before(
    task: IndexPass,
) -> tuple[frozenset[str], tuple[tuple[str, str], ...] | None]:
    """Returns the paths of the state's files, and the ranges of keys that may have lost rows."""
    if not task.since:
        return frozenset(), None
    root = task.operation.root
    component = load_manifest(root, task.since).components.get("state")
    files = load_files(root, component)
    paths = frozenset(file.path for file in files)
    if not root.in_files("state"):  # there removed rows have keys, too
        return paths, ()
    now = {file.path for file in task.operation.files("state")}
    gone = [tablet for tablet in tablets(files) if tablet.base.path not in now]
    return paths, tuple((str(t.first), str(t.last)) for t in gone if t.first is not None)


def _near(tablet: Tablet, ranges: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    first, last = str(tablet.first), str(tablet.last)
    return tuple((low, high) for low, high in ranges if low <= last and first <= high)


def decided_rows(
    item: Candidate, task: IndexPass, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    """Yields decisions about the pages of an item, as in ``CANDIDATES``."""
    if isinstance(item, Changed):
        found = _changed(item, task, options)
    elif isinstance(item, Removed):
        found = _removed(item, task)
    elif isinstance(item, Held):
        found = _held(item, task, options)
    elif isinstance(item, Unfinished):
        found = _unfinished(item, task, options)
    elif isinstance(item, Refused):
        found = _refused(item, task, options)
    else:
        found = _purged(item, task)
    for decided in found:
        if task.full:  # an index that is built from the beginning has nothing to delete
            nobody = pl.lit([], pl.List(pl.String))
            writers = pl.when(pl.col("action") == DELETE).then(nobody).otherwise("writers")
            decided = decided.with_columns(writers=writers)
        yield decided


def _changed(
    item: Changed, task: IndexPass, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    root = item.operation.root
    if item.since:
        found = root.changed_since("state", item.tablet, item.since, item.before)
    else:
        found = ((rows["key"], rows) for rows in root.scan("state", item.tablet))
    for keys, rows in found:
        rows = rows.select(STATE_READ)
        journal = journal_of(task, keys)
        if task.batch:
            rows = rows.filter(_of_batch(task.batch))
            journal = journal.filter(pl.col("key").is_in(rows.get_column("key").implode()))
        yield _decided(rows, journal, options, full=task.full)


def _held(item: Held, task: IndexPass, options: IndexDecisionOptions) -> Iterator[pl.DataFrame]:
    for some in item.operation.root.scan(task.component("indexed"), item.tablet):
        journal = some.filter(COUNTING)
        if len(journal):
            rows = _state_of(item.operation, journal.get_column("key"), STATE_READ)
            yield _decided(rows, journal, options).filter(pl.col("action") == DELETE)


def _unfinished(
    item: Unfinished, task: IndexPass, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    """Yields what corrects the pages of unfinished runs, which any writer may hold.

    Pages to be added go to the documents with the names of all writers, so that those delete them
    that do not get them. Pages that an overtaken run may have given an older text, or deleted, are
    sent again. The others are deleted.
    """
    names = pl.lit(task.outside, pl.List(pl.String))
    for some in _keys_of(item).iter_slices(_KEYS_AT_ONCE):
        keys = some.get_column("key")
        journal = journal_of(task, keys)
        rows = _state_of(item.operation, keys, STATE_READ)
        decided = decide_changes(rows, journal, options)
        decided = decided.join(some, on="key", how="left").with_columns(outside=names)
        decided = _again(decided, pl.col("overtaken"))
        adds = decided.filter(pl.col("action") == ADD)
        if not task.cleans:
            both = pl.concat_list("writers", "outside").list.unique(maintain_order=True)
            yield to_candidates(adds.with_columns(writers=both))
        # The journal's writers delete these pages as its other pages.
        gone = decided.filter(pl.col("known") & (pl.col("action") == DELETE))
        others = gone.select("key", writers=pl.col("outside").list.set_difference("writers"))
        kept = pl.concat([journal.select("key"), adds.select("key")])
        unknown = some.select("key").join(kept, on="key", how="anti")
        yield to_candidates(
            pl.concat([unknown.with_columns(writers=names), others]).with_columns(
                known=pl.lit(False), action=pl.lit(DELETE), reason=pl.lit(UNFINISHED_REASON)
            )
        )


def _refused(
    item: Refused, task: IndexPass, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    """Yields the pages with dead letters whose text is the one that was refused, to be added.

    Other items have those that have changed since then, or must go.
    """
    keys = pl.Series("key", sorted(letter_keys(item.operation.root, item.files)), dtype=pl.String)
    for some in keys.to_frame().iter_slices(_KEYS_AT_ONCE):
        rows = _state_of(item.operation, some.get_column("key"), STATE_READ)
        if task.batch:
            rows = rows.filter(_of_batch(task.batch))
        journal = journal_of(task, rows.get_column("key"))
        decided = _again(decide_changes(rows, journal, options), pl.lit(True))
        yield to_candidates(decided.filter(pl.col("reason") == AGAIN_REASON))


def _again(decided: pl.DataFrame, chosen: pl.Expr) -> pl.DataFrame:
    """Returns decisions in which the chosen pages are added, though they have not changed."""
    again = pl.col("known") & (pl.col("reason") == "unchanged") & chosen
    return decided.with_columns(
        action=pl.when(again).then(pl.lit(ADD)).otherwise("action"),
        reason=pl.when(again).then(pl.lit(AGAIN_REASON)).otherwise("reason"),
    )


def _keys_of(item: Unfinished) -> pl.DataFrame:
    """Returns the keys of an item, and whether an overtaken run has sent them."""
    found = [pl.DataFrame(schema={"key": pl.String, "overtaken": pl.Boolean})]
    for intent in item.intents:
        data = read_if_there(intent.path)
        if data is not None:
            keys = keys_of_bytes(data)
            mine = keys.filter(keys.hash(_SEED) % item.shares == item.share)
            found.append(mine.to_frame("key").with_columns(overtaken=pl.lit(intent.overtaken)))
    return pl.concat(found).group_by("key").agg(pl.col("overtaken").any()).sort("key")


def keys_to_bytes(keys: pl.Series) -> bytes:
    """Returns keys as the content of a file."""
    sink = io.BytesIO()
    keys.rename("key").to_frame().write_ipc(sink)
    return sink.getvalue()


def keys_of_bytes(data: bytes) -> pl.Series:
    """Returns the keys in a file.

    >>> keys_of_bytes(keys_to_bytes(pl.Series(["com.a:http/"]))).to_list()
    ['com.a:http/']
    """
    return pl.read_ipc(io.BytesIO(data)).get_column("key")


def _of_batch(batch: str) -> pl.Expr:
    of_document = pl.col("document").str.starts_with(f"batches/{batch}/")
    return (of_document | (pl.col("batch_id") == batch)).fill_null(False)


def _removed(item: Removed, task: IndexPass) -> Iterator[pl.DataFrame]:
    if task.batch:
        return
    wanted = COUNTING
    if item.ranges is not None:
        key = pl.col("key")
        inside = [(key >= low) & (key <= high) for low, high in item.ranges]
        wanted = wanted & pl.any_horizontal(inside)
    for rows in item.operation.root.scan(task.component("indexed"), item.tablet):
        journal = rows.filter(wanted)
        if len(journal):
            found = _state_of(item.operation, journal.get_column("key"), ("key",))
            yield to_candidates(lost_pages(journal, found, "deleted_unknown"))


def _purged(item: PurgedPages, task: IndexPass) -> Iterator[pl.DataFrame]:
    """Yields deletes for the writers outside the table; those inside it were purged, too."""
    for rows in item.operation.root.scan(task.component("indexed"), item.tablet):
        before = rows.filter(COUNTING)
        keys = before.get_column("key")
        known = journal_of(task, keys, every=True).select("key")
        back = _state_of(item.operation, keys, ("key",))  # after an --unblock
        yield to_candidates(lost_pages(before, pl.concat([known, back]), PURGED_REASON))


def _decided(
    rows: pl.DataFrame, journal: pl.DataFrame, options: IndexDecisionOptions, *, full: bool = False
) -> pl.DataFrame:
    """Returns the decisions about rows of the state, and deletes of the pages that have none."""
    decided = decide_changes(rows, journal, options, full=full)
    gone = lost_pages(journal, rows, "deleted_unknown")
    return to_candidates(pl.concat([decided, gone], how="diagonal"))


def _state_of(operation: Operation, keys: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Returns rows of the state with some keys."""
    return operation.root.find("state", tablets(operation.files("state")), keys, columns)


def journal_of(task: IndexPass, keys: pl.Series, *, every: bool = False) -> pl.DataFrame:
    """Returns the rows of the journal with some keys; ``every``: deleted ones, too."""
    name = task.component("indexed")
    known = tablets(task.files("indexed"))
    if not known or not len(keys):
        return empty(INDEXED)
    rows = task.operation.root.find(name, known, keys)
    return rows if every else rows.filter(COUNTING)


def to_candidates(decided: pl.DataFrame) -> pl.DataFrame:
    """Returns decisions with all columns of ``CANDIDATES``."""
    wide = to_frame(CANDIDATES.empty_table())
    found = pl.concat([wide, decided], how="diagonal_relaxed")
    return found.select(pl.col(name).cast(kind) for name, kind in wide.schema.items())


def by_part(
    item: Candidate, decided: pl.DataFrame, before: int = 0
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yields (name of a part of the work, its rows): a file of documents, or some deletes of an item.

    Args:
        item: The item.
        decided: Decisions about some of its pages.
        before: Number of deletes among the decisions that were made before.
    """
    adds = decided.filter(pl.col("action") == ADD)
    for (document,), rows in adds.group_by("document", maintain_order=True):
        yield str(document), rows
    deletes = decided.filter(pl.col("action") == DELETE).with_row_index("part", before)
    deletes = deletes.with_columns(pl.col("part") // _DELETES_IN_PART)
    for (part,), rows in deletes.group_by("part", maintain_order=True):
        narrow = to_candidates(rows.select(_OF_DELETES))
        yield f"deletes/{item.number}-{part}", narrow
