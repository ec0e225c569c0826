"""Chooses which of several pages with the same content stays (nutch.md 2.9)."""

import dataclasses

import polars as pl

from ..web.base.options import option
from .schedule import TOLERANCE_MS
from .schema import Status

# Nutch's words for what is compared, each as (column, whether more is better).
ORDERS = {
    "score": ("score", True),
    "fetchTime": ("last_fetch_time", True),
    "urlLength": ("url_length", False),
    "httpsOverHttp": ("https", True),
}


@dataclasses.dataclass(frozen=True)
class DedupOptions:
    """How duplicates are found and which one stays."""

    GROUP = "dedup"

    dedup_group: str = option(
        "none",
        "Only pages of one host, or one domain, are duplicates of each other.",
        choices=("none", "host", "domain"),
        nutch="dedup -group",
    )
    compare_order: tuple[str, ...] = option(
        ("score", "fetchTime", "urlLength"),
        "Which comparisons decide which page stays, in this order; the row key decides last.",
        choices=tuple(ORDERS),
        nutch="dedup -compareOrder",
    )


def order_by(options: DedupOptions) -> tuple[list[str], list[bool]]:
    """Returns columns and directions that put the page that stays first."""
    chosen = [ORDERS[word] for word in options.compare_order]
    return [*(name for name, _ in chosen), "key"], [*(better for _, better in chosen), False]


def comparable(rows: pl.DataFrame, now: int) -> pl.DataFrame:
    """Returns the pages that can be duplicates, with the compared columns.

    Args:
        rows: STATE rows with key, status, signature, score, last_fetch_time.
        now: ms; a fetch time after it is wrong, and does not make a page newer.
    """
    last = pl.col("last_fetch_time")
    alive = pl.col("status").is_in([int(Status.DB_FETCHED), int(Status.DB_NOTMODIFIED)])
    return rows.filter(alive & pl.col("signature").is_not_null()).select(
        "key",
        "signature",
        # NaN compares above every number in polars: such a page must not be the best.
        pl.col("score").fill_nan(None),
        pl.when(last <= now + TOLERANCE_MS).then(last),
        _decoded_length(pl.col("key")).alias("url_length"),
        pl.col("key").str.contains(r"^(\[[^\]]*\]|[^:/]*):https[:/]").alias("https"),
    )


def _decoded_length(keys: pl.Expr) -> pl.Expr:
    """Returns how many characters URLs have once their percent escapes are decoded.

    Up to a constant that is the same for all: keys are a few characters shorter
    than URLs. Normalized URLs have no bad escapes.
    """
    escapes = keys.str.count_matches("%[0-9A-Fa-f]{2}")
    # Bytes of a UTF-8 character after its first.
    following = keys.str.count_matches("%[89ABab][0-9A-Fa-f]")
    return (keys.str.len_bytes().cast(pl.Int32) - 2 * escapes - following).cast(pl.Int32)


def mark_duplicates(rows: pl.DataFrame, losers: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Returns the rows with the losers marked db_duplicate, and how many were marked."""
    lost = pl.col("key").is_in(losers.get_column("key").implode())
    duplicate = pl.lit(int(Status.DB_DUPLICATE), pl.UInt8)
    marked = rows.with_columns(status=pl.when(lost).then(duplicate).otherwise("status"))
    return marked, int(marked.select(lost.sum()).item())
