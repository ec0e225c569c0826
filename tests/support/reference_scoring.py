"""Scores of pages: the reference of the scoring filters, one page at a time, in plain Python.

It is written from the specification of Nutch's jobs, and not from policy/. A page is a dict with
columns of STATE; ``targets`` are the row keys of its links. Scores of links are in the order of
their pages.

Where the specification leaves a choice:

- A page that links to a target twice gives it two shares; links to itself were dropped by parsing.
- A page that is unchanged (304, or the same content) gives no scores, so ``opic_cash`` lets it keep
  its cash; so does a page without links. Nothing is lost then, if both factors are 1.
- Scores and cash are divided by the links that were kept; db.score.count.filtered is not there.
- ``depth``: a seed has depth 1, so the depth is ``distance`` + 1. A page of unknown depth keeps its
  links (Nutch drops them: its defect 39); they get the depth that links of a seed have, so that
  limits hold for what is found from there. A new page gets the largest limit of the pages that link
  to it; a known page keeps its own.
- ``urlboost``: the first pattern that is found in the URL gives the factor.
- In a chain each scoring gets the sort value of the one before it, and 1.0 is the first.
- The sums of scores are computed in double precision, and kept in single precision.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence

from reference_schedules import Row, host_of
from reference_update import single

DEFAULT_MAX_DEPTH = 1000


@dataclasses.dataclass(frozen=True)
class Factors:
    """Settings of OPIC: db.score.link.internal and .external."""

    internal: float = 1.0
    external: float = 1.0


def share_out(
    amount: float, key: str, targets: Iterable[str], factors: Factors
) -> dict[str, float]:
    """Divides an amount among the links of a page.

    >>> share_out(6.0, "a:http/", ["a:http/1", "b:http/"], Factors(external=0.5))
    {'a:http/1': 3.0, 'b:http/': 1.5}
    >>> share_out(6.0, "a:http/", ["b:http/", "b:http/", "c:http/"], Factors())
    {'b:http/': 4.0, 'c:http/': 2.0}
    >>> share_out(6.0, "a:http/", [], Factors())
    {}
    """
    links, shares = list(targets), dict[str, float]()
    for link in links:
        share = amount / len(links)
        factor = factors.internal if host_of(link) == host_of(key) else factors.external
        shares[link] = shares.get(link, 0.0) + share * factor
    return shares


def opic_update(row: Row, shares: Sequence[float]) -> Row:
    """OPIC 1.x: the score grows by what links bring.

    >>> opic_update({"score": 1.0}, [0.25, 0.5])
    {'score': 1.75}
    """
    return row | {"score": single((row["score"] or 0.0) + sum(shares))}


def cash_distribute(
    row: Row, targets: Iterable[str], factors: Factors, *, changed: bool
) -> tuple[Row, dict[str, float]]:
    """OPIC 2.x: returns the page after it gave its cash away, and the shares of its links.

    >>> page = {"key": "a:http/", "score": 3.0, "cash": 1.0}
    >>> cash_distribute(page, ["b:http/", "c:http/"], Factors(), changed=True)
    ({'key': 'a:http/', 'score': 3.0, 'cash': 0.0}, {'b:http/': 0.5, 'c:http/': 0.5})
    >>> cash_distribute(page, ["b:http/"], Factors(), changed=False)[0]["cash"]
    1.0
    """
    cash = row["cash"] or 0.0
    shares = share_out(cash, row["key"], targets, factors) if changed else {}
    return row | {"cash": 0.0 if shares else cash}, shares


def cash_update(row: Row, shares: Sequence[float]) -> Row:
    """OPIC 2.x: score and cash grow by what links bring; to a page that gave its cash away first.

    >>> cash_update({"score": 1.0, "cash": 0.0}, [0.25, 0.5])
    {'score': 1.75, 'cash': 0.75}
    """
    return opic_update(row, shares) | {"cash": single((row["cash"] or 0.0) + sum(shares))}


def url_of(key: str) -> str:
    """Returns the URL of a row key without a port.

    >>> url_of("com.example.www:http/a")
    'http://www.example.com/a'
    """
    scheme, _, path = key.partition(":")[2].partition("/")
    return f"{scheme}://{host_of(key)}/{path}"


def depth_of(row: Row) -> int | None:
    """Returns the depth of a page: 1 is a seed; None: unknown."""
    return None if row["distance"] is None else row["distance"] + 1


def max_depth_of(row: Row, usual: int = DEFAULT_MAX_DEPTH) -> int:
    """Returns the depth from which on no links are followed."""
    return usual if row["max_depth"] is None else row["max_depth"]


def depth_of_links(
    row: Row, usual: int = DEFAULT_MAX_DEPTH, override: tuple[str, int] | None = None
) -> Row | None:
    """Returns what a page hands on to its links; None: they are dropped.

    Args:
        row: The page.
        usual: The limit of pages without one.
        override: A pattern of URLs, and the limit of links of pages whose URL it matches.

    >>> depth_of_links({"distance": 0, "max_depth": 2})
    {'distance': 1, 'max_depth': 2}
    >>> depth_of_links({"distance": 1, "max_depth": 2})
    >>> depth_of_links({"distance": None, "max_depth": None})
    {'distance': 1, 'max_depth': None}
    >>> depth_of_links({"key": "a:http/x", "distance": 1, "max_depth": 2}, 9, ("x$", 3))
    {'distance': 2, 'max_depth': 3}
    """
    if override and re.search(override[0], url_of(row["key"])):
        row = row | {"max_depth": override[1]}
    depth = depth_of(row)
    if depth is None:
        return {"distance": 1, "max_depth": row["max_depth"]}
    if depth >= max_depth_of(row, usual):
        return None
    return {"distance": depth, "max_depth": row["max_depth"]}


def depth_update(
    row: Row | None, links: Sequence[Row], usual: int = DEFAULT_MAX_DEPTH
) -> tuple[int | None, int]:
    """Returns the distance and the limit of a page after links to it: the least distance.

    Args:
        row: The page before; None: it is new.
        links: What pages hand on to it, see ``depth_of_links``.
        usual: The limit of pages without one.

    >>> links = [{"distance": 2, "max_depth": 5}, {"distance": 4, "max_depth": 9}]
    >>> depth_update({"distance": 3, "max_depth": None}, links)
    (2, 1000)
    >>> depth_update(None, links)
    (2, 9)
    """
    distances = [link["distance"] for link in ([row] if row else []) + list(links)]
    known = [distance for distance in distances if distance is not None]
    limits = [max_depth_of(one, usual) for one in ([row] if row else links)]
    return min(known, default=None), max(limits)


# From a row and its URL, and the sort value of the scoring before, to a sort value.
Sort = Callable[[Row, str, float], float]


def opic_sort(row: Row, url: str, init: float) -> float:
    """OPIC: the score times the value before."""
    return row["score"] * init


def link_sort(row: Row, url: str, init: float) -> float:
    """``link``: the score that LinkRank gave; the value before does not count."""
    return row["score"]


def depth_sort(row: Row, url: str, init: float, usual: int = DEFAULT_MAX_DEPTH) -> float:
    """``depth``: pages near to a seed first.

    >>> depth_sort({"distance": 0, "max_depth": 3}, "", 2.0)
    6.0
    >>> depth_sort({"distance": 2, "max_depth": 3}, "", 2.0)
    2.0
    >>> depth_sort({"distance": None, "max_depth": 3}, "", 2.0)
    2.0
    """
    depth = depth_of(row)
    return init * (1 if depth is None else 1 + max_depth_of(row, usual) - depth)


def urlboost(patterns: Sequence[tuple[str, float]]) -> Sort:
    """``urlboost``: the factor of the first pattern that is found in the URL.

    >>> sort = urlboost([("/news/", 2.0), ("example", 0.5)])
    >>> sort({}, "http://example.com/news/", 3.0), sort({}, "http://a.com/", 3.0)
    (6.0, 3.0)
    """

    def sort(row: Row, url: str, init: float) -> float:
        for pattern, factor in patterns:
            if re.search(pattern, url):
                return init * factor
        return init

    return sort


def sort_value(row: Row, url: str, chain: Iterable[Sort]) -> float:
    """Returns the value by which generate orders pages, from several scorings in an order."""
    value = 1.0
    for sort in chain:
        value = sort(row, url, value)
    return value


def hand_on(row: Row, link_metadata: Row | None, keys: Iterable[str]) -> Row:
    """``metadata``: a new URL gets chosen names and values of the page that links to it.

    >>> hand_on({"metadata": {"a": "1"}}, {"a": "2", "b": "3", "c": "4"}, ["a", "b"])
    {'metadata': {'a': '1', 'b': '3'}}
    """
    given = {name: (link_metadata or {})[name] for name in keys if name in (link_metadata or {})}
    merged = given | (row["metadata"] or {})
    return row | {"metadata": merged or None}
