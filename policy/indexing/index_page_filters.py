"""Index filters that copy facts of pages: ``basic``, ``anchor``, ``more``, ``links``, ``feed`` …"""

import re
from email.message import Message

import polars as pl

from ...web.base.columns import each_once
from ...web.pages.directives import parse_moment
from ...web.urls.domains import registered_domain, suffix_and_domain
from ...web.urls.url_parts import host_of_url
from ..base.key_columns import from_keys, host_keys, host_names
from .index_filter import (
    IndexFilter,
    entries_of,
    header,
    target_urls,
    types_of_pages,
)

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
            fields = fields.with_columns(domain=each_once(hosts, registered_domain))
        return documents.with_columns(fields)


def _hosts(pages: pl.DataFrame) -> pl.Series:
    """Returns the host of the URL to show: as in Nutch, the representative URL if there is one."""
    hosts, shown = host_names(host_keys(pages.get_column("key"))), pages.get_column("repr_url")
    if shown.null_count() == len(pages):
        return hosts
    others = pl.Series([url and host_of_url(url) for url in shown], dtype=pl.String)
    return others.zip_with(shown.is_not_null(), hosts)


def _cut(text: pl.Expr, most: int) -> pl.Expr:
    """Returns texts of at most this many characters; the rest of a word that is cut goes, too."""
    if most < 0:
        return text
    start = text.str.slice(0, most)
    is_in_word = text.str.slice(max(most - 1, 0), 2).str.contains(r"^\w\w$")
    return pl.when(is_in_word).then(start.str.replace(r"\s+\S{1,30}$", "")).otherwise(start)


class Anchor(IndexFilter):
    """Indexes the texts of links to a page."""

    name = "anchor"
    reads = ("anchors",)
    fields = {"anchor": "Texts of the links to the page."}  # noqa: RUF012 - a declaration

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the field."""
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
        modified = each_once(header(headers, "last-modified"), parse_moment, pl.Int64)
        digits = header(headers, "content-length").str.strip_chars()
        length = digits.set((~digits.str.contains(f"^[0-9]{{1,{_MOST_DIGITS}}}$")), None)
        names = each_once(header(headers, "content-disposition"), _file_name)
        dates = pages.select(
            lastModified=modified,
            date=pl.coalesce(
                modified, pl.when(pl.col("modified_time") > 0).then("modified_time"), "fetch_time"
            ),
            contentLength=length.cast(pl.Int64, strict=False),
            type=each_once(types_of_pages(pages), self._types, pl.List(pl.String)),
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


class MetadataFields(IndexFilter):
    """Indexes chosen metadata of pages, of responses and of rows under their names."""

    name = "metadata"
    reads = ("headers",)

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields; of a name in several places the row's value counts, as in Nutch."""
        options, headers = self.options, pages.get_column("headers")
        fields = entries_of(pages.get_column("metadata"), options.index_parse_md)
        fields |= {name: header(headers, name.lower()) for name in options.index_content_md}
        for name, values in entries_of(
            pages.get_column("row_metadata"), options.index_db_md
        ).items():
            fields[name] = values.zip_with(values.is_not_null(), fields.get(name, values))
        return documents.with_columns(values.alias(name) for name, values in fields.items())


