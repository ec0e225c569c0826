"""Finds the main content of a page: what is left without navigation, adverts, comments, footers and the like.

Each block has a chance to be main content. It is a logistic function of a sum of weights, one for each
feature of the block and one for each word that says something about an element around it. The weights are learnt
from labelled pages (``benchmarks/main_weights.py``).
"""

import functools
import pathlib
import tomllib

import numpy as np
from numpy.typing import NDArray

from ..pages import spans
from ..pages.main_part import TextParts
from .block_features import BlockNumbers, Blocks, block_features, blocks_of
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


def main_parts(page: BlockText) -> TextParts:
    """Returns the parts of a text that are the main content of its page; none, if none is found.

    >>> from .block_text import block_text
    >>> page = block_text('<body><nav><a href="/">Home</a></nav><p>' + "A sentence. " * 9 + "</p></body>")
    >>> [page.text[start:end][:5] for start, end in main_parts(page)]
    ['A sen']
    """
    blocks = blocks_of(page.spans, page.containers)
    if not len(blocks.starts):
        return []
    is_main = main_blocks(block_chances(page, blocks), blocks.ends - blocks.starts)
    edges = np.diff(np.concatenate(([False], is_main, [False]))).nonzero()[0].tolist()
    return [
        (int(blocks.starts[first]), int(blocks.ends[after - 1]))
        for first, after in zip(edges[::2], edges[1::2], strict=True)
    ]


def block_chances(page: BlockText, blocks: Blocks) -> NDArray[np.float64]:
    """Returns the chance of each block to be main content; the cells of a table have the same."""
    weights = _weights()
    features = block_features(page.text, blocks, page.containers)
    sums = np.full(len(blocks.starts), weights.bias)
    for name, classes in features.items():
        sums += weights.features[name][classes]
    sums += weights.of_containers(page.containers)[blocks.containers]
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-sums))
    for kind, start, end, *_ in page.spans if "table" in page.containers.tags else ():
        if kind == spans.DATA_TABLE:
            first, after = np.searchsorted(blocks.starts, (start, end))
            chars = blocks.ends[first:after] - blocks.starts[first:after]
            if after > first:
                chances[first:after] = np.average(chances[first:after], weights=chars)
    return chances


def main_blocks(chances: NDArray[np.float64], lengths: BlockNumbers) -> NDArray[np.bool_]:
    """Returns whether each block is main content.

    Args:
        chances: The chance of each to be that.
        lengths: Their lengths in characters.

    >>> main_blocks(np.array([0.3, 0.9, 0.3, 0.9, 0.1]), np.array([9, 9, 9, 9, 9])).tolist()
    [False, True, True, True, False]
    """
    likely = chances > _LIKELY
    # A page of a few lines may have no block that is unlikely: then all of them belong to it.
    if chances.min() > _POSSIBLE or lengths[likely].sum() < _LEAST_SHARE * lengths.sum():
        return chances > _POSSIBLE
    at, far = np.arange(len(chances)), len(chances) + _MOST_BETWEEN
    before = np.maximum.accumulate(np.where(likely, at, -far))
    after = np.minimum.accumulate(np.where(likely, at, 2 * far)[::-1])[::-1]
    return likely | ((chances > _POSSIBLE) & (after - before - 1 <= _MOST_BETWEEN))
