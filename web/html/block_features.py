"""Describes each block of a page by what it is, what is beside it, and where the prose of the page is."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..pages import spans
from ..pages.spans import Span
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
    """The blocks of running text of a page, in their order.

    Attributes:
        starts: The first character of each.
        ends: The character after each.
        links: Number of its characters that are links.
        kinds: What each is, without regard to what is around it.
        containers: Number of the innermost container of each.
        firsts: Number of the first block in each container.
        lasts: Number of the block after the last one in each container.
    """

    starts: BlockNumbers
    ends: BlockNumbers
    links: BlockNumbers
    kinds: BlockNumbers
    containers: BlockNumbers
    firsts: BlockNumbers
    lasts: BlockNumbers


def blocks_of(text_spans: Sequence[Span], containers: Containers) -> Blocks:
    """Returns the blocks of running text among the spans of a page."""
    starts, ends, links, kinds = list[int](), list[int](), list[int](), list[int]()
    for kind, start, end, level, _ in text_spans:
        if kind == spans.LINK:
            if links:
                links[-1] += end - start
        elif kind in spans.LEAVES and end > start:
            starts.append(start)
            ends.append(end)
            links.append(0)
            kinds.append(min(level, 3) if kind == spans.HEADING else _KINDS[kind])
    places = np.array(starts, np.int64)
    firsts = np.searchsorted(places, np.array(containers.starts, np.int64))
    lasts = np.searchsorted(places, np.array(containers.ends, np.int64))
    innermost = np.zeros(len(places), np.int64)
    for number in (lasts > firsts).nonzero()[0].tolist():
        innermost[firsts[number] : lasts[number]] = number
    after = np.array(ends, np.int64)
    lengths = np.minimum(np.array(links, np.int64), after - places)
    return Blocks(places, after, lengths, np.array(kinds, np.int64), innermost, firsts, lasts)


def block_features(text: str, blocks: Blocks, containers: Containers) -> Mapping[str, BlockNumbers]:
    """Returns the class of each block in each feature.

    Prose is long text that is mostly no links.

    Args:
        text: The text of the page.
        blocks: Its blocks, at least one.
        containers: The elements around them, at least one.

    Returns:
        By name: ``length``, ``links`` (its share in the text), ``kind`` and ``ends`` (its last character) of
        the block; ``links_before``, ``links_after``, ``links_around``, ``kind_before`` and
        ``kind_after`` of its neighbours; ``distance``: how many levels above the element that holds most of
        the prose is the innermost one around both; ``after``: how many blocks ago the last prose in that element was;
        ``share_1`` to ``share_3``: how much of the prose is in each of the elements around it.
    """
    lengths = blocks.ends - blocks.starts
    density = blocks.links / lengths
    parents = np.array(containers.parents)
    of_paragraphs = np.array([_KINDS_OF_PARAGRAPHS.get(tag, 0) for tag in containers.tags])
    kinds = np.where(blocks.kinds == 0, of_paragraphs[blocks.containers], blocks.kinds)
    holds_one = np.array([tag in _HOLD_ONE for tag in containers.tags])

    is_prose = (
        (density < _PROSE_LINKS)
        & (lengths >= _PROSE_CHARS)
        & ((kinds == 0) | (kinds > _LAST_TITLE))
    )
    prose = _sums(np.where(is_prose, lengths - blocks.links, 0))
    share = (prose[blocks.lasts] - prose[blocks.firsts]) / max(1, prose[-1])
    distance = _distances(blocks, parents, ((share >= _PROSE_SHARE) & ~holds_one).nonzero()[0])
    near = (is_prose & (distance == 0)).nonzero()[0]
    last = near[-1] if len(near) else len(lengths) - 1

    link_classes = np.searchsorted(_LINKS, density)
    share_classes = np.searchsorted(_SHARES, share)
    around = np.where(holds_one[blocks.containers], parents[blocks.containers], blocks.containers)
    holders = [np.maximum(around, 0)]
    for _ in range(2):
        holders.append(np.maximum(parents[holders[-1]], 0))
    return {
        "length": np.searchsorted(_LENGTHS, lengths),
        "links": link_classes,
        "links_before": _neighbours(link_classes, _NO_LINKS, 1),
        "links_after": _neighbours(link_classes, _NO_LINKS, -1),
        "links_around": np.searchsorted(_LINKS_AROUND, _means_around(blocks.links, lengths)),
        "kind": kinds,
        "kind_before": _neighbours(kinds, _NO_KIND, 1),
        "kind_after": _neighbours(kinds, _NO_KIND, -1),
        "ends": np.array([_ENDS.get(text[end - 1], 0) for end in blocks.ends.tolist()]),
        "distance": distance,
        "after": np.searchsorted(_BLOCKS, np.arange(len(lengths)) - last),
        **{f"share_{n}": share_classes[holder] for n, holder in enumerate(holders, 1)},
    }


def _sums(values: BlockNumbers) -> BlockNumbers:
    """Returns the sums of the first n values."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(values)))


def _distances(blocks: Blocks, parents: BlockNumbers, holders: BlockNumbers) -> BlockNumbers:
    """Returns how many levels above the innermost of some nested containers that around each block is."""
    distance = np.full(len(blocks.starts), _FAR if len(holders) else 0)
    chain, at = list[int](), int(holders[-1]) if len(holders) else -1
    while at >= 0:
        chain.append(at)
        at = int(parents[at])
    for level, number in reversed(list(enumerate(chain))):
        distance[blocks.firsts[number] : blocks.lasts[number]] = min(level, _FAR)
    return distance


def _means_around(links: BlockNumbers, lengths: BlockNumbers) -> NDArray[np.float64]:
    """Returns the share of links in the text of each block and its neighbours."""
    at = np.arange(len(lengths))
    first, last = np.maximum(at - _AROUND, 0), np.minimum(at + _AROUND + 1, len(lengths))
    link_sums, sums = _sums(links), _sums(lengths)
    means: NDArray[np.float64] = (link_sums[last] - link_sums[first]) / (sums[last] - sums[first])
    return means


def _neighbours(values: BlockNumbers, none: int, step: int) -> BlockNumbers:
    """Returns the value of the block before (1) or after (-1) each."""
    if step > 0:
        return np.concatenate(([none], values[:-1]))
    return np.concatenate((values[1:], [none]))
