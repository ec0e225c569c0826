"""Decides which pages an index gets, keeps or loses: from rows of the state, and from its journal.

The rules are Nutch's, in its order. Nutch joins what a batch has about a URL with its row in the
table. Here the outcome of a batch has both: what the fetch brought, and the status after it. Changed
on purpose: duplicates are never indexed; what is gone, redirected or a duplicate is deleted also if
this batch did not fetch it; and a page whose content must not be searched for is deleted.
"""

import dataclasses
from collections.abc import Sequence

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_SUCCESS,
)
from ..components.index_schema import ADD, DELETE, HELD, INDEXED, NOTHING, REFUSED
from ..components.schema import ParseStatus, Status, empty

# Reasons of decisions that are made for many URLs at each time, and are not worth a number.
SILENT = ("unchanged", "unknown")
# Pages that are deleted though the journal has no row of them: it must not get one.
PURGED_REASON, UNFINISHED_REASON = "deleted_purged", "deleted_unfinished"
UNPARSED_REASON = "deleted_not_parsed"
WITHOUT_ROW = (PURGED_REASON, UNFINISHED_REASON)
_REDIRECTED = (int(Status.DB_REDIR_TEMP), int(Status.DB_REDIR_PERM))
_GONE = (int(Status.DB_GONE), int(Status.DB_ORPHAN))
_TEXTS = pl.List(pl.String)
_FETCH_STATUS_OF = {
    int(Status.DB_GONE): FETCH_GONE,
    int(Status.DB_ORPHAN): FETCH_GONE,
    int(Status.DB_REDIR_TEMP): FETCH_REDIR_TEMP,
    int(Status.DB_REDIR_PERM): FETCH_REDIR_PERM,
}


@dataclass(frozen=True)
class IndexDecisionOptions:
    """Options of the choice between adding and deleting."""

    GROUP = "index"

    delete_gone: bool = option(
        True,
        "Delete pages from the index that are gone, redirected or duplicates.",
        nutch="indexer.delete",
    )
    delete_robots_noindex: bool = option(
        True,
        "Delete pages with the robots directive noindex; false indexes them without their text.",
        nutch="indexer.delete.robots.noindex",
    )
    delete_skipped: bool = option(
        True,
        "Delete pages from the index that an index filter leaves out.",
        nutch="indexer.delete.skipped.by.indexingfilter",
    )
    skip_notmodified: bool = option(
        False,
        "Do not send pages that were fetched again and had not changed.",
        nutch="indexer.skip.notmodified",
    )
    obey_usage: bool = option(
        True, "Delete pages whose Content-Usage is search=n: they do not want to be found."
    )


def decide_on_pages(rows: pl.DataFrame, options: IndexDecisionOptions) -> pl.DataFrame:
    """Adds to each page what to do with it, and why; the first rule that fits counts.

    Args:
        rows: One row per URL that is known to the table: ``status`` (null: the URL has left the
            table), ``fetch_status`` (null: there is no fetch record; a full index has
            ``FETCH_SUCCESS`` for each document), ``parse_status`` and
            ``directives`` (null: there is no document), ``usage``.
        options: The rules.

    Returns:
        The rows with ``action`` (``add``, ``delete`` or ``nothing``) and ``reason``.

    >>> rows = pl.DataFrame({"status": [2, 3], "fetch_status": [33, 37], "parse_status": [1, None],
    ...     "directives": [[], None], "usage": [None, None]})
    >>> decide_on_pages(rows, IndexDecisionOptions()).select("action", "reason").rows()
    [('add', 'indexed'), ('delete', 'deleted_gone')]
    """
    rules = _rules(options)
    return rows.with_columns(
        action=_first_fit([rule[:2] for rule in rules], pl.lit(ADD)),
        reason=_first_fit([rule[::2] for rule in rules], pl.lit("indexed")),
    )


