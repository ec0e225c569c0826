"""Ranks nodes in rounds: each round computes the values of each block from those of all blocks.

A ranking is a few functions on one block. So memory holds the values of two blocks and a piece of
the links between them, however large the graph is. The rounds in this module are those in memory;
``transforms/graph/rank_rounds.py`` makes the same rounds with files, on any runner.
"""

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..components.graph_schema import Block, Piece, Values, has_scipy


class BlockRound(NamedTuple):
    """A round for one block of nodes.

    Attributes:
        number: Number of the round, from 1.
        block: The block.
        totals: The sums over all blocks of the round before.
    """

    number: int
    block: Block
    totals: Mapping[str, float]


class Graph(Protocol):
    """A graph whose nodes are divided into blocks."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""

    def block(self, number: int) -> Block:
        """Returns the block with a number."""

    def pieces(self, sources: int, targets: int) -> Iterable[Piece]:
        """Yields the links from block ``sources`` to block ``targets``, in pieces of limited size."""


class Ranking(abc.ABC):
    """A method of ranking nodes.

    Attributes:
        name: Its name.
        gathered: Names of the values that a round needs from other blocks.
        results: Names of the values that are the ranks, at the end.
    """

    name: str
    gathered: tuple[str, ...]
    results: tuple[str, ...]

    @abc.abstractmethod
    def initial_values(self, block: Block) -> tuple[Values, dict[str, float]]:
        """Returns the values before the first round, and sums over the block."""

    def backward(self, number: int) -> bool:
        """Returns whether a round sums over the links of a node, not over the links to it."""
        return False

    def zeros(self, block: Block) -> np.ndarray:
        """Returns the sums of a block, before any link is added."""
        return np.zeros(block.nodes)

    @abc.abstractmethod
    def add(self, block_round: BlockRound, sums: np.ndarray, values: Values, piece: Piece) -> None:
        """Adds values of the sources of links to the sums of their targets."""

    @abc.abstractmethod
    def apply(
        self, block_round: BlockRound, values: Values, sums: np.ndarray
    ) -> tuple[Values, dict[str, float]]:
        """Returns the values of a block after a round, and sums over the block.

        Args:
            block_round: The round.
            values: The values of the block before it.
            sums: What ``add`` has summed for the block.
        """

    @abc.abstractmethod
    def change(self, number: int, totals: Mapping[str, float]) -> float | None:
        """Returns how much a round has changed, from its totals; None if it says nothing."""

    @abc.abstractmethod
    def ranks(self, values: Values, totals: Mapping[str, float]) -> Values:
        """Returns the ranks of a block, from its values and totals after the last round."""

    def steps(self, rounds: int) -> int:
        """Returns the number of rounds in this sense for a number of rounds as users count them."""
        return rounds


def rank_iterations(
    ranking: Ranking, graph: Graph, rounds: int, tolerance: float = 0.0
) -> tuple[Values, list[float]]:
    """Returns the ranks of all nodes, in the order of their ids, and the change of each round.

    Args:
        ranking: The method.
        graph: The graph.
        rounds: Most rounds.
        tolerance: Stop after a round that changes no more than this; with 0, nothing.
    """
    blocks = [graph.block(number) for number in range(graph.blocks)]
    values, parts = _values_and_sums(ranking.initial_values(block) for block in blocks)
    totals = sum_totals(parts)
    changes: list[float] = []
    for number in range(1, ranking.steps(rounds) + 1):
        previous = values
        values, parts = _values_and_sums(
            one_block(ranking, graph, BlockRound(number, block, totals), previous)
            for block in blocks
        )
        totals = sum_totals(parts)
        if (change := ranking.change(number, totals)) is not None:
            changes.append(change)
            if has_converged(change, tolerance):
                break
    ranks = [ranking.ranks(block_values, totals) for block_values in values]
    return {name: np.concatenate([r[name] for r in ranks]) for name in ranking.results}, changes


def one_block(
    ranking: Ranking, graph: Graph, block_round: BlockRound, previous: Sequence[Values]
) -> tuple[Values, dict[str, float]]:
    """Makes one round for one block; returns its values and sums.

    Args:
        ranking: The method.
        graph: The graph.
        block_round: The round.
        previous: The values of all blocks before the round; they are read one after another.
    """
    # Block 1 of three, in a round of LinkRank. Each cell has the links from one block to another, and
    # values of one block of sources at a time are in memory:
    #
    #                 to block 0   1   2        piece of (0, 1)     sources   0   0   3
    #   from block 0           .   +   .                            targets   2   7   2
    #              1           .   +   .        share of block 0    s0  s1  s2  s3  ...
    #              2           .   +   .        sums of block 1     [2] += s0 + s3, [7] += s0
    block = block_round.block
    sums = ranking.zeros(block)
    backward = ranking.backward(block_round.number)
    for other in range(graph.blocks):
        values: Values | None = None
        source, target = (block.number, other) if backward else (other, block.number)
        for piece in graph.pieces(source, target):
            if values is None:
                values = previous[other]
            ranking.add(block_round, sums, values, piece)
    return ranking.apply(block_round, previous[block.number], sums)


def has_converged(change: float, tolerance: float) -> bool:
    """Returns whether a round has changed so little that another one is not needed."""
    return change <= tolerance and (tolerance > 0 or change == 0)


def sum_totals(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Adds the sums of blocks, in the order of the blocks, so that a rerun gives the same bits."""
    totals: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            totals[name] = totals.get(name, 0.0) + value
    return totals


def _values_and_sums(
    results: Iterator[tuple[Values, dict[str, float]]],
) -> tuple[list[Values], list[dict]]:
    pairs = list(results)
    return [values for values, _ in pairs], [part for _, part in pairs]


def add_to_targets(sums: np.ndarray, values: np.ndarray, piece: Piece) -> None:
    """Adds the value of the source of each link to the sum of its target."""
    if _is_product(sums, piece):
        nodes, matrix = piece.matrix
        product = matrix @ values.take(nodes)
        sums[: len(product)] += product
    else:
        _add_at(sums, piece.targets, values.take(piece.sources))


def add_to_sources(sums: np.ndarray, values: np.ndarray, piece: Piece) -> None:
    """Adds the value of the target of each link to the sum of its source."""
    if _is_product(sums, piece):
        nodes, matrix = piece.matrix
        sums[nodes] += matrix.T @ values[: matrix.shape[0]]
    else:
        _add_at(sums, piece.sources, values.take(piece.targets))


def _is_product(sums: np.ndarray, piece: Piece) -> bool:
    """Returns whether scipy multiplies a matrix, in two thirds of the time that numpy takes.

    A product makes a sum for each node, which a few links need not pay for.
    """
    return len(piece.targets) > len(sums) // 8 and has_scipy()


def _add_at(sums: np.ndarray, positions: np.ndarray, values: np.ndarray) -> None:
    """Adds values to the sums at positions, which may repeat."""
    if len(positions) > len(sums) // 8:
        sums += np.bincount(positions, values, len(sums))
    else:
        np.add.at(sums, positions, values)
