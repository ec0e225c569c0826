"""Decides about the pages of a candidate: which of them are added, kept or deleted."""

import io
from collections.abc import Iterator, Sequence

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
    forget_unsent_pages,
    lost_pages,
)
from ...policy.indexing.index_decision import ADD, DELETE, IndexDecisionOptions
from ..snapshots.operations import Operation
from ..storage.file_errors import unreadable
from ..storage.files import LARGEST_BYTES, read_if_there
from ..storage.places import Place
from ..tablets.tablets import tablets
from .dead_letters import letter_keys
from .index_candidates import (
    Candidate,
    Changed,
    IndexedPages,
    PurgedPages,
    RefusedPages,
    Removed,
    Unfinished,
)
from .index_run import IndexRun

# Rows on their way to the documents, or to the writers that delete them.
INDEX_CANDIDATES = pa.schema(
    [
        *(STATE.field(name) for name in STATE_READ),
        ("known", pa.bool_()),
        ("writers", INDEXED.field("writers").type),
        ("action", pa.large_string()),
        ("reason", pa.large_string()),
    ]
)
_KEYS_AT_ONCE, _SEED = 50_000, 17
# Deletes of one part of the work, and what they need: so a part has at most some 40 MB.
_DELETES_IN_PART = 20_000
_OF_DELETES = ("key", "document", "signature", "known", "writers", "action", "reason")
# Pages that are sent again with the same text: a run that lost may have sent an older one after it,
# or a writer has refused it.
AGAIN_REASON = "sent_again"
# Pages that an index does not have any more, because it was built again for one batch.
OTHER_BATCH_REASON = "deleted_other_batch"
# Current rows of the journal: those of pages that were not deleted.
COUNTING = KINDS["indexed"].counting