def _first_fit(rules: Sequence[tuple[pl.Expr | pl.Series, str]], otherwise: pl.Expr) -> pl.Expr:
    """Returns the value of the first rule whose condition holds: (condition, value) of each."""
    for condition, value in reversed(rules):
        otherwise = pl.when(condition).then(pl.lit(value)).otherwise(otherwise)
    return otherwise


def _rules(options: IndexDecisionOptions) -> list[tuple[pl.Expr, str, str]]:
    """Returns (condition, action, reason) of each rule, in order."""
    status, fetched = pl.col("status"), pl.col("fetch_status")
    parsed = pl.col("parse_status")
    # A 304 counts as no fetch record: its document is in the index since an earlier batch.
    tried = fetched.is_not_null() & (fetched != FETCH_NOTMODIFIED)
    gone = (fetched == FETCH_GONE).fill_null(False) | status.is_in(_GONE).fill_null(False)
    redirected = fetched.is_in((FETCH_REDIR_TEMP, FETCH_REDIR_PERM)).fill_null(False)
    redirected |= status.is_in(_REDIRECTED).fill_null(False)
    duplicate = status == int(Status.DB_DUPLICATE)
    refused = pl.col("usage").cast(pl.String).str.contains(r"(?:^|, )search=n(?:,|$)")
    rules = [(status.is_null(), DELETE, "deleted_unknown")]
    if options.delete_robots_noindex:
        noindex = pl.col("directives").list.contains("noindex")
        rules.append((noindex, DELETE, "deleted_robots_noindex"))
    if options.obey_usage:
        rules.append((refused, DELETE, "deleted_usage"))
    rules.append((status == int(Status.DB_PARSE_FAILED), DELETE, "deleted_failed_parse"))
    if options.delete_gone:
        rules.append((gone, DELETE, "deleted_gone"))
        rules.append((redirected, DELETE, "deleted_redirects"))
        rules.append((duplicate, DELETE, "deleted_duplicates"))
    else:
        rules.append((duplicate, NOTHING, "skipped_duplicates"))
    rules.append((~tried | parsed.is_null(), NOTHING, "skipped_no_content"))
    if options.skip_notmodified:
        same = status == int(Status.DB_NOTMODIFIED)
        rules.append((same, NOTHING, "skipped_not_modified"))
    unusable = (parsed != int(ParseStatus.SUCCESS)) | (fetched != FETCH_SUCCESS)
    rules.append((unusable, NOTHING, "skipped_not_parsed"))
    return rules


