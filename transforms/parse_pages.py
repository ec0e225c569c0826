"""Take title, text and links from pages, in any Beam pipeline."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Optional

import apache_beam as beam

from ..io.batches.documents import parse_file
from ..io.snapshots.operations import Operation
from ..io.tablets.file_lists import DataFile
from ..io.tablets.written import Written
from ..policy.parsing.documents import DocumentOptions
from ..web.base.dataclass import dataclass
from ..web.base.progress import PROGRESS
from ..web.rules.url_rules import UrlRules
from .elements.chunk_flow import tagged_chunks
from .elements.chunks import Chunk, to_chunks
from .elements.outputs import ParsePagesOutputs, SeveralOutputs
from .elements.records import DeadLetter, ParsedPage
from .elements.rows import check_chunk, through_chunks
from .fetch_pages import error_output
from .fetching import DEAD, DEAD_LETTERS_OUTPUT
from .for_each import ForEach
from .parsing import PARSED, ParsePagesOptions, parse_pages, parse_pool, parser_of
from .wiring.display import (
    Displayed,
    display_fields,
    errors_in_keywords,
    options_from,
    with_keywords,
)
from .wiring.metrics import count

DOCUMENTS_OUTPUT = "documents"
# The step of a batch: Commit gets the numbers of files and of those done.
PAGE_FILES = "Files"
_NEEDED = {"url": ["url"], "body": ["body"]}


@dataclass(frozen=True)
class PageFile:
    """One file of pages of an operation's batch."""

    operation: Operation
    file: DataFile


_DEFAULTS = {"scope": "any"}


@with_keywords(ParsePagesOptions, **_DEFAULTS)
class ParsePages(SeveralOutputs):
    """Takes title, text, links, language and directives from pages.

    Input:  rows or chunks with the columns ``url`` and ``body`` (bytes), such as the output of
        FetchPages, and optionally
        ``content_type``, ``headers`` (of X-Robots-Tag; a sequence of rows of
        ``name`` and ``value``), ``fetch_status``, ``truncated``, ``http_code``,
        ``redirect``, ``key``, ``score``, ``fetch_time``.
    Output: two collections of rows or chunks, as the input is. ``documents`` has
        a ``ParsedPage`` for each row that is a page, and for each part of a page that is
        a document of its own (``part_of`` names the page). ``dead_letters`` has a
        ``DeadLetter`` for each other row, with the reason: ``http_404`` and the like,
        ``redirected``, ``notmodified``, ``no_body``, ``truncated``, ``no_parser``,
        ``timeout``, ``out_of_memory``, ``crashed``, ``malformed``, and so on.

    Child processes parse the pages, with a time limit per page and a memory limit: a page
    that stalls or kills its parser becomes one dead letter. Each worker starts its processes
    once.

    Cost: no shuffle. A worker holds a chunk of at most 16 MB and its results.

    Raises:
        ValueError: An option or the input's type is not right.
        TypeError: There is no such option.

    Args:
        options: The options as one object; else each is a keyword.
        error_handling: ``{"output": name}`` names the output of dead letters.
    """

    def __init__(
        self,
        options: Optional[DocumentOptions] = None,  # noqa: UP045 - Beam reads it
        *,
        error_handling: Optional[Mapping[str, str]] = None,  # noqa: UP045
        **keywords: Any,
    ) -> None:
        super().__init__()
        self.options: Any = options_from(ParsePagesOptions, options, keywords, **_DEFAULTS)
        with errors_in_keywords(ParsePagesOptions):
            UrlRules(self.options)  # fails now if a file of rules is missing or wrong
        if self.options.extract:
            raise ValueError(
                f"extract is for the jobs of a table, which store what it takes, got {self.options.extract!r}"
            )
        self.dead_letters = error_output(error_handling, DOCUMENTS_OUTPUT)

    def expand(self, elements: beam.PCollection[Any]) -> ParsePagesOutputs:
        outputs = {DOCUMENTS_OUTPUT: ParsedPage, self.dead_letters: DeadLetter}
        return ParsePagesOutputs(
            through_chunks(elements, self._parse, "ParsePages", _NEEDED, outputs)
        )

    def _parse(self, chunks: beam.PCollection[Chunk]) -> dict[str, beam.PCollection[Chunk]]:
        parse = beam.FlatMap(_parse_chunk, self.options).with_output_types(Chunk)
        parsed = chunks | "Parse" >> parse.with_outputs(DEAD_LETTERS_OUTPUT, main=DOCUMENTS_OUTPUT)
        return {
            DOCUMENTS_OUTPUT: parsed[DOCUMENTS_OUTPUT],
            self.dead_letters: parsed[DEAD_LETTERS_OUTPUT],
        }

    def display_data(self) -> dict[str, Any]:
        return display_fields(self.options)


@dataclasses.dataclass
class ParseBatch(Displayed):
    """Parses the pages of a batch as ``ParsePages`` does.

    Input:  operations; an idle one has no files.
    Output: ``Written``: a file of documents for each file of pages.

    Cost: a shuffle of the names of files. A worker holds a group of pages and its results.

    Attributes:
        divide: Yields the files of pages of an operation's batch.
        options: What to extract, and the parse processes.
    """

    divide: Callable[[Operation], Iterable[PageFile]]
    options: ParsePagesOptions

    def expand(self, operations: beam.PCollection[Operation]) -> beam.PCollection[Written]:
        return operations | ForEach(
            self.divide, _parse_file, (self.options,), Written, step=PAGE_FILES
        )


def _parse_chunk(chunk: Chunk, options: ParsePagesOptions) -> Iterator[Any]:
    check_chunk(chunk, _NEEDED, "ParsePages")
    pool = parse_pool(options)
    documents, dead, _ = parse_pages(chunk, options, pool)
    reasons = Counter(f"dead_letters/{reason}" for reason in dead.get_column("reason"))
    count("parse", {"parsed": len(documents), **reasons})
    yield from to_chunks(documents, PARSED)
    yield from tagged_chunks(DEAD_LETTERS_OUTPUT, dead, DEAD)


def _parse_file(pages: PageFile, options: ParsePagesOptions) -> Iterator[Written]:
    operation = pages.operation
    parser = parser_of(operation, options, lambda done: PROGRESS.add(done.rows))
    yield parse_file(operation.table.files, str(operation.batch), pages.file, parser)
