"""Derives changes from the files of a batch: an event per page, a sum per link target."""

import dataclasses

import polars as pl

from ..web.base.options import option
from ..web.exchange.status import FETCH_SUCCESS, SUCCESS
from ..web.rules.url_rules import host_keys
from .parts import pages_first
from .rule_counts import by_rule
from .schema import CHANGES, conform, to_frame
from .scope import Seeds, TargetOptions, judge
from .traps import DepthOptions

COLUMNS_OF_PAGES = ("key", "score", "distance", "fetch_status", "protocol_status",
                "protocol_message", "http_code", "fetch_time", "response_ms", "content_type",
                "etag", "last_modified", "redirect", "retry_after")  # fmt: skip
DOCUMENT_COLUMNS = ("key", "score", "distance", "parse_status", "signature", "refresh", "outlinks",
                    "part_of", "fetch_time", "content_type")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class LinkOptions(TargetOptions, DepthOptions):
    """Options of passing a page's score to its links (OPIC 1.x)."""

    GROUP = "scoring"

    internal_link_factor: float = option(
        1.0,
        "How much of a page's share goes to a link on the same host.",
        nutch="db.score.link.internal",
        minimum=0.0,
    )
    external_link_factor: float = option(
        1.0,
        "How much of a page's share goes to a link on another host.",
        nutch="db.score.link.external",
        minimum=0.0,
    )


@dataclasses.dataclass(frozen=True)
class BatchOrigin:
    """The batch and the files of pages and documents.

    Attributes:
        order: Position of the pages file in the batch.
        batch: Id of the batch.
        page: Path of the pages file.
        document: Path of the documents file, or None.
    """

    order: int
    batch: str
    page: str
    document: str | None


def changes_of(
    pages: pl.DataFrame,
    documents: pl.DataFrame,
    origin: BatchOrigin,
    seeds: Seeds,
    options: LinkOptions,
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the changes from the pages and documents of one file, with links summed per target.

    Args:
        pages: PAGES rows with the columns ``COLUMNS_OF_PAGES``.
        documents: Their DOCUMENTS rows with the columns ``DOCUMENT_COLUMNS``.
        origin: Their batch and files.
        seeds: Hosts and domains of the seeds, for the scope of redirects.
        options: Rules for targets of links.

    Returns:
        (CHANGES rows, counts of dropped targets by reason).
    """
    # A file of a resumed attempt may have a key twice: the first row counts.
    once = pages.unique("key", keep="first", maintain_order=True)
    documents = pages_first(documents)
    parsed = documents.select("key", "signature", "parse_status", has_document=pl.lit(True))
    events = once.join(parsed, on="key", how="left", maintain_order="left").with_columns(
        page=pl.lit(origin.page),
        document=pl.when(pl.col("has_document")).then(pl.lit(origin.document, pl.String)),
        batch_id=pl.lit(origin.batch),
    )
    redirects, counts = _redirects(once, documents, seeds, options)
    shared, too_deep = shares(documents, options)
    if too_deep:
        counts["dropped/too_deep"] = too_deep
    told, by_pages = _parts(documents, once, origin, options)
    sums = sum_links(pl.concat([shared, redirects, by_pages]))
    rows = [to_frame(conform(part, CHANGES)) for part in (events, told, sums)]
    return pl.concat(rows).with_columns(order=pl.lit(origin.order, pl.Int64)), counts


def _parts(
    documents: pl.DataFrame, pages: pl.DataFrame, origin: BatchOrigin, options: LinkOptions
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns an event for each part that is a document, and a link to it without score."""
    parts = documents.filter(pl.col("part_of").is_not_null())
    parts = parts.join(pages, on="key", how="anti", maintain_order="left")
    if options.depth >= 0:
        parts = parts.filter(pl.col("distance").fill_null(0) <= options.depth)
    events = parts.select(
        *("key", "fetch_time", "content_type", "signature", "parse_status"),
        fetch_status=pl.lit(FETCH_SUCCESS),
        protocol_status=pl.lit(SUCCESS),
        batch_id=pl.lit(origin.batch),
        document=pl.lit(origin.document, pl.String),
        part=pl.lit(True),
    )
    return events, _without_score(parts)


def _without_score(targets: pl.DataFrame) -> pl.DataFrame:
    """Returns links that have a distance but no score."""
    distance = pl.col("distance").fill_null(0).cast(pl.Int32)
    return targets.select("key", inlink_score=pl.lit(0.0), inlink_distance=distance)


def sum_links(links: pl.DataFrame) -> pl.DataFrame:
    """Adds up the scores of the links to each key, in the order of rows; keys have no order.

    >>> links = {"key": ["a", "a"], "inlink_score": [0.5, 0.25], "inlink_distance": [3, 2]}
    >>> sum_links(pl.DataFrame(links)).rows()
    [('a', 0.75, 2)]
    """
    # Not sum() of polars: its order of addition depends on the number of threads.
    return (
        links.group_by("key")
        .agg(pl.col("inlink_score"), pl.col("inlink_distance").min())
        .with_columns(pl.col("inlink_score").list.sum())
    )


def shares(documents: pl.DataFrame, options: LinkOptions) -> tuple[pl.DataFrame, int]:
    """Divides each page's score among its links (the page keeps its own: OPIC 1.x).

    Args:
        documents: DOCUMENTS rows: ``key``, ``score``, ``distance``, ``outlinks``.
        options: Factors of the shares, and the limit of depth.

    Returns:
        (a row for each link: ``key``, ``inlink_score``, ``inlink_distance``; number of links
        that were left out as too deep).
    """
    too_deep = 0
    if options.depth >= 0:
        deep = pl.col("distance").fill_null(0) >= options.depth
        too_deep = int(documents.filter(deep).get_column("outlinks").list.len().sum() or 0)
        documents = documents.filter(~deep)
    score, outlinks = pl.col("score").fill_null(0.0).cast(pl.Float64), pl.col("outlinks").list
    links = (
        documents.select(
            pl.col("key").alias("source"),
            outlinks.eval(pl.element().struct.field("key")).alias("key"),
            share=score / outlinks.len(),
            inlink_distance=pl.col("distance").fill_null(0).cast(pl.Int32) + 1,
        )
        .explode("key")
        .filter(pl.col("key").is_not_null())
    )
    factor: pl.Expr = pl.lit(options.internal_link_factor)
    if options.internal_link_factor != options.external_link_factor:
        same = host_keys(links.get_column("source")) == host_keys(links.get_column("key"))
        factor = pl.when(same).then(factor).otherwise(options.external_link_factor)
    score = pl.col("share") * factor
    return links.select("key", score.alias("inlink_score"), "inlink_distance"), too_deep


def _redirects(
    pages: pl.DataFrame, documents: pl.DataFrame, seeds: Seeds, options: LinkOptions
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the targets of redirects and refreshes, as links without score."""
    found = pl.concat(
        part.filter(pl.col(name).is_not_null()).select(
            pl.col("key").alias("source"), "distance", pl.col(name).alias("url")
        )
        for part, name in ((pages, "redirect"), (documents, "refresh"))
    )
    found = judge(found, found.get_column("url"), "fetcher", options, seeds)
    dropped = found.get_column("reason").drop_nulls().value_counts()
    counts = {f"dropped/redirect_{reason}": number for reason, number in dropped.iter_rows()}
    counts |= by_rule(found)
    return _without_score(found.filter(pl.col("reason").is_null())), counts
