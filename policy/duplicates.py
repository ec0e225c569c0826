"""Chooses the page to keep among pages with the same content (nutch.md 2.9)."""

import dataclasses
from typing import NamedTuple

import polars as pl

from ..web.base.options import option
from .schedules.schedule import TOLERANCE_MS
from .schema import Status

SCHEME = "httpsOverHttp"
# Columns of the state, and of the outcome, that are compared.
OF_STATE = ("key", "status", "signature", "score", "last_fetch_time", "duplicate_of")
COMPARED = ("key", "status", "signature", "old_status", "old_signature")
_ALIVE = (int(Status.DB_FETCHED), int(Status.DB_NOTMODIFIED))
_DUPLICATE = int(Status.DB_DUPLICATE)
_HTTPS = r"^(\[[^\]]*\]|[^:/]*):https([:/])"
# Nutch's names of the criteria, each with (column, whether a larger value is better).
ORDERS = {
    "score": ("score", True),
    "fetchTime": ("last_fetch_time", True),
    "urlLength": ("url_length", False),
    SCHEME: ("https", True),
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


def order_by(options: DedupOptions, *, twins: bool) -> tuple[list[str], list[bool]]:
    """Returns columns and directions of a sort order in which the page to keep is first.

    Args:
        options: The order.
        twins: Whether the pages differ only by ``http:`` and ``https:``. Only then the scheme
            counts.
    """
    words = [word for word in options.compare_order if twins or word != SCHEME]
    chosen = [ORDERS[word] for word in words]
    return [*(name for name, _ in chosen), "key"], [*(better for _, better in chosen), False]


class Questioned(NamedTuple):
    """What the outcome of batches calls into question.

    Attributes:
        signatures: Signatures of pages to compare.
        lost: Keys of pages that are gone, or have other content now. Their duplicates are none
            of them any more.
    """

    signatures: pl.Series
    lost: pl.Series


def questioned(outcome: pl.DataFrame) -> Questioned:
    """Returns the signatures to compare, and the pages whose duplicates come back (Δ48).

    Args:
        outcome: OUTCOME rows with the columns ``COMPARED``.
    """
    had = pl.col("old_status").is_in([*_ALIVE, _DUPLICATE])
    changed = ~pl.col("status").is_in(_ALIVE) | pl.col("signature").ne_missing(
        pl.col("old_signature")
    )
    lost = outcome.filter(had & changed)
    found = [outcome.get_column("signature"), lost.get_column("old_signature")]
    signatures = pl.concat([some.rename("signature") for some in found])
    return Questioned(signatures.drop_nulls().unique(), lost.get_column("key"))


def comparable(rows: pl.DataFrame, now: int, lost: pl.Series | None = None) -> pl.DataFrame:
    """Returns the pages that can be duplicates, with the compared columns.

    Args:
        rows: STATE rows with the columns ``OF_STATE``.
        now: Time in ms; a later fetch time is wrong, and does not make a page newer.
        lost: Pages whose duplicates are compared, too; None: all duplicates are.
    """
    last = pl.col("last_fetch_time")
    duplicate = pl.col("status") == _DUPLICATE
    if lost is not None:
        duplicate &= pl.col("duplicate_of").is_in(lost.implode()).fill_null(False)
    compared = pl.col("status").is_in(_ALIVE) | duplicate
    key = pl.col("key")
    return rows.filter(compared & pl.col("signature").is_not_null()).select(
        "key",
        "signature",
        "status",
        # In polars NaN is larger than every number, but such a page must not be the best.
        pl.col("score").fill_nan(None),
        pl.when(last <= now + TOLERANCE_MS).then(last),
        _decoded_length(key).alias("url_length"),
        key.str.contains(_HTTPS).alias("https"),
        key.str.replace(_HTTPS, "${1}:http${2}").alias("plain"),
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


def apply_verdicts(
    rows: pl.DataFrame, verdicts: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Marks duplicates with the page that stays, and revives pages that are none any more.

    Args:
        rows: STATE rows in key order.
        verdicts: VERDICTS rows; without ``duplicate_of`` the page is no duplicate.

    Returns:
        (rows, counts).
    """
    judged = verdicts.select("key", winner="duplicate_of", judged=pl.lit(True))
    found = rows.join(judged, on="key", how="left", maintain_order="left")
    lost = pl.col("winner").is_not_null()
    revived = pl.col("judged") & ~lost & (pl.col("status") == _DUPLICATE)
    counts = found.select(
        duplicates=(lost & (pl.col("status") != _DUPLICATE)).sum(), revived=revived.sum()
    ).row(0, named=True)
    status = pl.when(lost).then(_DUPLICATE).when(revived).then(int(Status.DB_FETCHED))
    marked = found.with_columns(
        status=status.otherwise("status").cast(pl.UInt8),
        duplicate_of=pl.when("judged").then("winner").otherwise("duplicate_of"),
    )
    return marked.select(rows.columns), {name: n for name, n in counts.items() if n}