def decide_by_rows(
    rows: pl.DataFrame, journal: pl.DataFrame, options: IndexDecisionOptions, *, full: bool = False
) -> pl.DataFrame:
    """Decides about pages by their rows; ``decide_by_documents`` also reads documents.

    Args:
        rows: Rows of the state, with the columns ``STATE_READ``.
        journal: Rows of the journal with keys among these, as in ``INDEXED``.
        options: The rules.
        full: Whether the index is built from the beginning, so that it has nothing yet.

    Returns:
        The rows with ``known`` (whether the journal has the page), ``writers`` (those that hold
        it), ``action`` (``add``, ``delete`` or ``nothing``) and ``reason``. Only pages of the
        journal are deleted, and a page is not added again with the same text. A page that an
        index from the beginning would not get is deleted, too, with one exception: pages that are
        gone stay without ``delete_gone``.

    >>> from ..components.index_schema import STATE_READ
    >>> from ..components.schema import STATE
    >>> row = {name: None for name in STATE_READ} | {"key": "com.a:http/", "status": 2,
    ...     "parse_status": 1, "document": "batches/1/documents/x"}
    >>> rows = pl.DataFrame([row], schema=empty(STATE).select(STATE_READ).schema)
    >>> decide_by_rows(rows, empty(INDEXED), IndexDecisionOptions()).select("action").item()
    'add'
    """
    page_rows = _with_journal(rows, journal)
    status = pl.col("status").cast(pl.Int64)
    fetched = status.replace_strict(_FETCH_STATUS_OF, default=None, return_dtype=pl.Int64)
    has_text = pl.col("document").is_not_null()
    # As long as its newest body waits to be parsed, the text of an older body counts.
    waits = has_text & pl.col("parse_status").is_null()
    page_rows = page_rows.with_columns(
        fetch_status=pl.coalesce(fetched, pl.when(has_text).then(FETCH_SUCCESS)),
        parse_status=pl.when(waits).then(int(ParseStatus.SUCCESS)).otherwise("parse_status"),
        directives=pl.lit(None, _TEXTS),
    )
    every = dataclasses.replace(options, skip_notmodified=False)
    decided = decide_on_pages(page_rows, every).drop("fetch_status", "directives")
    action, is_known = pl.col("action"), pl.col("known")
    # The URL that an index shows may change though the page does not.
    shown = pl.col("repr_url").eq_missing(pl.col("known_repr_url"))
    same = is_known & has_text & shown & pl.col("document").eq_missing(pl.col("known_document"))
    unchanged = (action == ADD) & same & (not full)
    # Only a page whose text the index has can be skipped because it has not changed.
    skipped = (action == ADD) & is_known & (status == int(Status.DB_NOTMODIFIED)) & (not full)
    skipped &= shown & pl.col("signature").eq_missing(pl.col("known_signature"))
    skipped &= options.skip_notmodified
    # The text has left the table, or could not be parsed: a full index would not have the page.
    lost = (action == NOTHING) & is_known
    if not options.delete_gone:  # these stay, whether their texts do or not
        lost &= ~status.is_in([*_FETCH_STATUS_OF, int(Status.DB_DUPLICATE)])
    absent = (action == DELETE) & ~is_known
    reasons = [
        (unchanged, "unchanged"),
        (skipped, "skipped_not_modified"),
        (absent | (~is_known & ~has_text), "unknown"),
        (lost & has_text, UNPARSED_REASON),
        (lost, "deleted_no_content"),
    ]
    return decided.with_columns(
        action=_first_fit([(unchanged | skipped | absent, NOTHING), (lost, DELETE)], action),
        reason=_first_fit(reasons, pl.col("reason")),
    ).drop("known_document", "known_signature", "known_repr_url")


def _with_journal(rows: pl.DataFrame, journal: pl.DataFrame) -> pl.DataFrame:
    known_pages = journal.select(
        "key",
        "writers",
        known=pl.lit(True),
        **{f"known_{name}": name for name in ("document", "signature", "repr_url")},
    )
    page_rows = rows.join(known_pages, on="key", how="left", maintain_order="left")
    return page_rows.with_columns(
        pl.col("known").fill_null(False), pl.col("writers").cast(_TEXTS).fill_null([])
    )


def lost_pages(journal: pl.DataFrame, rows: pl.DataFrame, reason: str) -> pl.DataFrame:
    """Returns deletes for pages of a journal that have no row any more.

    Args:
        journal: Rows of the journal, as in ``INDEXED``.
        rows: Rows with the keys of the journal that the table still has.
        reason: Why the others are deleted.
    """
    gone = journal.join(rows.select("key"), on="key", how="anti")
    deletes = gone.select("key", pl.col("writers").cast(_TEXTS).fill_null([]), known=pl.lit(True))
    return deletes.with_columns(action=pl.lit(DELETE), reason=pl.lit(reason))


