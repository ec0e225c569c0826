"""Tables whose pages are given, and what an index of JSON lines shows of them."""

import json
import re
from collections import defaultdict
from pathlib import Path

import polars as pl
from crawling import nutbeam
from frames import frame_of

from nutbeam.io.batches.batches import batch_component, write_file
from nutbeam.io.batches.page_writer import GROUP_BYTES
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.ranges import Range
from nutbeam.io.tablets.resolve import Resolution, Resolved
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import STATE, Status
from nutbeam.web.urls.row_keys import from_key

FETCHED = int(Status.DB_FETCHED)
_NAME = re.compile(r"main-(\d{13})-[0-9a-f]{16}-\d+(-deletes)?\.jsonl")


def newer(rows, changes):
    """A resolver: changes take the place of the rows of their keys; a row without a status goes."""
    kept = rows.join(changes, on="key", how="anti")
    new = changes.filter(pl.col("status").is_not_null()).select(rows.columns)
    return Resolved(pl.concat([kept, new]).sort("key"), drops=len(new) < len(changes))


def put(table, batch, pages, *, backwards=False):
    """Commits pages as an update of a batch does.

    Args:
        table: Address of the table.
        batch: Id of the batch.
        pages: By row key: None removes the row; else columns of the state. ``text``, ``main``
            and ``directives`` make a new document; without them the row keeps ``document``.
        backwards: Whether the documents are in the reversed order of their keys.
    """
    operation = begin(str(table), "inject", f"{batch}.inject")
    texts = {key: page for key, page in pages.items() if page and "text" in page}
    written = []
    if texts:
        rows = (
            {"key": key, "text": page["text"], "title": page["text"][:1000],
             "parse_status": page.get("parse_status", 1), "directives": page.get("directives", []), "outlinks": [], "fetch_time": 1,
             "main": page.get("main")}
            for key, page in sorted(texts.items(), reverse=backwards)
        )  # fmt: skip
        groups = (frame_of(DOCUMENTS, *group) for group in grouped(rows))
        file = write_file(operation.table.files, batch, "documents", groups)
        written.append(Written(batch_component(batch, "documents"), (file,)))
        for page in texts.values():
            page["document"] = file.path
    own = ("text", "directives", "main")
    state = [
        {"key": key, **{name: value for name, value in (page or {}).items() if name not in own}}
        for key, page in sorted(pages.items())
    ]
    known = tablets(operation.files("state"))
    part = Range(None, None, known[0] if known else None)
    how = Resolution("state", part, newer, order=operation.snapshot + 1)
    written += operation.table.resolve(how, frame_of(STATE, *state))
    known = Batch("updated", operation.now, 1, len(pages), 0, taken_in=frozenset({"dedup"}))
    commit(operation, written, CommitTerms(others={batch: known}))


def grouped(rows):
    """Yields rows in groups as large as parse makes them of the groups of fetched pages."""
    group, size = [], 0
    for row in rows:
        group.append(row)
        size += len(row["text"])
        if size > GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def page(text, **more):
    """Returns a page that was fetched."""
    return {"status": FETCHED, "text": text, "parse_status": 1, "score": 1.0, **more}


def index(table, out, *words):
    """Runs index with the writer jsonl; returns the exit code."""
    return nutbeam("index", table, *writer(out), *words)


def writer(out, kind="jsonl"):
    return ("--writer", kind, "--writer_parameters", f"path={out}")


def index_command(server, table, **more):
    """Returns the words of a command that indexes a table on a server."""
    given = {"url": server.url, "patience": "5", **more}
    parameters = ",".join(f"{name}={value}" for name, value in given.items())
    return ("index", table, "--writer", "opensearch", "--writer_parameters", parameters)


class Killed(Exception):
    """What a killed step raises."""


def dies(*_, **__):
    """Takes the place of a step that is killed."""
    raise Killed


def operations_of(out):
    """Returns (version, {URL: document}, URLs to delete) of each operation, oldest first."""
    found = defaultdict(lambda: ({}, []))
    for path in sorted(Path(out).glob("*.jsonl")):
        version, deletes = _NAME.fullmatch(path.name).groups()
        adds, gone = found[int(version)]
        for line in path.read_text("utf-8").splitlines():
            document = json.loads(line)
            if deletes:
                gone.append(document["id"])
            else:
                assert document["id"] not in adds
                adds[document["id"]] = document
    for adds, gone in found.values():
        assert len(set(gone)) == len(gone)
        assert not set(gone) & set(adds)
    return [(version, *found[version]) for version in sorted(found)]


def visible(out):
    """Returns the text of each URL that an index of JSON lines shows."""
    shown = {}
    for _, adds, deletes in operations_of(out):
        for url in deletes:
            shown.pop(url, None)
        shown |= {url: document.get("content", "") for url, document in adds.items()}
    return shown


def wanted(pages):
    """Returns the text of each URL that an index must show, page by page."""
    shown = {}
    for key, one in pages.items():
        if one is None or one["status"] not in (FETCHED, int(Status.DB_NOTMODIFIED)):
            continue
        hidden = "noindex" in one.get("directives", []) or one.get("usage") == "search=n"
        if "text" in one and not hidden and one.get("parse_status") == 1:
            shown[from_key(key)] = one["text"]
    return shown
