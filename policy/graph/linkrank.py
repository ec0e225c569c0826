"""LinkRank and PageRank.

LinkRank is PageRank times the number of nodes: the mean rank is 1, whatever the size of the graph.
Nutch's own formula loses the rank of pages without links ("dangling" pages), and that of links that
do not count. So its ranks shrink with each round by an amount that depends on the graph.
"""

from collections.abc import Mapping

import numpy as np

from ...web.base.dataclass import dataclass
from ..components.graph_schema import Block, Piece, Values
from .ranking import BlockRound, Ranking, add_to_targets


@dataclass(frozen=True)
class LinkRank(Ranking):
    """LinkRank: ``(1 - d) + d * (dangling / N + sum of score / links over the links to a node)``.

    Attributes:
        damping: The ``d``.
        initial: The score before the first round.
        nutch: Whether to use Nutch's formula, ``(1 - d) + d * (1 / N + sum)``.
    """

    damping: float = 0.85
    initial: float = 1.0
    nutch: bool = False
    name = "linkrank"
    gathered = ("share",)
    results = ("linkrank",)

    def initial_values(self, block: Block) -> tuple[Values, dict[str, float]]:
        return self._share_scores(block, np.full(block.nodes, self.initial), 0.0)

    def add(self, block_round: BlockRound, sums: np.ndarray, values: Values, piece: Piece) -> None:
        add_to_targets(sums, values["share"], piece.counted_links)

    def apply(
        self, block_round: BlockRound, values: Values, sums: np.ndarray
    ) -> tuple[Values, dict[str, float]]:
        _, block, totals = block_round
        lost = (1.0 if self.nutch else totals["dangling"]) / block.all_nodes
        sums += lost
        sums *= self.damping
        sums += self._base(block)
        change = float(np.abs(sums - values["score"]).sum())
        return self._share_scores(block, sums, change)

    def change(self, number: int, totals: Mapping[str, float]) -> float | None:
        return totals["change"] / max(totals["score"], 1e-300)

    def ranks(self, values: Values, totals: Mapping[str, float]) -> Values:
        return {self.name: values["score"]}

    def _base(self, block: Block) -> float:
        return 1 - self.damping

    def _links(self, block: Block) -> np.ndarray:
        # Nutch divides by all links of a page, even by those that do not count.
        return block.out_links if self.nutch else block.counted_links

    def _share_scores(
        self, block: Block, score: np.ndarray, change: float
    ) -> tuple[Values, dict[str, float]]:
        links = self._links(block)
        share = np.divide(score, links, out=np.zeros(block.nodes), where=links > 0)
        dangling = float(score[links == 0].sum())
        totals = {"dangling": dangling, "change": change, "score": float(score.sum())}
        return {"score": score, "share": share}, totals


@dataclass(frozen=True)
class PageRank(LinkRank):
    """PageRank: all links count, and the sum of all ranks is 1."""

    name = "pagerank"
    results = ("pagerank",)

    def initial_values(self, block: Block) -> tuple[Values, dict[str, float]]:
        return self._share_scores(block, np.full(block.nodes, 1 / block.all_nodes), 0.0)

    def add(self, block_round: BlockRound, sums: np.ndarray, values: Values, piece: Piece) -> None:
        add_to_targets(sums, values["share"], piece)

    def _base(self, block: Block) -> float:
        return (1 - self.damping) / block.all_nodes

    def _links(self, block: Block) -> np.ndarray:
        return block.out_links
