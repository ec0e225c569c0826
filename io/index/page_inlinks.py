"""Inlinks of pages on their way into an index, in bounded memory.

A page may have 10,000 inlinks, and a part of an index has many pages. So the links of some pages
are read at a time, and a frame of these pages is passed on.
"""

from collections.abc import Iterator

import polars as pl

from ...policy.components.kinds import KINDS
from ...policy.components.link_rows import range_of_target, says_nofollow
from ...policy.components.schema import INLINKS, empty
from ...web.rules.url_rules import host_keys
from ...web.urls.key_columns import from_keys
from ..reading.inlinks import by_target
from ..snapshots.manifest import Pinned
from ..tablets.tablets import tablets

_LINK = ("key", "target", "source", "anchor", "rel", "score", "gone_since")
_LINKS = KINDS["links"]
MOST_LINKS = 50_000  # links in one frame, unless a single page has more


class PageInlinks:
    """The inlinks of the pages of a part.

    Few are read once and kept. Others are read again for each frame of documents, of which each
    needs its own row groups of the link table alone if its keys are near one another.

    Args:
        pinned: The snapshot.
        keys: Row keys of the pages.
        most: How many inlinks of a page to read.
    """

    def __init__(self, pinned: Pinned, keys: pl.Series, most: int) -> None:
        self._pinned, self._most = pinned, most
        frames = inlinks_in_frames(pinned, keys, most)
        few = next(frames, empty(INLINKS).select(_LINK))
        self._few = None if next(frames, None) is not None else anchors_and_inlinks(few)

    def with_inlinks(self, pages: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yields pages with ``anchors`` and ``inlinks``, in one or several frames.

        Args:
            pages: ``key`` and other columns, in the order of the keys.
        """
        if self._few is not None:
            yield _join_inlinks(pages, self._few)
            return
        start, keys = 0, pages.get_column("key")
        for links in inlinks_in_frames(self._pinned, keys, self._most):
            # Of long URLs with the same beginning, links may come in another order.
            end = max(start, int(keys.search_sorted(links.get_column("target")[-1], side="right")))
            yield _join_inlinks(pages[start:end], anchors_and_inlinks(links))
            start = end
        if start < len(pages):
            yield _join_inlinks(pages[start:], anchors_and_inlinks(empty(INLINKS).select(_LINK)))


def _join_inlinks(pages: pl.DataFrame, inlinks: pl.DataFrame) -> pl.DataFrame:
    return pages.join(inlinks, on="key", how="left", maintain_order="left")


def inlinks_in_frames(pinned: Pinned, keys: pl.Series, most: int) -> Iterator[pl.DataFrame]:
    """Yields the best inlinks of pages, by target in key order, and best first.

    A target is never divided between two frames. Reads only the parts of the link table that may
    have a link to one of the pages.

    Args:
        pinned: The snapshot.
        keys: Row keys of the pages.
        most: How many of each to return.
    """
    held: list[pl.DataFrame] = []
    number = 0
    for links in by_target(_links_to(pinned, keys.unique()), most):
        for part in _whole_targets(links):
            if held and number + len(part) > MOST_LINKS:
                yield pl.concat(held)
                held, number = [], 0
            held.append(part)
            number += len(part)
    if held:
        yield pl.concat(held)


def _whole_targets(links: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yields links in parts of at most ``MOST_LINKS``, or those of a single target."""
    start = end = 0
    for length in links.get_column("target").rle().struct.field("len"):
        if end > start and end + length - start > MOST_LINKS:
            yield links[start:end]
            start = end
        end += length
    if end > start:
        yield links[start:end]


def _links_to(pinned: Pinned, targets: pl.Series) -> Iterator[pl.DataFrame]:
    """Yields the current links to some targets; the rows of a target one after the other."""
    wanted = pl.col("target").is_in(targets.implode()) & _LINKS.counting
    link_tablets, ranges = tablets(pinned.files(_LINKS.name)), sorted(map(range_of_target, targets))
    for rows in pinned.table.read_ranges(_LINKS.name, link_tablets, ranges, _LINK):
        yield rows.filter(wanted)


def anchors_and_inlinks(links: pl.DataFrame) -> pl.DataFrame:
    """Returns ``key``, ``anchors`` and ``inlinks`` (URLs) of the targets of links.

    A text counts once per host of a source, and those of links that say nofollow do not, as
    ``anchors_of`` does for one page.

    Args:
        links: ``target``, ``source``, ``anchor`` and ``rel``, best first.
    """
    sources = links.get_column("source")
    urls = from_keys(sources) if len(links) else sources
    named = links.select("rel", key="target", anchor="anchor", host=host_keys(sources), url=urls)
    inlinks = named.group_by("key", maintain_order=True).agg(inlinks="url")
    texts = (
        named.filter(~says_nofollow(pl.col("rel")))
        .with_columns(pl.col("anchor").str.split("\n"))
        .explode("anchor")
    )
    texts = texts.filter(pl.col("anchor").is_not_null() & (pl.col("anchor") != ""))
    texts = texts.unique(["key", "host", "anchor"], keep="first", maintain_order=True)
    anchors = texts.group_by("key", maintain_order=True).agg(anchors="anchor")
    return inlinks.join(anchors, on="key", how="left", maintain_order="left")
