"""Harmonic centrality: the sum over all other nodes of 1 / their distance to a node.

After round r the set of a node has the nodes that reach it within r links; it is the union of
its own set and those of the nodes that link to it. In a small graph the sets are exact, a bit per
node. In a larger one they are HyperLogLog counters (HyperBall, Boldi and Vigna, 2013).
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from .edge_pieces import Piece
from .ranking import Block, Ranking, Values

_BITS = np.array([(byte).bit_count() for byte in range(256)], np.uint8)
# Most bytes of counters that one step gathers.
_GATHERED_BYTES = 32 << 20


@dataclasses.dataclass(frozen=True)
class Harmonic(Ranking):
    """Harmonic centrality of each node, from the nodes that reach it.

    Attributes:
        exact_nodes: Graphs with at most this many nodes are ranked exactly.
        log2_registers: Registers of a counter, as a power of 2: 6 is 64 registers, a byte each,
            with a standard error of 13 % of a node's count.
    """

    exact_nodes: int = 10_000
    log2_registers: int = 6
    name = "harmonic"
    gathered = ("counters",)
    results = ("harmonic",)

    def initial_values(self, block: Block) -> tuple[Values, dict[str, float]]:
        nodes = np.arange(block.nodes)
        ids = nodes + block.first
        if self._is_exact(block):
            counters = np.zeros((block.nodes, -(-block.all_nodes // 8)), np.uint8)
            counters[nodes, ids // 8] = 1 << (ids % 8).astype(np.uint8)
        else:
            counters = np.zeros((block.nodes, 1 << self.log2_registers), np.uint8)
            mixed = _mix(ids.astype(np.uint64))
            register = (mixed & np.uint64(counters.shape[1] - 1)).astype(np.int64)
            counters[nodes, register] = _leading_zeros(mixed >> np.uint64(self.log2_registers)) + 1
        values: Values = {
            "counters": counters,
            "known": np.ones(block.nodes),
            "score": np.zeros(block.nodes),
        }
        return values, {"change": float(block.nodes)}

    def zeros(self, number: int, block: Block) -> np.ndarray:
        width = -(-block.all_nodes // 8) if self._is_exact(block) else 1 << self.log2_registers
        return np.zeros((block.nodes, width), np.uint8)

    def add(
        self, number: int, block: Block, sums: np.ndarray, values: Values, piece: Piece
    ) -> None:
        # targets, sorted    2  2  2  5  5  9      a step takes some of them
        # starts             0        3     5      where another target begins
        # counters[sources]  a  b  c  d  e  f      a row of bytes each
        # met                a|b|c    d|e   f      reduceat unites from one start to the next
        counters, union = values["counters"], self._union(block)
        order = np.argsort(piece.targets, kind="stable")
        targets, sources = piece.targets[order], piece.sources[order]
        step = max(1, _GATHERED_BYTES // counters.shape[1])
        for start in range(0, len(order), step):
            step_targets = targets[start : start + step]
            starts = np.flatnonzero(np.diff(step_targets, prepend=-1))
            met = union.reduceat(counters[sources[start : start + step]], starts, axis=0)
            at = step_targets[starts]
            sums[at] = union(sums[at], met)

    def apply(
        self,
        number: int,
        block: Block,
        values: Values,
        sums: np.ndarray,
        totals: Mapping[str, float],
    ) -> tuple[Values, dict[str, float]]:
        exact = self._is_exact(block)
        counters = self._union(block)(sums, values["counters"])
        changed = (counters != values["counters"]).any(axis=1)
        reached = values["known"].copy()
        grown = counters[changed]
        reached[changed] = _BITS[grown].sum(axis=1, dtype=np.int64) if exact else _estimate(grown)
        # An estimate may shrink by an error of rounding, a set may not.
        reached = np.maximum(reached, values["known"])
        score = values["score"] + (reached - values["known"]) / number
        new_values = {"counters": counters, "known": reached, "score": score}
        return new_values, {"change": float(changed.sum())}

    def change(self, number: int, totals: Mapping[str, float]) -> float | None:
        return totals["change"]

    def ranks(self, values: Values, totals: Mapping[str, float]) -> Values:
        return {self.name: values["score"]}

    def _is_exact(self, block: Block) -> bool:
        return block.all_nodes <= self.exact_nodes

    def _union(self, block: Block) -> np.ufunc:
        return np.bitwise_or if self._is_exact(block) else np.maximum


def _mix(ids: np.ndarray) -> np.ndarray:
    """Returns a hash of each id (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = ids + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _leading_zeros(hashes: np.ndarray) -> np.ndarray:
    """Returns the number of zeros at the end of each hash: as random as those at its start."""
    lowest = hashes & (~hashes + np.uint64(1))
    return np.frexp(lowest.astype(np.float64))[1].clip(min=1).astype(np.uint8) - 1


def _estimate(counters: np.ndarray) -> np.ndarray:
    """Returns the numbers that HyperLogLog counters stand for."""
    number = counters.shape[1]
    alpha = {16: 0.673, 32: 0.697, 64: 0.709}.get(number, 0.7213 / (1 + 1.079 / number))
    raw = alpha * number**2 / np.exp2(-counters.astype(np.float64)).sum(axis=1)
    empty = (counters == 0).sum(axis=1)
    few = (raw <= 2.5 * number) & (empty > 0)
    return np.where(few, number * np.log(number / np.maximum(empty, 1)), raw)
