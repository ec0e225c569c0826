"""The methods of ranking nodes besides LinkRank and PageRank, all by name; scores and lists from ranks.

HITS: a good hub links to good authorities, and good hubs link to a good authority.

Harmonic centrality: the sum over all other nodes of 1 / their distance to a node.

After round r the set of a node has the nodes that reach it within r links; it is the union of
its own set and those of the nodes that link to it. In a small graph the sets are exact, a bit per
node. In a larger one they are HyperLogLog counters (HyperBall, Boldi and Vigna, 2013).
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import polars as pl

from ...web.base.dataclass import dataclass
from ...web.content.signature import mix_bits
from ..components.graph_schema import Block, NodeRows, Piece, Values
from ..components.schema import StateRows
from ..generating.selection import groups
from .linkrank import LinkRank, PageRank
from .ranking import BlockRound, Ranking, add_to_sources, add_to_targets

AGGREGATES = ("sum", "max")


@dataclass(frozen=True)
class Hits(Ranking):
    """HITS (Kleinberg). The authorities sum to 1, and so do the hubs.

    A round as users count them is two here: from hubs to authorities, and back. Values are divided
    by their sum one step later, when the sum over all blocks is known.
    """

    name = "hits"
    gathered = ("hub", "authority")
    results = ("authority", "hub")

    def initial_values(self, block: Block) -> tuple[Values, dict[str, float]]:
        zeros = np.zeros(block.nodes)
        values = {"hub": np.ones(block.nodes), "authority": zeros, "before": zeros}
        return values, {"hub": float(block.nodes), "change": 1.0}

    def backward(self, number: int) -> bool:
        return number % 2 == 0

    def add(self, block_round: BlockRound, sums: np.ndarray, values: Values, piece: Piece) -> None:
        if self.backward(block_round.number):
            add_to_sources(sums, values["authority"], piece)
        else:
            add_to_targets(sums, values["hub"], piece)

    def apply(
        self, block_round: BlockRound, values: Values, sums: np.ndarray
    ) -> tuple[Values, dict[str, float]]:
        number, _, totals = block_round
        if not self.backward(number):
            authority = _normal(sums, totals["hub"])
            return values | {"authority": authority}, {"authority": float(authority.sum())}
        hub = _normal(sums, totals["authority"])
        now = _normal(values["authority"], totals["authority"])
        change = float(np.abs(now - values["before"]).sum())
        new_values = {"hub": hub, "authority": now, "before": now}
        return new_values, {"hub": float(hub.sum()), "change": change}

    def change(self, number: int, totals: Mapping[str, float]) -> float | None:
        return totals["change"] if self.backward(number) else None

    def ranks(self, values: Values, totals: Mapping[str, float]) -> Values:
        return {"authority": values["before"], "hub": _normal(values["hub"], totals["hub"])}

    def steps(self, rounds: int) -> int:
        return 2 * rounds


def _normal(values: np.ndarray, total: float) -> np.ndarray:
    return values / total if total > 0 else np.zeros(len(values))


_BITS = np.array([(byte).bit_count() for byte in range(256)], np.uint8)
# Most bytes of counters that one step gathers.
_GATHERED_BYTES = 32 << 20


@dataclass(frozen=True)
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

    def zeros(self, block: Block) -> np.ndarray:
        width = -(-block.all_nodes // 8) if self._is_exact(block) else 1 << self.log2_registers
        return np.zeros((block.nodes, width), np.uint8)

    def add(self, block_round: BlockRound, sums: np.ndarray, values: Values, piece: Piece) -> None:
        # targets, sorted    2  2  2  5  5  9      a step takes some of them
        # starts             0        3     5      where another target begins
        # counters[sources]  a  b  c  d  e  f      a row of bytes each
        # met                a|b|c    d|e   f      reduceat unites from one start to the next
        counters, union = values["counters"], self._union(block_round.block)
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
        self, block_round: BlockRound, values: Values, sums: np.ndarray
    ) -> tuple[Values, dict[str, float]]:
        number, block, _ = block_round
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
    """Returns a hash of each id (SplitMix64)."""
    return mix_bits(ids + np.uint64(0x9E3779B97F4A7C15))


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


ValueRows: TypeAlias = pl.DataFrame  # ``key``, ``value``
RANKINGS = ("linkrank", "pagerank", "hits", "harmonic")


def choose_ranking(name: str, linkrank: LinkRank, harmonic: Harmonic | None = None) -> Ranking:
    """Returns a method of ranking.

    Args:
        name: One of ``RANKINGS``.
        linkrank: LinkRank with its options; PageRank takes its damping.
        harmonic: Harmonic centrality with its options; None is the default.

    >>> choose_ranking("pagerank", LinkRank(damping=0.5))
    PageRank(damping=0.5, initial=1.0, nutch=False)
    """
    if name == "linkrank":
        return linkrank
    if name == "pagerank":
        return PageRank(linkrank.damping)
    return Hits() if name == "hits" else harmonic or Harmonic()


def new_scores(rows: StateRows, ranks: NodeRows, clear: float) -> StateRows:
    """Returns the rows whose score changes, with the new one.

    Args:
        rows: Columns ``key`` and ``score``.
        ranks: Columns ``key`` and ``rank``.
        clear: Score of a row without a rank.

    >>> rows = pl.DataFrame({"key": ["a", "b", "c"], "score": [1.0, 2.0, 0.0]})
    >>> new_scores(rows, pl.DataFrame({"key": ["a", "x"], "rank": [0.5, 9.0]}), 0.0).rows()
    [('a', 0.5), ('b', 0.0)]
    """
    ranked = rows.join(ranks, on="key", how="left", maintain_order="left")
    score = pl.col("rank").fill_null(clear).cast(rows.schema["score"])
    ranked = ranked.with_columns(new=score).filter(pl.col("score").ne_missing(pl.col("new")))
    return ranked.select("key", score="new")


def set_scores(rows: StateRows, changes: StateRows) -> tuple[StateRows, dict[str, int]]:
    """Returns the rows with their new scores, and the number of changed ones.

    A key that has no row is not added.

    >>> rows = pl.DataFrame({"key": ["a", "b"], "score": [1.0, 2.0]})
    >>> set_scores(rows, pl.DataFrame({"key": ["b", "x"], "score": [0.5, 9.0]}))[0].rows()
    [('a', 1.0), ('b', 0.5)]
    """
    changes = changes.select("key", new="score")
    scored = rows.join(changes, on="key", how="left", maintain_order="left")
    number = scored.get_column("new").count()
    new_rows = scored.with_columns(score=pl.coalesce("new", "score")).drop("new")
    return new_rows, {"scored": number} if number else {}


def grouped_values(nodes: ValueRows, group_by: str, aggregate: str) -> ValueRows:
    """Returns one row per node, host or domain: ``key`` and ``value``.

    Args:
        nodes: Columns ``key`` and ``value``; null counts as 0.
        group_by: ``none``, ``host`` or ``domain``.
        aggregate: One of ``AGGREGATES``; parts of groups may be aggregated again.

    >>> nodes = pl.DataFrame({"key": ["com.a:http/1", "com.a:http/2"], "value": [1.0, 2.0]})
    >>> grouped_values(nodes, "host", "sum").rows()
    [('com.a', 3.0)]
    """
    nodes = nodes.with_columns(pl.col("value").fill_null(0))
    if group_by == "none":
        return nodes
    names = nodes.with_columns(key=groups(nodes.get_column("key"), group_by))
    return merged_values([names], aggregate)


def merged_values(parts: list[ValueRows], aggregate: str) -> ValueRows:
    """Merges parts that may have rows of the same keys."""
    value = pl.col("value").sum() if aggregate == "sum" else pl.col("value").max()
    return pl.concat(parts).group_by("key").agg(value)


def best_first(rows: ValueRows, number: int) -> ValueRows:
    """Returns the rows in the order of their values, the largest first; equal ones by key.

    Args:
        rows: Columns ``key`` and ``value``.
        number: How many; 0 means all. Nutch's ``-topn`` counts per distinct value instead.

    >>> rows = pl.DataFrame({"key": ["b", "a", "c"], "value": [1, 1, 0]})
    >>> best_first(rows, 2).rows()
    [('a', 1), ('b', 1)]
    """
    ordered = rows.sort("value", "key", descending=[True, False])
    return ordered.head(number) if number else ordered


RANKS_HEADER = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev"
HOSTS_HEADER = "#n_hosts"


def ranks_table(ranks: NodeRows) -> pl.DataFrame:
    """Returns the rows of a file of ranks, the largest harmonic centrality first.

    Args:
        ranks: Columns ``key``, ``harmonic`` and ``pagerank``, in key order. Of equal values the
            smaller key is first.

    >>> ranks = pl.DataFrame({"key": ["com.a", "com.b"], "harmonic": [0.5, 1.0],
    ...     "pagerank": [0.25, 0.75]})
    >>> ranks_table(ranks).rows()
    [(1, 1.0, 1, 0.75, 'com.b'), (2, 0.5, 2, 0.25, 'com.a')]
    """
    placed = ranks.with_columns(
        harmonicc_pos=pl.col("harmonic").rank("ordinal", descending=True),
        pr_pos=pl.col("pagerank").rank("ordinal", descending=True),
    )
    # Common Crawl's centralities are 32-bit numbers.
    placed = placed.with_columns(pl.col("harmonic").cast(pl.Float32))
    columns = ("harmonicc_pos", "harmonic", "pr_pos", "pagerank", "key")
    return placed.select(columns).sort("harmonicc_pos")
