"""What pages hand on to their links, and update after that: the reference, one link at a time.

It is written from the specification of Nutch's jobs. A visit is an event as ``update_url`` takes
it, with ``targets``: the row keys of the links of the page's text, of the text before if the page
answers 304. A new document has ``text`` and ``said``, its metadata; both are None if it could not be
parsed.

Where the specification leaves a choice:

- The score that a page divides is the one that it had when it was fetched.
- Links of a page that has not changed are seen, and bring no score; those of a 304 bring no new URL.
- Links that ``depth`` drops are not seen.
- A new URL gets metadata of the best link that brings any; of links that bring as much, the first.
- ``similarity``: a page hands on the cosine of its text, or its score if it has no text; a 304 hands
  on nothing. The largest value counts until a page has been fetched.
- Metadata of documents has priority over that of rows; links get it, too.
"""

import dataclasses
import math
import re
from collections import Counter, defaultdict

from reference_adapter import Updated
from reference_schedules import Row, host_of
from reference_scoring import Factors, cash_update, depth_of_links, depth_update
from reference_update import NOT_CHANGED, SUCCESS, Rules, update_url

from nutbeam.web.urls.row_keys import from_key

Visit = Row


@dataclasses.dataclass(frozen=True)
class Chain:
    """Settings of several scorings in an order.

    Attributes:
        names: Of the scorings.
        override: See ``depth_of_links``.
        handed_on: Names of the metadata that links get.
        kept: Names of the metadata of documents that rows get.
        gold: The text of ``similarity``.
        stop: Its words that do not count.
        boosts: Factors and patterns for the scores of new URLs.
    """

    names: tuple[str, ...]
    factors: Factors = dataclasses.field(default_factory=Factors)
    depth_max: int = 1000
    override: tuple[str, int] | None = None
    handed_on: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    gold: str = ""
    stop: tuple[str, ...] = ()
    boosts: tuple[tuple[float, str], ...] = ()


def update(
    rows: dict[str, Row], visits: dict[str, Visit], now: int, rules: Rules, chain: Chain
) -> Updated:
    """Applies what a batch found; rows also have ``cash`` and ``max_depth``."""
    links, spent = defaultdict(list), defaultdict(float)
    for key, visit in sorted(visits.items(), key=lambda pair: (_is_304(pair[1]), pair[0])):
        for link in _links_of(rows[key], visit, chain):
            links[link["key"]].append(link)
            spent[key] += link["paid"]
    updated = Updated({}, {})
    for key in rows | links:
        brought = links[key]
        if key not in rows and all(link["known_only"] for link in brought):
            continue
        event = [visits[key]] if key in visits else []
        row, outcome = update_url(rows.get(key), [*brought, *event], now, rules)
        assert row is not None
        updated.rows[key] = row | _scored(
            rows.get(key), row, brought, spent[key], visits.get(key, {}), chain
        )
        if outcome:
            updated.outcomes[key] = outcome | {"score": updated.rows[key]["score"]}
    return updated


def _is_304(visit: Visit) -> bool:
    return visit["fetch_status"] == NOT_CHANGED


def _links_of(row: Row, visit: Visit, chain: Chain) -> list[Row]:
    """Returns a change for each link of a page."""
    parsed = visit["fetch_status"] == SUCCESS and visit["document"] is not None
    if not parsed and not _is_304(visit):
        return []
    handed = {"distance": row["distance"] + 1, "max_depth": None}
    if "depth" in chain.names:
        handed = depth_of_links(row, chain.depth_max, chain.override)
    if handed is None:
        return []
    same = visit.get("signature") is not None and visit["signature"] == row["signature"]
    amount = row["cash"] if "opic_cash" in chain.names else row["score"]
    amount = 0.0 if same or _is_304(visit) else amount or 0.0
    factors, share = chain.factors, amount / max(1, len(visit["targets"]))
    metadata = (row["metadata"] or {}) | _said(visit, chain)
    likeness = _likeness(visit, chain)
    if likeness is None:
        likeness = 0.0 if _is_304(visit) else row["score"]
    return [
        {
            "key": target,
            "order": 10,
            "inlink_score": share
            * (factors.internal if host_of(target) == host_of(row["key"]) else factors.external),
            "inlink_distance": handed["distance"],
            "known_only": _is_304(visit),
            "given": {name: metadata[name] for name in chain.handed_on if name in metadata},
            "likeness": likeness,
            "handed": handed,
            "paid": share,
        }
        for target in visit["targets"]
    ]


def _said(visit: Visit, chain: Chain) -> Row:
    """Returns the metadata of a new document that its row gets."""
    said = visit.get("said") or {}
    return {name: said[name] for name in chain.kept if name in said}


def _likeness(visit: Visit, chain: Chain) -> float | None:
    """Returns the cosine between a new text and the given one."""
    if visit.get("text") is None:
        return None
    text, gold = (
        Counter(word for word in re.findall(r"[^\W_]+", some.lower()) if word not in chain.stop)
        for some in (visit["text"], chain.gold)
    )
    lengths = [math.sqrt(sum(n * n for n in words.values())) for words in (text, gold)]
    return sum(text[word] * gold[word] for word in text) / (math.prod(lengths) or 1.0)


def _similar(old: Row | None, links: list[Row], visit: Visit, chain: Chain) -> float:
    """Returns the score that ``similarity`` gives."""
    own = _likeness(visit, chain)
    if own is not None:
        return own
    before = old["score"] if old else 0.0
    waits = old is None or old["last_fetch_time"] is None
    return max([before, *(link["likeness"] for link in links)]) if waits else before


def _boost(key: str, chain: Chain) -> float:
    """Returns the factor of a new URL: that of the first pattern that is found in it."""
    url = from_key(key)
    return next((factor for factor, pattern in chain.boosts if re.search(pattern, url)), 1.0)


def _scored(
    old: Row | None, row: Row, links: list[Row], spent: float, visit: Visit, chain: Chain
) -> Row:
    """Returns the columns that scorings other than ``opic`` set."""
    found: Row = {"cash": row.get("cash"), "max_depth": row.get("max_depth")}
    if "opic_cash" in chain.names:
        left = (old["cash"] if old else 0.0) - spent
        shares = [link["inlink_score"] for link in links]
        found["cash"] = cash_update({"score": 0.0, "cash": left}, shares)["cash"]
    if "depth" in chain.names and links:
        distance, limit = depth_update(old, [link["handed"] for link in links], chain.depth_max)
        assert distance == row["distance"]
        found["max_depth"] = old["max_depth"] if old else limit
    if old is None and chain.handed_on:
        best = max((link for link in links if link["given"]), key=_score, default=None)
        row["metadata"] = (best["given"] if best else {}) | (row["metadata"] or {}) or None
    found["metadata"] = (row["metadata"] or {}) | _said(visit, chain) or None
    if "similarity" in chain.names:
        found["score"] = _similar(old, links, visit, chain)
    if old is None and chain.boosts:
        found["score"] = found.get("score", row["score"]) * _boost(row["key"], chain)
    return found


def _score(link: Row) -> float:
    return link["inlink_score"]
