"""The index filter ``more``: dates, length and type."""

import re
from email.message import Message

import polars as pl

from ...web.pages.directives import parse_moment
from .index_filter import IndexFilter
from .index_pages import found_types, header, map_distinct

_MOST_DIGITS = 18


class More(IndexFilter):
    """Indexes when a page was changed, its length and its type; a file name as its title."""

    name = "more"
    reads = ("headers",)
    fields = {  # noqa: RUF012 - a declaration
        "lastModified": "Time in the header Last-Modified.",
        "date": "The same, or else when the content was first seen, or when it was fetched.",
        "contentLength": "Number in the header Content-Length, bytes.",
        "type": "MIME type, by the first bytes of the body, and its parts unless `--mime_type_parts false`.",
        "title": "File name in Content-Disposition, if there is no title yet.",
    }

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields."""
        headers = pages.get_column("headers")
        modified = map_distinct(header(headers, "last-modified"), parse_moment, pl.Int64)
        digits = header(headers, "content-length").str.strip_chars()
        length = digits.set((~digits.str.contains(f"^[0-9]{{1,{_MOST_DIGITS}}}$")), None)
        names = map_distinct(header(headers, "content-disposition"), _file_name)
        dates = pages.select(
            lastModified=modified,
            date=pl.coalesce(
                modified, pl.when(pl.col("modified_time") > 0).then("modified_time"), "fetch_time"
            ),
            contentLength=length.cast(pl.Int64, strict=False),
            type=map_distinct(found_types(pages), self._types, pl.List(pl.String)),
        )
        title = pl.col("title") if "title" in documents.columns else pl.lit(None, pl.String)
        return documents.with_columns(dates).with_columns(title=pl.coalesce(title, names))

    def _types(self, mime: str) -> list[str] | None:
        if "/" not in mime:
            return None
        return [mime, *mime.split("/", 1)] if self.options.mime_type_parts else [mime]


def _file_name(disposition: str) -> str | None:
    """Returns the file name in a Content-Disposition.

    >>> _file_name('attachment; filename="a b.pdf"'), _file_name("inline")
    ('a b.pdf', None)
    """
    message = Message()
    try:
        message["Content-Disposition"] = re.sub(r"[\r\n]", " ", disposition)
        return message.get_filename() or None
    except (ValueError, LookupError, TypeError):
        return None
