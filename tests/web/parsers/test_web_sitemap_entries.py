"""Sitemaps as lists of entries: the written-down odd ones, limits, memory, and made-up bytes."""

import gzip
import random
import re
import resource
from collections import Counter
from urllib.parse import urljoin

import pytest
from odd_sitemaps import ODD, entry, of

from nutbeam.web.content.content_type import LINK_KINDS
from nutbeam.web.pages.page import ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document
from nutbeam.web.parsers.sitemap_entries import read_sitemap

HOME = "http://example.com/sitemap.xml"


def read(body, mime="application/xml", headers=(), **limits):
    body = body if isinstance(body, bytes) else body.encode()
    return read_sitemap(Source(HOME, body, mime, headers), **limits)


@pytest.mark.parametrize("name", ODD)
def test_odd_sitemaps(name):
    odd = ODD[name]
    if isinstance(odd.urls, str):
        with pytest.raises(ParseFailed) as failed:
            read(odd.body, odd.mime)
        assert failed.value.reason == odd.urls
        return
    content = read(odd.body, odd.mime, links=LINK_KINDS)
    assert [one.url for one in content.entries] == odd.urls
    assert dict(content.dropped) == odd.dropped
    if odd.more is not None:
        assert content.entries[0][2:] == odd.more


CYRILLIC = "<?xml version='1.0' encoding='windows-1251'?>"
QUERY = "http://example.com/т?q=т&amp;e=1"


@pytest.mark.parametrize(
    ("text", "codec", "url"),
    [
        (f"{CYRILLIC}<urlset><url><loc>{QUERY}</loc></url></urlset>", "cp1251", "/т?q=%F2&e=1"),
        (
            f"{CYRILLIC}<rss><channel><item><link>{QUERY}</link></item></channel></rss>",
            "cp1251",
            "/т?q=%F2&e=1",
        ),
        (of(f"<url><loc>{QUERY}</loc></url>"), "utf-8", "/т?q=т&e=1"),
        (of(f"<url><loc><![CDATA[{QUERY}]]></loc></url>"), "utf-8", "/т?q=т&e=1"),
        (of("<url><loc>/a?b=1&amp;amp;c=2</loc></url>"), "utf-8", "/a?b=1&c=2"),
        ("http://example.com/a?b=1&amp;c=т", "utf-8", "/a?b=1&amp;c=т"),  # a text has no escapes
    ],
)
def test_urls_are_those_of_a_page_of_the_same_bytes(text, codec, url):
    body = text.encode(codec)
    (entry,) = read(body).entries
    mime = "application/xml" if text[0] == "<" else "text/plain"
    page = parse_document(Source(HOME, body, mime), ParseOptions())
    assert urljoin(HOME, entry.url) == urljoin(HOME, page.hrefs[0]) == f"http://example.com{url}"


def test_there_are_enough_of_them():
    assert len(ODD) >= 60


def test_kinds_of_entries():
    index = "<sitemapindex><sitemap><loc>/s.xml</loc></sitemap></sitemapindex>"
    assert [one.kind for one in read(index).entries] == ["sitemap"]
    wanted = read(ODD["extensions"].body, links=("image",)).entries
    assert [one.kind for one in wanted] == ["url", "image"]
    assert len(read(ODD["extensions"].body).entries) == 1


@pytest.mark.parametrize(
    ("extra", "dropped"), [(0, {}), (1, {"too_many_urls": 1}), (7, {"too_many_urls": 7})]
)
def test_entries_are_counted_when_cut(extra, dropped):
    body = of(*(entry(f"/{number}") for number in range(5 + extra)))
    content = read(body, max_urls=5)
    assert (len(content.entries), dict(content.dropped)) == (5, dropped)
    lines = "\n".join(f"http://example.com/{number}" for number in range(5 + extra))
    assert dict(read(lines, max_urls=5).dropped) == dropped


def test_links_are_counted_when_cut():
    link = "<xhtml:link rel='alternate' href='/x'/>"
    content = read(of(*(entry(f"/{n}", link * 2) for n in range(3))), max_urls=5, links=LINK_KINDS)
    kinds = Counter(one.kind for one in content.entries)
    assert kinds == {"url": 3, "alternate": 5}
    assert content.dropped == {"too_many_links": 1}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_the_size_limit_counts_unpacked_bytes(pack):
    body = of(*(entry(f"/{number}") for number in range(100))).encode()
    assert read(pack(body), max_bytes=len(body)).dropped == {}
    content = read(pack(body), max_bytes=len(body) - 20)
    assert (len(content.entries), content.dropped) == (99, {"too_large": 1})


def test_nofollow_is_obeyed():
    with pytest.raises(ParseFailed) as failed:
        read(of(entry()), headers=[("x-robots-tag", "nofollow")])
    assert failed.value.reason == "page_nofollow"
    assert read(of(entry()), headers=[("x-robots-tag", "noindex")]).entries


@pytest.mark.long
def test_fifty_thousand_entries_of_a_bomb_need_little_memory():
    entries = of(*(entry(f"/{number}") for number in range(50_001))).encode()
    packed = gzip.compress(entries.removesuffix(b"</urlset>"), 1)
    bomb = packed + gzip.compress(bytes([32]) * (1 << 20), 1) * 90
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    content = read(bomb)
    assert len(content.entries) == 50_000
    assert content.dropped == {"too_many_urls": 1, "too_large": 1}
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert used < 100_000, f"{used} KiB"


def test_bytes_at_random_have_a_reason_or_a_result():
    chance = random.Random(21)
    seeds = [odd.body if isinstance(odd.body, bytes) else odd.body.encode() for odd in ODD.values()]
    seeds = [body[:3_000] for body in seeds]
    for _ in range(800):
        body = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(body) + 1)
            piece = chance.choice(seeds)
            start = chance.randrange(len(piece) + 1)
            body[at : at + chance.randint(0, 9)] = piece[start : start + chance.randint(0, 40)]
        try:
            content = read(bytes(body), max_urls=10, max_bytes=5_000, links=LINK_KINDS)
        except ParseFailed as failed:
            assert re.fullmatch("[a-z_]+", failed.reason)  # noqa: PT017
            continue
        assert sum(one.kind not in LINK_KINDS for one in content.entries) <= 10
        assert all(one.url and len(one.url) <= 4_096 for one in content.entries)
        assert all(one.priority is None or 0 <= one.priority <= 1 for one in content.entries)
