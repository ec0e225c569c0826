"""Derives changes from the files of a batch: an event per page, a sum per link target."""

import dataclasses
from collections.abc import Collection, Iterable
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ..web.base.options import option
from ..web.exchange.status import FETCH_NOTMODIFIED, FETCH_REDIR_PERM, FETCH_SUCCESS, SUCCESS
from ..web.rules.url_rules import host_keys
from .components.batch_rows import unique_documents
from .components.schema import (
    CHANGES,
    DOCUMENTS,
    FETCHLIST,
    STATE,
    columns,
    conformed,
    empty,
)
from .components.seeds import Seeds
from .heirs import INHERITED, heirs
from .rule_counts import by_rule
from .scope import TargetOptions, judge
from .scoring.scorings import OPIC, Scorings
from .traps import DepthOptions

COLUMNS_OF_PAGES = ("key", "score", "distance", "fetch_status", "protocol_status",
                "protocol_message", "http_code", "fetch_time", "response_ms", "content_type",
                "etag", "last_modified", "redirect", "retry_after")  # fmt: skip
DOCUMENT_COLUMNS = ("key", "score", "distance", "parse_status", "signature", "refresh",
                    "refresh_seconds", "outlinks", "part_of", "fetch_time", "content_type", "usage")  # fmt: skip
OF_REFRESH = ("key", "distance", "refresh", "refresh_seconds")
# What changes depend on of documents of pages that answered 304, and of the rows before.
OF_UNCHANGED = ("key", "refresh", "refresh_seconds", "outlinks", "part_of")
LISTED = ("key", "signature", "document", "repr_url", *INHERITED)
# A meta refresh counts as a permanent redirect from this time on, s.
_PERMANENT_REFRESH_S = 5
_TYPES = empty(DOCUMENTS).schema


@dataclasses.dataclass(frozen=True)
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


@dataclasses.dataclass(frozen=True)
class BatchOrigin:
    """Where changes come from.

    Attributes:
        order: Position of links and parts of pages among those of the batch.
        batch: Id of the batch.
        document: Path of the documents file, or None.
    """

    order: int
    batch: str
    document: str | None = None


class Before(NamedTuple):
    """Rows of the fetched pages from before the fetch.

    Attributes:
        rows: FETCHLIST rows of these pages, with the columns ``LISTED``; a page that the fetch
            followed has none.
        documents: DOCUMENTS rows of the newest bodies of pages that answered 304, with the columns
            ``OF_UNCHANGED``.
        alone: Keys of pages for which no other URL stands any more.
        followed: Rows of the state with ``key`` and ``signature``, of known pages that the fetch
            followed.
        known: The rows of the pages in the state, with ``row_columns`` of the scorings, if these
            need any.
    """

    rows: pl.DataFrame = empty(FETCHLIST)
    documents: pl.DataFrame = empty(DOCUMENTS)
    alone: Collection[str] = ()
    followed: pl.DataFrame = empty(STATE)
    known: pl.DataFrame | None = None


_NOTHING = Before()


class PageChanges(NamedTuple):
    """The changes from some pages. All together they are CHANGES rows.

    Only one change of sixty is an event. So links do not have the columns of events.

    Attributes:
        events: CHANGES rows: an event per page, and per part that is a document.
        links: ``key``, ``order``, ``inlink_score``, ``inlink_distance``, perhaps ``known_only``, and
            those columns of scorings that have a value: a row per target.
        heirs: What targets of redirects inherit: ``key``, ``order`` and the inherited columns.
    """

    events: pl.DataFrame
    links: pl.DataFrame
    heirs: pl.DataFrame


def in_file(pages: pl.DataFrame, path: str, order: int) -> pl.DataFrame:
    """Adds to PAGES rows their file (``page``) and its position in the batch (``order``)."""
    return pages.with_columns(page=pl.lit(path), order=pl.lit(order, pl.Int64))


