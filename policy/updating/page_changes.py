"""Decides what the pages of a batch change: an event per page, a sum per link target.

One value comes in, ``PageFacts``, and one goes out. Nothing is read here.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa

from ...web.exchange.status import FETCH_NOTMODIFIED, FETCH_SUCCESS, SUCCESS
from ..components.blocklist import drop_blocked, drop_blocked_hosts
from ..components.document_schema import DocumentRows
from ..components.page_facts import EARLIER_COLUMNS, PageFacts, with_unique_rows
from ..components.schema import CHANGES, FetchListRows, HostRows, PageRows, columns, conform_frame
from ..hosting.hosts import page_findings
from ..hosting.merit import (
    Merits,
    add_linking_domains,
    drop_unvouched_links,
    merits_of_table,
)
from ..links import count_links_too_deep, links_of_documents, share_scores, sum_links
from .arrivals import Counts
from .redirects import (
    InheritedRows,
    StateLinkRows,
    inherited_by_targets,
    judge_redirects,
    link_targets,
)
from .update_rules import UpdateRules

EventRows: TypeAlias = pl.DataFrame  # columns of CHANGES for a page or a part
_OF_REFRESH = ("key", "distance", "refresh", "refresh_seconds")


class PageChanges(NamedTuple):
    """The changes from some pages. All together they are CHANGES rows.

    Only one change of sixty is an event. So links do not have the columns of events.

    Attributes:
        events: CHANGES rows: an event per page, and per part that is a document.
        links: ``key``, ``order``, ``inlink_score``, ``inlink_distance``, perhaps ``known_only``, and
            those columns of scorings that have a value: a row per target.
        inherited: What targets of redirects inherit: ``key``, ``order`` and the inherited columns.
    """

    events: EventRows
    links: StateLinkRows
    inherited: InheritedRows


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
    document_rows, unvouched, merits = _drop_unvouched(facts.document_rows, facts, rules)
    facts = with_unique_rows(facts._replace(document_rows=document_rows))
    host_rows = page_findings(facts.page_rows)
    if merits is not None:
        host_rows = add_linking_domains(host_rows, facts.document_rows, merits)
    host_rows = drop_blocked_hosts(host_rows, facts.table.blocklist)
    page_rows, unchanged_rows = split_off_unchanged(facts.page_rows, facts.fetch_list_rows)
    lost = page_rows.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED)
    changes, counts = derive_changes(facts._replace(page_rows=page_rows), rules, unrepresented)
    summed = _sum_counts(counts, unvouched, _count_missing(len(lost)))
    return FileChanges(changes, host_rows, unchanged_rows, summed)


def decide_unchanged_pages(facts: PageFacts, rules: UpdateRules) -> tuple[PageChanges, Counts]:
    """Decides what pages change that answered 304; their links are in earlier documents."""
    earlier_rows, unvouched, _ = _drop_unvouched(facts.earlier_document_rows, facts, rules)
    missing = _count_missing(len(facts.page_rows) - len(earlier_rows))
    facts = with_unique_rows(facts._replace(earlier_document_rows=earlier_rows))
    changes, counts = derive_changes(facts, rules)
    return changes, _sum_counts(counts, unvouched, missing)


def _drop_unvouched(
    document_rows: DocumentRows, facts: PageFacts, rules: UpdateRules
) -> tuple[DocumentRows, Counts, Merits | None]:
    """Drops links that lead to no unknown domain.

    Returns:
        (The rows, numbers of dropped links, the merits of domains). If admission is not by merit,
        all links count, and the merits are None.
    """
    merits = merits_of_table(facts.table, rules.options) if facts.table.domains else None
    if merits is None:
        return document_rows, {}, None
    return *drop_unvouched_links(document_rows, merits), merits


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
    answered = page_rows.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED)
    unchanged = answered.join(fetch_list_rows.drop_nulls("document"), on="key")
    return page_rows.join(unchanged, on="key", how="anti", maintain_order="left"), unchanged


def derive_changes(
    facts: PageFacts, rules: UpdateRules, unrepresented: Collection[str] = ()
) -> tuple[PageChanges, Counts]:
    """Returns the changes from pages and their documents, with links summed per target.

    Args:
        facts: The pages, one row per page and document.
        rules: The rules.
        unrepresented: See ``decide_page_changes``.

    Returns:
        (the changes, with the columns that the scorings add, without URLs on the blocklist; counts
        of dropped targets by reason).
    """
    options, scorings = rules.options, rules.scorings
    page_events = _page_events(facts)
    unchanged = _unchanged_documents(facts)
    linking = _linking_documents(unchanged, facts)
    refreshing = pl.concat(rows.select(*_OF_REFRESH) for rows in (facts.document_rows, unchanged))
    redirects, counts = judge_redirects(facts.page_rows, refreshing, facts.table.seeds, options)
    targets = link_targets(redirects, facts, rules)
    inherited = inherited_by_targets(targets.redirects, facts.fetch_list_rows, unrepresented)
    sharing = share_scores(linking, options, scorings, facts.state_rows)
    page_links, left_out = links_of_documents(
        sharing, unchanged.get_column("key"), options, scorings
    )
    links = [page_links, targets.redirects.drop("source", "temporary"), targets.part_links]
    # In one piece: polars groups a column of several pieces half as fast.
    sums = sum_links(pl.concat(links, how="diagonal", rechunk=True), scorings)
    if too_deep := count_links_too_deep(sharing):
        counts["dropped/too_deep"] = too_deep
    if left_out:
        counts["dropped/by_scoring"] = left_out
    events = [
        _with_own(rows, sharing, rules)
        for rows in (page_events, _part_events(targets.parts, facts))
    ]
    changes = _conform_changes(
        events, (sums, inherited), scorings.changes(CHANGES), facts.origin.order
    )
    allowed, blocked = zip(
        *(drop_blocked(rows, facts.table.blocklist) for rows in changes), strict=True
    )
    return PageChanges(*allowed), _sum_counts(counts, *blocked)


def _conform_changes(
    events: Iterable[EventRows], others: Iterable[pl.DataFrame], schema: pa.Schema, order: int
) -> PageChanges:
    """Returns changes with the types of a schema; all but events only with the columns they have.

    Where there is no ``order`` yet, it is the given one.
    """
    position = pl.lit(order, pl.Int64).alias("order")
    wide = pl.concat([conform_frame(part, schema) for part in events])
    narrow = (conform_frame(part, pa.schema(columns(schema, *part.columns))) for part in others)
    placed = (part.with_columns(position) for part in narrow)
    return PageChanges(wide.with_columns(pl.col("order").fill_null(order)), *placed)


def _page_events(facts: PageFacts) -> EventRows:
    """Returns an event per page, with what its document says."""
    parsed = facts.document_rows.select(
        "key", "signature", "parse_status", "usage", has_document=pl.lit(True)
    )
    events = facts.page_rows.join(parsed, on="key", how="left", maintain_order="left")
    return events.with_columns(
        document=pl.when(pl.col("has_document")).then(pl.lit(facts.origin.document, pl.String)),
        batch_id=pl.lit(facts.origin.batch),
    )


def _part_events(parts: DocumentRows, facts: PageFacts) -> EventRows:
    """Returns an event for each part that is a document."""
    return parts.select(
        *("key", "fetch_time", "content_type", "signature", "parse_status", "usage"),
        fetch_status=pl.lit(FETCH_SUCCESS, pl.UInt8),
        protocol_status=pl.lit(SUCCESS, pl.UInt8),
        batch_id=pl.lit(facts.origin.batch),
        document=pl.lit(facts.origin.document, pl.String),
        part=pl.lit(True),
    )


def _with_own(events: EventRows, sharing: pl.DataFrame, rules: UpdateRules) -> EventRows:
    """Adds the columns that scorings store in rows of pages."""
    if not rules.scorings.own:
        return events
    own = sharing.select("key", *(column.name for column in rules.scorings.own))
    return events.join(own, on="key", how="left", maintain_order="left")


def _unchanged_documents(facts: PageFacts) -> DocumentRows:
    """Returns the documents of pages that answered 304, with the pages' distances."""
    answered = facts.page_rows.filter(pl.col("fetch_status") == FETCH_NOTMODIFIED)
    earlier = facts.earlier_document_rows.select(*EARLIER_COLUMNS)
    return earlier.join(answered.select("key", "distance"), on="key")


def _linking_documents(unchanged: DocumentRows, facts: PageFacts) -> DocumentRows:
    """Returns the documents whose links count as seen; those of unchanged pages give no score.

    Args:
        unchanged: Documents of pages that answered 304, see ``_unchanged_documents``.
        facts: The pages.
    """
    earlier = (facts.fetch_list_rows, facts.followed_rows)
    signatures = pl.concat(rows.select("key", old="signature") for rows in earlier)
    is_same = (pl.col("signature") == pl.col("old")).fill_null(False)
    score = pl.when(is_same).then(0.0).otherwise("score")
    fetched = facts.document_rows.join(signatures, on="key", how="left", maintain_order="left")
    fetched = fetched.with_columns(score.cast(pl.Float32).alias("score"), unchanged=is_same)
    unchanged_rows = unchanged.with_columns(score=pl.lit(0.0, pl.Float32), unchanged=pl.lit(True))
    return pl.concat([fetched.drop("old"), unchanged_rows], how="diagonal")
