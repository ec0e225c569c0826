"""Trims the main content of pages by what stands on most pages of their host.

A line of links, a notice or an advert that looks like content stands on many pages. At the start and the end of the main
content it is left out. In its middle it stays, for headings such as "Examples" stand on many pages, too.

The pages are those that are parsed together, so a page may have such blocks in one batch and not in another. Neither its
text nor its signature changes by that.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from ...web.pages import spans
from ...web.pages.main_part import TextParts
from ...web.pages.page import Page
from ..base.key_columns import host_keys

# With fewer pages of a host, nothing is known of what its pages share.
_LEAST_PAGES = 8
_MOST_PAGES_SHARE = 0.5

# Start, end and hash of a block.
_Block = tuple[int, int, int]


class RepeatedBlocks:
    """The blocks of the main content of many pages."""

    def __init__(self) -> None:
        self._pages: dict[int, Page] = {}

    def add(self, row: int, page: Page) -> None:
        """Adds a page, by the number of its row."""
        if page.main:
            self._pages[row] = page

    def trimmed_parts(self, keys: Sequence[str]) -> dict[int, TextParts]:
        """Returns the main content of the pages that lose something, by row.

        Args:
            keys: The row keys of all rows.
        """
        hosts = host_keys(pl.Series(keys, dtype=pl.String)).to_list()
        rows_of_hosts = defaultdict[str, list[int]](list)
        for row in self._pages:
            rows_of_hosts[hosts[row]].append(row)
        trimmed: dict[int, TextParts] = {}
        for rows in rows_of_hosts.values():
            if len(rows) >= _LEAST_PAGES:
                trimmed |= _trim({row: self._pages[row] for row in rows})
        return trimmed


def _trim(pages: Mapping[int, Page]) -> dict[int, TextParts]:
    """Returns the main content of the pages of one host that lose something, by row."""
    blocks = {row: _main_blocks(page) for row, page in pages.items()}
    counts = Counter(
        block for its_blocks in blocks.values() for block in {block for *_, block in its_blocks}
    )
    most = _MOST_PAGES_SHARE * len(pages)
    repeated = {block for block, count in counts.items() if count > most}
    trimmed: dict[int, TextParts] = {}
    for row, page in pages.items() if repeated else ():
        own = [place for *place, block in blocks[row] if block not in repeated]
        if own:  # else these pages are the same one
            parts = _within(page.main, own[0][0], own[-1][1])
            if parts != [*page.main]:
                trimmed[row] = parts
    return trimmed


def _main_blocks(page: Page) -> list[_Block]:
    """Returns the blocks of running text in the main content of a page; a table is one."""
    blocks, parts = list[_Block](), iter(page.main)
    start, end = next(parts)
    table_end = 0
    for kind, first, after, *_ in page.spans:
        if kind == spans.DATA_TABLE or (kind in spans.LEAVES and first >= table_end):
            table_end = after if kind == spans.DATA_TABLE else table_end
            while first >= end:
                if (part := next(parts, None)) is None:
                    return blocks
                start, end = part
            if start <= first < after:
                blocks.append((first, after, hash(page.text[first:after])))
    return blocks


def _within(parts: TextParts, start: int, end: int) -> list[tuple[int, int]]:
    """Returns what of some parts is from a start to an end."""
    cut = [(max(first, start), min(after, end)) for first, after in parts]
    return [(first, after) for first, after in cut if first < after]
