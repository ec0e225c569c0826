"""HITS: a good hub links to good authorities, and good hubs link to a good authority."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from .edge_pieces import Piece
from .ranking import Block, Ranking, Values, add_at


@dataclasses.dataclass(frozen=True)
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

    def add(
        self, number: int, block: Block, sums: np.ndarray, values: Values, piece: Piece
    ) -> None:
        from_ = values["authority" if self.backward(number) else "hub"]
        add_at(sums, piece.targets, from_.take(piece.sources))

    def apply(
        self,
        number: int,
        block: Block,
        values: Values,
        sums: np.ndarray,
        totals: Mapping[str, float],
    ) -> tuple[Values, dict[str, float]]:
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
