"""The pages of a shop and of a news site, for questions.py: always the same, served on loopback.

Their texts are in question_sites/. As real sites have them, there are pages that only list others: the
start page, categories, topics, archives, an index of all. These have all words of the titles, and
answer no question.
"""

import contextlib
import http.server
import pathlib
import re
import threading
import tomllib
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, NamedTuple
from urllib.parse import unquote

SITES = pathlib.Path(__file__).with_name("question_sites")
# Paths of pages that only list others.
LISTS = {
    "docs": re.compile(
        r"/$|/(index|bookindex|genindex|genindex-.*|contents|sql-commands|py-modindex|search|"
        r"library/index|reference/index|index\.en)\.html$"
    ),
    "shop": re.compile(r"^/(index\.html)?$|^/all\.html$|^/[a-z-]+/(index\.html)?$"),
    "news": re.compile(r"^/(index\.html)?$|^/(topics|archive)/"),
}


class _Item(NamedTuple):
    """A page of a site: its path, language, title, and paragraphs; and how lists show it."""

    path: str
    lang: str
    title: str
    text: str
    group: str
    teaser: str


def pages_of(site: str) -> dict[str, str]:
    """Returns the pages of a site, ``shop`` or ``news``: HTML by path."""
    data = tomllib.loads((SITES / f"{site}.toml").read_text("utf-8"))
    items = [*(_products(data) if site == "shop" else _articles(data))]
    name = "Fernweh outdoor shop" if site == "shop" else "Westmere Courier"
    groups = dict.fromkeys(item.group for item in items)
    links = [(f"/{_slug(group)}/", group) for group in groups if site == "shop"]
    links += [(f"/topics/{_slug(group)}.html", group) for group in groups if site == "news"]
    menu = "".join(f'<li><a href="{path}">{escape(title)}</a>' for path, title in links)
    pages = {item.path: _page(name, menu, item) for item in items}
    for path, title in links:
        pages[path] = _list(name, menu, title, [one for one in items if one.group == title])
    if site == "shop":
        pages["/all.html"] = _list(name, menu, "All products from A to Z", items)
    for month in sorted({item.path[:9] for item in items if site == "news" and item.lang == "en"}):
        listed = [item for item in items if month in item.path]
        pages[f"/archive{month.rstrip('/')}.html"] = _list(name, menu, f"Archive {month}", listed)
    pages["/"] = _list(name, menu, name, items)
    return pages


def _articles(data: dict[str, Any]) -> Iterator[_Item]:
    for one in data["article"]:
        text, lang = one["text"].strip(), one.get("lang", "en")
        teaser = text.partition(". ")[0] + "."
        yield _Item(f"{one['path']}.html", lang, one["title"], text, one["topic"], teaser)


def _products(data: dict[str, Any]) -> Iterator[_Item]:
    for family in data["family"]:
        for variant in family["variants"]:
            path = f"/{family['path']}/{_slug(variant['model'])}.html"
            title = family["name"].format(**variant)
            title = title[0].upper() + title[1:]
            text = family["text"].format(**variant)
            yield _Item(path, "en", title, text, family["category"], variant["extra"])
    for one in data["translation"]:
        path = f"/{one['lang']}/{one['path']}.html"
        yield _Item(path, "", one["title"], one["text"], one["lang"], one["title"])
    for one in data["page"]:
        yield _Item(f"{one['path']}.html", "en", one["title"], one["text"], "Help and guides", "")


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")


def _page(name: str, menu: str, item: _Item) -> str:
    paragraphs = "".join(f"<p>{escape(one)}</p>" for one in item.text.split("\n\n"))
    lang = f' lang="{item.lang}"' if item.lang else ""
    return (
        f"<!doctype html><html{lang}><title>{escape(item.title)} - {name}</title><nav><ul>{menu}</ul></nav>"
        f"<main><h1>{escape(item.title)}</h1>{paragraphs}</main><footer>{name}, about us, contact"
    )


def _list(name: str, menu: str, title: str, items: Iterable[_Item]) -> str:
    entries = "".join(
        f'<li><a href="{item.path}">{escape(item.title)}</a> {escape(item.teaser)}'
        for item in items
    )
    return (
        f'<!doctype html><html lang="en"><title>{escape(title)} - {name}</title><nav><ul>{menu}</ul></nav>'
        f"<main><h1>{escape(title)}</h1><ul>{entries}</ul></main><footer>{name}, about us, contact"
    )


@contextlib.contextmanager
def served(site: str) -> Iterator[str]:
    """Serves a site; yields how to connect to it."""
    pages = {path: page.encode() for path, page in pages_of(site).items()}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(unquote(self.path))
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{site}.example.com:80:127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
