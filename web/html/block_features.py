"""Describes each block of pages by what it is, what is beside it, and where the prose of its page is.

A call of numpy costs as much for two blocks as for hundreds, so the blocks of many pages stand one after the
other in the same arrays.

::

    pages        page 0 (text of 9)   page 1 (text of 20)
    blocks       0   1   2            3   4               positions: 0 to 9, then 10 to 30
    first block  0                    3                   5 (the end)
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..pages import spans
from .block_text import BlockText
from .containers import Containers

BlockNumbers: TypeAlias = NDArray[np.int64]

# Upper bounds of classes: of lengths in characters, of shares of the text that is links or that an
# element holds, of numbers of blocks.
_LENGTHS = np.array([4, 8, 14, 22, 32, 45, 65, 100, 160, 250, 400, 800])
_LINKS = np.array([0.001, 0.2, 0.5, 0.9])
_LINKS_AROUND = np.array([0.05, 0.2, 0.5, 0.8])
_SHARES = np.array([0.001, 0.03, 0.1, 0.3, 0.6, 0.9])
_BLOCKS = np.array([0, 1, 3, 6, 12])
# A block is prose if it has this number of characters, and a smaller share of them in links.
_PROSE_CHARS, _PROSE_LINKS = 60, 0.5
# The element that holds the prose holds at least this share of it.
_PROSE_SHARE = 0.6
_FAR = 4
_AROUND = 3

_KINDS = {spans.PARAGRAPH: 0, spans.HEADING: 3, spans.TERM: 4, spans.CAPTION: 5, spans.PREFORMATTED: 6, spans.CELL: 7}  # fmt: skip
_KINDS_OF_PARAGRAPHS = {"li": 8, "dd": 9, "td": 10, "th": 10, "blockquote": 11}
# Elements that mostly hold one block; a cell may hold a whole page.
_HOLD_ONE = frozenset({"li", "dd", "blockquote"})
_LAST_TITLE = 2  # kinds: 1 and 2 are headings of these levels
_NO_KIND = 12
_NO_LINKS = 5
# Of a sentence, and what leads on; also those of Chinese and Japanese.
_ENDS = {**dict.fromkeys('.!?…"”»。\uff01\uff1f', 1), ":": 2}


class Blocks(NamedTuple):
    """The blocks of running text of pages, in their order; pages without a block are left out.

    Attributes:
        numbers: The number that each page has among all pages.
        pages: Number of the first block of each page, and of all blocks.
        offsets: Position of the first character of each page.
        page_of: Number of the page of each block.
        starts: Position of the first character of each.
        ends: Position after each.
        links: Number of its characters that are links.
        kinds: What each is, without regard to what is around it.
        endings: Class of its last character.
        around: The elements around the blocks.
        roots: Number of the first container of each page, and of all containers.
        containers: Number of the innermost container of each.
        firsts: Number of the first block in each container.
        lasts: Number of the block after the last one in each container.
    """

    numbers: list[int]
    pages: BlockNumbers
    offsets: list[int]
    page_of: BlockNumbers
    starts: BlockNumbers
    ends: BlockNumbers
    links: BlockNumbers
    kinds: BlockNumbers
    endings: BlockNumbers
    around: Containers
    roots: BlockNumbers
    containers: BlockNumbers
    firsts: BlockNumbers
    lasts: BlockNumbers


def blocks_of(pages: Sequence[BlockText]) -> Blocks:
    """Returns the blocks of running text among the spans of pages."""
    starts, ends, links, kinds = list[int](), list[int](), list[int](), list[int]()
    endings, bounds, roots, offset = list[int](), [0], [0], 0
    numbers, offsets = list[int](), list[int]()
    around = Containers([], [], [], [], [])
    for page_number, (text, text_spans, containers) in enumerate(pages):
        links.append(0)  # of the links before the first block, which do not count
        for kind, start, end, level, _ in text_spans:
            if kind == spans.LINK:
                links[-1] += end - start
            elif kind in spans.LEAVES and end > start:
                starts.append(start + offset)
                ends.append(end + offset)
                links.append(0)
                kinds.append(min(level, 3) if kind == spans.HEADING else _KINDS[kind])
                endings.append(_ENDS.get(text[end - 1], 0))
        del links[bounds[-1]]
        if len(starts) > bounds[-1]:
            _add_containers(around, containers, offset)
            numbers.append(page_number)
            bounds.append(len(starts))
            roots.append(len(around.tags))
            offsets.append(offset)
            offset += len(text) + 1
    first_blocks, first_containers = np.array(bounds), np.array(roots)
    page_of = np.repeat(np.arange(len(numbers)), np.diff(first_blocks))
    places, after = np.array(starts, np.int64), np.array(ends, np.int64)
    firsts = places.searchsorted(np.array(around.starts, np.int64))
    lasts = places.searchsorted(np.array(around.ends, np.int64))
    innermost = first_containers[page_of]
    for number in (lasts > firsts).nonzero()[0].tolist():
        innermost[firsts[number] : lasts[number]] = number
    lengths = np.minimum(np.array(links, np.int64), after - places)
    return Blocks(
        numbers, first_blocks, offsets, page_of, places, after, lengths, np.array(kinds, np.int64),
        np.array(endings, np.int64), around, first_containers, innermost, firsts, lasts,
    )  # fmt: skip


def _add_containers(around: Containers, containers: Containers, offset: int) -> None:
    root = len(around.tags)
    around.parents.extend([parent + root if parent >= 0 else -1 for parent in containers.parents])
    around.tags.extend(containers.tags)
    around.attributes.extend(containers.attributes)
    around.starts.extend([start + offset for start in containers.starts])
    around.ends.extend([end + offset for end in containers.ends])


def block_features(blocks: Blocks) -> Mapping[str, BlockNumbers]:
    """Returns the class of each block in each feature.

    Prose is long text that is mostly no links.

    Args:
        blocks: The blocks, at least one; each page has a container.

    Returns:
        By name: ``length``, ``links`` (its share in the text), ``kind`` and ``ends`` (its last character) of
        the block; ``links_before``, ``links_after``, ``links_around``, ``kind_before`` and
        ``kind_after`` of its neighbours; ``distance``: how many levels above the element that holds most of
        the prose is the innermost one around both; ``after``: how many blocks ago the last prose in that element was;
        ``share_1`` to ``share_3``: how much of the prose is in each of the elements around it.
    """
    lengths, pages, tags = blocks.ends - blocks.starts, blocks.pages, blocks.around.tags
    density = blocks.links / lengths
    parents = np.array(blocks.around.parents)
    of_paragraphs = np.array([_KINDS_OF_PARAGRAPHS.get(tag, 0) for tag in tags])
    kinds = np.where(blocks.kinds == 0, of_paragraphs[blocks.containers], blocks.kinds)
    holds_one = np.array([tag in _HOLD_ONE for tag in tags])

    is_prose = (
        (density < _PROSE_LINKS)
        & (lengths >= _PROSE_CHARS)
        & ((kinds == 0) | (kinds > _LAST_TITLE))
    )
    prose = _sums(np.where(is_prose, lengths - blocks.links, 0))
    of_pages = np.repeat(prose[pages[1:]] - prose[pages[:-1]], np.diff(blocks.roots))
    share = (prose[blocks.lasts] - prose[blocks.firsts]) / np.maximum(1, of_pages)
    distance = _distances(blocks, parents, (share >= _PROSE_SHARE) & ~holds_one)
    near = _last_of_pages(is_prose & (distance == 0), pages)
    last = np.where(near >= 0, near, pages[1:] - 1)

    link_classes = _LINKS.searchsorted(density)
    share_classes = _SHARES.searchsorted(share)
    root = blocks.roots[blocks.page_of]
    around = np.where(holds_one[blocks.containers], parents[blocks.containers], blocks.containers)
    holders = [np.maximum(around, root)]
    for _ in range(2):
        holders.append(np.maximum(parents[holders[-1]], root))
    return {
        "length": _LENGTHS.searchsorted(lengths),
        "links": link_classes,
        "links_before": values_before(link_classes, _NO_LINKS, pages),
        "links_after": values_after(link_classes, _NO_LINKS, pages),
        "links_around": _LINKS_AROUND.searchsorted(_means_around(blocks, lengths)),
        "kind": kinds,
        "kind_before": values_before(kinds, _NO_KIND, pages),
        "kind_after": values_after(kinds, _NO_KIND, pages),
        "ends": blocks.endings,
        "distance": distance,
        "after": _BLOCKS.searchsorted(np.arange(len(lengths)) - last[blocks.page_of]),
        **{f"share_{n}": share_classes[holder] for n, holder in enumerate(holders, 1)},
    }


def _sums(values: BlockNumbers) -> BlockNumbers:
    """Returns the sums of the first n values."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(values)))


