"""Decides what the pages of a batch change: an event per page, a sum per link target.

One value comes in, ``PageFacts``, and one goes out. Nothing is read here.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ...web.exchange.status import FETCH_NOTMODIFIED, FETCH_SUCCESS, SUCCESS
from ..components.blocklist import drop_blocked, drop_blocked_hosts
from ..components.page_facts import (
    EARLIER_COLUMNS,
    DocumentRows,
    FetchListRows,
    HostRows,
    PageFacts,
    PageRows,
    unique_documents,
    unique_pages,
)
from ..components.schema import CHANGES, DOCUMENTS, columns, conform_frame
from ..hosting.merit import collect_host_findings, drop_unvouched_links, merits_of_table
from ..links import (
    count_links_too_deep,
    links_of_pages,
    share_scores,
    sum_links,
    with_state_columns,
)
from .arrivals import Counts
from .redirect_targets import inherited_by_targets, judge_redirects, links_without_score
from .update_rules import UpdateRules

_OF_REFRESH = ("key", "distance", "refresh", "refresh_seconds")
_TYPES = pl.Schema(DOCUMENTS)


class PageChanges(NamedTuple):
    """The changes from some pages. All together they are CHANGES rows.

    Only one change of sixty is an event. So links do not have the columns of events.

    Attributes:
        events: CHANGES rows: an event per page, and per part that is a document.
        links: ``key``, ``order``, ``inlink_score``, ``inlink_distance``, perhaps ``known_only``, and
            those columns of scorings that have a value: a row per target.
        inherited: What targets of redirects inherit: ``key``, ``order`` and the inherited columns.
    """

    events: pl.DataFrame
    links: pl.DataFrame
    inherited: pl.DataFrame


class FileChanges(NamedTuple):
    """What a file of pages changes.

    Attributes:
        changes: The changes of the state, without those of ``unchanged_rows``.
        host_rows: What the pages say about hosts and domains: HOSTS rows.
        unchanged_rows: Pages that answered 304 and have an earlier document, with
            ``FETCH_LIST_COLUMNS``, for ``decide_unchanged_pages``.
        counts: Dropped targets and links, by reason.
    """

    changes: PageChanges
    host_rows: HostRows
    unchanged_rows: PageRows
    counts: Counts


def decide_page_changes(
    facts: PageFacts, rules: UpdateRules, unrepresented: Collection[str] = ()
) -> FileChanges:
    """Decides what a file of pages changes.

    Args:
        facts: The pages.
        rules: The rules.
        unrepresented: Keys of pages that no other URL represents any more.
    """
    merits = merits_of_table(facts.table, rules.options)
    document_rows, unvouched = drop_unvouched_links(facts.document_rows, merits)
    host_rows = collect_host_findings(facts.page_rows, document_rows, merits)
    page_rows, unchanged_rows = split_off_unchanged(facts.page_rows, facts.fetch_list_rows)
    lost = page_rows.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED)
    facts = facts._replace(page_rows=page_rows, document_rows=document_rows)
    changes, counts = derive_changes(facts, rules, unrepresented)
    summed = _sum_counts(counts, unvouched, _count_missing(len(lost)))
    host_rows = drop_blocked_hosts(host_rows, facts.table.blocklist)
    return FileChanges(changes, host_rows, unchanged_rows, summed)


def decide_unchanged_pages(facts: PageFacts, rules: UpdateRules) -> tuple[PageChanges, Counts]:
    """Decides what pages change that answered 304; their links are in earlier documents."""
    merits = merits_of_table(facts.table, rules.options)
    earlier_rows, unvouched = drop_unvouched_links(facts.earlier_document_rows, merits)
    missing = _count_missing(len(facts.page_rows) - len(earlier_rows))
    changes, counts = derive_changes(facts._replace(earlier_document_rows=earlier_rows), rules)
    return changes, _sum_counts(counts, unvouched, missing)


def _count_missing(documents: int) -> Counts:
    return {"documents_missing": documents} if documents else {}


def _sum_counts(*parts: Counts) -> Counts:
    total = Counter[str]()
    for part in parts:
        total.update(part)
    return dict(total)


def split_off_unchanged(
    page_rows: PageRows, fetch_list_rows: FetchListRows
) -> tuple[PageRows, PageRows]:
    """Returns (pages, those that answered 304 to the condition of a document).

    The second have ``FETCH_LIST_COLUMNS``, too.
    """
    page_rows = unique_pages(page_rows)
    answered = page_rows.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED)
    unchanged = answered.join(fetch_list_rows.drop_nulls("document"), on="key")
    return page_rows.join(unchanged, on="key", how="anti", maintain_order="left"), unchanged


def derive_changes(
    facts: PageFacts, rules: UpdateRules, unrepresented: Collection[str] = ()
) -> tuple[PageChanges, Counts]:
    """Returns the changes from pages and their documents, with links summed per target.

    Args:
        facts: The pages.
        rules: The rules.
        unrepresented: See ``decide_page_changes``.

    Returns:
        (the changes, with the columns that the scorings add, without URLs on the blocklist; counts
        of dropped targets by reason).
    """
    options, scorings = rules.options, rules.scorings
    page_rows = unique_pages(facts.page_rows)
    document_rows = unique_documents(facts.document_rows)
    events = _page_events(page_rows, document_rows, facts)
    unchanged = _unchanged_documents(page_rows, facts)
    refreshing = pl.concat(rows.select(*_OF_REFRESH) for rows in (document_rows, unchanged))
    redirects, counts = judge_redirects(page_rows, refreshing, facts.table.seeds, options)
    linking = _linking_documents(document_rows, unchanged, facts)
    sharing = share_scores(linking, options, scorings, facts.state_rows)
    if too_deep := count_links_too_deep(sharing):
        counts["dropped/too_deep"] = too_deep
    parts = document_rows.filter(pl.col("part_of").is_not_null())
    parts = parts.join(page_rows, on="key", how="anti", maintain_order="left")
    sources = pl.concat([redirects.get_column("source"), parts.get_column("part_of")])
    passed_on = _pass_to_targets(sources, page_rows, facts, rules)
    parts, links_to_parts = _linked_parts(parts, passed_on, rules)
    if passed_on is not None:
        redirects = _with_passed(redirects, passed_on, rules).drop("links")
    inherited = inherited_by_targets(redirects, facts.fetch_list_rows, unrepresented)
    links_to_pages, left_out = _marked_links(sharing, unchanged, rules)
    if left_out:
        counts["dropped/by_scoring"] = left_out
    links = [links_to_pages, redirects.drop("source", "temporary"), links_to_parts]
    # In one piece: polars groups a column of several pieces half as fast.
    sums = sum_links(pl.concat(links, how="diagonal", rechunk=True), scorings)
    part_events = _part_events(parts, facts)
    with_own = [_with_own(rows, sharing, rules) for rows in (events, part_events)]
    changes = _typed(with_own, (sums, inherited), scorings.changes(CHANGES), facts.origin.order)
    left, blocked = zip(
        *(drop_blocked(rows, facts.table.blocklist) for rows in changes), strict=True
    )
    return PageChanges(*left), _sum_counts(counts, *blocked)


def _typed(
    events: Iterable[pl.DataFrame], others: Iterable[pl.DataFrame], schema: pa.Schema, order: int
) -> PageChanges:
    """Returns changes with the types of a schema; all but events only with the columns they have.

    Where there is no ``order`` yet, it is the given one.
    """
    position = pl.lit(order, pl.Int64).alias("order")
    wide = pl.concat([conform_frame(part, schema) for part in events])
    narrow = (conform_frame(part, pa.schema(columns(schema, *part.columns))) for part in others)
    placed = (part.with_columns(position) for part in narrow)
    return PageChanges(wide.with_columns(pl.col("order").fill_null(order)), *placed)


def _page_events(
    page_rows: PageRows, document_rows: DocumentRows, facts: PageFacts
) -> pl.DataFrame:
    """Returns an event per page, with what its document says."""
    parsed = document_rows.select(
        "key", "signature", "parse_status", "usage", has_document=pl.lit(True)
    )
    return page_rows.join(parsed, on="key", how="left", maintain_order="left").with_columns(
        document=pl.when(pl.col("has_document")).then(pl.lit(facts.origin.document, pl.String)),
        batch_id=pl.lit(facts.origin.batch),
    )


def _part_events(parts: DocumentRows, facts: PageFacts) -> pl.DataFrame:
    """Returns an event for each part that is a document."""
    return parts.select(
        *("key", "fetch_time", "content_type", "signature", "parse_status", "usage"),
        fetch_status=pl.lit(FETCH_SUCCESS),
        protocol_status=pl.lit(SUCCESS),
        batch_id=pl.lit(facts.origin.batch),
        document=pl.lit(facts.origin.document, pl.String),
        part=pl.lit(True),
    )


def _with_own(events: pl.DataFrame, sharing: pl.DataFrame, rules: UpdateRules) -> pl.DataFrame:
    """Adds the columns that scorings store in rows of pages."""
    if not rules.scorings.own:
        return events
    own = sharing.select("key", *(column.name for column in rules.scorings.own))
    return events.join(own, on="key", how="left", maintain_order="left")


def _unchanged_documents(page_rows: PageRows, facts: PageFacts) -> DocumentRows:
    """Returns the documents of pages that answered 304, with the pages' distances."""
    answered = page_rows.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED)
    earlier = facts.earlier_document_rows.select(*EARLIER_COLUMNS)
    return earlier.join(answered.select("key", "distance"), on="key")


