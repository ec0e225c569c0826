"""Reads what the table and an index know of the pages of a candidate; decides nothing."""

import io
from collections.abc import Iterator, Sequence

import polars as pl

from ...policy.components.index_schema import (
    INDEXED,
    STATE_READ,
    CandidateFacts,
    CandidateKind,
    JournalRows,
)
from ...policy.components.kinds import KINDS
from ...policy.components.schema import STATE, empty
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

_KEYS_AT_ONCE, _SEED = 50_000, 17
# Rows of the journal that count: those of pages that were not deleted.
COUNTING = KINDS["indexed"].counting


def read_candidate_facts(item: Candidate, task: IndexRun) -> Iterator[CandidateFacts]:
    """Yields what is known of the pages of an item, in pieces."""
    if isinstance(item, Changed):
        yield from _read_changed(item, task)
    elif isinstance(item, Removed):
        yield from _read_removed(item, task)
    elif isinstance(item, IndexedPages):
        for rows in item.operation.table.scan(task.component("indexed"), item.tablet):
            if len(journal := rows.filter(COUNTING)):
                state_rows = _read_state(item.operation, journal.get_column("key"), STATE_READ)
                yield CandidateFacts(CandidateKind.INDEXED, state_rows, journal)
    elif isinstance(item, Unfinished):
        for sent in _keys_of(item).iter_slices(_KEYS_AT_ONCE):
            yield _read_pages(CandidateKind.UNFINISHED, task, sent)
    elif isinstance(item, RefusedPages):
        keys = sorted(letter_keys(item.operation.table, item.files))
        for key_rows in pl.DataFrame({"key": keys}, {"key": pl.String}).iter_slices(_KEYS_AT_ONCE):
            yield _read_pages(CandidateKind.REFUSED, task, key_rows)
    else:
        yield from _read_purged(item, task)


def _read_changed(item: Changed, task: IndexRun) -> Iterator[CandidateFacts]:
    table = item.operation.table
    if item.since:
        changed = table.changed_since("state", item.tablet, item.since, item.indexed_paths)
    else:
        changed = ((rows["key"], rows) for rows in table.scan("state", item.tablet))
    for keys, rows in changed:
        journal = read_journal(task, keys)
        yield CandidateFacts(CandidateKind.CHANGED, rows.select(STATE_READ), journal)


def _read_removed(item: Removed, task: IndexRun) -> Iterator[CandidateFacts]:
    if task.batch:  # pages that have left the table are no matter of a single batch
        return
    wanted = COUNTING
    if item.ranges is not None:
        inside = [(pl.col("key") >= low) & (pl.col("key") <= high) for low, high in item.ranges]
        wanted = wanted & pl.any_horizontal(inside)
    for rows in item.operation.table.scan(task.component("indexed"), item.tablet):
        if len(journal := rows.filter(wanted)):
            state_rows = _read_state(item.operation, journal.get_column("key"), ("key",))
            yield CandidateFacts(CandidateKind.REMOVED, state_rows, journal)


def _read_purged(item: PurgedPages, task: IndexRun) -> Iterator[CandidateFacts]:
    operation = item.operation
    for rows in operation.table.scan(task.component("indexed"), item.tablet):
        earlier = rows.filter(COUNTING)
        represented = earlier.filter(pl.col("repr_url").is_not_null()).get_column("key")
        keys = earlier.get_column("key")
        yield CandidateFacts(
            CandidateKind.PURGED,
            _read_state(operation, represented, STATE_READ),
            read_journal(task, keys, every=True),
            earlier_rows=earlier,
            kept_keys=_read_state(operation, keys, ("key",)),  # after an --unblock
        )


def _read_pages(kind: CandidateKind, task: IndexRun, sent: pl.DataFrame) -> CandidateFacts:
    keys = sent.get_column("key")
    state_rows = _read_state(task.operation, keys, STATE_READ)
    return CandidateFacts(kind, state_rows, read_journal(task, keys), sent)


def _read_state(operation: Operation, keys: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Reads rows of the state with some keys."""
    if not len(keys):
        return empty(STATE).select(columns)
    return operation.table.find("state", tablets(operation.files("state")), keys, columns)


def read_journal(task: IndexRun, keys: pl.Series, *, every: bool = False) -> JournalRows:
    """Reads the rows of the journal with some keys; ``every``: deleted ones, too."""
    name = task.component("indexed")
    journal_tablets = tablets(task.files("indexed"))
    if not journal_tablets or not len(keys):
        return empty(INDEXED)
    rows = task.operation.table.find(name, journal_tablets, keys)
    return rows if every else rows.filter(COUNTING)


def _keys_of(item: Unfinished) -> pl.DataFrame:
    """Returns the keys of an item, and whether only a run that has committed has sent them."""
    sent = [pl.DataFrame(schema={"key": pl.String, "committed": pl.Boolean})]
    for intent in item.intents:
        data = read_if_there(intent.path, LARGEST_BYTES)
        if data is not None:
            keys = _keys_in(intent.path, data)
            mine = keys.filter(keys.hash(_SEED) % item.shares == item.share)
            sent.append(mine.to_frame("key").with_columns(committed=pl.lit(intent.committed)))
    return pl.concat(sent).group_by("key").agg(pl.col("committed").all()).sort("key")


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
