"""The methods of ranking nodes, by name."""

from .harmonic import Harmonic
from .hits import Hits
from .linkrank import LinkRank, PageRank
from .ranking import Ranking

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