def _distances(blocks: Blocks, parents: BlockNumbers, holds: NDArray[np.bool_]) -> BlockNumbers:
    """Returns how many levels above the innermost of some nested containers of its page each block is.

    Args:
        blocks: The blocks.
        parents: Number of the container around each container.
        holds: Whether a container is one of these.
    """
    innermost = _last_of_pages(holds, blocks.roots)
    distance = np.where(innermost >= 0, _FAR, 0)[blocks.page_of]
    for at in innermost.tolist():
        chain = list[int]()
        while at >= 0:
            chain.append(at)
            at = int(parents[at])
        for level, number in reversed(list(enumerate(chain))):
            distance[blocks.firsts[number] : blocks.lasts[number]] = min(level, _FAR)
    return distance


def _last_of_pages(holds: NDArray[np.bool_], bounds: BlockNumbers) -> BlockNumbers:
    """Returns the number of the last one in each page for which something holds; -1: for none.

    Args:
        holds: Whether it holds for each block, or each container.
        bounds: Number of the first one in each page, and of all.

    >>> _last_of_pages(np.array([True, True, False, False, True]), np.array([0, 3, 4, 5])).tolist()
    [1, -1, 4]
    """
    numbers = np.concatenate(([-1], holds.nonzero()[0]))
    last = numbers[numbers.searchsorted(bounds[1:]) - 1]
    return np.where(last >= bounds[:-1], last, -1)


