"""Edges: the links of documents as changes of the link table, and links of pages in no table as rows.

A page that has links gives one change per target. A document that is not the newest one of its page
any more gives one tombstone per target: the resolver keeps the link if the newer document has it,
too. So no two documents are compared, and each file is read once. Texts of links are cleaned, cut, and
joined as Nutch does.
"""

from collections.abc import Callable
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from ...web.base.columns import each_once, repeat_value
from ...web.base.dataclass import dataclass
from ...web.base.options import option, shared_option
from ..base.key_columns import host_keys
from ..components.document_schema import DOCUMENTS, DocumentRows
from ..components.link_rows import (
    INLINKS,
    LISTS_OF_LINKS,
    SEPARATOR,
    LinkRows,
    link_keys,
    says_nofollow,
)
from ..components.schema import TEXT, columns
from ..schedules.schedule import ScheduleOptions

# Most different texts that an edge keeps: a page may link to another one very often.
MAX_TEXTS = 16
# Characters that are read of a text before white space is collapsed, as a multiple of the limit.
_READ = 4
_UNCLEAN = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|^\s|\s\s|\s$"
# The changes of invertlinks. Tombstones have only ``key``, ``time`` and ``gone``.
LINK_CHANGES = pa.schema(
    [
        *columns(INLINKS, "key"),
        # Null if they are the two halves of the key.
        *columns(INLINKS, "target", "source", "anchor", "rel", "score"),
        ("time", pa.int64()),  # when the source was fetched
        ("first", pa.int64()),  # when it was first found to have the link; null: then
        ("gone", pa.bool_()),
    ]
)
LinkChangeRows: TypeAlias = pl.DataFrame  # columns of LINK_CHANGES
InlinkRows: TypeAlias = pl.DataFrame  # columns of INLINK
# A link of pages that are in no table.
LINKS_COMPONENT = "links"
INLINK = pa.schema(
    [
        ("url", TEXT),  # the target
        ("source", TEXT),
        ("anchor", TEXT),
        ("rel", TEXT),
        ("score", pa.float64()),
        ("external", pa.bool_()),
    ]
)
# The best inlinks of a page are the last ones in this order.
BEST_LAST = ("score", "external", "source")
RELS = ("nofollow", "sponsored", "ugc")
_OUTLINKS = pl.Schema(DOCUMENTS)["outlinks"]
# Without user and port.
_HOST = r"(?i)^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:]*)"


@dataclass(frozen=True)
class InvertOptions:
    """Which links are kept in the link table, and for how long."""

    GROUP = "links"

    ignore_internal_links: bool = option(
        False,
        "Leave links between pages of one host out of the link table. A crawl of one site has no "
        "other links.",
        nutch="linkdb.ignore.internal.links",
    )
    ignore_external_links: bool = option(
        False,
        "Leave links between pages of different hosts out of the link table.",
        nutch="linkdb.ignore.external.links",
    )
    max_anchor_length: int = option(
        100,
        "How much of the text of a link is kept.",
        unit="characters",
        nutch="linkdb.max.anchor.length",
        minimum=0,
    )
    max_link_age: int = option(
        0,
        "Drop links that were not found again for longer than this. A link in the newest document "
        "of its page stays. 0 means twice --max_fetch_interval.",
        unit="s",
        minimum=0,
    )

    def __post_init__(self) -> None:
        check = getattr(super(), "__post_init__", None)
        if check is not None:
            check()
        if self.ignore_internal_links and self.ignore_external_links:
            raise ValueError(
                "--ignore_internal_links and --ignore_external_links together leave no link, "
                "got true and true"
            )


ALL_LINKS = InvertOptions()


@dataclass(frozen=True)
class InvertTableOptions(InvertOptions):
    """Options of inverting links, without those of launching."""

    max_fetch_interval: int = shared_option(ScheduleOptions, "max_fetch_interval")

    @property
    def oldest_ms(self) -> int:
        """The age at which a link that is not seen any more is dropped, ms."""
        return 1000 * (self.max_link_age or 2 * self.max_fetch_interval)


@dataclass(frozen=True)
class BestOptions:
    """How many inlinks of a page are shown and used."""

    GROUP = "links"

    max_inlinks: int = option(
        10_000,
        "How many inlinks of a page are shown: those from the pages with the best scores; among "
        "equal scores, links from other hosts come first.",
        nutch="linkdb.max.inlinks",
        minimum=0,
    )


def clean_anchors(anchors: pl.Series, longest: int) -> pl.Series:
    """Returns texts of links, cut, on one line; null for empty ones.

    >>> clean_anchors(pl.Series([" a\\tb\\n", "", "long text", None]), 4).to_list()
    ['a b', None, 'long', None]
    """
    if not longest:
        return repeat_value(None, len(anchors), pl.String)
    texts = anchors.str.slice(0, _READ * longest)
    unclean = texts.str.contains(_UNCLEAN).fill_null(False)
    if unclean.any():
        spaced = texts.filter(unclean).str.replace_all(r"[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+", " ")
        texts = texts.scatter(unclean.arg_true(), spaced.str.strip_chars())
    cut = texts.str.slice(0, longest).str.strip_chars_end()
    return cut.set(cut == "", None)


