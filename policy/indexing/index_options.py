"""Options of index filters."""

import dataclasses

from ...web.base.options import option
from ..scoring.scoring_options import BoostOptions

DEFAULT_FILTERS = ("basic", "anchor", "more", "language")
BUILT_IN_FILTERS = (
    *("basic", "anchor", "more", "metadata", "links", "static", "replace", "expr", "mimetype"),
    *("language", "subcollection", "headings", "feed", "tld", "geoip"),
)


@dataclasses.dataclass(frozen=True)
class IndexFilterOptions(BoostOptions):
    """Options of what a page becomes in an index."""

    GROUP = "index"

    index_filters: tuple[str, ...] = option(
        DEFAULT_FILTERS,
        "Index filters that each page goes through, in this order.",
        nutch="indexingfilter.order",
        pattern="[A-Za-z0-9_.-]+",
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
        nutch="index.parse.md",
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
    )
    subcollections_file: str = option(
        "subcollections.xml",
        "File with the parts of the index for the index filter subcollection.",
        nutch="subcollections.config",
    )
    geoip_databases: tuple[str, ...] = option(
        (),
        "Files of MaxMind databases for the index filter geoip, on each worker; needs "
        "nutbeam[geoip].",
    )
