"""What the targets of redirects get from their sources, and which URL stands for them."""

from collections.abc import Callable, Collection, Mapping

import polars as pl

from ..web.urls.representative import choose_representative
from ..web.urls.row_keys import from_key

INHERITED = ("fetch_interval", "fixed_interval", "metadata")
# A change with it in place of a URL says that no other URL stands for the page any more.
NO_URL = ""
# In place of the key that a URL leads to: the table does not have that URL.
ABSENT = ""
# More redirects in a row are a circle.
_LONGEST_CHAIN = 20
# From keys to the key that each URL leads to: None if it leads nowhere, ABSENT if the table does not
# have it; where nothing is known of the answer, the key is missing.
LeadsTo = Callable[[Collection[str]], Mapping[str, str | None]]


def heirs(redirects: pl.DataFrame, rows: pl.DataFrame, alone: Collection[str] = ()) -> pl.DataFrame:
    """Returns what targets of redirects inherit from their sources: CHANGES rows without a link.

    If several redirects lead to a target, it is the heir of one of them. The order in which they were
    fetched makes no difference; see ``first_heirs``. If the fetch has followed a redirect to a target
    that redirects, too, this target hands on what it inherits.

    Args:
        redirects: Redirects, with ``source``, ``key`` and ``temporary``.
        rows: Rows of their sources from before.
        alone: Keys of pages that are no longer shown under another URL; see ``no_longer_shown``.
    """
    known = rows.select("repr_url", *INHERITED, source="key")
    is_source = pl.col("key").is_in(redirects.get_column("source").implode())
    while True:
        found = _inherited(redirects, known)
        sources = known.get_column("source").implode()
        ready = is_source & pl.col("source").is_in(sources) & ~pl.col("key").is_in(sources)
        followed = found.filter(ready)
        if followed.is_empty():
            break
        next_known = followed.drop("source").rename({"key": "source"})
        known = pl.concat([known, next_known.select(known.columns)])
    found = found.drop("source")
    rest = pl.DataFrame({"key": sorted(alone)}, schema={"key": pl.String})
    rest = rest.join(found, on="key", how="anti").with_columns(repr_url=pl.lit(NO_URL))
    return pl.concat([found, rest], how="diagonal")


def _inherited(redirects: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Returns what each target inherits: ``source``, ``key``, and the inherited columns.

    Args:
        redirects: See ``heirs``.
        known: ``source`` and the columns that it hands on; sources that are not there hand on none.
    """
    found = redirects.join(known, on="source", how="left", maintain_order="left")
    ends = found.select("source", "repr_url", "key", "temporary")
    chosen = pl.Series("repr_url", [_representative(*end) for end in ends.iter_rows()], pl.String)
    found = found.select("source", "key", *INHERITED).with_columns(chosen)
    gives = pl.any_horizontal(pl.col("repr_url", *INHERITED).is_not_null())
    return first_heirs(found.filter(gives).sort("source"), "key")


def first_heirs(rows: pl.DataFrame, target: str) -> pl.DataFrame:
    """Returns the row of each target that counts, in no order.

    A row with a URL that stands for the target has priority over one without it, and that over the
    word that none does. Of several such URLs the first in the order of the alphabet counts; of
    equal ones, and of rows without one, the first row.

    Args:
        rows: Rows with ``repr_url``.
        target: The column that stands for the target.
    """
    url = pl.col("repr_url")
    rank = pl.when(url == NO_URL).then(2).when(url.is_null()).then(1).otherwise(0)
    order = rows.select(target, url, rank.alias("rank")).with_row_index("row")
    order = order.sort(target, "rank", "repr_url", "row")
    return rows[order.unique(target, keep="first", maintain_order=True).get_column("row")]


def _representative(source: str, known: str | None, target: str, temporary: bool) -> str | None:
    """Returns the URL that stands for a redirect's target; None if it is its own."""
    url = from_key(target)
    better = choose_representative(known or from_key(source), url, temporary=temporary)
    return better if better != url else None


def no_longer_shown(shown_as: Mapping[str, str], leads_to: LeadsTo) -> set[str]:
    """Returns the pages whose representative URL does not represent them any more.

    That URL has a page of its own now, is gone, redirects elsewhere, or was removed from the table.
    It stays while this is not known.

    Args:
        shown_as: From the key of each page to the key of the URL that stands for it.
        leads_to: Where URLs lead.

    >>> web = {"a": "b", "b": "page", "c": None, "d": "c", "e": "f", "f": ABSENT}
    >>> shown_as = {"page": "a", "p2": "c", "p3": "d", "p4": "e", "p5": "f", "p6": "g"}
    >>> found = no_longer_shown(shown_as, lambda keys: {k: web[k] for k in keys if k in web})
    >>> sorted(found)
    ['p2', 'p3', 'p5']
    """
    alone = set()
    for hops in range(_LONGEST_CHAIN):
        if not shown_as:
            break
        found = leads_to(set(shown_as.values()))
        ways = {page: found[url] for page, url in shown_as.items() if url in found}
        if hops:  # The target of a redirect may be new: the table gets it with this update.
            ways = {page: target for page, target in ways.items() if target != ABSENT}
        alone |= {page for page, target in ways.items() if not target}
        shown_as = {page: target for page, target in ways.items() if target and target != page}
    return alone