class LinkFields(IndexFilter):
    """Indexes the links of a page, those to it, and their numbers."""

    name = "links"
    reads = ("inlinks",)
    fields = {  # noqa: RUF012 - a declaration
        "outlinks": "URLs, or hosts, that the page links to.",
        "inlinks": "URLs, or hosts, of the pages that link to it.",
        "outlink_count": "Number of its links.",
        "inlink_count": "Number of the pages that link to it.",
    }

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields."""
        options = self.options
        own = host_names(host_keys(pages.get_column("key")))
        outlinks = target_urls(pages.get_column("outlinks"))
        inlinks = pages.get_column("inlinks").cast(pl.List(pl.String))
        return documents.with_columns(
            self._urls_or_hosts(outlinks, own, options.links_outlinks_host_ignore).alias(
                "outlinks"
            ),
            self._urls_or_hosts(inlinks, own, options.links_inlinks_host_ignore).alias("inlinks"),
            outlinks.list.len().cast(pl.Int64).alias("outlink_count"),
            inlinks.list.len().cast(pl.Int64).alias("inlink_count"),
        )

    def _urls_or_hosts(self, urls: pl.Series, own: pl.Series, ignore: bool) -> pl.Series:
        numbered = pl.DataFrame({"url": urls, "own": own}).with_row_index("page")
        flat = numbered.explode("url").drop_nulls("url")
        host = pl.col("url").str.extract(r"^[a-z]+://(\[[^\]]*\]|[^/:?#]*)", 1)
        if ignore:
            flat = flat.filter(host != pl.col("own"))
        if self.options.links_hosts_only:
            flat = flat.with_columns(url=host).unique(["page", "url"], maintain_order=True)
        lists = flat.group_by("page", maintain_order=True).agg("url")
        return numbered.select("page").join(lists, on="page", how="left")["url"]


class Language(IndexFilter):
    """Indexes the language that a page declares."""

    name = "language"
    reads = ()
    fields = {"lang": "Language of the page."}  # noqa: RUF012 - a declaration

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the field; as in Nutch, it is ``unknown`` if the page does not declare one."""
        return documents.with_columns(lang=pages.get_column("language").fill_null("unknown"))


class TopLevelDomain(IndexFilter):
    """Indexes the public suffix of the host."""

    name = "tld"
    reads = ()
    fields = {"tld": "Public suffix of the host, such as `co.uk`."}  # noqa: RUF012

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the field."""
        hosts = host_names(host_keys(pages.get_column("key")))
        return documents.with_columns(tld=each_once(hosts, lambda host: suffix_and_domain(host)[0]))


class Headings(IndexFilter):
    """Indexes headings: a list of texts for each kind in ``--index_headings``."""

    name = "headings"
    reads = ()

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields."""
        headings = entries_of(pages.get_column("metadata"), self.options.index_headings)
        return documents.with_columns(
            values.str.split("\n").alias(name) for name, values in headings.items()
        )


class FeedFields(IndexFilter):
    """Indexes author, tags and dates of an item of a feed, and the feed itself."""

    name = "feed"
    reads = ()
    fields = {  # noqa: RUF012 - a declaration
        "author": "Author of the item.",
        "tag": "Its categories.",
        "published": "When it was published, as the feed has it.",
        "updated": "When it was last changed, as the feed has it.",
        "feed": "URL of the feed.",
    }

    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Adds the fields to parts of feeds; other pages keep what earlier filters have set."""
        part = pages.get_column("part_of").is_not_null()
        fields = entries_of(pages.get_column("metadata"), ("author", "published", "updated"))
        tags = entries_of(pages.get_column("metadata"), ("tag",))["tag"].str.split("\n")
        fields |= {"tag": tags, "feed": _urls_of_keys(pages.get_column("part_of"))}
        return documents.with_columns(
            _fields_of_parts(documents, name, values, part) for name, values in fields.items()
        )


def _fields_of_parts(
    documents: pl.DataFrame, name: str, values: pl.Series, part: pl.Series
) -> pl.Series:
    """Returns a field with values for parts of feeds; documents without a new value keep theirs."""
    if name not in documents.columns:
        return pl.select(pl.when(part).then(values)).to_series().alias(name)
    earlier_values = documents.get_column(name)
    if earlier_values.dtype != values.dtype:  # a text, and a list
        earlier_values, values = _split_into_lists(earlier_values), _split_into_lists(values)
    return values.zip_with(part & values.is_not_null(), earlier_values).alias(name)


def _split_into_lists(values: pl.Series) -> pl.Series:
    return values if values.dtype == pl.List else values.cast(pl.String).str.split("\n")


def _urls_of_keys(keys: pl.Series) -> pl.Series:
    return from_keys(keys) if keys.null_count() < len(keys) else keys.cast(pl.String)
