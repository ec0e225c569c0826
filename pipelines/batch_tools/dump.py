"""dump: writes the bodies of batches into files, as Nutch's ``dump``.

::

    batch.pages, file by file ─ type of the content ─ name by MD5 or host ─▶ a file per page
"""

import json
from collections.abc import Iterable, Iterator

from ...io.batches.batch_records import RowColumns
from ...io.batches.dump_folder import DumpFolder
from ...io.storage.files import creating
from ...policy.batch_tools.dumped_names import md5_name, reversed_name
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ...web.urls.row_keys import from_key
from ..base.command import DONE, Invocation
from ..base.live import live_view
from .batch_addresses import BATCHES, NamedBatch, check_distinct
from .page_dumps import DumpTally, PageDumpOptions, batches_to_dump, dumped_pages

ARGUMENTS = (BATCHES,)
_COLUMNS = RowColumns((), (), ())


@dataclass(frozen=True)
class Options(PageDumpOptions):
    """Options of dump."""

    mime_stats: bool = option(
        False, "Show the numbers of pages by type: all, and those that --mimetypes wants.",
        nutch="dump -mimeStats", group="dump",
    )  # fmt: skip
    flat_dir: bool = option(
        False, "Write all files into one folder.", nutch="dump -flatdir", group="dump"
    )
    reverse_url_dirs: bool = option(
        False,
        "Write the files into folders of their reversed hosts, under the SHA-256 of the URL.",
        nutch="dump -reverseUrlDirs",
        group="dump",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.flat_dir and self.reverse_url_dirs:
            raise ValueError("--flat_dir and --reverse_url_dirs contradict each other: give one")


def run(invocation: Invocation) -> int:
    options = invocation.options
    batches, folder = batches_to_dump(invocation.arguments["batches"], options)
    tally = DumpTally()
    check_distinct(batches)
    for named in batches:
        if folder.has(_map_name(named)):
            raise UsageError(
                f"batch {named.batch!r} is in {options.output_dir!r} already, with its "
                f"{_map_name(named)}: give another folder"
            )
    PROGRESS.start("dump", total=sum(named.record.urls for named in batches))
    with live_view(invocation.progress):
        for named in batches:
            _dump(named, folder, options, tally)
        PROGRESS.finish()
    if invocation.format == "json":
        types = {"total": dict(tally.total), "filter": dict(tally.chosen)}
        record = {**tally.record(), "output": options.output_dir}
        print(json.dumps(record | ({"types": types} if options.mime_stats else {})))
    else:
        print(tally.line(options.output_dir))
        if options.mime_stats:
            print(tally.types())
    return DONE


def _map_name(named: NamedBatch) -> str:
    """Returns the name of the file that says which URL each file has."""
    return f"{named.batch}_filenameToUrl.json"


def _dump(named: NamedBatch, folder: DumpFolder, options: Options, tally: DumpTally) -> None:
    with creating(folder.place(_map_name(named))) as urls:
        urls.writelines(_lines(_written(named, folder, options, tally)))


def _written(
    named: NamedBatch, folder: DumpFolder, options: Options, tally: DumpTally
) -> Iterator[tuple[str, str]]:
    """Yields (name of a file, its URL)."""
    for page in dumped_pages(named, _COLUMNS, options, tally):
        if options.reverse_url_dirs:
            name = reversed_name(page.key)
        else:
            name = md5_name(page.key, flat=options.flat_dir)
        created = folder.write(name, page.row["body"])
        tally.count(created)
        # One that is the same is of a dump of this batch that was interrupted.
        if created or folder.has_same(name, page.row["body"]):
            yield name, from_key(page.key)


def _lines(urls: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    """Yields the lines of a JSON object, one at a time."""
    start = "{"
    for name, url in urls:
        yield f"{start}\n{json.dumps(name)}: {json.dumps(url)}".encode()
        start = ","
    yield b"{}\n" if start == "{" else b"\n}\n"