def _linking_documents(
    document_rows: DocumentRows, unchanged: DocumentRows, facts: PageFacts
) -> pl.DataFrame:
    """Returns the documents whose links count as seen; those of unchanged pages give no score.

    Args:
        document_rows: Documents of bodies that were fetched.
        unchanged: Those of pages that answered 304, see ``_unchanged_documents``.
        facts: What was known of the pages.
    """
    earlier = (facts.fetch_list_rows, facts.followed_rows)
    old = pl.concat(rows.select("key", old="signature") for rows in earlier)
    is_same = (pl.col("signature") == pl.col("old")).fill_null(False)
    score = pl.when(is_same).then(0.0).otherwise("score")
    fetched = document_rows.join(old, on="key", how="left", maintain_order="left")
    fetched = fetched.with_columns(score.cast(pl.Float32).alias("score"), unchanged=is_same)
    unchanged_rows = unchanged.with_columns(score=pl.lit(0.0, pl.Float32), unchanged=pl.lit(True))
    return pl.concat([fetched.drop("old"), unchanged_rows], how="diagonal")


def _linked_parts(
    parts: DocumentRows, passed_on: pl.DataFrame | None, rules: UpdateRules
) -> tuple[DocumentRows, pl.DataFrame]:
    """Returns (the parts that are documents and not too deep, a link to each without score)."""
    depth = rules.options.depth
    if depth >= 0:
        parts = parts.filter(pl.col("distance").fill_null(0) <= depth)
    links = links_without_score(parts).hstack(parts.select(source="part_of"))
    if passed_on is not None:
        links = _with_passed(links, passed_on, rules)
        links = links.filter((pl.col("links") != 0).fill_null(True)).drop("links")
        parts = parts.join(links, on="key", how="semi", maintain_order="left")
    return parts, links.drop("source")


