"""The search page as HTML. Texts of pages stay texts; its one script is served by this server."""

import datetime
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from ..base.loopback_server import content_policy, page_start, shown
from .index_search import RESULT_ORDERS, FoundPages, Hit
from .search_facets import Facet, chosen_value, toggled_query
from .searched_table import snippet_spans

_HERE = Path(__file__).parent
_STYLE = (_HERE / "search_page.css").read_text("utf-8")
# What the page loads, by the last part of its address.
SERVED_FILES = {
    name: (_HERE / file).read_text("utf-8")
    for name, file in (
        ("search.js", "search_page.js"),
        ("combobox.js", "combobox.js"),
        ("icon.svg", "search_icon.svg"),
        ("search.schema.json", "search_answer.schema.json"),
    )
}
SEARCH_POLICY = content_policy(
    _STYLE, more="script-src 'self'; connect-src 'self'; img-src 'self'; "
)
_HELP = (
    'Also: "a phrase", -without, site:example.com, type:pdf, lang:de, after:2026-01-31, '
    "inurl:docs, intitle:guide"
)
_AROUND = 2  # page numbers on both sides of this page
_ORDER_LABELS = dict(zip(RESULT_ORDERS, ("Relevance", "Date"), strict=True))


class ResultsView(NamedTuple):
    """Which part of the results of a query a page shows.

    Attributes:
        base: Path of the page.
        query: The query; empty for the first page.
        order: ``relevance`` or ``date``.
        first: Number of pages that are left out before.
        top: Most pages of a page of results.
        farthest: Most pages that can be left out.
    """

    base: str
    query: str
    order: str
    first: int
    top: int
    farthest: int

    def link(self, query: str, order: str = "", start: int = 0) -> str:
        """Returns the address of another part, as HTML."""
        fields = {"q": query}
        if (order or self.order) != RESULT_ORDERS[0]:
            fields["order"] = order or self.order
        if start:
            fields["start"] = str(start)
        return shown(f"{self.base}?{urlencode(fields)}")


def search_page(name: str, view: ResultsView, results: FoundPages | None) -> str:
    """Returns the page with the results of a query.

    Args:
        name: Name of the page.
        view: Which part of the results it shows.
        results: What the query has found; None if there is no query.
    """
    content = "" if results is None else _notices(view, results) + _results(view, results)
    return _page(name, view.base, view.query, view.order, content)


def error_page(name: str, base: str, query: str, message: str) -> str:
    """Returns the page for a query that is wrong, or an index that cannot be read."""
    return _page(name, base, query, RESULT_ORDERS[0], f'<p role="alert">{shown(message)}</p>')


def opensearch_description(name: str, start: str) -> str:
    """Returns how browsers search here (OpenSearch 1.1).

    Args:
        name: Name of the table and the index.
        start: URL of the page.
    """
    short = shown(name if len(name) <= 16 else f"{name[:15]}…")  # the standard allows 16 characters
    address = shown(start)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">\n'
        f"<ShortName>{short}</ShortName>\n"
        f"<Description>Search {shown(name)}</Description>\n"
        "<InputEncoding>UTF-8</InputEncoding>\n"
        f'<Image width="16" height="16" type="image/svg+xml">{address}icon.svg</Image>\n'
        f'<Url type="text/html" template="{address}?q={{searchTerms}}"/>\n'
        f'<Url type="application/json" template="{address}search.json?q={{searchTerms}}"/>\n'
        "</OpenSearchDescription>\n"
    )


def _page(name: str, base: str, query: str, order: str, content: str) -> str:
    title = f"{query} - search" if query else f"Search {name}"
    focus = "" if query else " autofocus"
    head = (
        f'<style>{_STYLE}</style><link rel="icon" type="image/svg+xml" href="{base}icon.svg">'
        f'<link rel="search" type="application/opensearchdescription+xml" '
        f'title="{shown(name)}" href="{base}opensearch.xml">'
        f'<script type="module" src="{base}search.js"></script>'
    )
    kept = (
        f'<input type="hidden" name="order" value="{order}">' if order != RESULT_ORDERS[0] else ""
    )
    return (
        f"{page_start(title, head)}<body>"
        f'<header><h1><a href="{base}">Search {shown(name)}</a></h1>'
        f'<form action="{base}" method="get" role="search"><div class="field">'
        f'<input type="search" id="query" name="q" value="{shown(query)}" aria-label="Query" '
        f'autocomplete="off" maxlength="1000"{focus}></div>{kept}<button>Search</button></form>'
        f'</header><main>{content}</main><footer class="soft">{shown(_HELP)}</footer>'
        "</body></html>\n"
    )


def export_page(name: str) -> str:
    """Returns the page of an export, whose script searches; it is the same for all queries.

    Args:
        name: Name of the page.
    """
    policy = SEARCH_POLICY.rpartition("; frame-ancestors")[0]  # which a page cannot say of itself
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{shown(policy)}">'
        f'<style>{_STYLE}</style><link rel="icon" type="image/svg+xml" href="icon.svg">'
        '<script type="module" src="static_search.js"></script>'
    )
    help_text = 'Also: "a phrase", -without, site:example.com, type:pdf, lang:de, after:2026-01-31'
    return (
        f'{page_start(f"Search {name}", head)}<body><header><h1><a href="./">Search {shown(name)}'
        '</a></h1><form action="./" method="get" role="search"><div class="field">'
        '<input type="search" id="query" name="q" aria-label="Query" autocomplete="off" '
        'maxlength="1000"></div><button>Search</button></form></header>'
        "<main><noscript><p>This search needs JavaScript.</p></noscript></main>"
        f'<footer class="soft">{shown(help_text)}</footer></body></html>\n'
    )


