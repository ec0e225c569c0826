"""Checks and corrects what the writers of an index have written in earlier runs, and in this one.

A run checks that each writer still writes to the same place, and that nobody has emptied it.

Documents of some indexes do not say which operation sent them. A full rebuild of such an index reads
the ids of all documents before the commit; after it, it deletes the ids that are not in the journal.
So no document is missing in between, and a document that a later run has sent stays. If the run dies
before it has deleted them, the next run does it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from ...io.indexing.index_candidates import COUNTING
from ...io.indexing.index_run import IndexRun
from ...io.indexing.index_writer import IndexWriter, StoredIndex
from ...io.snapshots.manifest import Manifest
from ...io.tablets.file_lists import load_files
from ...io.tablets.tablets import tablets
from ...policy.base.key_columns import from_keys
from ...policy.components.index_routes import WriterRule
from ...policy.indexing.writer_documents import mapped_fields
from ...web.base.errors import UserError
from ...web.indexing.server_fields import MARKING_FIELDS
from ...web.indexing.stored_documents import ids_of_nutbeam, unsent_ids

_ADVICE = "--full builds it again"


def finish_and_check_places(index_run: IndexRun) -> None:
    """Finishes the run before, and checks that what it wrote is still there.

    Raises:
        UserError: A writer has another address now, or its index was removed, replaced or emptied.
    """
    last_places = {rule.name: index_run.last.place_of(rule) for rule in index_run.routes.writers}
    took_part = [rule for rule in index_run.routes.writers if last_places[rule.name] is not None]
    reachable = [
        rule
        for rule in took_part
        if _has_same_address(index_run, rule, last_places[rule.name] or "")
    ]
    index_run.finish_last(reachable)
    delete_unsent_of_last(index_run, reachable)
    if index_run.full:
        return
    for name in sorted({rule.name for rule in took_part} - {rule.name for rule in reachable}):
        raise UserError(
            f"writer {name!r} of index {index_run.index!r} wrote to another address before: "
            "--full fills this one, or give another --index"
        )
    for rule in reachable:
        _check_kept(index_run, rule, (last_places[rule.name] or "").partition(":")[2])


def writer_places(index_run: IndexRun) -> Iterator[str]:
    """Yields where each writer writes, for the record of a run: ``DIGEST:MARK``."""
    for rule in index_run.routes.writers:
        last_place = index_run.last.place_of(rule)
        if last_place and last_place.partition(":")[2] and not index_run.full:
            yield last_place
        else:
            writer = index_run.open_writer(rule)
            yield f"{_digest(writer)}:{writer.mark()}"


def _has_same_address(index_run: IndexRun, rule: WriterRule, last_place: str) -> bool:
    """Returns whether a writer has the same address as before, or the earlier one is unknown."""
    digest = last_place.partition(":")[0]
    return not digest or digest == _digest(index_run.open_writer(rule))


def _digest(writer: IndexWriter) -> str:
    address = writer.address()
    return hashlib.sha256(address.encode()).hexdigest()[:32] if address else ""


def _check_kept(index_run: IndexRun, rule: WriterRule, mark: str) -> None:
    writer = index_run.open_writer(rule)
    if mark and (current_mark := writer.mark()) and current_mark != mark:
        raise UserError(
            f"writer {rule.name!r} of index {index_run.index!r}: {writer.address()} was removed or "
            f"replaced since the last run: {_ADVICE}"
        )
    # A run that never committed may have deleted all: the journal does not say so.
    unfinished = any(True for _ in index_run.receipts.intents())
    if not unfinished and writer.is_empty() and _holds_any(index_run, rule.name):
        raise UserError(
            f"writer {rule.name!r} of index {index_run.index!r}: {writer.address()} was emptied since "
            f"the last run: {_ADVICE}"
        )


def _holds_any(index_run: IndexRun, name: str) -> bool:
    """Returns whether a writer must have documents, as the journal says."""
    held = pl.col("writers").cast(pl.List(pl.String)).list.contains(name)
    return any(
        rows.select((COUNTING & held).any()).item()
        for tablet in index_run.journal_tablets
        for rows in index_run.operation.table.scan(index_run.journal, tablet)
    )


def check_rebuild(index_run: IndexRun) -> None:
    """Checks that a full rebuild can tell its documents from those of other programs.

    Raises:
        UserError: The documents of a writer get neither ``segment`` nor ``digest``.
    """
    for rule in index_run.routes.writers if index_run.full else ():
        fields = pl.DataFrame({"id": ["a"], **{name: ["a"] for name in MARKING_FIELDS}})
        mapped = set(mapped_fields(fields, rule.mapping).columns)
        if mapped.isdisjoint(MARKING_FIELDS) and index_run.open_writer(rule).leaves_earlier():
            raise UserError(
                f"writer {rule.name!r} of index {index_run.index!r} cannot build it again: its documents "
                "have neither 'segment' nor 'digest', so others cannot be told from them"
            )


def earlier_documents(index_run: IndexRun) -> dict[str, pl.Series]:
    """Returns the ids in each index that ``finish`` leaves after a full rebuild, by writer.

    Documents of other programs, which have neither a segment nor a digest, are left out. All ids
    are in memory.
    """
    return _stored_ids(index_run, index_run.routes.writers) if index_run.full else {}


def delete_unsent(
    index_run: IndexRun, manifest: Manifest, earlier_ids: Mapping[str, pl.Series]
) -> None:
    """Deletes the documents that a full rebuild has not sent.

    Args:
        index_run: The rebuild, or a later run.
        manifest: The snapshot with the journal of the rebuild.
        earlier_ids: Ids by writer, as ``earlier_documents`` returns them.
    """
    for rule in index_run.routes.writers:
        if rule.name in earlier_ids:
            index = index_run.open_writer(rule)
            unsent = unsent_ids(earlier_ids[rule.name], _held_urls(index_run, manifest, rule.name))
            if len(unsent):
                assert isinstance(index, StoredIndex)
                index.remove(unsent.to_frame())


def delete_unsent_of_last(index_run: IndexRun, rules: list[WriterRule]) -> None:
    """Deletes the unsent documents of the run before, if it was a rebuild that died too early.

    Such a run has left its receipts. A later run would have removed them.

    Args:
        index_run: The run.
        rules: The writers that took part in the run before, and write where they wrote.
    """
    last, names = (
        f"{index_run.last.version:013d}-{index_run.last.operation}",
        index_run.receipts.folder_names(),
    )
    if index_run.last.full and last in names and index_run.receipts.folder.name not in names:
        delete_unsent(index_run, index_run.operation.manifest(), _stored_ids(index_run, rules))


def _stored_ids(index_run: IndexRun, rules: Iterable[WriterRule]) -> dict[str, pl.Series]:
    """Returns the ids in each index that ``finish`` leaves after a full rebuild, by writer."""
    stored_ids = {}
    for rule in rules:
        writer = index_run.open_writer(rule)
        if writer.leaves_earlier() and isinstance(writer, StoredIndex):
            ids = [ids_of_nutbeam(rows) for rows in writer.stored_documents()]
            stored_ids[rule.name] = pl.concat([pl.Series("id", [], pl.String), *ids])
    return stored_ids


def _held_urls(index_run: IndexRun, manifest: Manifest, writer: str) -> Iterator[pl.Series]:
    """Yields the URLs of the documents that a writer holds, as the journal of a snapshot says."""
    table = index_run.operation.table
    held = COUNTING & pl.col("writers").cast(pl.List(pl.String)).list.contains(writer)
    for tablet in tablets(load_files(table, manifest.components.get(index_run.journal))):
        for rows in table.scan(index_run.journal, tablet):
            yield from_keys(rows.filter(held).get_column("key"))
