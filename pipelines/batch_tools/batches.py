"""batches: copies batches to another table, whole, filtered or in slices, and merges them.

::

    batches, newest first ─ normalize, filter ─ the newest rows of each URL ─ slices ─▶ batches of the table
"""

import dataclasses
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from ...io.batches.batch_records import BatchPiece, RowColumns, read_batch
from ...io.batches.batch_writer import BatchWriter, new_record
from ...io.batches.batches import batch_component, write_file
from ...io.reading.extract_runs import copy_extract_runs
from ...io.rows.small_components import read_blocklist
from ...io.snapshots.commit import CommitTerms, commit
from ...io.snapshots.entries import Batch
from ...io.snapshots.operations import Operation, begin, new_id
from ...io.storage.parquet_files import collect, scan
from ...io.storage.place_addresses import one_spelling
from ...io.table.opening import open_table
from ...io.tablets.checksums import copy_file, verify_file
from ...io.tablets.file_lists import DataFile
from ...io.tablets.written import Written
from ...policy.base.hash_buckets import SLOTS, hash_buckets
from ...policy.batch_tools.merged_batches import (
    KeyRules,
    NewestRows,
    admit_rows,
    find_superseded,
    slices_of,
    without_bodies,
)
from ...policy.batch_tools.url_lists import ListRuleOptions
from ...policy.components.schema import FETCHLIST
from ...policy.generating.selection import queue_names
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ...web.base.progress import PROGRESS
from ...web.rules.url_rules import checked_rules
from ..base.command import DONE, Argument, Invocation, configuration
from ..base.live import live_view
from ..launch.job_options import JobOptions
from .batch_addresses import (
    BATCHES,
    TARGET,
    NamedBatch,
    check_distinct,
    named_batches,
    target_table,
)

VERBS = ("copy", "merge")
ARGUMENTS = (
    Argument("verb", "copy takes over each batch, merge makes one of all."),
    TARGET,
    BATCHES,
)
_KINDS = ("fetchlist", "pages", "documents")
_COPIED = ("pages", "documents", "host_findings")
_LOG = logging.getLogger("nutbeam.batches")


@dataclass(frozen=True)
class Options(ListRuleOptions):
    """Options of batches and mergesegs."""

    slice: int = option(
        0, "Make batches of this many URLs; 0 makes one.", nutch="mergesegs -slice", minimum=0
    )
    operation: str = shared_option(JobOptions, "operation")


@dataclasses.dataclass
class _Work:
    """What one run does.

    Attributes:
        operation: The operation, in the table that gets the batches.
        options: The options.
        rules: Which URLs are left out, or get another key.
        written: What was written so far.
        records: Records of the new batches.
        counts: Counts of URLs, by reason.
    """

    operation: Operation
    options: Options
    rules: KeyRules
    written: list[Written] = dataclasses.field(default_factory=list)
    records: dict[str, Batch] = dataclasses.field(default_factory=dict)
    counts: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def copies_bytes(self) -> bool:
        """Whether all rows of a batch stay as they are."""
        return self.rules.rules is None and not self.options.slice and not self.rules.blocklist


def run(invocation: Invocation) -> int:
    verb = invocation.arguments["verb"]
    if verb not in VERBS:
        raise UsageError(f"the first word must be {' or '.join(VERBS)}, got {verb!r}")
    return run_verb(invocation, verb, invocation.arguments[BATCHES.name])


def run_verb(invocation: Invocation, verb: str, words: Sequence[str]) -> int:
    """Copies or merges batches into the table ``target``, and reports it.

    Raises:
        UsageError: There are no batches, or they are in the table already.
    """
    options, invocation = invocation.options, target_table(invocation)
    address = str(invocation.table)
    with configuration():
        checked_rules(options)
    batches = _sources(address, words)
    kinds = _common_kinds(batches) if verb == "merge" else []
    if verb == "copy":
        check_distinct(batches)
    operation = begin(address, "batches", f"{options.operation or new_id()}.batches")
    if operation.idle:
        return _report(invocation, {"changed": False, "done_before": True}, "done before")
    work = _Work(operation, options, _rules(operation, options))
    PROGRESS.start("batches", total=sum(named.record.urls for named in batches))
    with live_view(invocation.progress):
        if verb == "merge":
            _merge(work, batches, kinds)
        else:
            _check_new(operation, batches)
            for named in batches:
                (_copy if work.copies_bytes else _copy_rows)(work, named)
        PROGRESS.finish()
    for source in {named.address for named in batches} - {address}:
        copy_extract_runs(open_table(source).files, operation.table.files)
    _commit(work)
    return _report_work(invocation, work)


def _commit(work: _Work) -> None:
    terms = CommitTerms(frozenset({"blocklist"}), others=work.records)
    commit(work.operation, [*work.written, Written(counts=dict(+work.counts))], terms)


def _report_work(invocation: Invocation, work: _Work) -> int:
    counts = dict(sorted((+work.counts).items()))
    new_batches = {name: {"phase": b.phase, "urls": b.urls} for name, b in work.records.items()}
    lines = [f"batch {name}: {b.phase}, URLs {b.urls:,}" for name, b in work.records.items()]
    lines += [f"{name} {number:,}" for name, number in counts.items()]
    record = {"batches": new_batches, "counts": counts, "changed": bool(new_batches)}
    return _report(invocation, record, ", ".join(lines) or "no URL is left")


def _report(invocation: Invocation, record: Mapping[str, Any], line: str) -> int:
    if invocation.format == "json":
        print(json.dumps({"job": "batches", **record}))
    else:
        print(f"{invocation.command}: {line}")
    return DONE


