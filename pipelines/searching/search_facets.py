"""Facets of a result: how many of its pages are of each host, type, language and year.

A value of a facet is an operator of the query language, such as ``site:a.com``. To choose one is to
add it to the query, so a facet needs no parameters of its own, and its counts are those of the query.
"""

import datetime
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...web.content.searched_forms import STEMMERS

_MOST_VALUES = 8  # of a facet
_COUNTED = 60  # values of a field, so that those which are shown are among them
_YEARS = range(1970, 2100)
_OPERATORS = {
    "host": ("site",),
    "type": ("type",),
    "language": ("lang",),
    "year": ("after", "before"),
}
# Names of languages without a stemmer; of all others the code is shown.
_OTHER_LANGUAGES = {
    "bg": "bulgarian", "ca": "catalan", "cs": "czech", "fa": "persian", "he": "hebrew", "hi": "hindi",
    "hr": "croatian", "id": "indonesian", "ja": "japanese", "ko": "korean", "pl": "polish",
    "sk": "slovak", "sl": "slovenian", "sr": "serbian", "th": "thai", "uk": "ukrainian",
    "vi": "vietnamese", "zh": "chinese",
}  # fmt: skip


class FacetValue(NamedTuple):
    """A value of a facet.

    Attributes:
        label: What it is, for people.
        pages: Number of the pages of the result that have it.
        query: The operators that select these pages.
    """

    label: str
    pages: int
    query: str


class Facet(NamedTuple):
    """A property of pages, with the values that the pages of a result have.

    Attributes:
        name: ``host``, ``type``, ``language`` or ``year``.
        values: Those that most pages have, in order; years are in the order of time, newest first.
    """

    name: str
    values: tuple[FacetValue, ...]


def count_facets(searcher: Any, query: Any) -> tuple[Facet, ...]:
    """Returns the facets of all pages that a query finds.

    Its work is one pass over these pages, without scores and texts.

    Args:
        searcher: tantivy's searcher.
        query: tantivy's query.
    """
    fields = {
        name: {"terms": {"field": name, "size": _COUNTED}} for name in ("site", "type", "lang")
    }
    counts = searcher.aggregate(query, {**fields, "date": {"range": _ranges()}})
    pairs = {
        name: [(str(one["key"]), int(one["doc_count"])) for one in counts[name]["buckets"]]
        for name in counts
    }
    return (
        Facet("host", tuple(itertools.islice(_hosts(pairs["site"]), _MOST_VALUES))),
        Facet("type", tuple(itertools.islice(_types(pairs["type"]), _MOST_VALUES))),
        Facet("language", tuple(itertools.islice(_languages(pairs["lang"]), _MOST_VALUES))),
        Facet("year", tuple(itertools.islice(_years(pairs["date"]), _MOST_VALUES))),
    )


def _hosts(pairs: Iterable[tuple[str, int]]) -> Iterable[FacetValue]:
    """Yields hosts and domains; a domain with pages of one host only is left out."""
    by_site = dict(pairs)
    for site, count in by_site.items():
        below = (other for other in by_site if other.endswith(f".{site}"))
        if not any(by_site[other] == count for other in below):
            yield FacetValue(site, count, f"site:{site}")


def _types(pairs: Iterable[tuple[str, int]]) -> Iterable[FacetValue]:
    for kind, count in pairs:
        if "/" in kind and not re.search(r'[\s"]', kind):
            yield FacetValue(kind.partition("/")[2], count, f"type:{kind}")


def _languages(pairs: Iterable[tuple[str, int]]) -> Iterable[FacetValue]:
    for code, count in pairs:
        if re.fullmatch("[a-z]{2,3}", code):
            name = STEMMERS.get(code) or _OTHER_LANGUAGES.get(code, code)
            yield FacetValue(name.capitalize(), count, f"lang:{code}")


def _years(pairs: Iterable[tuple[str, int]]) -> Iterable[FacetValue]:
    for year, count in sorted(pairs, reverse=True):
        if count and year.isdigit():
            yield FacetValue(year, count, f"after:{year} before:{int(year) + 1}")


def _ranges() -> Mapping[str, Any]:
    starts = [datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (*_YEARS, _YEARS.stop)]
    times = [start.timestamp() * 1000 for start in starts]
    ranges = [
        {"key": str(year), "from": first, "to": last}
        for year, (first, last) in zip(_YEARS, itertools.pairwise(times), strict=True)
    ]
    return {"field": "date", "ranges": ranges}


def chosen_value(query: str, facet: str) -> str:
    """Returns the operators in a query that choose a value of a facet; empty if there are none.

    >>> chosen_value("river after:2025 before:2026 site:a.com", "year")
    'after:2025 before:2026'
    """
    return " ".join(operator[0] for operator in _operators(query, facet))


def toggled_query(query: str, facet: str, value: str) -> str:
    """Returns a query with another value of a facet; without any if it has that value.

    >>> toggled_query("river lang:de", "language", "lang:en")
    'river lang:en'
    >>> toggled_query("river lang:en", "language", "lang:en")
    'river'
    """
    rest = query
    for operator in reversed(_operators(query, facet)):
        rest = rest[: operator.start()].rstrip() + rest[operator.end() :]
    added = "" if chosen_value(query, facet) == value else value
    return f"{rest.strip()} {added}".strip()


def _operators(query: str, facet: str) -> list[re.Match[str]]:
    names = "|".join(_OPERATORS[facet])
    outside = re.sub(r'"[^"]*"', lambda phrase: "x" * len(phrase[0]), query)  # of phrases
    return [*re.finditer(rf"(?<!\S)(?:{names}):[^\s\"]+", outside, re.IGNORECASE)]
