"""The index filters ``basic``, ``anchor`` and ``more``: what nearly every index has."""

import re
from email.message import Message

import polars as pl

from ...web.base.columns import nulls
from ...web.pages.directives import parse_moment
from ...web.urls.domains import registered_domain
from ...web.urls.key_columns import from_keys
from ...web.urls.url_parts import host_of_url
from .index_filter import IndexFilter
from .index_pages import found_types, header, hosts_of_keys, map_distinct

_MOST_DIGITS = 18


class IndexBasic(IndexFilter):
    """Indexes host, URL, title, text, caching policy and time."""

    name = "basic"
    reads = ()
    fields = {  # noqa: RUF012 - a declaration
        "host": "Host of `url`.",
        "url": "URL to show: the representative one, if a redirect led to the page.",
        "title": "Title, cut to `--max_title_length`; no field if there is none.",
        "content": "Text, cut to `--max_content_length`.",
        "cache": "`content` if the page must not be shown from a cache.",
        "tstamp": "When the page was fetched.",
        "domain": "Registered domain, with `--add_domain`.",
    }

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields."""
        hosts = _hosts(pages)
        titles = _cut(pl.col("title"), self.options.max_title_length)
        archived = pl.col("directives").list.contains("noarchive").fill_null(False)
        fields = pages.select(
            host=hosts,
            url=pl.coalesce("repr_url", from_keys(pages.get_column("key"))),
            title=pl.when(titles.str.len_bytes() > 0).then(titles),
            content=_cut(pl.col("text").fill_null(""), self.options.max_content_length),
            cache=pl.when(archived).then(pl.lit("content")),
            tstamp=pl.col("fetch_time"),
        )
        if self.options.add_domain:
            fields = fields.with_columns(domain=map_distinct(hosts, registered_domain))
        return documents.with_columns(fields)


def _hosts(pages: pl.DataFrame) -> pl.Series:
    """Returns the host of the URL to show: as in Nutch, the representative URL if there is one."""
    hosts, shown = hosts_of_keys(pages.get_column("key")), pages.get_column("repr_url")
    if shown.null_count() == len(pages):
        return hosts
    others = pl.Series([url and host_of_url(url) for url in shown], dtype=pl.String)
    return others.zip_with(shown.is_not_null(), hosts)


def _cut(text: pl.Expr, most: int) -> pl.Expr:
    return text if most < 0 else text.str.slice(0, most)


class Anchor(IndexFilter):
    """Indexes the texts of links to a page."""

    name = "anchor"
    reads = ("anchors",)
    fields = {"anchor": "Texts of the links to the page."}  # noqa: RUF012 - a declaration

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the field."""
        if "anchors" not in pages.columns:
            return documents.with_columns(nulls(len(documents)).alias("anchor"))
        texts = pages.get_column("anchors").cast(pl.List(pl.String))
        texts = texts.list.eval(pl.element().filter(pl.element().str.strip_chars() != ""))
        if self.options.anchor_deduplicate:
            # As Nutch: texts that differ only in case are equal; the first stays.
            first = pl.element().str.to_lowercase().is_first_distinct()
            texts = texts.list.eval(pl.element().filter(first))
        has_texts = pl.col("anchor").list.len() > 0
        anchors = texts.alias("anchor").to_frame().select(pl.when(has_texts).then("anchor"))
        return documents.with_columns(anchors)


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
