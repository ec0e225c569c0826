"""Texts of links: cleaned, cut, and joined as Nutch does."""

import polars as pl

from ...web.base.columns import repeat_value
from ...web.urls.key_columns import host_keys
from ..components.link_rows import says_nofollow

# Most different texts that an edge keeps: a page may link to another one very often.
MAX_TEXTS = 16
# Characters that are read of a text before white space is collapsed, as a multiple of the limit.
_READ = 4
_UNCLEAN = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|^\s|\s\s|\s$"


def clean_anchors(anchors: pl.Series, longest: int) -> pl.Series:
    """Returns texts of links, cut, on one line; null for empty ones.

    >>> clean_anchors(pl.Series([" a\\tb\\n", "", "long text", None]), 4).to_list()
    ['a b', None, 'long', None]
    """
    if not longest:
        return repeat_value(None, len(anchors), pl.String)
    texts = anchors.str.slice(0, _READ * longest)
    unclean = texts.str.contains(_UNCLEAN).fill_null(False)
    if unclean.any():
        spaced = texts.filter(unclean).str.replace_all(r"[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+", " ")
        texts = texts.scatter(unclean.arg_true(), spaced.str.strip_chars())
    cut = texts.str.slice(0, longest).str.strip_chars_end()
    return cut.set(cut == "", None)


def anchors_of(links: pl.DataFrame) -> list[str]:
    """Returns the texts under which a page is found: each once per host of a source, as in Nutch.

    Args:
        links: Rows of the link table with one target, best first: ``source``, ``anchor`` and
            perhaps ``rel``; texts of links that say nofollow are left out.

    >>> anchors_of(pl.DataFrame({"source": ["com.a:http/1", "com.a:http/2", "com.b:http/"],
    ...     "anchor": ["Home\\nStart", "Home", "Home"]}))
    ['Home', 'Start', 'Home']
    """
    if "rel" in links.columns:
        links = links.filter(~says_nofollow(pl.col("rel")))
    texts = links.select(
        host=host_keys(links.get_column("source")), text=pl.col("anchor").str.split("\n")
    ).explode("text")
    texts = texts.filter(pl.col("text").is_not_null() & (pl.col("text") != ""))
    return texts.unique(maintain_order=True).get_column("text").to_list()
