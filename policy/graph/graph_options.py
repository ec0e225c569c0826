"""Options that choose a graph of the table, and a rank of its nodes."""

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ..components.graph_schema import GRAPH_LEVELS, RANK_COLUMNS

RANK_NAMES = tuple(column.name for column in RANK_COLUMNS)


@dataclass(frozen=True)
class RankOptions:
    """The option that chooses a rank."""

    GROUP = "ranks"

    rank: str = option(
        "linkrank", "The rank to use, one of those that linkrank computes.", choices=RANK_NAMES
    )


@dataclass(frozen=True)
class LevelOptions:
    """The option that chooses a graph of the table."""

    GROUP = "webgraph"

    level: str = option(
        "page", "The graph: its nodes are pages, hosts or domains.", choices=GRAPH_LEVELS
    )