def changes_of(
    pages: pl.DataFrame,
    documents: pl.DataFrame,
    origin: BatchOrigin,
    seeds: Seeds,
    options: LinkOptions,
    scorings: Scorings = OPIC,
    before: Before = _NOTHING,
) -> tuple[PageChanges, dict[str, int]]:
    """Returns the changes from pages and their documents, with links summed per target.

    Args:
        pages: PAGES rows with the columns ``COLUMNS_OF_PAGES`` and those of ``in_file``.
        documents: Their DOCUMENTS rows with the columns ``DOCUMENT_COLUMNS`` and those that the
            scorings need.
        origin: Their batch, the file of the documents, and the position of their links.
        seeds: Hosts and domains of the seeds, for the scope of redirects.
        options: Rules for targets of links.
        scorings: The scorings.
        before: What was known of these pages before.

    Returns:
        (the changes, with the columns that the scorings add; counts of dropped targets by reason).
    """
    # A file of a resumed attempt may have a key twice: the first row counts.
    once = pages.unique("key", keep="first", maintain_order=True)
    documents = unique_documents(documents)
    events = _events(once, documents, origin)
    unchanged = _unchanged(once, before)
    refreshing = [rows.select(*OF_REFRESH) for rows in (documents, unchanged)]
    redirects, counts = _redirects(once, pl.concat(refreshing), seeds, options)
    linking = _linking(documents, unchanged, before)
    pages = scorings.share(_pages(linking, options, scorings, before.known))
    if too_deep := _dropped(pages):
        counts["dropped/too_deep"] = too_deep
    parts = documents.filter(pl.col("part_of").is_not_null())
    parts = parts.join(once, on="key", how="anti", maintain_order="left")
    given = None
    if scorings.passed:
        sources = pl.concat([redirects.get_column("source"), parts.get_column("part_of")])
        giving = once.filter(pl.col("key").is_in(sources.implode()))
        if len(giving):
            given = _given_to_targets(giving, scorings, before.known)
    parts, by_pages = _linked_parts(parts, given, options, scorings)
    of_parts = _events_of_parts(parts, origin)
    if given is not None:
        redirects = _with_given(redirects, given, scorings).drop("links")
    inherited = heirs(redirects, before.rows, before.alone)
    shared, left_out = _marked_links(pages, unchanged, options, scorings)
    if left_out:
        counts["dropped/by_scoring"] = left_out
    links = [shared, redirects.drop("source", "temporary"), by_pages]
    # In one piece: polars groups a column of several pieces half as fast.
    sums = sum_links(pl.concat(links, how="diagonal", rechunk=True), scorings)
    both = [_with_own(part, pages, scorings) for part in (events, of_parts)]
    return _typed(both, (sums, inherited), scorings.changes(CHANGES), origin.order), counts


def _typed(
    events: Iterable[pl.DataFrame], others: Iterable[pl.DataFrame], schema: pa.Schema, order: int
) -> PageChanges:
    """Returns changes with the types of a schema; all but events only with the columns they have.

    Where there is no ``order`` yet, it is the given one.
    """
    position = pl.lit(order, pl.Int64).alias("order")
    wide = pl.concat([conformed(part, schema) for part in events])
    narrow = (conformed(part, pa.schema(columns(schema, *part.columns))) for part in others)
    placed = (part.with_columns(position) for part in narrow)
    return PageChanges(wide.with_columns(pl.col("order").fill_null(order)), *placed)


def _events(pages: pl.DataFrame, documents: pl.DataFrame, origin: BatchOrigin) -> pl.DataFrame:
    """Returns an event per page, with what its document says."""
    parsed = documents.select(
        "key", "signature", "parse_status", "usage", has_document=pl.lit(True)
    )
    return pages.join(parsed, on="key", how="left", maintain_order="left").with_columns(
        document=pl.when(pl.col("has_document")).then(pl.lit(origin.document, pl.String)),
        batch_id=pl.lit(origin.batch),
    )


def _with_own(events: pl.DataFrame, pages: pl.DataFrame, scorings: Scorings) -> pl.DataFrame:
    """Adds the columns that scorings store in rows of pages."""
    if not scorings.own:
        return events
    own = pages.select("key", *(column.name for column in scorings.own))
    return events.join(own, on="key", how="left", maintain_order="left")


def _unchanged(pages: pl.DataFrame, before: Before) -> pl.DataFrame:
    """Returns the documents of pages that answered 304, with the pages' distances."""
    answered = pages.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED).select("key", "distance")
    return before.documents.select(*OF_UNCHANGED).join(answered, on="key")


