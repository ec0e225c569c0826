"""Decides which captures are revisits of an earlier one in an archive."""

import polars as pl
import pyarrow as pa

from ..components.schema import TEXT

# Number of the part of a capture that the archive has already.
WRITTEN = -1
# A capture, as far as it matters for revisits.
CAPTURED = pa.schema(
    [
        ("digest", pa.large_binary()),  # SHA-1 of its payload; null: it has none
        ("url", TEXT),
        ("time", pa.int64()),  # ms
        ("batch", TEXT),
        ("part", pa.int32()),  # that writes it
        ("unchanged", pa.bool_()),  # whether it is a 304
    ]
)
# A revisit, and the capture that it refers to.
REVISITS = pa.schema(
    [
        *(CAPTURED.field(name) for name in ("url", "time", "part")),
        ("earlier_url", TEXT),
        ("earlier_time", pa.int64()),
        ("earlier_batch", TEXT),
    ]
)
_ORDER = ("time", "batch", "url")


def revisits_of_payloads(captured: pl.DataFrame) -> pl.DataFrame:
    """Returns the captures whose payload an earlier one has, or one that was written before.

    Args:
        captured: Columns of ``CAPTURED``, with all captures of their digests.

    Returns:
        Columns of ``REVISITS``.

    >>> rows = [(b"d", "http://b/", 2, "1", 0, False), (b"d", "http://a/", 1, "1", 0, False)]
    >>> frame = pl.DataFrame(rows, schema=pl.Schema(CAPTURED), orient="row")
    >>> revisits_of_payloads(frame).select("url", "earlier_url").rows()
    [('http://b/', 'http://a/')]
    """
    ranked = captured.filter(pl.col("digest").is_not_null()).sort(
        pl.col("part") != WRITTEN, *_ORDER
    )
    earlier = [pl.col(name).first().over("digest").alias(f"earlier_{name}") for name in _ORDER]
    repeats = ~pl.col("digest").is_first_distinct() & (pl.col("part") != WRITTEN)
    return ranked.with_columns(earlier).filter(repeats).select(REVISITS.names)


def revisits_of_urls(captured: pl.DataFrame) -> pl.DataFrame:
    """Returns the answers 304, each with the newest capture before it of the same URL.

    Args:
        captured: Columns of ``CAPTURED``, with all captures of their URLs.
    """
    unchanged = captured.filter(pl.col("unchanged") & (pl.col("part") != WRITTEN)).sort("time")
    earlier = captured.filter(pl.col("digest").is_not_null()).select(
        "url", "time", earlier_url="url", earlier_time="time", earlier_batch="batch"
    )
    joined = unchanged.join_asof(
        earlier.sort("time"), on="time", by="url", strategy="backward", allow_exact_matches=False,
        check_sortedness=False,
    )  # fmt: skip
    return joined.filter(pl.col("earlier_url").is_not_null()).select(REVISITS.names)
