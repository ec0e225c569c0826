"""Divides what pages give among their links, and adds up what each target gets."""

import polars as pl

from ..web.base.joined_options import joined_options
from ..web.base.options import option
from .base.key_columns import host_keys
from .components.document_schema import DocumentRows
from .components.schema import StateRows
from .scope import TargetOptions
from .scoring.scoring import PassedLinkRows, SharingRows
from .scoring.scorings import OPIC, Scorings
from .traps import DepthOptions


@joined_options
class LinkOptions(TargetOptions, DepthOptions):
    """Options of passing a page's score to its links."""

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


def sum_links(links: PassedLinkRows, scorings: Scorings = OPIC, by: str = "key") -> PassedLinkRows:
    """Adds up the scores of the links to each key; returns a row per key, in no order.

    Args:
        links: ``key``, ``inlink_score``, ``inlink_distance``, perhaps ``known_only``. Scores are
            added in row order.
        scorings: The scorings. Those of their passed columns that have a value are merged; the
            result does not have the others.
        by: Column by which rows are grouped instead of ``key``.

    >>> links = {"key": ["a", "a"], "inlink_score": [0.5, 0.25], "inlink_distance": [3, 2]}
    >>> sum_links(pl.DataFrame(links)).rows()
    [('a', 0.75, 2)]
    """
    merged = [
        column.merge.alias(column.name)
        for column in scorings.passed
        if links.get_column(column.name).null_count() < len(links)
    ]
    if "known_only" in links.columns:
        merged.append(pl.col("known_only").fill_null(False).all())
    # Not sum() of polars: its order of addition depends on the number of threads.
    return (
        links.group_by(by)
        .agg(pl.col("inlink_score"), pl.col("inlink_distance").min(), *merged)
        .with_columns(pl.col("inlink_score").list.sum())
    )


def shares(
    document_rows: DocumentRows, options: LinkOptions, scorings: Scorings = OPIC
) -> tuple[PassedLinkRows, int]:
    """Divides what each page gives among its links.

    Args:
        document_rows: DOCUMENTS rows: ``key``, ``score``, ``distance``, ``outlinks``.
        options: Factors of the shares, and the limit of depth.
        scorings: Scorings that need no rows of the state.

    Returns:
        (a row for each link: ``key``, ``inlink_score``, ``inlink_distance``; number of links
        that were left out as too deep).
    """
    document_rows = document_rows.with_columns(unchanged=pl.lit(False))
    sharing = share_scores(document_rows, options, scorings)
    return _links_of_pages(sharing, options, scorings)[0], count_links_too_deep(sharing)


def share_scores(
    document_rows: DocumentRows,
    options: LinkOptions,
    scorings: Scorings,
    state_rows: StateRows | None = None,
) -> SharingRows:
    """Returns a row per document with what it gives to each link, as ``Scoring.share`` returns it.

    Args:
        document_rows: DOCUMENTS rows with ``unchanged``.
        options: The limit of depth.
        scorings: The scorings.
        state_rows: See ``Scorings.share``.
    """
    targets = pl.col("outlinks").list
    number = targets.len().fill_null(0)
    if options.depth >= 0:
        deep = pl.col("distance").fill_null(0) >= options.depth
        number = pl.when(deep).then(0).otherwise(number)
    pages = document_rows.select(
        "key",
        "distance",
        "unchanged",
        *((pl.col("part_of"),) if scorings.row_columns else ()),
        *(pl.col(name).alias(f"document.{name}") for name in scorings.document_columns),
        score=pl.col("score").fill_null(0.0).cast(pl.Float64),
        outlinks=targets.eval(pl.element().struct.field("key")),
        links=number,
    )
    return scorings.share(pages, state_rows)


def count_links_too_deep(sharing: SharingRows) -> int:
    """Returns the number of links that are not passed on."""
    dropped = sharing.filter(pl.col("links") == 0).get_column("outlinks").list.len().sum()
    return int(dropped or 0)


def links_of_documents(
    sharing: SharingRows, earlier_keys: pl.Series, options: LinkOptions, scorings: Scorings
) -> tuple[PassedLinkRows, int]:
    """Returns a row per link, and how many a scoring left out; those of earlier documents are marked.

    These are ``known_only``, and bring no new URL: parse applied the rules of its time to them, and
    ``filterdb`` may have removed their targets since then.

    Args:
        sharing: What ``share_scores`` returns.
        earlier_keys: Keys of pages that answered 304, so that their documents are earlier ones.
        options: Factors of the shares.
        scorings: The scorings.
    """
    if earlier_keys.is_empty():
        return _links_of_pages(sharing, options, scorings)
    is_old = pl.col("key").is_in(earlier_keys.implode())
    new_links, left_out = _links_of_pages(sharing.filter(~is_old), options, scorings)
    old_links, left_out_of_old = _links_of_pages(sharing.filter(is_old), options, scorings)
    marked = old_links.with_columns(known_only=pl.lit(True))
    return pl.concat([new_links, marked], how="diagonal"), left_out + left_out_of_old


def _links_of_pages(
    sharing: SharingRows, options: LinkOptions, scorings: Scorings
) -> tuple[PassedLinkRows, int]:
    """Returns a row per link, with what its page gives to it; and how many a scoring left out."""
    internal, external = options.internal_link_factor, options.external_link_factor
    passed = [column.name for column in scorings.passed]
    same_factor = internal == external
    # The keys of pages are copied for each link only where they are needed.
    source = [] if same_factor and not scorings.needs_source else [pl.col("key").alias("source")]
    links = (
        sharing.filter(pl.col("links") > 0)
        .select(
            *source,
            *passed,
            pl.col("outlinks").alias("key"),
            inlink_score=pl.col("share") * (internal if same_factor else 1.0),
            inlink_distance=pl.col("distance").fill_null(0).cast(pl.Int32) + 1,
        )
        .explode("key")
        .filter(pl.col("key").is_not_null())
    )
    if not same_factor:
        same = host_keys(links.get_column("source")) == host_keys(links.get_column("key"))
        factor = pl.when(same).then(internal).otherwise(external)
        links = links.with_columns(inlink_score=pl.col("inlink_score") * factor)
    kept = scorings.links(links).select("key", "inlink_score", "inlink_distance", *passed)
    return kept, len(links) - len(kept)
