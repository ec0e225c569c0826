"""Decides which captures of an import become pages: of each URL the newest, revisits with their bodies."""

from collections import Counter
from typing import NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa

from ..components.schema import TEXT

# Kinds of captures: with a body of its own; revisits with the digest of another body; answers 304.
PAGE, IDENTICAL, UNCHANGED = "page", "identical", "unchanged"
OLDER = "dropped/older_capture"
_PLACE = ("archive", "offset", "number")
_SOURCE = tuple(f"source_{name}" for name in _PLACE)

IMPORTED = pa.schema(
    [
        ("key", TEXT),
        ("time", pa.int64()),  # ms
        ("kind", TEXT),
        ("file", TEXT),  # of pages, where it was written to; null: it was not
        ("archive", TEXT),  # where its record is: file, position of the member, number in it
        ("offset", pa.int64()),
        ("number", pa.int32()),
        ("digest", TEXT),  # of its payload; null: unknown
        ("refers", TEXT),  # of a revisit: ``capture_name`` of what it refers to
    ]
)
# Revisits that are newer than all captures of their URL with a body.
REVISITING = pa.schema(
    [
        *(IMPORTED.field(name) for name in IMPORTED.names if name != "file"),
        ("kept_file", TEXT),  # the file of pages with the newest capture that has a body, if any
        ("source_archive", TEXT),  # where the record with its body is; null: not found yet
        ("source_offset", pa.int64()),
        ("source_number", pa.int32()),
    ]
)
# Rows of a search: captures and revisits with equal values of ``match`` meet.
SEARCHED_CAPTURES = pa.schema([*REVISITING, ("match", TEXT), ("revisits", pa.bool_())])
# Rows of files of pages that are left out.
DROPPED_CAPTURES = pa.schema([("file", TEXT), ("key", TEXT)])
ImportedRows: TypeAlias = pl.DataFrame  # columns of IMPORTED
RevisitingRows: TypeAlias = pl.DataFrame  # columns of REVISITING
SearchedRows: TypeAlias = pl.DataFrame  # columns of SEARCHED_CAPTURES
DroppedRows: TypeAlias = pl.DataFrame  # columns of DROPPED_CAPTURES


class ChosenCaptures(NamedTuple):
    """What becomes of the captures of some URLs.

    Attributes:
        dropped: Rows of files of pages that a newer capture replaces.
        revisiting: Revisits that may replace the newest page of their URL.
        counts: Numbers of captures that are left out.
    """

    dropped: DroppedRows
    revisiting: RevisitingRows
    counts: Counter[str]


def capture_name(key: str, time: int) -> str:
    """Returns the name of a capture, by which revisits refer to it; they may lack milliseconds."""
    return f"{key} {time // 1000}"


def choose_captures(imported: ImportedRows) -> ChosenCaptures:
    """Returns which captures are left out, and the revisits that remain.

    Args:
        imported: All captures of their keys.
    """
    order = ["key", "time", pl.col("file").is_not_null(), *_PLACE]
    pages = imported.filter(pl.col("kind") == PAGE).sort(order)
    newest = pages.unique("key", keep="last", maintain_order=True)
    superseded = pages.join(newest.select("key", *_PLACE), on=["key", *_PLACE], how="anti")
    revisits = imported.filter(pl.col("kind") != PAGE).sort(order)
    last = revisits.unique("key", keep="last", maintain_order=True)
    beside = newest.select("key", kept_time="time", kept_file="file")
    last = last.join(beside, on="key", how="left").filter(
        pl.col("kept_time").is_null() | (pl.col("time") > pl.col("kept_time"))
    )
    counts = Counter({OLDER: len(superseded) + len(revisits) - len(last)})
    return ChosenCaptures(
        superseded.drop_nulls("file").select(DROPPED_CAPTURES.names),
        _with_own_sources(last, pages).select(REVISITING.names),
        +counts,
    )


def _with_own_sources(revisits: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
    """Adds the record of the same URL that has the body, as most revisits are of their own URL."""
    named = dict(zip(_SOURCE, _PLACE, strict=True))
    bodies = pages.select("key", "digest", body_time="time", **named)
    joined = revisits.with_row_index("_row").join(bodies, on="key", how="left", suffix="_of_body")
    fits = (pl.col("kind") == UNCHANGED) | (pl.col("digest") == pl.col("digest_of_body"))
    fits &= pl.col("body_time") <= pl.col("time")
    nearest_rows = joined.filter(fits).sort("_row", "body_time").unique("_row", keep="last")
    return (
        revisits.with_row_index("_row")
        .join(nearest_rows.select("_row", *_SOURCE), on="_row", how="left", maintain_order="left")
        .drop("_row")
    )


def searched_pages(imported: ImportedRows) -> SearchedRows:
    """Returns captures that have bodies under the names by which revisits may search them."""
    pages = imported.filter(pl.col("kind") == PAGE).with_columns(
        kept_file=pl.lit(None, pl.String),
        revisits=pl.lit(False),
        **dict(zip(_SOURCE, _PLACE, strict=True)),
    )
    seconds = (pl.col("time") // 1000).cast(pl.String)
    return _by_matches(pages, pl.concat_str("key", pl.lit(" "), seconds))


def searched_revisits(revisiting: RevisitingRows) -> SearchedRows:
    """Returns revisits without a body under the names of what they refer to."""
    missing = revisiting.filter(pl.col("source_archive").is_null())
    return _by_matches(missing.with_columns(revisits=pl.lit(True)), pl.col("refers"))


def _by_matches(rows: pl.DataFrame, name: pl.Expr) -> SearchedRows:
    frames = [rows.with_columns(match=match) for match in (pl.col("digest"), name)]
    return pl.concat(frame.drop_nulls("match") for frame in frames).select(SEARCHED_CAPTURES.names)


def find_sources(searched: SearchedRows) -> RevisitingRows:
    """Returns the revisits among rows with the newest capture that matches and is not later.

    Args:
        searched: All rows of their values of ``match``.
    """
    revisits = searched.filter(pl.col("revisits")).drop(_SOURCE)
    bodies = searched.filter(~pl.col("revisits")).select("match", *_SOURCE, body_time="time")
    joined = revisits.join(bodies, on="match", how="inner")
    joined = joined.filter(pl.col("body_time") <= pl.col("time")).sort("body_time", *_SOURCE)
    return joined.unique(["key", *_PLACE], keep="last").select(REVISITING.names)


def merge_sources(revisiting: RevisitingRows) -> RevisitingRows:
    """Returns each revisit once, with a source if one of its rows has one."""
    ordered = revisiting.sort("key", *_SOURCE, nulls_last=True)
    return ordered.unique("key", keep="first", maintain_order=True)
