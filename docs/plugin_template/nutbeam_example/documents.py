"""An index filter and an index writer."""

from pathlib import Path
from typing import ClassVar

import polars as pl

from nutbeam.io.indexing.index_writer import IndexWriter, WriteResult
from nutbeam.policy.indexing.index_filter import IndexFilter


class Words(IndexFilter):
    """Adds the number of words, and leaves documents without any out."""

    name = "words"
    reads = ()
    fields: ClassVar = {"words": "Number of words of the text."}

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Returns the documents with the field ``words``."""
        words = pages.get_column("text").fill_null("").str.extract_all(r"\S+").list.len()
        counted = documents.with_columns(words.cast(pl.Int64).alias("words"))
        return self.dropping(counted, words == 0)


class Titles(IndexWriter):
    """Writes a line with the title of each document into a file.

    Several workers, and a repeated attempt, may append to the file; a real writer overwrites the
    document with the same id.
    """

    kind = "titles"
    parameters: ClassVar = {"file": "File that gets a line per document."}
    required = ("file",)

    def write(self, documents: pl.DataFrame, deletes: pl.Series) -> WriteResult:
        """Appends the titles; returns what was done."""
        with Path(self.target.parameters["file"]).open("a", encoding="utf-8") as file:
            file.writelines(
                f"{row['id']}\t{row.get('title') or ''}\n"
                for row in documents.iter_rows(named=True)
            )
        return WriteResult({"added": len(documents), "deleted": len(deletes)})
