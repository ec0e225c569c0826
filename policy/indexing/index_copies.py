"""Index filters that copy facts of pages: ``metadata``, ``links``, ``language``, ``feed`` …"""

import polars as pl

from ...web.urls.domains import suffix_and_domain
from ...web.urls.key_columns import from_keys
from .index_filter import IndexFilter
from .index_pages import entries_of, header, hosts_of_keys, map_distinct, target_urls


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
        own = hosts_of_keys(pages.get_column("key"))
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
        hosts = hosts_of_keys(pages.get_column("key"))
        return documents.with_columns(
            tld=map_distinct(hosts, lambda host: suffix_and_domain(host)[0])
        )


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
        fields |= {"tag": tags, "feed": _urls(pages.get_column("part_of"))}
        return documents.with_columns(
            _of_parts(documents, name, values, part) for name, values in fields.items()
        )


def _of_parts(documents: pl.DataFrame, name: str, values: pl.Series, part: pl.Series) -> pl.Series:
    """Returns a field with values for parts of feeds; documents without a new value keep theirs."""
    if name not in documents.columns:
        return pl.select(pl.when(part).then(values)).to_series().alias(name)
    earlier_values = documents.get_column(name)
    if earlier_values.dtype != values.dtype:  # a text, and a list
        earlier_values, values = _as_lists(earlier_values), _as_lists(values)
    return values.zip_with(part & values.is_not_null(), earlier_values).alias(name)


def _as_lists(values: pl.Series) -> pl.Series:
    return values if values.dtype == pl.List else values.cast(pl.String).str.split("\n")


def _urls(keys: pl.Series) -> pl.Series:
    return from_keys(keys) if keys.null_count() < len(keys) else keys.cast(pl.String)