def _means_around(blocks: Blocks, lengths: BlockNumbers) -> NDArray[np.float64]:
    """Returns the share of links in the text of each block and its neighbours."""
    at, pages, page_of = np.arange(len(lengths)), blocks.pages, blocks.page_of
    first = np.maximum(at - _AROUND, pages[page_of])
    last = np.minimum(at + _AROUND + 1, pages[page_of + 1])
    link_sums, sums = _sums(blocks.links), _sums(lengths)
    means: NDArray[np.float64] = (link_sums[last] - link_sums[first]) / (sums[last] - sums[first])
    return means


_Values = TypeVar("_Values", bound=np.generic)


def values_before(values: NDArray[_Values], none: Any, pages: BlockNumbers) -> NDArray[_Values]:
    """Returns the value of the block before each.

    Args:
        values: Those of the blocks.
        none: What the first block of a page gets.
        pages: See ``Blocks``.
    """
    shifted = np.concatenate((values[:1], values[:-1]))
    shifted[pages[:-1]] = none
    return shifted


def values_after(values: NDArray[_Values], none: Any, pages: BlockNumbers) -> NDArray[_Values]:
    """Returns the value of the block after each; see ``values_before``."""
    shifted = np.concatenate((values[1:], values[:1]))
    shifted[pages[1:] - 1] = none
    return shifted
