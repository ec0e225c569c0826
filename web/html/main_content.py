"""Finds the main content of a page: what is left without navigation, adverts, comments, footers and the like.

Each block has a chance to be main content. It is a logistic function of a sum of weights, one for each
feature of the block and one for each word that says something about an element around it. The weights are learnt
from labelled pages (``benchmarks/main_weights.py``).
"""

import functools
import pathlib
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pages import spans
from ..pages.main_part import TextParts
from .block_features import (
    BlockNumbers,
    Blocks,
    block_features,
    blocks_of,
    values_after,
    values_before,
)
from .block_text import BlockText
from .containers import ContainerMarks, Containers

_LIKELY, _POSSIBLE = 0.5, 0.2
# So many blocks between likely ones belong to these, if that is possible.
_MOST_BETWEEN = 4
# Where less than this share of a text is likely, as on a page of links, all that is possible counts.
_LEAST_SHARE = 0.1
_MAX_REMEMBERED = 16_384


class _Weights:
    """The weights of features and words."""

    def __init__(self, path: pathlib.Path) -> None:
        content = tomllib.loads(path.read_text("utf-8"))
        self.bias: float = content["bias"]
        self.features = {name: np.array(values) for name, values in content["features"].items()}
        words: dict[str, float] = content["words"]
        self.marks = ContainerMarks(list(words))
        self._word_weights = list(words.values())
        self._sums: dict[int, float] = {}  # by the words that hold

    def of_containers(self, containers: Containers) -> NDArray[np.float64]:
        """Returns the sum of the weights of the words that hold for each container."""
        sums = self._sums
        if len(sums) > _MAX_REMEMBERED:
            sums.clear()
        return np.array(
            [sums[mark] if mark in sums else self._sum(mark) for mark in self.marks.of(containers)]
        )

    def _sum(self, mark: int) -> float:
        weights = enumerate(self._word_weights)
        self._sums[mark] = sum(weight for number, weight in weights if mark >> number & 1)
        return self._sums[mark]


@functools.cache
def _weights() -> _Weights:
    return _Weights(pathlib.Path(__file__).with_name("main_weights.toml"))


class LateParts(Sequence[tuple[int, int]]):
    """The main content of a page, which is found when it is needed: of many pages at once, if possible.

    Args:
        page: The text of the page.

    >>> from .block_text import block_text
    >>> page = block_text('<body><nav><a href="/">Home</a></nav><p>' + "A sentence. " * 9 + "</p></body>")
    >>> [page.text[start:end][:5] for start, end in LateParts(page)]
    ['A sen']
    """

    __slots__ = ("_page", "_parts")

    def __init__(self, page: BlockText) -> None:
        self._page: BlockText | None = page
        self._parts: TextParts = ()

    @staticmethod
    def find(of_pages: Iterable[TextParts]) -> None:
        """Finds the main content of pages for which that was not done yet."""
        late = [parts for parts in of_pages if isinstance(parts, LateParts) and parts._page]
        texts = [parts._page for parts in late if parts._page is not None]
        for parts, its_parts in zip(late, main_parts(texts), strict=True):
            parts._page, parts._parts = None, its_parts

    def _read_parts(self) -> TextParts:
        if self._page is not None:
            self.find([self])
        return self._parts

    def __len__(self) -> int:
        return len(self._read_parts())

    def __getitem__(self, at: Any) -> Any:
        return self._read_parts()[at]


def main_parts(pages: Sequence[BlockText]) -> list[list[tuple[int, int]]]:
    """Returns the parts of each text that are the main content of its page; none, if none is found.

    Args:
        pages: The pages; together they take a fraction of the time that they take one by one.
    """
    parts: list[list[tuple[int, int]]] = [[] for _ in pages]
    blocks = blocks_of(pages)
    if not blocks.numbers:
        return parts
    chances = block_chances(pages, blocks)
    is_main = main_blocks(chances, blocks.ends - blocks.starts, blocks.pages)
    firsts = (is_main & ~values_before(is_main, False, blocks.pages)).nonzero()[0]
    lasts = (is_main & ~values_after(is_main, False, blocks.pages)).nonzero()[0]
    columns = blocks.page_of[firsts], blocks.starts[firsts], blocks.ends[lasts]
    for page, start, end in zip(*(column.tolist() for column in columns), strict=True):
        offset = blocks.offsets[page]
        parts[blocks.numbers[page]].append((start - offset, end - offset))
    return parts


def block_chances(pages: Sequence[BlockText], blocks: Blocks) -> NDArray[np.float64]:
    """Returns the chance of each block to be main content; the cells of a table have the same."""
    weights = _weights()
    sums = np.full(len(blocks.starts), weights.bias)
    for name, classes in block_features(blocks).items():
        sums += weights.features[name][classes]
    sums += weights.of_containers(blocks.around)[blocks.containers]
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-sums))
    for number, offset in zip(blocks.numbers, blocks.offsets, strict=True):
        page = pages[number]
        for kind, start, end, *_ in page.spans if "table" in page.containers.tags else ():
            if kind == spans.DATA_TABLE:
                first, after = blocks.starts.searchsorted((start + offset, end + offset))
                chars = blocks.ends[first:after] - blocks.starts[first:after]
                if after > first:
                    chances[first:after] = np.average(chances[first:after], weights=chars)
    return chances


def main_blocks(
    chances: NDArray[np.float64], lengths: BlockNumbers, pages: BlockNumbers
) -> NDArray[np.bool_]:
    """Returns whether each block is main content.

    Args:
        chances: The chance of each to be that.
        lengths: Their lengths in characters.
        pages: Number of the first block of each page, and of all blocks.

    >>> chances, lengths = np.array([0.3, 0.9, 0.3, 0.9, 0.1]), np.array([9, 9, 9, 9, 9])
    >>> main_blocks(chances, lengths, np.array([0, 5])).tolist()
    [False, True, True, True, False]
    >>> main_blocks(chances, lengths, np.array([0, 3, 5])).tolist()
    [True, True, True, True, False]
    """
    likely, possible = chances > _LIKELY, chances > _POSSIBLE
    starts, sizes = pages[:-1], np.diff(pages)
    likely_chars = np.add.reduceat(np.where(likely, lengths, 0), starts)
    # A page of a few lines may have no block that is unlikely: then all of them belong to it.
    takes_all = (np.minimum.reduceat(chances, starts) > _POSSIBLE) | (
        likely_chars < _LEAST_SHARE * np.add.reduceat(lengths, starts)
    )
    at, none_after = np.arange(len(chances)), len(chances)
    before = np.maximum.accumulate(np.where(likely, at, -1))
    after = np.minimum.accumulate(np.where(likely, at, none_after)[::-1])[::-1]
    is_between = (before >= np.repeat(starts, sizes)) & (after < np.repeat(pages[1:], sizes))
    is_between &= after - before - 1 <= _MOST_BETWEEN
    return likely | (possible & (is_between | np.repeat(takes_all, sizes)))