def _marked_links(
    sharing: pl.DataFrame, unchanged: DocumentRows, rules: UpdateRules
) -> tuple[pl.DataFrame, int]:
    """Returns links as ``links_of_pages``; those of pages that answered 304 are ``known_only``.

    These bring no new URL: parse applied the rules of its time to them, and ``filterdb`` may have
    removed their targets since then.
    """
    options, scorings = rules.options, rules.scorings
    if unchanged.is_empty():
        return links_of_pages(sharing, options, scorings)
    is_old = pl.col("key").is_in(unchanged.get_column("key").implode())
    new, left_out = links_of_pages(sharing.filter(~is_old), options, scorings)
    old, more = links_of_pages(sharing.filter(is_old), options, scorings)
    marked = old.with_columns(known_only=pl.lit(True))
    return pl.concat([new, marked], how="diagonal"), left_out + more


def _pass_to_targets(
    sources: pl.Series, page_rows: PageRows, facts: PageFacts, rules: UpdateRules
) -> pl.DataFrame | None:
    """Returns what each page (``source``) passes to the target of a redirect, or to its parts.

    It is the same as for a link without score. The column ``links`` is 0 where the scorings drop the
    links of the page. None: no page gives anything.
    """
    scorings = rules.scorings
    if not scorings.passed:
        return None
    giving = page_rows.filter(pl.col("key").is_in(sources.implode()))
    if giving.is_empty():
        return None
    pages = giving.select(
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
    passed_on = scorings.share(with_state_columns(pages, scorings, facts.state_rows))
    return passed_on.select(*(column.name for column in scorings.passed), "links", source="key")


def _with_passed(
    targets: pl.DataFrame, passed_on: pl.DataFrame, rules: UpdateRules
) -> pl.DataFrame:
    """Adds to targets what their ``source`` passes on, see ``_pass_to_targets``."""
    joined = targets.join(passed_on, on="source", how="left", maintain_order="left")
    return rules.scorings.links(joined)