def decide_by_documents(
    decided: pl.DataFrame, documents: pl.DataFrame, options: IndexDecisionOptions
) -> pl.DataFrame:
    """Changes decisions to add a page if robots directives or an index filter rule it out.

    Args:
        decided: Rows with ``known``, ``writers``, ``action`` and ``reason``; all are to be added.
            ``writers`` may hold a page that the journal does not know, because a run has sent it
            and never committed. Such a page is deleted even if the rules say to keep it.
        documents: In the same order, ``directives`` and ``parse_status`` of the documents, and
            ``dropped_by``: the index filter that leaves one out, or null.
        options: The rules.

    >>> decided = pl.DataFrame({"known": [True, False], "writers": [["w"], []], "action": "add",
    ...     "reason": "indexed"})
    >>> documents = pl.DataFrame({"directives": [["noindex"], []], "dropped_by": [None, "expr"],
    ...     "parse_status": 1})
    >>> changed = decide_by_documents(decided, documents, IndexDecisionOptions())
    >>> changed.select("action", "reason").rows()
    [('delete', 'deleted_robots_noindex'), ('nothing', 'skipped_by_indexing_filter')]
    """
    directives = documents.get_column("directives").cast(_TEXTS)
    noindex = directives.list.contains("noindex").fill_null(False)
    noindex &= options.delete_robots_noindex
    unparsed = documents.get_column("parse_status") != int(ParseStatus.SUCCESS)
    unparsed = unparsed.fill_null(False) & ~noindex
    dropped = documents.get_column("dropped_by").is_not_null() & ~noindex & ~unparsed
    is_known, out = decided.get_column("known"), noindex | unparsed | dropped
    unfinished = out & ~is_known & (decided.get_column("writers").list.len() > 0)
    deleted = unfinished | (out & is_known & (noindex | unparsed | options.delete_skipped))
    reasons = [
        (unfinished, UNFINISHED_REASON),
        (deleted & noindex, "deleted_robots_noindex"),
        (deleted & unparsed, UNPARSED_REASON),
        (deleted & dropped, "deleted_by_indexing_filter"),
        (noindex, "skipped_robots_noindex"),
        (unparsed, "skipped_not_parsed"),
        (dropped, "skipped_by_indexing_filter"),
    ]
    return decided.with_columns(
        action=_first_fit([(deleted, DELETE), (out, NOTHING)], pl.col("action")),
        reason=_first_fit(reasons, pl.col("reason")),
    )


def forget_unsent_pages(decided: pl.DataFrame) -> pl.DataFrame:
    """Returns decisions in which each page of the journal that is not sent is deleted.

    A run that builds an index from the beginning calls it: no writer holds these pages then.

    >>> decided = pl.DataFrame({"known": [True, False], "writers": [["w"], []],
    ...     "action": "nothing", "reason": "skipped_not_parsed"})
    >>> forget_unsent_pages(decided).select("action", "writers").rows()
    [('delete', []), ('nothing', [])]
    """
    deleted = (pl.col("action") == NOTHING) & pl.col("known")
    return decided.with_columns(
        action=pl.when(deleted).then(pl.lit(DELETE)).otherwise("action"),
        writers=pl.when(deleted).then(pl.lit([], _TEXTS)).otherwise("writers"),
    )


def counts_of(decided: pl.DataFrame) -> dict[str, int]:
    """Returns the numbers of pages that are not sent or not kept, by reason."""
    counted = decided.filter(~pl.col("reason").is_in(SILENT) & (pl.col("action") != ADD))
    return {str(reason): number for reason, number in counted.group_by("reason").len().iter_rows()}


def journal_rows(decided: pl.DataFrame, holders: dict[str, pl.Series], time: int) -> pl.DataFrame:
    """Returns the changed rows of the journal.

    Args:
        decided: Rows that were added or deleted: ``key``, ``action``, ``document``, ``signature``,
            ``repr_url``.
        holders: For each writer, which of the rows it holds now.
        time: The version of the run: when it was sent, ms, and later than the run before.
    """
    names: list[pl.Expr] = [pl.when(held).then(pl.lit(name)) for name, held in holders.items()] or [
        pl.lit(None, pl.String)
    ]
    writers = decided.select(pl.concat_list(names).list.drop_nulls()).to_series()
    gone = pl.col("action") == DELETE
    rows = decided.with_columns(
        writers=writers,
        state=pl.when(writers.list.len() > 0).then(pl.lit(HELD)).otherwise(pl.lit(REFUSED)),
        time=pl.lit(time),
        deleted=pl.when(gone).then(pl.lit(time)),
    )
    return rows.select(pl.col(name).cast(kind) for name, kind in empty(INDEXED).schema.items())
