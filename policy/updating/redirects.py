"""Decides which redirects and refreshes of pages count."""

import polars as pl

from ...web.exchange.status import FETCH_REDIR_PERM
from ..components.host_rows import Seeds
from ..components.page_facts import DocumentRows, PageRows
from ..rule_counts import by_rule
from ..scope import TargetOptions, judge

# A meta refresh counts as a permanent redirect from this time on, s.
_PERMANENT_REFRESH_S = 5


def judge_redirects(
    page_rows: PageRows, refresh_rows: DocumentRows, seeds: Seeds, options: TargetOptions
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the targets of redirects and refreshes, as links without score.

    Args:
        page_rows: PAGES rows.
        refresh_rows: DOCUMENTS rows with ``key``, ``distance``, ``refresh``, ``refresh_seconds``.
        seeds: Hosts and domains of the seeds.
        options: Rules for the targets.

    Returns:
        (links with ``source`` and ``temporary``; counts of refused targets by reason).
    """
    permanent = pl.col("fetch_status") == FETCH_REDIR_PERM
    at_once = pl.col("refresh_seconds").fill_null(0) < _PERMANENT_REFRESH_S
    targets = pl.concat(
        rows.filter(pl.col(name).is_not_null()).select(
            pl.col("key").alias("source"),
            "distance",
            pl.col(name).alias("url"),
            temporary=temporary,
        )
        for rows, name, temporary in (
            (page_rows, "redirect", ~permanent),
            (refresh_rows, "refresh", at_once),
        )
    )
    judged = judge(targets, "fetcher", options, seeds)
    dropped = judged.get_column("reason").drop_nulls().value_counts()
    counts = {f"dropped/redirect_{reason}": number for reason, number in dropped.iter_rows()}
    counts |= by_rule(judged)
    accepted = judged.filter(pl.col("reason").is_null())
    return links_without_score(accepted).hstack(accepted.select("source", "temporary")), counts


def links_without_score(targets: pl.DataFrame) -> pl.DataFrame:
    """Returns links that have a distance but no score."""
    distance = pl.col("distance").fill_null(0).cast(pl.Int32)
    return targets.select("key", inlink_score=pl.lit(0.0), inlink_distance=distance)
