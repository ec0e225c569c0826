"""The interface of index filters: functions on frames that make fields, or leave documents out.

Also the options of all filters, and what filters read in columns of pages.
"""

import abc
from collections.abc import Iterable

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.options import option, shared_option
from ...web.content.content_type import TYPE_FOUND
from ...web.plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ...web.plugins.plugin_options import PluginOptions
from ..base.key_columns import from_keys
from ..chosen_text import MAIN, TextOptions
from ..components.index_schema import DROPPED
from ..scoring.scoring import BoostOptions

DEFAULT_FILTERS = ("basic", "anchor", "more", "language")
BUILT_IN_FILTERS = (
    *("basic", "anchor", "more", "metadata", "links", "static", "replace", "expr", "mimetype"),
    *("language", "subcollection", "headings", "feed", "tld", "geoip"),
)


@dataclass(frozen=True)
class IndexFilterOptions(BoostOptions, PluginOptions):
    """Options of what a page becomes in an index."""

    GROUP = "index"

    index_filters: tuple[str, ...] = option(
        DEFAULT_FILTERS,
        "Index filters that each page goes through, in this order.",
        nutch="indexingfilter.order",
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
    )
    max_title_length: int = option(
        100,
        "Longest title in the index, in characters; -1: no limit.",
        nutch="indexer.max.title.length",
        minimum=-1,
    )
    max_content_length: int = option(
        -1,
        "Longest text in the index, in characters; -1: no limit. Texts of more than 8,388,608 "
        "characters are always cut.",
        nutch="indexer.max.content.length",
        minimum=-1,
    )
    text_of: str = shared_option(TextOptions, "text_of", default=MAIN)
    add_domain: bool = option(
        False, "Add the registered domain to each document.", nutch="indexer.add.domain"
    )
    anchor_deduplicate: bool = option(
        False,
        "Index equal texts of links to a page once.",
        nutch="anchorIndexingFilter.deduplicate",
    )
    mime_type_parts: bool = option(
        True,
        "Add the parts of the MIME type to `type`: `text` and `html` besides `text/html`.",
        nutch="moreIndexingFilter.indexMimeTypeParts",
    )
    index_parse_md: tuple[str, ...] = option(
        (),
        "Names of metadata of pages that become fields.",
        nutch="index.parse.md, index.metadata",
    )
    index_content_md: tuple[str, ...] = option(
        (), "Names of response headers that become fields.", nutch="index.content.md"
    )
    index_db_md: tuple[str, ...] = option(
        (), "Names of metadata of rows that become fields.", nutch="index.db.md"
    )
    links_outlinks_host_ignore: bool = option(
        False,
        "Leave links within the host out of `outlinks`.",
        nutch="index.links.outlinks.host.ignore",
    )
    links_inlinks_host_ignore: bool = option(
        False,
        "Leave links within the host out of `inlinks`.",
        nutch="index.links.inlinks.host.ignore",
    )
    links_hosts_only: bool = option(
        False, "Index the hosts of links instead of their URLs.", nutch="index.links.hosts.only"
    )
    index_static: tuple[str, ...] = option(
        (),
        "Fields that all documents get, each as `name:value value`.",
        nutch="index.static",
    )
    index_replace: str = option(
        "",
        "Replacements in fields, as Nutch writes them: lines of `field=/regex/text/flags`, after "
        "lines `hostmatch=regex` or `urlmatch=regex` for some pages only.",
        nutch="index.replace.regexp",
    )
    index_expr: str = option(
        "",
        "With the index filter expr: index only documents for which this expression is true.",
        nutch="index.jexl.filter",
    )
    index_headings: tuple[str, ...] = option(
        ("h1", "h2"), "Headings that become fields.", nutch="headings"
    )
    mimetype_file: str = option(
        "",
        "File with the MIME types that the index filter mimetype accepts or refuses.",
        nutch="mimetype.filter.file",
        takes="path",
    )
    subcollections_file: str = option(
        "subcollections.xml",
        "File with the parts of the index for the index filter subcollection.",
        nutch="subcollections.config",
        takes="path",
    )
    geoip_databases: tuple[str, ...] = option(
        (),
        "Files of MaxMind databases for the index filter geoip, on each worker; needs "
        "nutbeam[geoip].",
        takes="path",
    )


# Columns of INDEX_PAGES that are neither in documents nor in the state, so that reading them costs.
ELSEWHERE = ("headers", "ip", "anchors", "inlinks")


class IndexFilter(abc.ABC):
    """An index filter. Subclasses define ``apply``.

    Each process of a run makes one, whose ``apply`` several threads may call at once.

    Args:
        options: Options of all filters.

    Attributes:
        name: Its name in ``--index_filters``.
        fields: Fields that it may add, with their meaning.
        reads: Those of ``ELSEWHERE`` that it reads; the others may be null.
    """

    name = ""
    reads: tuple[str, ...] = ELSEWHERE
    fields: dict[str, str] = {}  # noqa: RUF012 - a declaration

    def __init__(self, options: IndexFilterOptions) -> None:
        self.options = options

    @abc.abstractmethod
    def apply(self, documents: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
        """Returns the documents with more fields, or with ``dropped_by`` set.

        Args:
            documents: One row per page, in its order: ``id``, fields of earlier filters, and
                ``dropped_by``. A field is text, a number, a time in ms, or a list of texts; a
                document does not have fields that are null.
            pages: INDEX_PAGES rows.
        """

    def dropping(self, documents: pl.DataFrame, unwanted: pl.Series) -> pl.DataFrame:
        """Returns the documents; unwanted ones are left out by this filter."""
        hit = documents.get_column(DROPPED).is_null() & unwanted.fill_null(False)
        dropped = pl.when(hit).then(pl.lit(self.name)).otherwise(DROPPED)
        return documents.with_columns(dropped.alias(DROPPED))


def target_urls(links: pl.Series) -> pl.Series:
    """Returns the URLs of the targets in a column of LINKS."""
    keys = links.list.eval(pl.element().struct.field("key"))
    flat = keys.explode().drop_nulls().unique()
    return keys.list.eval(
        pl.element().replace_strict(flat, from_keys(flat), return_dtype=pl.String)
    )


def entries_of(column: pl.Series, names: Iterable[str]) -> dict[str, pl.Series]:
    """Returns the values of some names of a column of maps."""
    struct = pl.Struct({"key": pl.String, "value": pl.String})
    pairs = column.cast(pl.List(struct))
    return {
        name: pairs.list.eval(
            pl.element().filter(pl.element().struct.field("key") == name).struct.field("value")
        ).list.first()
        for name in names
    }


def types_of_pages(pages: pl.DataFrame) -> pl.Series:
    """Returns the MIME type of each page: as its bytes show, if its header has another one or none."""
    by_bytes = entries_of(pages.get_column("metadata"), [TYPE_FOUND])[TYPE_FOUND]
    declared = pl.col("content_type").str.split(";").list.first().str.strip_chars()
    return pages.select(pl.coalesce(by_bytes, declared.str.to_lowercase())).to_series()


def header(headers: pl.Series, name: str) -> pl.Series:
    """Returns the first value of a header, by its name in lower case."""
    element = pl.element()
    named = element.filter(element.struct.field("name").str.to_lowercase() == name)
    return headers.list.eval(named.struct.field("value")).list.first()
