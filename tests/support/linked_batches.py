"""Batches whose documents and outcome are given, as updatedb leaves them for invertlinks."""

import time

from frames import frame_of
from indexed_tables import newer

from nutbeam.io.batches.batches import batch_component, write_file
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.ranges import Range
from nutbeam.io.tablets.resolve import Resolution
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import OUTCOME, STATE, Status
from nutbeam.web.exchange.status import FETCH_SUCCESS

DAY_MS = 86_400_000
FETCHED = int(Status.DB_FETCHED)


def document(key, *targets, part_of=None):
    """Returns the document of a page that links to others."""
    links = [{"key": target, "anchor": target[4], "rel": None} for target in targets]
    return {"key": key, "outlinks": links, "part_of": part_of}


def outcome(key, file=None, old=None, status=FETCHED, fetched=FETCH_SUCCESS):
    """Returns what updatedb says of a URL: ``file`` is a number of the batch's files, or a name."""
    return {"key": key, "document": file, "old_document": old, "status": int(status),
            "fetch_status": fetched}  # fmt: skip


def put_batch(address, name, files, outcomes, days_ago=0):
    """Commits an updated batch; returns the names of its files of documents."""
    now = int(time.time() * 1000) - days_ago * DAY_MS
    operation = begin(str(address), "updatedb", f"{name}.updatedb")
    table, names, written = operation.table, [], []
    for documents in files:
        rows = frame_of(DOCUMENTS, *({**row, "fetch_time": now} for row in documents))
        file = write_file(table.files, name, "documents", [rows])
        names.append(file.path)
        written.append(Written(batch_component(name, "documents"), (file,)))
    results = [
        {**row, "document": names[row["document"]], "last_fetch_time": now}
        if isinstance(row["document"], int) else {**row, "last_fetch_time": now}
        for row in outcomes
    ]  # fmt: skip
    file = write_file(table.files, name, "outcome", [frame_of(OUTCOME, *results)])
    written.append(Written(batch_component(name, "outcome"), (file,)))
    state = [
        {"key": row["key"], "status": row["status"], "last_fetch_time": now,
         "document": row["document"] or row["old_document"]}
        for row in results
    ]  # fmt: skip
    known = tablets(operation.files("state"))
    part = Range(None, None, known[0] if known else None)
    how = Resolution("state", part, newer, order=operation.snapshot + 1)
    written += table.resolve(how, frame_of(STATE, *state))
    batch = Batch("updated", now, 1, len(outcomes), 0, operation.snapshot, frozenset({"dedup"}))
    commit(operation, written, CommitTerms(others={name: batch}))
    return names