def decided_rows(
    item: Candidate, task: IndexRun, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    """Yields decisions about the pages of an item, as in ``INDEX_CANDIDATES``."""
    if isinstance(item, Changed):
        found = _changed(item, task, options)
    elif isinstance(item, Removed):
        found = _removed(item, task)
    elif isinstance(item, IndexedPages):
        found = _indexed(item, task, options)
    elif isinstance(item, Unfinished):
        found = _unfinished(item, task, options)
    elif isinstance(item, RefusedPages):
        found = _refused(item, task, options)
    else:
        found = _purged(item, task, options)
    for decided in found:
        if task.full:  # an index that is built from the beginning has nothing to delete
            decided = forget_unsent_pages(decided)
            nobody = pl.lit([], pl.List(pl.String))
            writers = pl.when(pl.col("action") == DELETE).then(nobody).otherwise("writers")
            decided = decided.with_columns(writers=writers)
        yield decided


def _changed(
    item: Changed, task: IndexRun, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    table = item.operation.table
    if item.since:
        found = table.changed_since("state", item.tablet, item.since, item.before)
    else:
        found = ((rows["key"], rows) for rows in table.scan("state", item.tablet))
    for keys, rows in found:
        rows = rows.select(STATE_READ)
        journal = journal_of(task, keys)
        if task.batch:
            rows = rows.filter(_of_batch(task.batch))
            others = journal.join(rows, on="key", how="anti")
            journal = journal.join(rows, on="key", how="semi")
            if task.full:
                yield to_candidates(lost_pages(others, rows, OTHER_BATCH_REASON))
        yield _decided(rows, journal, options, full=task.full)


def _indexed(
    item: IndexedPages, task: IndexRun, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    for some in item.operation.table.scan(task.component("indexed"), item.tablet):
        journal = some.filter(COUNTING)
        if len(journal):
            rows = _state_of(item.operation, journal.get_column("key"), STATE_READ)
            yield _decided(rows, journal, options).filter(pl.col("action") == DELETE)


def _unfinished(
    item: Unfinished, task: IndexRun, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    """Yields what corrects the pages of unfinished runs, which any writer may hold.

    Pages to be added go to the documents with the names of all writers, so that those delete them
    that do not get them; also pages that have not changed, because a run that did not commit may have
    sent another text, or another URL that stood for the page at that time. The others are deleted.
    """
    names = pl.lit(task.outside, pl.List(pl.String))
    for some in _keys_of(item).iter_slices(_KEYS_AT_ONCE):
        keys = some.get_column("key")
        journal = journal_of(task, keys)
        rows = _state_of(item.operation, keys, STATE_READ)
        decided = decide_changes(rows, journal, options)
        decided = decided.join(some, on="key", how="left").with_columns(outside=names)
        decided = _again(decided, ~pl.col("committed"))
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
    item: RefusedPages, task: IndexRun, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    """Yields the pages with dead letters whose text is the one that was refused, to be added.

    Other items have those that have changed since then, or must go.
    """
    keys = pl.Series("key", sorted(letter_keys(item.operation.table, item.files)), dtype=pl.String)
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
    """Returns the keys of an item, and whether only a run that has committed has sent them."""
    found = [pl.DataFrame(schema={"key": pl.String, "committed": pl.Boolean})]
    for intent in item.intents:
        data = read_if_there(intent.path, LARGEST_BYTES)
        if data is not None:
            keys = _keys_in(intent.path, data)
            mine = keys.filter(keys.hash(_SEED) % item.shares == item.share)
            found.append(mine.to_frame("key").with_columns(committed=pl.lit(intent.committed)))
    return pl.concat(found).group_by("key").agg(pl.col("committed").all()).sort("key")


def _keys_in(path: Place, data: bytes) -> pl.Series:
    try:
        return keys_of_bytes(data)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise unreadable(path, error) from error


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


def _removed(item: Removed, task: IndexRun) -> Iterator[pl.DataFrame]:
    if task.batch:
        return
    wanted = COUNTING
    if item.ranges is not None:
        key = pl.col("key")
        inside = [(key >= low) & (key <= high) for low, high in item.ranges]
        wanted = wanted & pl.any_horizontal(inside)
    for rows in item.operation.table.scan(task.component("indexed"), item.tablet):
        journal = rows.filter(wanted)
        if len(journal):
            found = _state_of(item.operation, journal.get_column("key"), ("key",))
            yield to_candidates(lost_pages(journal, found, "deleted_unknown"))


def _purged(
    item: PurgedPages, task: IndexRun, options: IndexDecisionOptions
) -> Iterator[pl.DataFrame]:
    """Yields deletes for the writers outside the table; those inside it were purged, too.

    Pages for which a purged URL stood are added again.
    """
    for rows in item.operation.table.scan(task.component("indexed"), item.tablet):
        before = rows.filter(COUNTING)
        keys = before.get_column("key")
        known = journal_of(task, keys, every=True)
        back = _state_of(item.operation, keys, ("key",))  # after an --unblock
        kept = pl.concat([known.select("key"), back])
        yield to_candidates(lost_pages(before, kept, PURGED_REASON))
        shown = before.filter(pl.col("repr_url").is_not_null()).select("key")
        hidden = known.filter(COUNTING & pl.col("repr_url").is_null()).join(shown, on="key")
        if len(hidden):
            rows = _state_of(item.operation, hidden.get_column("key"), STATE_READ)
            again = _again(decide_changes(rows, hidden, options), pl.lit(True))
            yield to_candidates(again.filter(pl.col("reason") == AGAIN_REASON))


def _decided(
    rows: pl.DataFrame, journal: pl.DataFrame, options: IndexDecisionOptions, *, full: bool = False
) -> pl.DataFrame:
    """Returns the decisions about rows of the state, and deletes of the pages that have none."""
    decided = decide_changes(rows, journal, options, full=full)
    gone = lost_pages(journal, rows, "deleted_unknown")
    return to_candidates(pl.concat([decided, gone], how="diagonal"))


def _state_of(operation: Operation, keys: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Returns rows of the state with some keys."""
    return operation.table.find("state", tablets(operation.files("state")), keys, columns)


def journal_of(task: IndexRun, keys: pl.Series, *, every: bool = False) -> pl.DataFrame:
    """Returns the rows of the journal with some keys; ``every``: deleted ones, too."""
    name = task.component("indexed")
    known = tablets(task.files("indexed"))
    if not known or not len(keys):
        return empty(INDEXED)
    rows = task.operation.table.find(name, known, keys)
    return rows if every else rows.filter(COUNTING)


def to_candidates(decided: pl.DataFrame) -> pl.DataFrame:
    """Returns decisions with all columns of ``INDEX_CANDIDATES``."""
    wide = to_frame(INDEX_CANDIDATES.empty_table())
    found = pl.concat([wide, decided], how="diagonal_relaxed")
    return found.select(pl.col(name).cast(kind) for name, kind in wide.schema.items())


def by_part(
    item: Candidate, decided: pl.DataFrame, before: int = 0
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Divides decisions into parts of the work: a file of documents each, or some deletes.

    Args:
        item: The item.
        decided: Decisions about some of its pages.
        before: Number of deletes among the decisions that were made before.

    Yields:
        (name of a part, its rows).
    """
    adds = decided.filter(pl.col("action") == ADD)
    for (document,), rows in adds.group_by("document", maintain_order=True):
        yield str(document), rows
    deletes = decided.filter(pl.col("action") == DELETE).with_row_index("part", before)
    deletes = deletes.with_columns(pl.col("part") // _DELETES_IN_PART)
    for (part,), rows in deletes.group_by("part", maintain_order=True):
        narrow = to_candidates(rows.select(_OF_DELETES))
        yield f"deletes/{item.number}-{part}", narrow