def anchors_of(links: LinkRows) -> list[str]:
    """Returns the texts under which a page is found: each once per host of a source, as in Nutch.

    Args:
        links: Rows of the link table with one target, best first: ``source``, ``anchor`` and
            perhaps ``rel``; texts of links that say nofollow are left out.

    >>> anchors_of(pl.DataFrame({"source": ["com.a:http/1", "com.a:http/2", "com.b:http/"],
    ...     "anchor": ["Home\\nStart", "Home", "Home"]}))
    ['Home', 'Start', 'Home']
    """
    anchors = anchors_by_target(links.with_columns(target=pl.lit("")))
    return anchors.get_column("anchors").explode().to_list()


def anchors_by_target(links: LinkRows) -> pl.DataFrame:
    """Returns ``target`` and ``anchors``, as ``anchors_of`` returns them, of targets that have some.

    Args:
        links: Rows of the link table, best first of each target: ``target``, ``source``,
            ``anchor`` and perhaps ``rel``.
    """
    if "rel" in links.columns:
        links = links.filter(~says_nofollow(pl.col("rel")))
    texts = links.select(
        "target", pl.col("anchor").str.split("\n"), host=host_keys(links.get_column("source"))
    ).explode("anchor")
    texts = texts.filter(pl.col("anchor").is_not_null() & (pl.col("anchor") != ""))
    texts = texts.unique(["target", "host", "anchor"], keep="first", maintain_order=True)
    return texts.group_by("target", maintain_order=True).agg(anchors="anchor")


def edges_of(
    documents: DocumentRows, options: InvertOptions
) -> tuple[LinkChangeRows, dict[str, int]]:
    """Returns the links of documents as changes, one per source and target.

    Args:
        documents: DOCUMENTS rows with the columns ``EDGES_OF``, perhaps without
            ``nofollow_links``; each key once.
        options: Which links are kept.

    Returns:
        (LINK_CHANGES rows; numbers of links that were left out, by reason).

    >>> documents = pl.DataFrame({"key": ["com.a:http/"], "fetch_time": [5], "score": [1.0],
    ...     "outlinks": [[{"key": "com.b:http/", "anchor": "B", "rel": "ugc"}]]})
    >>> edges_of(documents, InvertOptions())[0].select("key", "anchor", "rel", "time").rows()
    [('com.b:http/ com.a:http/', 'B', 'ugc', 5)]
    """
    links, counts = _links(documents, options)
    keys = link_keys(links.get_column("target"), links.get_column("source"))
    anchors = clean_anchors(links.get_column("anchor"), options.max_anchor_length)
    links = links.with_columns(
        keys, anchors.alias("anchor"), rel=_known_rel(links.get_column("rel"))
    )
    links = merge_rows(links)
    whole = ~links.get_column("key").str.contains("#", literal=True)
    halves = pl.col("target", "source")
    links = links.with_columns(
        pl.when(~whole).then(halves), gone=pl.lit(False), first=pl.lit(None, pl.Int64)
    )
    return links.select(LINK_CHANGES.names), counts


def tombstones_of(documents: DocumentRows, times: pl.DataFrame) -> LinkChangeRows:
    """Returns tombstones for the links of documents that are not the newest ones of their pages.

    They are for all links, also for those that today's options leave out: the link table may have
    them from the day when other options held.

    Args:
        documents: DOCUMENTS rows with ``key``, ``outlinks`` and perhaps ``nofollow_links``; each
            key once.
        times: ``key`` and ``time``: when each page was fetched again, ms.
    """
    wide = documents.with_columns(fetch_time=pl.lit(0), score=pl.lit(0.0))
    links, _ = _links(wide, InvertOptions())
    times = times.select(source="key", then="time")
    links = links.join(times, on="source", how="inner", maintain_order="left")
    keys = link_keys(links.get_column("target"), links.get_column("source"))
    return links.select(keys, time="then", gone=pl.lit(True)).unique("key")


def with_halves(changes: LinkChangeRows) -> LinkChangeRows:
    """Returns changes with target and source where the key says them."""
    split = pl.col("key").str.split_exact(SEPARATOR, 1).struct
    return changes.with_columns(
        target=pl.coalesce("target", split.field("field_0")),
        source=pl.coalesce("source", split.field("field_1")),
    )


def _links(documents: DocumentRows, options: InvertOptions) -> tuple[LinkRows, dict[str, int]]:
    """Returns a row per link that is kept, and the numbers of others by reason."""
    lists = [pl.col(name) for name in LISTS_OF_LINKS if name in documents.columns]
    time, score = pl.col("fetch_time").cast(pl.Int64), pl.col("score").cast(pl.Float32)
    of_page = {"source": pl.col("key"), "time": time, "score": score}
    links = [_one_row_per_link(documents, each.cast(_OUTLINKS), "key", **of_page) for each in lists]
    return _kept_links(pl.concat(links), options, host_keys)


