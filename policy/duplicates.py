"""Chooses the page to keep among pages with the same content (nutch.md 2.9)."""

import dataclasses

import polars as pl

from ..web.base.options import option
from .schedules.schedule import TOLERANCE_MS
from .schema import Status

# Nutch's names of the criteria, each with (column, whether a larger value is better).
ORDERS = {
    "score": ("score", True),
    "fetchTime": ("last_fetch_time", True),
    "urlLength": ("url_length", False),
    "httpsOverHttp": ("https", True),
}


@dataclasses.dataclass(frozen=True)
class DedupOptions:
    """Options of finding duplicates, and of choosing the page to keep."""

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
    """Returns columns and directions of a sort order in which the page to keep is first."""
    chosen = [ORDERS[word] for word in options.compare_order]
    return [*(name for name, _ in chosen), "key"], [*(better for _, better in chosen), False]


def comparable(rows: pl.DataFrame, now: int) -> pl.DataFrame:
    """Returns the pages that can be duplicates, with the compared columns.

    Args:
        rows: STATE rows with key, status, signature, score, last_fetch_time.
        now: Time in ms; a later fetch time is wrong, and does not make a page newer.
    """
    last = pl.col("last_fetch_time")
    alive = pl.col("status").is_in([int(Status.DB_FETCHED), int(Status.DB_NOTMODIFIED)])
    return rows.filter(alive & pl.col("signature").is_not_null()).select(
        "key",
        "signature",
        # In polars NaN is larger than every number, but such a page must not be the best.
        pl.col("score").fill_nan(None),
        pl.when(last <= now + TOLERANCE_MS).then(last),
        _decoded_length(pl.col("key")).alias("url_length"),
        pl.col("key").str.contains(r"^(\[[^\]]*\]|[^:/]*):https[:/]").alias("https"),
    )


def _decoded_length(keys: pl.Expr) -> pl.Expr:
    """Returns the length of URLs after decoding of their percent escapes, minus a constant.

    Keys are shorter than URLs by the same few characters, which does not affect comparisons.
    Normalized URLs have no bad escapes.
    """
    escapes = keys.str.count_matches("%[0-9A-Fa-f]{2}")
    # Escapes of continuation bytes of UTF-8.
    following = keys.str.count_matches("%[89ABab][0-9A-Fa-f]")
    return (keys.str.len_bytes().cast(pl.Int32) - 2 * escapes - following).cast(pl.Int32)


def mark_duplicates(rows: pl.DataFrame, losers: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Returns (rows with the losers marked db_duplicate, number of marked rows)."""
    lost = pl.col("key").is_in(losers.get_column("key").implode())
    duplicate = pl.lit(int(Status.DB_DUPLICATE), pl.UInt8)
    marked = rows.with_columns(status=pl.when(lost).then(duplicate).otherwise("status"))
    return marked, int(marked.select(lost.sum()).item())