def _linking(documents: pl.DataFrame, kept: pl.DataFrame, before: Before) -> pl.DataFrame:
    """Returns the documents whose links count as seen; those of unchanged pages give no score.

    Args:
        documents: Documents of bodies that were fetched.
        kept: Those of pages that answered 304, see ``_unchanged``.
        before: What was known of the pages.
    """
    known = (before.rows, before.followed)
    old = pl.concat(rows.select("key", old="signature") for rows in known)
    unchanged = (pl.col("signature") == pl.col("old")).fill_null(False)
    score = pl.when(unchanged).then(0.0).otherwise("score")
    judged = documents.join(old, on="key", how="left", maintain_order="left")
    judged = judged.with_columns(score.cast(pl.Float32).alias("score"), unchanged=unchanged)
    judged = judged.drop("old")
    kept = kept.with_columns(score=pl.lit(0.0, pl.Float32), unchanged=pl.lit(True))
    return pl.concat([judged, kept], how="diagonal")


def _linked_parts(
    parts: pl.DataFrame, given: pl.DataFrame | None, options: LinkOptions, scorings: Scorings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (the parts that are documents and not too deep, a link to each without score)."""
    if options.depth >= 0:
        parts = parts.filter(pl.col("distance").fill_null(0) <= options.depth)
    links = _without_score(parts).hstack(parts.select(source="part_of"))
    if given is not None:
        links = _with_given(links, given, scorings)
        links = links.filter((pl.col("links") != 0).fill_null(True)).drop("links")
        parts = parts.join(links, on="key", how="semi", maintain_order="left")
    return parts, links.drop("source")


def _events_of_parts(parts: pl.DataFrame, origin: BatchOrigin) -> pl.DataFrame:
    """Returns an event for each part that is a document."""
    return parts.select(
        *("key", "fetch_time", "content_type", "signature", "parse_status", "usage"),
        fetch_status=pl.lit(FETCH_SUCCESS),
        protocol_status=pl.lit(SUCCESS),
        batch_id=pl.lit(origin.batch),
        document=pl.lit(origin.document, pl.String),
        part=pl.lit(True),
    )


def _without_score(targets: pl.DataFrame) -> pl.DataFrame:
    """Returns links that have a distance but no score."""
    distance = pl.col("distance").fill_null(0).cast(pl.Int32)
    return targets.select("key", inlink_score=pl.lit(0.0), inlink_distance=distance)


def sum_links(links: pl.DataFrame, scorings: Scorings = OPIC, by: str = "key") -> pl.DataFrame:
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
    documents: pl.DataFrame, options: LinkOptions, scorings: Scorings = OPIC
) -> tuple[pl.DataFrame, int]:
    """Divides what each page gives among its links.

    Args:
        documents: DOCUMENTS rows: ``key``, ``score``, ``distance``, ``outlinks``.
        options: Factors of the shares, and the limit of depth.
        scorings: Scorings that need no rows of the state.

    Returns:
        (a row for each link: ``key``, ``inlink_score``, ``inlink_distance``; number of links
        that were left out as too deep).
    """
    documents = documents.with_columns(unchanged=pl.lit(False))
    pages = scorings.share(_pages(documents, options, scorings, None))
    return _links_of(pages, options, scorings)[0], _dropped(pages)


def _pages(
    documents: pl.DataFrame, options: LinkOptions, scorings: Scorings, rows: pl.DataFrame | None
) -> pl.DataFrame:
    """Returns a row per document, as ``Scoring.share`` takes it, with ``outlinks``."""
    targets = pl.col("outlinks").list
    number = targets.len().fill_null(0)
    if options.depth >= 0:
        deep = pl.col("distance").fill_null(0) >= options.depth
        number = pl.when(deep).then(0).otherwise(number)
    pages = documents.select(
        "key",
        "distance",
        "unchanged",
        *((pl.col("part_of"),) if scorings.row_columns else ()),
        *(pl.col(name).alias(f"document.{name}") for name in scorings.document_columns),
        score=pl.col("score").fill_null(0.0).cast(pl.Float64),
        outlinks=targets.eval(pl.element().struct.field("key")),
        links=number,
    )
    return _with_rows(pages, scorings, rows)


def _with_rows(pages: pl.DataFrame, scorings: Scorings, rows: pl.DataFrame | None) -> pl.DataFrame:
    """Adds the columns of pages' rows in the state; a part of a page has none."""
    if not scorings.row_columns:
        return pages
    rows = empty(STATE) if rows is None else rows
    rows = rows.select("key", *scorings.row_columns)
    found = pages.join(rows, on="key", how="left", maintain_order="left")
    is_page = pl.col("part_of").is_null()
    return found.with_columns(pl.when(is_page).then(pl.col(*scorings.row_columns)))


def _dropped(pages: pl.DataFrame) -> int:
    """Returns the number of links that are not passed on."""
    dropped = pages.filter(pl.col("links") == 0).get_column("outlinks").list.len().sum()
    return int(dropped or 0)


def _links_of(
    pages: pl.DataFrame, options: LinkOptions, scorings: Scorings
) -> tuple[pl.DataFrame, int]:
    """Returns a row per link, with what its page gives to it; and how many a scoring left out."""
    internal, external = options.internal_link_factor, options.external_link_factor
    passed = [column.name for column in scorings.passed]
    same_factor = internal == external
    # The keys of pages are copied for each link only where they are needed.
    source = [] if same_factor and not scorings.needs_source else [pl.col("key").alias("source")]
    links = (
        pages.filter(pl.col("links") > 0)
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


def _marked_links(
    pages: pl.DataFrame, unchanged: pl.DataFrame, options: LinkOptions, scorings: Scorings
) -> tuple[pl.DataFrame, int]:
    """Returns links as ``_links_of``; those of pages that answered 304 are ``known_only``.

    These bring no new URL: parse applied the rules of its time to them, and ``filterdb`` may have
    removed their targets since then.
    """
    if unchanged.is_empty():
        return _links_of(pages, options, scorings)
    old = pl.col("key").is_in(unchanged.get_column("key").implode())
    found, left_out = _links_of(pages.filter(~old), options, scorings)
    known, more = _links_of(pages.filter(old), options, scorings)
    marked = known.with_columns(known_only=pl.lit(True))
    return pl.concat([found, marked], how="diagonal"), left_out + more


def _given_to_targets(
    pages: pl.DataFrame, scorings: Scorings, rows: pl.DataFrame | None
) -> pl.DataFrame:
    """Returns what each page (``source``) passes to the target of a redirect, or to its parts.

    It is the same as for a link without score. The column ``links`` is 0 where the scorings drop the
    links of the page.
    """
    pages = pages.select(
        "key",
        "distance",
        *(
            pl.lit(None, _TYPES[name]).alias(f"document.{name}")
            for name in scorings.document_columns
        ),
        part_of=pl.lit(None, pl.String),
        score=pl.lit(0.0),
        unchanged=pl.lit(False),
        links=pl.lit(1, pl.UInt32),
    )
    given = scorings.share(_with_rows(pages, scorings, rows))
    return given.select(*(column.name for column in scorings.passed), "links", source="key")


def _with_given(targets: pl.DataFrame, given: pl.DataFrame, scorings: Scorings) -> pl.DataFrame:
    """Adds to targets what their ``source`` gives them, see ``_given_to_targets``."""
    return scorings.links(targets.join(given, on="source", how="left", maintain_order="left"))


def _redirects(
    pages: pl.DataFrame, documents: pl.DataFrame, seeds: Seeds, options: LinkOptions
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the targets of redirects and refreshes, as links without score.

    Args:
        pages: PAGES rows.
        documents: DOCUMENTS rows with the columns ``OF_REFRESH``.
        seeds: Hosts and domains of the seeds.
        options: Rules for the targets.
    """
    permanent = pl.col("fetch_status") == FETCH_REDIR_PERM
    at_once = pl.col("refresh_seconds").fill_null(0) < _PERMANENT_REFRESH_S
    found = pl.concat(
        part.filter(pl.col(name).is_not_null()).select(
            pl.col("key").alias("source"),
            "distance",
            pl.col(name).alias("url"),
            temporary=temporary,
        )
        for part, name, temporary in (
            (pages, "redirect", ~permanent),
            (documents, "refresh", at_once),
        )
    )
    found = judge(found, found.get_column("url"), "fetcher", options, seeds)
    dropped = found.get_column("reason").drop_nulls().value_counts()
    counts = {f"dropped/redirect_{reason}": number for reason, number in dropped.iter_rows()}
    counts |= by_rule(found)
    accepted = found.filter(pl.col("reason").is_null())
    return _without_score(accepted).hstack(accepted.select("source", "temporary")), counts
