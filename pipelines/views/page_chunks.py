"""The chunks of pages: parts of files with their vectors, and what is known when all are written."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator

import polars as pl
import pyarrow as pa

from ...io.storage.files import read_bytes, write_bytes
from ...io.storage.places import Place
from ...policy.base.key_columns import from_keys
from ...policy.chunking.chunk_options import ChunkOptions
from ...policy.chunking.chunk_rows import EMBEDDED_COLUMNS, ChunkRows, ChunkRules, chunk_rows
from ...policy.chunking.embeddings import (
    EMBEDDING_COLUMN,
    Embedder,
    EmbeddingReport,
    embedding_reason,
)
from ...policy.components.columns import Columns, join_columns
from ...policy.components.vocabulary import CHANGE_COLUMNS, shown_schema
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ...web.base.wording import format_count
from ..outputs.output_files import Output
from .reader import PAGES_AT_ONCE


@dataclass(frozen=True)  # Beam 2.72 fails where it looks for the type of Columns in a NamedTuple
class ChunkedPages:
    """How pages become chunks, and which columns of these are written.

    Attributes:
        options: How they are cut, and what makes their vectors.
        columns: Columns of the chunks.
        markdown_links: Whether their Markdown has the targets of links, and images.
    """

    options: ChunkOptions
    columns: Columns
    markdown_links: bool = True

    def write(self, path: Place, pages: pl.DataFrame, output: Output) -> None:
        """Writes the chunks of pages as a part file, and beside it what became of their vectors.

        Args:
            path: Place of the part file.
            pages: Rows with ``key`` and ``CHUNKED_COLUMNS``.
            output: The format.

        Raises:
            UserError: The plug-in that counts tokens failed.
        """
        if not self.options.embedding:
            output.write_frames(path, self._frames(pages, lambda chunks: chunks), self.columns)
            return
        embedder = Embedder(self.options.embedding)
        frames = self._frames(pages, embedder.embed)
        output.write_frames(path, frames, join_columns(self.columns, [EMBEDDING_COLUMN]))
        write_bytes(_report_of(path), json.dumps(embedder.report._asdict()).encode())

    def write_gone(self, path: Place, pages: pl.DataFrame, output: Output) -> None:
        """Writes pages that are gone as a part file: a row for each, without a chunk."""
        output.write_frames(path, [pages], self.columns)
        if self.options.embedding:
            write_bytes(_report_of(path), json.dumps(EmbeddingReport()._asdict()).encode())

    def _frames(
        self, pages: pl.DataFrame, embed: Callable[[ChunkRows], pl.DataFrame]
    ) -> Iterator[pl.DataFrame]:
        """Yields chunks of pages; with ``change`` also a row for each page that has none (any more)."""
        needed = EMBEDDED_COLUMNS if self.options.embedding else EMBEDDED_COLUMNS.pick("url")
        columns = Columns(dict.fromkeys([*self.columns, *needed]))
        tokenizer = self.options.tokenizer()
        rules = ChunkRules(self.options.chunks, tokenizer, columns, self.markdown_links)
        for part in pages.iter_slices(PAGES_AT_ONCE):
            chunks = chunk_rows(part, rules)
            yield embed(chunks)
            if self._shows_changes:
                has_none = ~from_keys(part.get_column("key")).is_in(
                    chunks.get_column("url").implode()
                )
                yield part.filter(has_none).select("key", *CHANGE_COLUMNS.schema.names)

    @property
    def _shows_changes(self) -> bool:
        return CHANGE_COLUMNS[0] in self.columns

    def read_report(self, parts: Iterable[Place]) -> EmbeddingReport:
        """Returns what became of the vectors of all parts.

        Raises:
            UserError: The plug-in failed for all chunks, or its vectors have different lengths.
        """
        if not self.options.embedding:
            return EmbeddingReport()
        reports = [EmbeddingReport(**json_object(read_bytes(_report_of(part)))) for part in parts]
        dimensions = sorted({report.dimension for report in reports} - {0})
        total = EmbeddingReport(
            sum(report.chunks for report in reports),
            sum(report.failed for report in reports),
            max(dimensions, default=0),
            next((report.fault for report in reports if report.fault), ""),
        )
        name = self.options.embedding
        if total.failed and total.failed == total.chunks:
            number = format_count(total.chunks, "chunks")
            raise UserError(f"embedding {name!r} failed for all of {number}: {total.fault}")
        if len(dimensions) > 1:
            lengths = " and of ".join(f"{dimension:,}" for dimension in dimensions)
            raise UserError(
                f"embedding {name!r} must return vectors of one length, got some of {lengths} numbers"
            )
        return total

    def schema(self, report: EmbeddingReport) -> pa.Schema:
        """Returns the columns as they are written.

        Vectors are lists of a fixed length, if each row has one: pyarrow 25 cannot read such lists
        from Parquet if some of them are null, as those of pages that are gone.
        """
        schema = shown_schema(self.columns)
        if not self.options.embedding:
            return schema
        some_have_none = report.failed or self._shows_changes
        length = -1 if some_have_none else report.dimension or -1
        vector = pa.list_(pa.float32(), length)
        return schema.append(pa.field(EMBEDDING_COLUMN.name, vector))


def _report_of(part: Place) -> Place:
    return part.with_name(f".{part.name}.json")


def failure_line(options: ChunkOptions, report: EmbeddingReport) -> str:
    """Returns a line about the chunks that have no vector; empty if all have one."""
    if not report.failed:
        return ""
    name = options.embedding
    words = ("nutbeam", "plugin", "try", "embedding", name, "URL")
    return (
        f"{report.failed:,} of {format_count(report.chunks, 'chunks')} have no vector, counted as "
        f"{embedding_reason(name)}: {report.fault}; {shlex.join(words)} tries the plug-in"
    )
