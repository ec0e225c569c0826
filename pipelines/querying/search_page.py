"""The HTML of the search page. Texts of pages stay texts; it has no scripts."""

import base64
import hashlib
import html
import re
from urllib.parse import quote, urlencode

from ...io.shards.shard_search import FoundPages, Hit
from ...web.base.visible import visible
from .searched_table import snippet_spans

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --soft: #5b6168; --line: #d5d9de;
  --link: #0b57b0; --mark: #fff0b3; --mark-ink: #1c1e21; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #16181b; --soft: #a3abb4;
  --line: #3a3f45; --link: #8ab8f5; --mark: #5c4b00; --mark-ink: #fff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 46rem; margin: 0 auto; padding: 1rem; }
form { display: flex; gap: .5rem; }
input { flex: 1; min-width: 0; font: inherit; padding: .55rem .75rem; color: inherit;
  background: transparent; border: 1px solid var(--soft); border-radius: .4rem; }
button { font: inherit; padding: .55rem 1rem; border: 0; border-radius: .4rem; cursor: pointer;
  background: var(--link); color: var(--paper); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
h1 { font-size: 1.1rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
ol { list-style: none; margin: 0; padding: 0; }
li { padding: .9rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; font-weight: 600; margin: 0; }
a { color: var(--link); }
li p { margin: .2rem 0 0; }
.soft { color: var(--soft); font-size: .9rem; }
mark { background: var(--mark); color: var(--mark-ink); padding: 0 .1em; }
nav { display: flex; gap: 1rem; padding: 1rem 0; }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# Nothing is loaded, no script runs, and no other page may show this one in a frame.
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HELP = (
    'Also: "a phrase", -without, site:example.com, type:pdf, lang:de, after:2026-01-31, '
    "inurl:docs, intitle:guide"
)


def search_page(name: str, query: str, results: FoundPages | None, first: int, top_n: int) -> str:
    """Returns the page with the results of a query.

    Args:
        name: Name of the table and the index.
        query: The query; empty for the first page.
        results: What it has found; None if there is no query.
        first: Number of pages that are left out before.
        top_n: Most pages of a page of results.
    """
    return _page(name, query, "" if results is None else _results(query, results, first, top_n))


def error_page(name: str, query: str, message: str) -> str:
    """Returns the page for a query that is wrong, or an index that cannot be read."""
    return _page(name, query, f'<p role="alert">{_text(message)}</p>')


def _page(name: str, query: str, content: str) -> str:
    title = f"{query} - search" if query else f"Search {name}"
    focus = "" if query else " autofocus"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>Search {_text(name)}</h1>"
        '<form action="/" method="get" role="search">'
        f'<input type="search" name="q" value="{_text(query)}" aria-label="Query" '
        f'autocomplete="off" maxlength="1000"{focus}><button>Search</button></form></header>'
        f'<main>{content}</main><footer class="soft">{_text(_HELP)}</footer></body></html>\n'
    )


def _results(query: str, results: FoundPages, first: int, top_n: int) -> str:
    if not results.hits:
        return "<p>No page found.</p>"
    pages = "page" if results.total == 1 else "pages"
    items = "".join(map(_item, results.hits))
    return (
        f'<p class="soft">{results.total:,} {pages}</p><ol start="{first + 1}">{items}</ol>'
        f"{_steps(query, results, first, top_n)}"
    )


def _item(hit: Hit) -> str:
    title, url = _text(hit.title or hit.url), _text(hit.url)
    if re.match(r"(https?|ftp)://", hit.url, re.IGNORECASE):
        address = _text(quote(hit.url, safe="%/:=&?~#+!$,;'@()*[]"))
        title = f'<a href="{address}" rel="noreferrer noopener">{title}</a>'
    snippet = "".join(
        f"<mark>{_text(text)}</mark>" if is_mark else _text(text)
        for text, is_mark in snippet_spans(hit)
    )
    return (
        f'<li><h2 dir="auto">{title}</h2><p class="soft">{url} · {hit.score:.2f}</p>'
        f'<p dir="auto">{snippet}</p></li>'
    )


def _steps(query: str, results: FoundPages, first: int, top_n: int) -> str:
    steps = []
    if first > 0:
        steps.append(("Previous", max(0, first - top_n)))
    if first + len(results.hits) < results.total:
        steps.append(("Next", first + top_n))
    links = (
        f'<a href="/?{_text(urlencode({"q": query, "start": start}))}">{name}</a>'
        for name, start in steps
    )
    return f'<nav aria-label="Pages of results">{"".join(links)}</nav>' if steps else ""


def _text(text: str) -> str:
    return html.escape(visible(re.sub(r"\s+", " ", text)))