def _notices(view: ResultsView, results: FoundPages) -> str:
    """Returns the lines above the results: what to know about them, and where else to go."""
    return "".join(
        f'<p class="notice">{shown(note.text)}'
        + (f' <a href="{view.link(note.query)}">{shown(note.query)}</a>' if note.query else "")
        + "</p>"
        for note in results.notes
    )


def _results(view: ResultsView, results: FoundPages) -> str:
    facets = _facets(view, results.facets)
    if not results.hits:
        return f'<p role="status">No page found.</p>{facets}'
    last = view.first + len(results.hits)
    pages = f"{results.total:,} {'page' if results.total == 1 else 'pages'}"
    if last - view.first < results.total:
        pages = f"{view.first + 1:,}–{last:,} of {pages}"  # noqa: RUF001 - a range
    items = "".join(map(_item, results.hits))
    return (
        f'<div class="columns">'
        f'<div class="bar"><p class="soft" role="status">{pages}</p>{_orders(view)}</div>{facets}'
        f'<ol class="results" start="{view.first + 1}">{items}</ol>{_steps(view, results.total)}</div>'
    )


def _orders(view: ResultsView) -> str:
    links = (
        f'<a href="{view.link(view.query, order)}"{_current(order == view.order)}>{label}</a>'
        for order, label in _ORDER_LABELS.items()
    )
    return f'<nav aria-label="Order"><span class="soft">Sort by</span>{"".join(links)}</nav>'


def _current(is_current: bool, what: str = "true") -> str:
    return f' aria-current="{what}"' if is_current else ""


def _item(hit: Hit) -> str:
    title, url = shown(hit.title or hit.url), shown(hit.url)
    if re.match(r"(https?|ftp)://", hit.url, re.IGNORECASE):
        address = shown(quote(hit.url, safe="%/:=&?~#+!$,;'@()*[]"))
        title = f'<a href="{address}" rel="noreferrer noopener">{title}</a>'
    snippet = "".join(
        f"<mark>{shown(text)}</mark>" if is_mark else shown(text)
        for text, is_mark in snippet_spans(hit)
    )
    return (
        f'<li><h2 dir="auto">{title}</h2><p class="soft where"><span>{url}</span>{_date(hit)}</p>'
        f'<p dir="auto">{snippet}</p></li>'
    )


def _date(hit: Hit) -> str:
    day = "" if hit.date is None else day_of(hit.date)
    return f'<span>{hit.date_kind} <time datetime="{day}">{day}</time></span>' if day else ""


def day_of(time: int) -> str:
    """Returns the day of a time in ms; empty if it is no time.

    >>> day_of(0), day_of(10**18)
    ('1970-01-01', '')
    """
    try:
        return str(datetime.datetime.fromtimestamp(time / 1000, datetime.UTC).date())
    except (ValueError, OverflowError, OSError):
        return ""


def _facets(view: ResultsView, facets: Iterable[Facet]) -> str:
    shown_facets = [facet for facet in facets if _is_useful(view, facet)]
    if not shown_facets:
        return ""
    names = ", ".join(facet.name for facet in shown_facets)
    is_open = " open" if any(chosen_value(view.query, facet.name) for facet in shown_facets) else ""
    lists = "".join(_facet(view, facet) for facet in shown_facets)
    return f'<details class="facets"{is_open}><summary>Narrow by {names}</summary>{lists}</details>'


def _is_useful(view: ResultsView, facet: Facet) -> bool:
    """Returns whether there is a choice, or one was made."""
    return len(facet.values) > 1 or bool(chosen_value(view.query, facet.name))


def _facet(view: ResultsView, facet: Facet) -> str:
    chosen = chosen_value(view.query, facet.name)
    values = [(value.label, f"{value.pages:,}", value.query) for value in facet.values]
    if chosen and not any(query == chosen for _, _, query in values):
        values.insert(0, (chosen, "", chosen))  # as it was typed
    remove = ' <span aria-hidden="true">×</span>'  # noqa: RUF001
    items = "".join(
        f'<li><a href="{view.link(toggled_query(view.query, facet.name, query))}"'
        f"{_current(query == chosen)}>{shown(label)}{remove if query == chosen else ''}</a> "
        f'<span class="soft">{count}</span></li>'
        for label, count, query in values
    )
    return f"<h2>{facet.name.capitalize()}</h2><ul>{items}</ul>"


def _steps(view: ResultsView, total: int) -> str:
    """Returns the links to other pages of results; empty if there are none."""
    last = min(total - 1, view.farthest) // view.top
    here = view.first // view.top
    if not last:
        return ""
    links = [_step(view, "Previous", here - 1)] if here else []
    before = -1
    for page in page_numbers(here, last):
        if page > before + 1:
            links.append("<span>…</span>")
        before = page
        links.append(
            f'<a href="{view.link(view.query, start=page * view.top)}" '
            f'aria-label="Page {page + 1}"{_current(page == here, "page")}>{page + 1}</a>'
        )
    if here < last:
        links.append(_step(view, "Next", here + 1))
    return f'<nav aria-label="Pages of results">{"".join(links)}</nav>'


def _step(view: ResultsView, name: str, page: int) -> str:
    return f'<a href="{view.link(view.query, start=page * view.top)}">{name}</a>'


def page_numbers(here: int, last: int) -> Iterator[int]:
    """Yields the numbers of the pages of results that have links, from 0: first, near, last.

    >>> list(page_numbers(10, 76))
    [0, 8, 9, 10, 11, 12, 76]
    """
    for page in range(last + 1):
        if page in (0, last) or abs(page - here) <= _AROUND:
            yield page