def _one_row_per_link(
    rows: pl.DataFrame, links: pl.Expr, target: str, **columns: pl.Expr
) -> LinkRows:
    """Returns the columns of rows, and the fields of one of their links; ``target``: a name of one."""
    link = pl.col("links").struct
    fields = (link.field(target).alias("target"), link.field("anchor"), link.field("rel"))
    listed = rows.filter(links.list.len() > 0).select(links.alias("links"), **columns)
    return listed.explode("links").select(*columns, *fields)


def _kept_links(
    links: LinkRows, options: InvertOptions, hosts: Callable[[pl.Series], pl.Series]
) -> tuple[LinkRows, dict[str, int]]:
    """Returns the links that options keep, and the numbers of others by reason.

    A link of a page to itself is never kept.

    Args:
        links: Columns ``source`` and ``target``, and others.
        options: Which links are kept.
        hosts: Returns the hosts of a column of sources or targets.
    """
    total = len(links)
    links = links.filter(pl.col("target").is_not_null() & (pl.col("target") != pl.col("source")))
    counts = {"dropped/own_url": total - len(links)}
    if options.ignore_internal_links or options.ignore_external_links:
        same = hosts(links.get_column("target")) == hosts(links.get_column("source"))
        admitted_links = links.filter(~same if options.ignore_internal_links else same)
        reason = "internal_link" if options.ignore_internal_links else "external_link"
        counts[f"dropped/{reason}"] = len(links) - len(admitted_links)
        links = admitted_links
    return links, {name: number for name, number in counts.items() if number}


def _known_rel(rels: pl.Series) -> pl.Series:
    """Returns the known words of attributes ``rel``, in the order of ``RELS``; null for none."""

    def known_words(rel: str) -> str | None:
        words = rel.lower().replace(",", " ").split()
        return " ".join(word for word in RELS if word in words) or None

    return each_once(rels, known_words).alias("rel")


def merge_rows(links: LinkRows) -> LinkRows:
    """Returns one row per key: its texts, and the words of ``rel`` that all its links have.

    A key with links that are followed and links that are not gets the texts of the former only: the
    others are no anchors, as in Nutch, and the row cannot tell whose a text is.

    Args:
        links: ``key``, ``anchor``, ``rel`` with words of ``RELS``, and columns of which the first
            value of a key stays.
    """
    hashes = links.get_column("key").hash()
    once = hashes.is_unique()
    if once.all():
        return links
    followed = ~says_nofollow(pl.col("rel"))
    anchors = pl.col("anchor").filter(followed | ~followed.any())
    lines = anchors.drop_nulls().str.split("\n").explode().drop_nulls()
    texts = lines.unique(maintain_order=True).head(MAX_TEXTS)
    words = pl.col("rel").fill_null("").str.split(" ")
    in_all = [
        pl.when(words.list.contains(word).all()).then(pl.lit(word)).alias(word) for word in RELS
    ]
    same = pl.exclude("key", "anchor", "rel", *RELS).first()
    several = (
        links.filter(~once)
        .group_by("key", maintain_order=True)
        .agg(same, texts.str.join("\n").alias("anchor"), *in_all)
        .with_columns(
            anchor=pl.when(pl.col("anchor") != "").then("anchor"),
            rel=pl.concat_str(*RELS, separator=" ", ignore_nulls=True),
        )
        .with_columns(rel=pl.when(pl.col("rel") != "").then("rel"))
        .drop(RELS)
    )
    return pl.concat([links.filter(once), several.select(links.columns)])


def page_edges(pages: pl.DataFrame, options: InvertOptions = ALL_LINKS) -> InlinkRows:
    """Returns the links of pages: INLINK rows, one per source and target.

    Args:
        pages: ``url``, ``links`` (each with ``url``, ``anchor``, ``rel``) and perhaps ``score``.
        options: Which links are kept.

    >>> pages = pl.DataFrame({"url": ["http://a.com/"],
    ...     "links": [[{"url": "http://b.com/", "anchor": "B", "rel": "UGC"}]]})
    >>> page_edges(pages).rows()
    [('http://b.com/', 'http://a.com/', 'B', 'ugc', 0.0, True)]
    """
    score = pl.col("score") if "score" in pages.columns else pl.lit(None)
    score = score.cast(pl.Float64).fill_null(0.0)
    links = _one_row_per_link(pages, pl.col("links"), "url", source=pl.col("url"), score=score)
    links, _ = _kept_links(links, options, _hosts)
    links = links.with_columns(
        clean_anchors(links.get_column("anchor"), options.max_anchor_length).alias("anchor"),
        rel=_known_rel(links.get_column("rel")),
        external=_hosts(links.get_column("target")) != _hosts(links.get_column("source")),
        key=pl.col("target") + " " + pl.col("source"),
    )
    return merge_rows(links).rename({"target": "url"}).select(INLINK.names)


def _hosts(urls: pl.Series) -> pl.Series:
    return urls.str.extract(_HOST).str.to_lowercase().fill_null("")
