"""readseg: shows the data of batches as Nutch's ``readseg`` shows that of segments.

::

    batch, file by file ─ fetch list, pages, documents by key ─ Nutch's text ─▶ FOLDER/dump
"""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import polars as pl

from ...io.batches.batch_records import find_in_batch, read_batch
from ...io.batches.batches import batch_component
from ...io.storage.files import creating, size_of
from ...io.storage.parquet_files import collect, scan
from ...policy.batch_tools.segment_text import (
    COMPONENTS_OF_PARTS,
    PARTS,
    SegmentRecord,
    dump_text,
    part_texts,
    url_text,
)
from ...policy.components.batch_rows import BatchRows
from ...policy.components.schema import PAGES
from ...policy.components.vocabulary import iso
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ...web.base.visible import visible
from ...web.base.wording import format_count
from ...web.urls.row_keys import from_key
from ..base.command import DONE, NOTHING_TO_DO, Argument, Invocation
from ..base.live import live_view
from ..checkers.checking import row_key
from .batch_addresses import NamedBatch, named_batches, one_batch
from .page_dumps import folder_beside

ARGUMENTS = (
    Argument(
        "words",
        "Batches as TABLE/batches/ID, or TABLE for all its batches; after the batch the folder "
        "of --dump_batch, or the URL of --get_record.",
        nargs="*",
    ),
)
_LOG = logging.getLogger("nutbeam.readseg")
_HEADS = ("NAME", "GENERATED", "FETCHER START", "FETCHER END", "FETCHED", "PARSED")
_LEAVE_OUT = {
    "no_content": "content",
    "no_fetch": "fetch",
    "no_generate": "generate",
    "no_parse": "parse",
    "no_parse_data": "parsedata",
    "no_parse_text": "parsetext",
}


def _without(part: str, flag: str) -> Any:
    return option(False, f"Leave out {part}.", nutch=f"readseg -{flag}")


@dataclass(frozen=True)
class Options:
    """Options of readseg: what to show, and which parts of it."""

    GROUP = "readseg"

    dump_batch: bool = option(
        False, "Write the data of a batch into the file dump of a folder.", nutch="readseg -dump"
    )
    list_batches: bool = option(
        False, "List batches, with their times and numbers of pages.", nutch="readseg -list"
    )
    get_record: bool = option(False, "Show the data of one URL in a batch.", nutch="readseg -get")
    table_of_batches: tuple[str, ...] = option(
        (), "With --list_batches: TABLE/batches, all batches of a table.", nutch="readseg -dir"
    )
    no_content: bool = _without("the bodies", "nocontent")
    no_fetch: bool = _without("the results of fetch", "nofetch")
    no_generate: bool = _without("the fetch list", "nogenerate")
    no_parse: bool = _without("the signatures", "noparse")
    no_parse_data: bool = _without("titles, links and metadata", "noparsedata")
    no_parse_text: bool = _without("the texts", "noparsetext")
    recode: bool = option(
        False,
        "Decode bodies by the charset that parse has found; without it, as UTF-8.",
        nutch="segment.reader.content.recode, readseg -recode",
    )

    def __post_init__(self) -> None:
        chosen = [n for n in ("dump_batch", "list_batches", "get_record") if getattr(self, n)]
        if len(chosen) > 1:
            raise ValueError(f"--{chosen[0]} and --{chosen[1]} contradict each other: give one")
        if all(getattr(self, name) for name in _LEAVE_OUT):
            raise ValueError("all parts are left out: nothing would be shown")

    @property
    def parts(self) -> list[str]:
        """The parts to show."""
        left_out = {part for name, part in _LEAVE_OUT.items() if getattr(self, name)}
        return [part for part in PARTS if part not in left_out]


def run(invocation: Invocation) -> int:
    options, words = invocation.options, invocation.arguments["words"]
    if options.list_batches:
        return _list(invocation, [*words, *options.table_of_batches])
    if options.table_of_batches:
        raise UsageError("--table_of_batches is only for --list_batches")
    if not (options.dump_batch or options.get_record):
        raise UsageError(
            "give --dump_batch BATCH FOLDER, --list_batches BATCHES or --get_record BATCH URL"
        )
    if len(words) != 2:
        what = "a folder" if options.dump_batch else "a URL"
        raise UsageError(f"expected a batch, as TABLE/batches/ID, and {what}, got {words!r}")
    named = one_batch(words[0])
    with named.snapshot.reading(), live_view(invocation.progress):
        return (_dump if options.dump_batch else _get)(invocation, named, words[1])