def _sources(address: str, words: Sequence[str]) -> list[NamedBatch]:
    batches = named_batches(words)
    for named in batches:
        if one_spelling(named.address) == one_spelling(address):
            raise UsageError(f"batch {named.batch!r} is in table {address!r} already")
    return sorted(batches, key=lambda named: named.batch)


def _check_new(operation: Operation, batches: Sequence[NamedBatch]) -> None:
    own_batches = operation.manifest().batches
    for named in batches:
        if named.batch in own_batches:
            raise UsageError(f"table {operation.address!r} has a batch {named.batch!r} already")


def _rules(operation: Operation, options: Options) -> KeyRules:
    return KeyRules(options.chosen_rules, options.filter_urls, read_blocklist(operation))


def _kinds_of(named: NamedBatch) -> list[str]:
    components = named.manifest.components
    return [kind for kind in _KINDS if batch_component(named.batch, kind) in components]


def _common_kinds(batches: Sequence[NamedBatch]) -> list[str]:
    """Returns the kinds of files that all batches have, as Nutch merges only these.

    Raises:
        UsageError: They have none in common.
    """
    each = [_kinds_of(named) for named in batches]
    common = [kind for kind in _KINDS if all(kind in kinds for kinds in each)]
    if "pages" not in common:
        common = [kind for kind in common if kind != "documents"]
    if not common:
        raise UsageError("the batches have no files of the same kind: merge fewer of them")
    lost = [kind for kind in _KINDS if any(kind in kinds for kinds in each) and kind not in common]
    if lost:
        _LOG.warning("left out, because not all batches have them: %s", ", ".join(lost))
    return common


def _copy(work: _Work, named: NamedBatch) -> None:
    """Copies the files of a batch as they are; a fetch list loses what leads to other bodies."""
    snapshot, batch, target = named.snapshot, named.batch, work.operation.table.files
    source, files = snapshot.table.files, dict[str, list[DataFile]]()
    with snapshot.reading():
        for kind in _COPIED:
            files[kind] = snapshot.files(batch_component(batch, kind))
            for file in files[kind]:
                copy_file(source, target, file)
                PROGRESS.add(file.rows if kind == "pages" else 0)
        files["fetchlist"] = [
            _copy_list(work, named, file)
            for file in snapshot.files(batch_component(batch, "fetchlist"))
        ]
    work.written += [Written(batch_component(batch, k), tuple(f)) for k, f in files.items() if f]
    kinds = [kind for kind in _KINDS if files[kind]]
    work.records[batch] = new_record(
        work.operation, kinds, named.record.urls, named.record.partitions
    )


def _copy_list(work: _Work, named: NamedBatch, file: DataFile) -> DataFile:
    verify_file(named.snapshot.table, file)
    rows = without_bodies(collect(scan([named.snapshot.table / file.path], FETCHLIST)))
    return write_file(
        work.operation.table.files, named.batch, "fetchlist", [rows],
        partition=file.partition, order=file.order,
    )  # fmt: skip


def _copy_rows(work: _Work, named: NamedBatch) -> None:
    pieces = _chosen_pieces(work, named, NewestRows())
    _write(work, pieces, _kinds_of(named), "" if work.options.slice else named.batch)


def _merge(work: _Work, batches: Sequence[NamedBatch], kinds: Sequence[str]) -> None:
    newest = NewestRows()
    rows = (r for named in reversed(batches) for r in _chosen_pieces(work, named, newest))
    _write(work, rows, kinds, "")


def _chosen_pieces(work: _Work, named: NamedBatch, newest: NewestRows) -> Iterator[BatchPiece]:
    snapshot, batch = named.snapshot, named.batch
    with snapshot.reading():
        superseded = pl.Series("key", [], dtype=pl.UInt64)
        if work.options.normalize_urls:
            keys = read_batch(snapshot, batch, RowColumns(("key",), ("fetch_status",), ()))
            superseded = find_superseded((piece.rows for piece in keys), work.rules)
        for rows, files in read_batch(snapshot, batch):
            PROGRESS.add(len(rows.pages) or len(rows.listed))
            admitted, counts = admit_rows(rows, work.rules, superseded)
            work.counts.update(counts)
            yield BatchPiece(newest.choose(admitted), files)


def _write(work: _Work, pieces: Iterator[BatchPiece], kinds: Sequence[str], batch: str) -> None:
    """Writes rows as one batch, or as several with the number of URLs that the options say.

    With the id of a batch, the new files replace those of that batch, one by one.
    """
    size = work.options.slice or 1 << 60
    writer, room = None, 0
    for piece, files in pieces:
        if "pages" not in kinds:
            piece = piece._replace(pages=piece.pages.clear(), documents=piece.documents.clear())
        if "fetchlist" not in kinds:
            piece = piece._replace(listed=piece.listed.clear())
        for rows, urls in slices_of(piece, room or size, size):
            if writer is None or not room:
                _close(work, writer, kinds)
                writer, room = (
                    BatchWriter(work.operation, batch or new_id(len(work.records)), kinds),
                    size,
                )
            rows = rows._replace(listed=_as_listed(rows.listed, writer.batch))
            writer.add(rows, files if batch else {})
            room -= urls
    _close(work, writer, kinds)


def _as_listed(listed: pl.DataFrame, batch: str) -> pl.DataFrame:
    """Returns rows for the fetch list of another batch: in its slots, without bodies elsewhere."""
    if listed.is_empty():
        return listed
    slots = hash_buckets(queue_names(batch, listed.get_column("key"), "host"), SLOTS)
    return without_bodies(listed).with_columns(slots.cast(pl.UInt16).alias("slot"))


def _close(work: _Work, writer: BatchWriter | None, kinds: Sequence[str]) -> None:
    if writer is not None:
        work.written += writer.written()
        work.records[writer.batch] = new_record(work.operation, kinds, writer.urls)
