"""A small web whose links change, and the link table that its newest documents give."""

import contextlib
import random
import re
from collections import defaultdict

import polars as pl
from crawling import rows_of
from frames import frame_of
from web_servers import connect_to, reply, serve

from nutbeam.io.batches.batches import live_file
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.link_rows import INLINKS, SEPARATOR, half, link_keys
from nutbeam.policy.components.schema import Status, conform, to_frame
from nutbeam.web.urls.row_keys import from_key, to_key

HOST = "a.example.com"
HOSTS = (HOST, "b.example.com")
RELS = ("nofollow", "sponsored", "ugc")
ENDED = (Status.DB_GONE, Status.DB_REDIR_TEMP, Status.DB_REDIR_PERM, Status.DB_ORPHAN)


class LinkedWeb:
    """Pages ``/0`` to ``/N`` of two hosts with links to one another; ``/`` of the first links to all.

    Attributes:
        links: The links of each page.
        gone: Names of pages that are not there.
        moved: The page that each page redirects to.
        server: The server; every third page has no ETag, the others answer 304.
    """

    def __init__(self, seed, pages=6):
        self.random = random.Random(seed)
        self.pages = pages
        self.links, self.versions = {}, defaultdict(int)
        self.gone, self.moved = set(), {}
        for page in range(pages):
            self.change(page)

    def change(self, page):
        """Gives a page other links."""
        some = self.random
        self.versions[page] += 1
        self.links[page] = [
            (some.randrange(self.pages), some.choice(["", "one", "two"]), some.choice(
                ["", "nofollow", "UGC nofollow", "noopener"]))
            for _ in range(some.randrange(5))
        ]  # fmt: skip

    def move(self, page):
        """Makes a page redirect to another one, or makes it a page again."""
        if self.moved.pop(page, None) is None:
            self.moved[page] = (page + 1) % self.pages

    def url(self, page):
        return f"http://{HOSTS[page % 2]}/{page}" if isinstance(page, int) else page

    @property
    def words(self):
        """The options with which it is crawled."""
        reached = (word for door in connect_to(self.server.port) for word in ("--connect_to", door))
        return [*reached, "--server_delay", "0"]

    def __call__(self, path, _):
        if path == "/":
            return self._page("", [(page, "", "") for page in range(self.pages)])
        name = path.split("/")[1]  # a page may have long names, too
        if not name.isdigit() or name in self.gone:
            return reply(b"", "404 Not Found")
        page = int(name)
        if page in self.moved:
            return reply(b"", "302 Found", f"Location: {self.url(self.moved[page])}")
        tag = f'"{page}-{self.versions[page]}"'
        if not page % 3:
            return self._page(name, self.links[page])
        if re.search(f"(?i)if-none-match: *{tag}", self.server.current.head):
            return reply(b"", "304 Not Modified", f"ETag: {tag}")
        return self._page(name, self.links[page], f"ETag: {tag}")

    def _page(self, name, found, *headers):
        links = (f'<a href="{self.url(to)}" rel="{rel}">{text}</a>' for to, text, rel in found)
        html = f"<html><body>page {name} {' '.join(links)}</body></html>"
        return reply(html.encode(), "200 OK", "Content-Type: text/html", *headers)


@contextlib.contextmanager
def linked_web(seed, pages=6):
    """Serves a web whose links change."""
    web = LinkedWeb(seed, pages)
    with serve(web) as web.server:
        yield web


def stored_links(table):
    """The links of the table: rel and anchors by target and source."""
    component = newest_manifest(str(table)).components.get("links")
    if component is None or not component.rows:  # all have ended
        return {}
    rows = rows_of(table, "links").to_dicts()
    assert len({row["key"] for row in rows}) == len(rows)
    return {
        (row["target"], row["source"]): (row["anchor"], row["rel"])
        for row in rows
        if row["gone_since"] is None
    }


def true_links(address):
    """The same, inverted row by row from the newest documents."""
    table, manifest = open_table(str(address)), newest_manifest(str(address))
    found = defaultdict(list)
    for row in rows_of(address, "state").iter_rows(named=True):
        if row["document"] is None or row["status"] in ENDED:
            continue
        file = live_file(table, manifest, row["document"])
        if file is None:
            continue
        documents = collect(scan([table / file.path], DOCUMENTS)).to_dicts()
        own = [d for d in documents if d["key"] == row["key"]]
        own.sort(key=lambda document: document["part_of"] is not None)
        for link in (*(own[0]["outlinks"] or ()), *(own[0]["nofollow_links"] or ())):
            if link["key"] != row["key"]:
                found[link["key"], row["key"]].append(link)
    return {pair: _told(links) for pair, links in found.items()}


def _told(links):
    words = [(link["rel"] or "").lower().split() for link in links]
    followed = [link for link, some in zip(links, words, strict=True) if "nofollow" not in some]
    texts = [link["anchor"] for link in followed or links]
    anchors = list(dict.fromkeys(text for text in texts if text))
    rel = " ".join(word for word in RELS if all(word in some for some in words))
    return "\n".join(anchors) or None, rel or None


def urls(links):
    """Links with URLs instead of keys."""
    return {(from_key(target), from_key(source)): told for (target, source), told in links.items()}


def link_key(target, source):
    """The key of one link; ``link_keys`` makes those of columns."""
    return f"{half(target)}{SEPARATOR}{half(source)}"


def fill_links(table, links, time=1000):
    """Puts links into a table: anchor, rel and score by URLs of target and source."""
    rows = [
        {"target": to_key(target), "source": to_key(source), "anchor": anchor, "rel": rel,
         "score": score, "first_seen": time, "last_seen": time}
        for (target, source), (anchor, rel, score) in links.items()
    ]  # fmt: skip
    for row in rows:
        row["key"] = link_key(row["target"], row["source"])
    rows.sort(key=lambda row: row["key"])
    operation = begin(str(table), "fill", f"fill-{time}.fill")
    commit(operation, operation.table.load("links", [frame_of(INLINKS, *rows)]))


def fill_many_links(table, targets, number):
    """Puts as many links to each of some pages into a table, each of another host."""
    sources = pl.select(
        pl.format("net.s{}:http/page", pl.int_range(number).cast(pl.String).str.zfill(6))
    )
    sources = sources.to_series()

    def frames():
        for target in sorted(targets):
            rows = pl.DataFrame({"source": sources}).with_columns(
                target=pl.lit(target), anchor=pl.lit("to ") + pl.col("source"), score=pl.lit(1.0)
            )
            keys = link_keys(rows.get_column("target"), sources)
            yield to_frame(conform(rows.with_columns(key=keys), INLINKS))

    operation = begin(str(table), "fill", "fill-1.fill")
    files = write_bases(operation.table.files, "links", frames())
    commit(operation, [Written("links", files)])
