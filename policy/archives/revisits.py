"""Decides which captures are revisits of an earlier one in an archive."""

from typing import TypeAlias

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
        ("has_body", pa.bool_()),  # false: it is a revisit that was written before
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
CapturedRows: TypeAlias = pl.DataFrame  # columns of CAPTURED
RevisitRows: TypeAlias = pl.DataFrame  # columns of REVISITS
_ORDER = ("time", "batch", "url")


def revisits_of_payloads(captured: CapturedRows) -> RevisitRows:
    """Returns the captures whose payload an earlier one has, each with the earliest one.

    An answer 304 is one if it has the digest that it confirms.

    Args:
        captured: All captures of their digests.

    >>> rows = [(b"d", "http://b/", 2, "1", 0, False, True), (b"d", "http://a/", 1, "1", 0, False, True)]
    >>> frame = pl.DataFrame(rows, schema=pl.Schema(CAPTURED), orient="row")
    >>> revisits_of_payloads(frame).select("url", "earlier_url").rows()
    [('http://b/', 'http://a/')]
    """
    payload_rows = captured.filter(pl.col("digest").is_not_null()).sort(*_ORDER)
    originals = (
        payload_rows.filter(pl.col("has_body") & ~pl.col("unchanged"))
        .unique("digest", keep="first", maintain_order=True)
        .select("digest", *(pl.col(name).alias(f"earlier_{name}") for name in _ORDER))
    )
    joined = payload_rows.filter(pl.col("part") != WRITTEN).join(
        originals, on="digest", maintain_order="left"
    )
    is_itself = pl.all_horizontal(pl.col(name) == pl.col(f"earlier_{name}") for name in _ORDER)
    return joined.filter(~is_itself).select(REVISITS.names)


def confirmed_captures(captured: CapturedRows) -> RevisitRows:
    """Returns the answers 304, each with the newest capture before it of the same URL.

    Args:
        captured: All captures of their URLs.

    Returns:
        Columns of ``REVISITS`` and ``CAPTURED``; the digest is that of the earlier capture.
    """
    is_new_304 = pl.col("unchanged") & (pl.col("part") != WRITTEN)
    unchanged = captured.filter(is_new_304).drop("digest").sort("time")
    earlier = captured.filter(pl.col("digest").is_not_null()).select(
        "url", "time", "digest", earlier_url="url", earlier_time="time", earlier_batch="batch"
    )
    joined = unchanged.join_asof(
        earlier.sort("time"), on="time", by="url", strategy="backward", allow_exact_matches=False,
        check_sortedness=False,
    )  # fmt: skip
    return joined.filter(pl.col("earlier_url").is_not_null())
