"""readlinkdb: shows the link table: the inlinks of one URL or of all, or the most linked URLs.

It reads tablet by tablet, and holds the best inlinks of one URL at a time.
"""

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import polars as pl

from ...io.reading.inlinks import all_inlinks, inlinks_of, link_frames, top_targets
from ...io.snapshots.manifest import newest_manifest
from ...policy.components.link_rows import INLINKS_COLUMNS
from ...policy.components.vocabulary import record_of
from ...policy.inlinks.edges import BestOptions, anchors_of
from ...web.base.dataclass import dataclass
from ...web.base.errors import NothingToDo, UsageError
from ...web.base.options import option
from ...web.nutch_text.link_text import link_record
from ...web.urls.row_keys import from_key
from ..base.command import DONE, NOTHING_TO_DO, TABLE, Argument, Invocation
from ..checkers.checking import row_key
from .reading_job import Reading, check_dump

ARGUMENTS = (TABLE, Argument("url", "Show the pages that link to this URL.", "?"))
# The columns of an inlink as users see it.
SHOWN_COLUMNS = INLINKS_COLUMNS.pick("source", "anchor", "rel", "score", "first_seen", "last_seen")


@dataclass(frozen=True)
class Options(BestOptions):
    """Options of readlinkdb: a URL, or one of dump and top."""

    GROUP = "links"

    dump: str = option(
        "",
        "Write the inlinks of all URLs to a file that ends in .txt, as Nutch does, or in .jsonl; "
        "- prints them.",
        nutch="readlinkdb -dump",
    )
    regex: str = option(
        "",
        "With --dump: only URLs that match this expression as a whole.",
        nutch="readlinkdb -regex",
    )
    top: int = option(0, "Show this many URLs with the most inlinks.", minimum=0)

    def __post_init__(self) -> None:
        check_dump(self.dump, self.regex, ".txt", ".jsonl")
        if not self.max_inlinks:
            raise ValueError("--max_inlinks must be at least 1, got 0")
        if self.dump and self.top:
            raise ValueError("--dump and --top contradict each other: give one")


def run(invocation: Invocation) -> int:
    options, url = invocation.options, invocation.arguments["url"]
    if sum(map(bool, (url, options.dump, options.top))) != 1:
        raise UsageError("give a URL, --dump FILE or --top NUMBER")
    if options.regex and not options.dump:
        raise UsageError("--regex is only for --dump FILE, where - prints the links")
    if options.dump and not Path(options.dump).parent.is_dir():
        raise UsageError(f"cannot write --dump {options.dump!r}: No such file or directory")
    address = str(invocation.table)
    manifest = newest_manifest(address)
    if "links" not in manifest.components:
        raise NothingToDo(
            f"table {address} has no links yet: nutbeam invertlinks {address} adds those of parsed "
            "batches, and crawl --links those of each round"
        )
    reading = Reading(address, "", manifest.snapshot)
    as_json = invocation.format == "json"
    with reading.reading():
        if url:
            return _show(reading, row_key(url, "URL"), options, as_json=as_json)
        if options.top:
            return _top(reading, options.top, as_json=as_json)
        return _dump(reading, options, as_json=as_json)


def _show(reading: Reading, key: str, options: Options, *, as_json: bool) -> int:
    links = inlinks_of(reading, key, options.max_inlinks)
    if as_json:
        print(json.dumps(_record(key, links)))
    elif not len(links):
        print(f"{from_key(key)}: no link information")
    else:
        print("".join(nutch_lines(key, links)), end="")
    return DONE if len(links) else NOTHING_TO_DO


def _top(reading: Reading, most: int, *, as_json: bool) -> int:
    for target, number in top_targets(link_frames(reading), most).iter_rows():
        record = {"url": from_key(target), "inlinks": number}
        print(json.dumps(record) if as_json else f"{number}\t{record['url']}")
    return DONE


def _dump(reading: Reading, options: Options, *, as_json: bool) -> int:
    lines_of = _json_lines if as_json or options.dump.endswith(".jsonl") else nutch_lines
    with _output(options.dump) as out:
        for frame in all_inlinks(reading, options.max_inlinks):
            for (target,), links in frame.group_by("target", maintain_order=True):
                url = from_key(str(target))
                if not options.regex or re.fullmatch(options.regex, url):
                    out.writelines(lines_of(str(target), links))
    return DONE


@contextlib.contextmanager
def _output(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdout
        return
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UsageError(f"cannot write --dump {path!r}: {error.strerror}") from error


def _record(key: str, links: pl.DataFrame) -> dict[str, Any]:
    shown = [record_of(row, SHOWN_COLUMNS) for row in links.iter_rows(named=True)]
    return {"url": from_key(key), "anchors": anchors_of(links), "inlinks": shown}


def _json_lines(key: str, links: pl.DataFrame) -> Iterator[str]:
    yield json.dumps(_record(key, links)) + "\n"


def nutch_lines(key: str, links: pl.DataFrame) -> Iterator[str]:
    """Returns the lines of Nutch's dump; a page with several texts of links has several lines."""
    pairs = links.select("source", "anchor").iter_rows()
    texts = ((source, text) for source, anchor in pairs for text in (anchor or "").split("\n"))
    return link_record(from_key(key), ((from_key(source), text) for source, text in texts))


def link_line(link: dict[str, Any]) -> str:
    """Returns an inlink as a line for people.

    >>> link_line({"source": "http://a.com/", "anchor": "A", "rel": "ugc", "last_seen": "2026"})
    "http://a.com/ as 'A', rel ugc, last seen 2026"
    """
    text = f" as {link['anchor']!r}" if link["anchor"] else ""
    rel = f", rel {link['rel']}" if link["rel"] else ""
    return f"{link['source']}{text}{rel}, last seen {link['last_seen']}"
