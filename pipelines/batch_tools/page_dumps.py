"""What commands share that write pages of batches into files for other programs."""

import dataclasses
import fnmatch
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from ...io.batches.batch_records import RowColumns, read_batch
from ...io.batches.dump_folder import DumpFolder
from ...io.table.opening import open_table
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ...web.base.wording import format_count
from ...web.content.content_type import sniff
from .batch_addresses import NamedBatch, named_batches

_TYPE = re.compile(r"[\w.+-]+/(?:[\w.+-]+|\*)")
_BOTH = ("dump", "commoncrawldump")


def _nutch(flag: str) -> str:
    return ", ".join(f"{command} -{flag}" for command in _BOTH)


@dataclass(frozen=True)
class PageDumpOptions:
    """Options of the pages to write, and of the folder."""

    GROUP = "batch tools"

    output_dir: str = option(
        "", "Folder of the files, on this machine or in a store.", nutch=_nutch("outputDir")
    )
    from_batches: tuple[str, ...] = option(
        (),
        "Batches whose pages are written: TABLE/batches/ID, or TABLE/batches for all.",
        nutch=_nutch("segment"),
    )
    mimetypes: tuple[str, ...] = option(
        (),
        "Write only pages of these types, as text/html or image/*. The type is that of the content.",
        nutch=_nutch("mimetype"),
    )

    def __post_init__(self) -> None:
        for name in self.mimetypes:
            if not _TYPE.fullmatch(name):
                raise ValueError(f"--mimetypes must be types such as text/html, got {name!r}")


@dataclass(frozen=True)
class DumpedPage:
    """A page with a body.

    Attributes:
        row: Its PAGES row, as far as it was read.
        charset: The charset of its text, if it was read and is known.
        inlinks: Keys of pages that link to it; None if they were not looked up.
    """

    row: Mapping[str, Any]
    charset: str | None
    inlinks: Sequence[str] | None

    @property
    def key(self) -> str:
        """Its row key."""
        return str(self.row["key"])


@dataclasses.dataclass
class DumpTally:
    """What was found and written.

    Attributes:
        total: Numbers of pages by type.
        chosen: Numbers of pages of the wanted types, by type.
        files: Number of files that were written.
        there: Number of files that were there already.
        without_body: Number of URLs without a body.
    """

    total: Counter[str] = dataclasses.field(default_factory=Counter)
    chosen: Counter[str] = dataclasses.field(default_factory=Counter)
    files: int = 0
    there: int = 0
    without_body: int = 0

    def count(self, created: bool) -> None:
        """Counts a file: it was written, or is there already."""
        self.files += created
        self.there += not created

    def record(self) -> dict[str, Any]:
        """Returns the numbers for JSON."""
        left_out = {
            "no_body": self.without_body,
            "other_type": self.total.total() - self.chosen.total(),
            "there_already": self.there,
        }
        return {"files": self.files, "left_out": {n: k for n, k in left_out.items() if k}}

    def line(self, output: str) -> str:
        """Returns the numbers as a line."""
        left_out = self.record()["left_out"]
        text = f"{format_count(self.files, 'files')} in {output}"
        parts = [f"{name} {number:,}" for name, number in left_out.items()]
        return f"{text}; left out: {', '.join(parts)}" if parts else text

    def types(self) -> str:
        """Returns the numbers by type, as JSON."""
        return json.dumps({"TOTAL": dict(self.total), "FILTER": dict(self.chosen)})


def batches_to_dump(
    words: Sequence[str], options: PageDumpOptions
) -> tuple[list[NamedBatch], DumpFolder]:
    """Returns the batches that a command names, and the folder of the files.

    Raises:
        UsageError: The folder or the batches are missing, or are not there; or the folder is in a table.
    """
    if not options.output_dir:
        raise UsageError("--output_dir is missing: the folder of the files")
    batches = named_batches([*words, *options.from_batches])
    return batches, folder_beside(batches, options.output_dir)


def folder_beside(batches: Sequence[NamedBatch], address: str) -> DumpFolder:
    """Returns the folder for data of batches; it must not be in their tables.

    Raises:
        UsageError: It is in a table, or is a file.
    """
    return DumpFolder(address, {open_table(named.address).files for named in batches})


# Returns keys of pages that link to each of some pages, by the key of that page.
FindInlinks: TypeAlias = Callable[[pl.Series], Mapping[str, Sequence[str]]]


def dumped_pages(
    named: NamedBatch,
    columns: RowColumns,
    options: PageDumpOptions,
    tally: DumpTally,
    find_inlinks: FindInlinks | None = None,
) -> Iterator[DumpedPage]:
    """Yields the pages of a batch that have a body of a wanted type.

    Args:
        named: The batch.
        columns: Columns to read besides those of the body.
        options: The wanted types.
        tally: Counts them.
        find_inlinks: Looks up inlinks, those of all pages of a file at once; None looks up none.
    """
    wanted = [name.lower() for name in options.mimetypes]
    pages = [*dict.fromkeys((*columns.pages, "body", "content_type"))]
    with named.snapshot.reading():
        for rows, _ in read_batch(named.snapshot, named.batch, columns._replace(pages=pages)):
            documents = rows.documents
            has_charsets = "charset" in documents.columns
            charsets = dict(documents.select("key", "charset").iter_rows()) if has_charsets else {}
            inlinks = find_inlinks(rows.pages.get_column("key")) if find_inlinks else None
            for row in rows.pages.iter_rows(named=True):
                PROGRESS.add()
                if not row["body"]:
                    tally.without_body += 1
                    continue
                mime = sniff(row["body"], row["content_type"])
                tally.total[mime] += 1
                if not wanted or any(fnmatch.fnmatchcase(mime, name) for name in wanted):
                    tally.chosen[mime] += 1
                    links = None if inlinks is None else inlinks.get(row["key"], ())
                    yield DumpedPage(row, charsets.get(row["key"]), links)