def _list(invocation: Invocation, words: list[str]) -> int:
    records = [_list_record(named) for named in named_batches(words)]
    if invocation.format == "json":
        print(json.dumps({"batches": records}))
        return DONE
    print("\t".join(_HEADS))
    for record in records:
        print("\t".join("?" if value is None else str(value) for value in record.values()))
    return DONE


def _list_record(named: NamedBatch) -> dict[str, Any]:
    snapshot, batch = named.snapshot, named.batch
    with snapshot.reading():
        pages, documents = (
            snapshot.files(batch_component(batch, kind)) for kind in ("pages", "documents")
        )
        first, last = None, None
        if pages:
            times = scan([snapshot.table / file.path for file in pages], PAGES).select(
                pl.min("fetch_time"), last=pl.max("fetch_time")
            )
            first, last = collect(times).row(0)
    return {
        "name": batch,
        "generated": named.record.urls,
        # As Nutch prints them: without the zone.
        "fetcher_start": (iso(first, "seconds") or "").removesuffix("Z") or None,
        "fetcher_end": (iso(last, "seconds") or "").removesuffix("Z") or None,
        "fetched": sum(file.rows for file in pages) if pages else None,
        "parsed": sum(file.rows for file in documents) if documents else None,
    }


def _dump(invocation: Invocation, named: NamedBatch, folder: str) -> int:
    options, path = invocation.options, folder_beside([named], folder).place("dump")
    _check_parts(named, options.parts)
    if size_of(path) is not None:
        raise UsageError(f"{str(path)!r} is there already: give another folder")
    number = 0
    PROGRESS.start("readseg", total=named.record.urls)
    with creating(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as out:
        for record in _records(named):
            text = dump_text(number, record, options.parts, recode=options.recode)
            number += bool(text)
            out.write(text)
            PROGRESS.add()
    PROGRESS.finish()
    report = {"batch": named.batch, "records": number, "output": str(path)}
    text = f"{format_count(number, 'records')} of batch {named.batch} in {path}"
    print(json.dumps(report) if invocation.format == "json" else text)
    return DONE


def _check_parts(named: NamedBatch, parts: list[str]) -> None:
    """Warns of wanted parts that a batch does not have yet, or not any more.

    Raises:
        UsageError: It has none of them.
    """
    components = named.manifest.components
    missing = [
        part
        for part in parts
        if batch_component(named.batch, COMPONENTS_OF_PARTS[part]) not in components
    ]
    if len(missing) == len(parts):
        raise UsageError(f"batch {named.batch!r} has none of the parts {', '.join(parts)}")
    if missing:
        _LOG.warning("batch %s has no %s", named.batch, ", ".join(missing))


def _get(invocation: Invocation, named: NamedBatch, url: str) -> int:
    options, key = invocation.options, row_key(url, "URL")
    rows = find_in_batch(named.snapshot, named.batch, key)
    (record,) = list(_records_of(rows, named.record.created)) or [SegmentRecord(key)]
    texts = dict(part_texts(record, options.parts, recode=options.recode))
    if invocation.format == "json":
        print(json.dumps({"url": from_key(key), "batch": named.batch, "parts": texts}))
    elif texts:
        print(visible(url_text(record, options.parts, recode=options.recode), keep="\t\n"), end="")
    else:
        why = f"batch {named.batch} has no {', '.join(options.parts)} of it"
        is_there = any(part_texts(record, PARTS))
        print(f"{from_key(key)}: {why if is_there else f'not in batch {named.batch}'}")
    return DONE if texts else NOTHING_TO_DO


def _records(named: NamedBatch) -> Iterator[SegmentRecord]:
    for piece in read_batch(named.snapshot, named.batch):
        yield from _records_of(piece.rows, named.record.created)


def _records_of(rows: BatchRows, generated: int) -> Iterator[SegmentRecord]:
    """Yields a record for each URL: pages in their order, then parts of them and what is only listed."""
    by_key: dict[str, dict[str, Any]] = {}
    for name, frame in (
        ("page", rows.pages),
        ("document", rows.documents),
        ("listed", rows.listed),
    ):
        for row in frame.iter_rows(named=True):
            by_key.setdefault(row["key"], {})[name] = row
    for key, parts in by_key.items():
        yield SegmentRecord(key, generated=generated, **parts)
