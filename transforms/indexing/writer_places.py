"""Checks that the writers of an index still write to the same places, which nobody has emptied."""

import hashlib
from collections.abc import Iterator

import polars as pl

from ...io.indexing.index_candidates import COUNTING
from ...io.indexing.index_run import IndexRun
from ...io.indexing.index_writer import IndexWriter
from ...io.indexing.run_receipts import intents
from ...io.indexing.writer_kinds import open_writer
from ...io.tablets.tablets import tablets
from ...policy.components.index_routes import WriterRule
from ...web.base.errors import UserError
from .rebuilt_indexes import delete_unsent_of_last

_CURE = "--full builds it again"


def finish_and_check_places(task: IndexRun) -> None:
    """Finishes the run before, and checks that what it wrote is still there.

    Raises:
        UserError: A writer has another address now, or its index was removed, replaced or emptied.
    """
    took_part = [(rule, task.last.place_of(rule)) for rule in task.routes.writers]
    same = [(rule, known) for rule, known in took_part if known is not None]
    same = [(rule, known) for rule, known in same if _is_there(task, rule, known)]
    task.finish_last(rule for rule, _ in same)
    delete_unsent_of_last(task, [rule for rule, _ in same])
    if task.full:
        return
    moved = {rule.name for rule, known in took_part if known is not None}
    for name in sorted(moved - {rule.name for rule, _ in same}):
        raise UserError(
            f"writer {name!r} of index {task.index!r} wrote to another address before: "
            "--full fills this one, or give another --index"
        )
    for rule, known in same:
        _check_kept(task, rule, known.partition(":")[2])


def places(task: IndexRun) -> Iterator[str]:
    """Yields where each writer writes, for the record of a run: ``DIGEST:MARK``."""
    for rule in task.routes.writers:
        known = task.last.place_of(rule)
        if known and known.partition(":")[2] and not task.full:
            yield known
        else:
            writer = _writer(task, rule)
            yield f"{_digest(writer)}:{writer.mark()}"


def _is_there(task: IndexRun, rule: WriterRule, known: str) -> bool:
    """Returns whether a writer has the same address as before, or the earlier one is unknown."""
    digest = known.partition(":")[0]
    return not digest or digest == _digest(_writer(task, rule))


def _digest(writer: IndexWriter) -> str:
    address = writer.address()
    return hashlib.sha256(address.encode()).hexdigest()[:32] if address else ""


def _check_kept(task: IndexRun, rule: WriterRule, mark: str) -> None:
    writer = _writer(task, rule)
    if mark and (now := writer.mark()) and now != mark:
        raise UserError(
            f"writer {rule.name!r} of index {task.index!r}: {writer.address()} was removed or "
            f"replaced since the last run: {_CURE}"
        )
    # A run that never committed may have deleted all: the journal does not say so.
    unfinished = any(True for _ in intents(task))
    if not unfinished and writer.is_empty() and _holds_any(task, rule.name):
        raise UserError(
            f"writer {rule.name!r} of index {task.index!r}: {writer.address()} was emptied since "
            f"the last run: {_CURE}"
        )


def _holds_any(task: IndexRun, name: str) -> bool:
    """Returns whether a writer must have documents, as the journal says."""
    held = pl.col("writers").cast(pl.List(pl.String)).list.contains(name)
    table, component = task.operation.table, task.component("indexed")
    return any(
        rows.select((COUNTING & held).any()).item()
        for tablet in tablets(task.files("indexed"))
        for rows in table.scan(component, tablet)
    )


def _writer(task: IndexRun, rule: WriterRule) -> IndexWriter:
    return open_writer(rule, task.target(rule))
