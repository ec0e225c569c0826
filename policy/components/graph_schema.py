"""Schemas of the graph of pages, hosts or domains, and of its ranks."""

import pyarrow as pa

from .columns import Column, Columns, Form
from .schema import TEXT

# The nodes of a graph: URLs, hosts or registered domains.
GRAPH_LEVELS = ("page", "host", "domain")
# The nodes of a graph, in key order; a file is a block.
NODE_COLUMNS = (
    Column("id", pa.int64(), "Number of the node, from 0, in the order of the keys."),
    Column("in_links", pa.int64(), "Number of links to it."),
    Column("out_links", pa.int64(), "Number of its links."),
    Column("counted_links", pa.int64(), "Number of its links that count in LinkRank."),
)
# The links of a graph; policy/graph/edge_pieces.py says how they are stored.
EDGE_COLUMNS = Columns(
    (
        Column("key", TEXT, "Block of the targets, block of the sources, number of the piece."),
        Column("links", pa.int64(), "Number of links."),
        Column("source_bytes", pa.uint8(), "Size of a number in `sources`.", unit="bytes"),
        Column(
            "sources",
            pa.large_binary(),
            "Positions of the sources in their block, each as the difference to the one before.",
            form=Form.HEX,
        ),
        Column("target_bytes", pa.uint8(), "Size of a number in `targets`.", unit="bytes"),
        Column(
            "targets", pa.large_binary(), "Positions of the targets in their block.", form=Form.HEX
        ),
        Column(
            "counts",
            pa.large_binary(),
            "A bit per link: whether it counts in LinkRank; null: all do.",
            form=Form.HEX,
        ),
    )
)
RANK_COLUMNS = (
    Column("linkrank", pa.float64(), "LinkRank; the mean of all nodes is 1."),
    Column("pagerank", pa.float64(), "PageRank; the sum of all nodes is 1."),
    Column("authority", pa.float64(), "Authority (HITS); the sum of all nodes is 1."),
    Column("hub", pa.float64(), "Hub (HITS); the sum of all nodes is 1."),
    Column("harmonic", pa.float64(), "Harmonic centrality."),
)
