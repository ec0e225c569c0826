"""Links of pages that are in no table, as rows: one per source and target."""

import polars as pl
import pyarrow as pa

from ..components.schema import TEXT
from .anchors import clean_anchors
from .edges import known_rel, merge_rows

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
# Without user and port.
_HOST = r"(?i)^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:]*)"


def page_edges(
    pages: pl.DataFrame,
    max_anchor_length: int = 100,
    ignore_internal_links: bool = False,
    ignore_external_links: bool = False,
) -> pl.DataFrame:
    """Returns the links of pages: INLINK rows, one per source and target.

    Args:
        pages: ``url``, ``links`` (each with ``url``, ``anchor``, ``rel``) and perhaps ``score``.
        max_anchor_length: How much of the text of a link is kept, characters.
        ignore_internal_links: Whether to leave out links within a host.
        ignore_external_links: Whether to leave out links to other hosts.

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
        .select("source", "score", link.field("anchor"), link.field("rel"), url=link.field("url"))
        .filter(pl.col("url").is_not_null() & (pl.col("url") != pl.col("source")))
        .with_columns(external=_host("url") != _host("source"))
    )
    if ignore_internal_links or ignore_external_links:
        links = links.filter(pl.col("external") == ignore_internal_links)
    links = links.with_columns(
        clean_anchors(links.get_column("anchor"), max_anchor_length).alias("anchor"),
        rel=known_rel(links.get_column("rel")),
        key=pl.col("url") + " " + pl.col("source"),
    )
    return merge_rows(links).select(INLINK.names)


def _host(name: str) -> pl.Expr:
    return pl.col(name).str.extract(_HOST).str.to_lowercase().fill_null("")
