"""Decides which pages an index gets, keeps or loses, in Nutch's order.

Nutch joins what a batch has about a URL with its row in the table. Here the outcome of a batch has
both: what the fetch brought, and the status after it. Changed on purpose: duplicates are never
indexed; what is gone, redirected or a duplicate is deleted also if this batch did not fetch it; and
a page whose content must not be searched for is deleted.
"""

import dataclasses

import polars as pl

from ...web.base.options import option
from ...web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_SUCCESS,
)
from ..components.index_schema import ADD, DELETE, NOTHING
from ..components.schema import ParseStatus, Status

_REDIRECTED = (int(Status.DB_REDIR_TEMP), int(Status.DB_REDIR_PERM))
_GONE = (int(Status.DB_GONE), int(Status.DB_ORPHAN))


@dataclasses.dataclass(frozen=True)
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
    action, reason = pl.lit(ADD), pl.lit("indexed")
    for condition, wanted, why in reversed(rules):
        hit = condition.fill_null(False)
        action = pl.when(hit).then(pl.lit(wanted)).otherwise(action)
        reason = pl.when(hit).then(pl.lit(why)).otherwise(reason)
    return rows.with_columns(action=action, reason=reason)


def _rules(options: IndexDecisionOptions) -> list[tuple[pl.Expr, str, str]]:
    """Returns (condition, action, reason) of each rule, in order."""
    status, fetched = pl.col("status"), pl.col("fetch_status")
    parsed = pl.col("parse_status")
    # A 304 counts as no fetch record: its document is in the index since an earlier batch.
    tried = fetched.is_not_null() & (fetched != FETCH_NOTMODIFIED)
    gone = (fetched == FETCH_GONE).fill_null(False) | status.is_in(_GONE).fill_null(False)
    led = fetched.is_in((FETCH_REDIR_TEMP, FETCH_REDIR_PERM)).fill_null(False)
    led |= status.is_in(_REDIRECTED).fill_null(False)
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
        rules.append((led, DELETE, "deleted_redirects"))
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
