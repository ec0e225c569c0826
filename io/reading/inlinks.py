"""Reads the link table: the inlinks of some pages, and of all pages one after the other."""

from collections.abc import Iterable, Iterator

import polars as pl

from ...policy.components.kinds import KINDS
from ...policy.components.link_rows import INLINKS, best_inlinks, range_of_target
from ...policy.components.schema import empty
from ..snapshots.pinned import Pinned
from ..tablets.tablets import tablets

_LINKS = KINDS["links"]
# How many times its limit the links of one page may grow before the worst are left out.
_GROWTH = 4


def inlinks_of(pinned: Pinned, target: str, most: int) -> pl.DataFrame:
    """Returns the best inlinks of a page, best first: INLINKS rows.

    Args:
        pinned: The snapshot.
        target: Row key of the page.
        most: How many to return at most.
    """
    return pl.concat([empty(INLINKS), *inlinks_of_pages(pinned, pl.Series([target]), most)])


def inlinks_of_pages(pinned: Pinned, targets: pl.Series, most: int) -> Iterator[pl.DataFrame]:
    """Yields the best inlinks of some pages, best first; each page is in one frame, in key order.

    Args:
        pinned: The snapshot.
        targets: Row keys of the pages.
        most: How many links of each page to return at most.
    """
    wanted = pl.col("target").is_in(targets.implode()) & _LINKS.counting
    ranges = sorted(map(range_of_target, targets.unique()))
    link_tablets = tablets(pinned.files(_LINKS.name))
    frames = pinned.table.read_ranges(_LINKS.name, link_tablets, ranges, _LINKS.schema.names)
    yield from by_target((rows.filter(wanted).select(INLINKS.names) for rows in frames), most)


def all_inlinks(pinned: Pinned, most: int) -> Iterator[pl.DataFrame]:
    """Yields the best inlinks of each page, best first; each page is in one frame, in key order.

    Args:
        pinned: The snapshot.
        most: How many links of each page to return at most.
    """
    return by_target(link_frames(pinned), most)


def link_frames(pinned: Pinned) -> Iterator[pl.DataFrame]:
    """Yields all current rows of the link table, in key order."""
    for tablet in tablets(pinned.files(_LINKS.name)):
        for rows in pinned.table.scan(_LINKS.name, tablet):
            yield rows.filter(_LINKS.counting).select(INLINKS.names)


def by_target(frames: Iterable[pl.DataFrame], most: int) -> Iterator[pl.DataFrame]:
    """Yields the best links of each target; memory holds a frame, and the best of one target.

    Args:
        frames: Rows of the link table, all with the same columns; the rows of a target come one
            after the other.
        most: How many links of each target to return at most.
    """
    waiting: pl.DataFrame | None = None
    for rows in frames:
        if not len(rows):
            continue
        waiting = rows if waiting is None else pl.concat([waiting, rows])
        last = waiting.get_column("target")[-1]
        done = waiting.filter(pl.col("target") != last)
        if len(done):
            yield best_inlinks(done, most)
            waiting = waiting.filter(pl.col("target") == last)
        if len(waiting) > _GROWTH * most:
            waiting = best_inlinks(waiting, most)
    if waiting is not None:
        yield best_inlinks(waiting, most)


def top_targets(frames: Iterable[pl.DataFrame], most: int) -> pl.DataFrame:
    """Returns the targets with the most inlinks: ``target`` and ``inlinks``, the most first.

    Args:
        frames: Rows of the link table; the rows of a target come one after the other.
        most: How many targets to return.
    """
    schema = {"target": pl.String, "inlinks": pl.UInt32}
    best, open_target = pl.DataFrame(schema=schema), pl.DataFrame(schema=schema)
    for rows in frames:
        if len(rows):
            counts = rows.group_by("target", maintain_order=True).agg(inlinks=pl.len())
            counts = pl.concat([open_target, counts]).group_by("target", maintain_order=True).sum()
            best, open_target = _top(pl.concat([best, counts[:-1]]), most), counts[-1:]
    return _top(pl.concat([best, open_target]), most)


def _top(counts: pl.DataFrame, most: int) -> pl.DataFrame:
    return counts.sort("inlinks", "target", descending=[True, False]).head(most)
