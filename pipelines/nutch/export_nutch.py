"""export_nutch: writes a CrawlDb that Nutch opens, and dumps as Nutch's tools write them.

::

    state ─ records ─ in order of URLs ─▶ crawldb/current, dumps
    links ──────────────────────────────▶ dump of the LinkDb
"""

import contextlib
import json
from typing import Any

from ...io.nutch.database_writing import crawldb_writer, dump_writer, text_part
from ...io.nutch.url_order import in_url_order
from ...io.reading.inlinks import all_inlinks
from ...io.snapshots.manifest import newest_manifest
from ...io.storage.place_addresses import place_of
from ...io.storage.places import Place
from ...policy.inlinks.edges import LINKS_COMPONENT, BestOptions
from ...policy.nutch.nutch_records import EXPORTED_COLUMNS, records_of_state
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ...web.base.progress import PROGRESS
from ..base.command import DONE, TABLE, Argument, Invocation
from ..base.live import live_view
from ..views.reading_job import Reading
from ..views.readlinkdb import nutch_lines

ARGUMENTS = (
    TABLE,
    Argument(
        "folder", "Folder to write, which must not be there: local, or gs://, s3://, hdfs://."
    ),
)
_FORMS = ("crawldb", "csv", "json", "normal", "linkdb")


@dataclass(frozen=True)
class Options:
    """Options of export_nutch."""

    GROUP = "export"

    parts: tuple[str, ...] = option(
        ("crawldb",),
        "What to write: crawldb, a CrawlDb that Nutch opens; csv, json, normal, the dumps of readdb "
        "-dump; linkdb, that of readlinkdb -dump.",
        choices=_FORMS,
    )
    max_inlinks: int = shared_option(BestOptions, "max_inlinks")


def run(invocation: Invocation) -> int:
    options, word = invocation.options, invocation.arguments["folder"]
    address = str(invocation.table)
    manifest = newest_manifest(address)
    folder = place_of(word).absolute()
    if folder.exists():
        raise UsageError(f"the folder must not be there, got {word!r}: nothing is overwritten")
    if "linkdb" in options.parts and LINKS_COMPONENT not in manifest.components:
        raise UsageError(f"table {address!r} has no links: leave linkdb out of --parts")
    reading = Reading(address, "", manifest.snapshot)
    counts = dict[str, int]()
    PROGRESS.start("export_nutch", unit="records")
    with live_view(invocation.progress), reading.reading(), _removed_on_error(folder):
        if set(options.parts) - {"linkdb"}:
            counts["records"] = _write_records(reading, options, folder)
        if "linkdb" in options.parts:
            counts["links"] = _write_links(reading, options, folder)
        PROGRESS.finish()
    return _report(invocation, word, counts)


@contextlib.contextmanager
def _removed_on_error(folder: Place) -> Any:
    """Removes the folder if the block fails, so that nobody takes a part for the whole."""
    try:
        yield
    except BaseException:
        folder.remove_tree()
        raise


def _write_records(reading: Reading, options: Options, folder: Place) -> int:
    number = 0
    with contextlib.ExitStack() as opened:
        writers = [
            opened.enter_context(
                crawldb_writer(folder) if part == "crawldb" else dump_writer(folder, part)
            )
            for part in dict.fromkeys(options.parts)
            if part != "linkdb"
        ]
        for records in in_url_order(reading, EXPORTED_COLUMNS, records_of_state):
            for writer in writers:
                writer.write(records)
            number += len(records)
            PROGRESS.add(len(records))
    return number


def _write_links(reading: Reading, options: Options, folder: Place) -> int:
    number = 0
    with text_part(folder / "linkdb-normal") as file:
        for frame in all_inlinks(reading, options.max_inlinks):
            number += len(frame)
            for (target,), links in frame.group_by("target", maintain_order=True):
                file.writelines(nutch_lines(str(target), links))
    return number


def _report(invocation: Invocation, word: str, counts: dict[str, int]) -> int:
    if invocation.format == "json":
        print(json.dumps({"job": "export_nutch", "folder": word, "counts": counts}))
    else:
        texts = ", ".join(f"{name} {number:,}" for name, number in counts.items())
        print(f"export_nutch: {texts} in {word}")
    return DONE
