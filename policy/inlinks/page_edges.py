"""Links of pages that are in no table, as rows: one per source and target."""

import polars as pl
import pyarrow as pa

from ..components.schema import TEXT
from .anchors import clean_anchors
from .edges import kept_links, known_rel, merge_rows
from .invert_options import InvertOptions

INLINK = pa.schema(
    [
        ("url", TEXT),  # the target
        ("source", TEXT),
        ("anchor", TEXT),
        ("rel", TEXT),
        ("score", pa.float64()),
        ("external", pa.bool_()),
    ]
)
# The best inlinks of a page are the last ones in this order.
BEST_LAST = ("score", "external", "source")
ALL_LINKS = InvertOptions()
# Without user and port.
_HOST = r"(?i)^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:]*)"


def page_edges(pages: pl.DataFrame, options: InvertOptions = ALL_LINKS) -> pl.DataFrame:
    """Returns the links of pages: INLINK rows, one per source and target.

    Args:
        pages: ``url``, ``links`` (each with ``url``, ``anchor``, ``rel``) and perhaps ``score``.
        options: Which links are kept.

    >>> pages = pl.DataFrame({"url": ["http://a.com/"],
    ...     "links": [[{"url": "http://b.com/", "anchor": "B", "rel": "UGC"}]]})
    >>> page_edges(pages).rows()
    [('http://b.com/', 'http://a.com/', 'B', 'ugc', 0.0, True)]
    """
    link = pl.col("links").struct
    score = pl.col("score").cast(pl.Float64).fill_null(0.0) if "score" in pages.columns else 0.0
    links = (
        pages.filter(pl.col("links").list.len() > 0)
        .select(source="url", score=score, links="links")
        .explode("links")
        .select(
            "source", "score", link.field("anchor"), link.field("rel"), target=link.field("url")
        )
    )
    links, _ = kept_links(links, options, _hosts)
    links = links.with_columns(
        clean_anchors(links.get_column("anchor"), options.max_anchor_length).alias("anchor"),
        rel=known_rel(links.get_column("rel")),
        external=_hosts(links.get_column("target")) != _hosts(links.get_column("source")),
        key=pl.col("target") + " " + pl.col("source"),
    )
    return merge_rows(links).rename({"target": "url"}).select(INLINK.names)


def _hosts(urls: pl.Series) -> pl.Series:
    return urls.str.extract(_HOST).str.to_lowercase().fill_null("")
