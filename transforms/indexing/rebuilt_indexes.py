"""Ends full rebuilds of indexes whose documents do not say which operation sent them.

Before the commit, reads the ids of all documents in the index; after the commit, deletes the ids
that are not in the journal. So no document is missing in between, and a document that a later run
has sent stays. If the run dies before it has deleted them, the next run does it.
"""

from collections.abc import Iterator, Mapping

import polars as pl

from ...io.indexing.index_candidates import COUNTING
from ...io.indexing.index_run import IndexRun
from ...io.indexing.index_writer import StoredIndex
from ...io.indexing.writer_kinds import open_writer
from ...io.snapshots.manifest import Manifest
from ...io.storage.files import list_files
from ...io.tablets.file_lists import load_files
from ...io.tablets.tablets import tablets
from ...policy.components.index_routes import WriterRule
from ...policy.indexing.document_shares import mapped_fields
from ...web.base.errors import UserError
from ...web.indexing.server_fields import MARKING_FIELDS
from ...web.indexing.stored_documents import ids_of_nutbeam, unsent_ids
from ...web.urls.key_columns import from_keys


def check_rebuild(task: IndexRun) -> None:
    """Checks that a full rebuild can tell its documents from those of other programs.

    Raises:
        UserError: The documents of a writer get neither ``segment`` nor ``digest``.
    """
    for rule in task.routes.writers if task.full else ():
        fields = pl.DataFrame({"id": ["a"], **{name: ["a"] for name in MARKING_FIELDS}})
        mapped = set(mapped_fields(fields, rule.mapping).columns)
        if (
            mapped.isdisjoint(MARKING_FIELDS)
            and open_writer(rule, task.target(rule)).leaves_earlier()
        ):
            raise UserError(
                f"writer {rule.name!r} of index {task.index!r} cannot build it again: its documents "
                "have neither 'segment' nor 'digest', so others cannot be told from them"
            )


def earlier_documents(task: IndexRun) -> dict[str, pl.Series]:
    """Returns the ids in each index that ``finish`` leaves after a full rebuild, by writer.

    Documents of other programs, which have neither a segment nor a digest, are left out. All ids
    are in memory.
    """
    return _stored(task, task.routes.writers) if task.full else {}


def delete_unsent(task: IndexRun, made: Manifest, found: Mapping[str, pl.Series]) -> None:
    """Deletes the documents that a full rebuild has not sent.

    Args:
        task: The rebuild, or a later run.
        made: The snapshot with the journal of the rebuild.
        found: Ids by writer, as ``earlier_documents`` returns them.
    """
    for rule in task.routes.writers:
        if rule.name in found:
            index = open_writer(rule, task.target(rule))
            gone = unsent_ids(found[rule.name], _held(task, made, rule.name))
            if len(gone):
                assert isinstance(index, StoredIndex)
                index.remove(gone.to_frame())


def delete_unsent_of_last(task: IndexRun, rules: list[WriterRule]) -> None:
    """Deletes the unsent documents of the run before, if it was a rebuild that died too early.

    Such a run has left its receipts. A later run would have removed them.

    Args:
        task: The run.
        rules: The writers that took part in the run before, and write where they wrote.
    """
    last = f"{task.last.version:013d}-{task.last.operation}"
    names = {file.path.parent.name for file in list_files(task.all_receipts)}
    if task.last.full and last in names and task.receipts.name not in names:
        delete_unsent(task, task.operation.manifest(), _stored(task, rules))


def _stored(
    task: IndexRun, rules: tuple[WriterRule, ...] | list[WriterRule]
) -> dict[str, pl.Series]:
    found = {}
    for rule in rules:
        writer = open_writer(rule, task.target(rule))
        if writer.leaves_earlier() and isinstance(writer, StoredIndex):
            ids = [ids_of_nutbeam(rows) for rows in writer.stored_documents()]
            found[rule.name] = pl.concat([pl.Series("id", [], pl.String), *ids])
    return found


def _held(task: IndexRun, made: Manifest, writer: str) -> Iterator[pl.Series]:
    """Yields the URLs of the documents that a writer holds, as the journal of a snapshot says."""
    table, name = task.operation.table, task.component("indexed")
    held = COUNTING & pl.col("writers").cast(pl.List(pl.String)).list.contains(writer)
    for tablet in tablets(load_files(table, made.components.get(name))):
        for rows in table.scan(name, tablet):
            yield from_keys(rows.filter(held).get_column("key"))
