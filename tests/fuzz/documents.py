"""Fuzzing of what servers send: pages, feeds, sitemaps, charsets, types, robots.txt."""

import gzip
import math
import re

from odd_sitemaps import ODD

from nutbeam.web.content import charset
from nutbeam.web.content.content_type import LINK_KINDS, sniff
from nutbeam.web.content.whatwg_encodings import CODECS
from nutbeam.web.pages.page import Page, ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document
from nutbeam.web.parsers.sitemap_entries import read_sitemap
from nutbeam.web.robots.match import Matcher, TooCostly, comparable_path
from nutbeam.web.robots.robots import RobotsRecord, RobotsRules, deciding_line
from nutbeam.web.robots.robots_text import MAX_SITEMAPS, absolute_sitemaps, decode_robots
from nutbeam.web.robots.rules import RobotsRule, read_robots_rules, split_lines

from .target import Clock, Target, files

URL = "http://example.com/d/page.html"
# Of a page that people make. A hundred times as long is what a hostile one may cost.
SECONDS = 3
MIME = re.compile(r"[!-~]+/[!-~]+")
REASON = re.compile("[a-z0-9_]+")
HTML_WORDS = [
    *(b"<a href='", b"<base href=", b"<meta name=robots content='", b"</", b"<!--", b"-->", b"<p>"),
    *(b"<title>", b"<table>", b"<td>", b"<svg>", b"<math>", b"<script>", b"<style>", b"<template>"),
    *(b"<link rel=canonical href=", b"<meta http-equiv=refresh content='0;url=", b"<frame src="),
    *(b"<form action=", b"<img alt=x src=", b"<select>", b"<noscript>", b"<![CDATA[", b"<?xml "),
    *(b"&#x", b"&#0;", b"&#xd800;", b"&amp", b";", b"\0", b"\xff", b"\xed\xa0\x80", b"=", b"'", b'"'),
    *(b"<h1>", b"<html lang=", b"<meta charset=", b"javascript:", b"\xc2\x85", b"\xe2\x80\xa8"),
    *(b"<script type=application/ld+json>", b'{"@type":"\\ud800"}', b"rel=nofollow", b"property=og:"),
]  # fmt: skip
XML_WORDS = [
    *(b"<?xml version='1.0' encoding='", b"<rss version='2.0'><channel>", b"<item>", b"<link>"),
    *(b"<feed xmlns='http://www.w3.org/2005/Atom'>", b"<entry>", b"<link href='", b"</", b"<title>"),
    *(b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>", b"<sitemapindex>", b"<loc>"),
    *(b"<url>", b"<lastmod>2026-01-01</lastmod>", b"<priority>", b"<pubDate>", b"<![CDATA[", b"]]>"),
    *(b"<!DOCTYPE x [<!ENTITY a 'aaaa'>]>", b"&a;", b"&lt;", b"<description>", b"<guid>", b"\0"),
    *(b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>", b"xml:base='", b"\xff"),
    *(b"<content:encoded>", b"<summary type='html'>", b"99999999999999999999", b"-1", b"nan"),
]  # fmt: skip


def check_html(data: bytes) -> None:
    """The first line is a Content-Type, the rest a body."""
    header, _, body = data.partition(b"\n")
    content_type = f"text/html{header.decode('latin-1')}"
    check_page(Source(URL, body, content_type, [("x-robots-tag", header.decode("latin-1"))]))


def check_page(source: Source) -> None:
    """Parses a document, and looks at what came of it."""
    with Clock(SECONDS + len(source.body) / 20_000):
        try:
            page = parse_document(source, ParseOptions(form_use_action=True))
        except ParseFailed as error:
            page = error.reason
    if isinstance(page, str):
        assert REASON.fullmatch(page), page
    else:
        _look_at(page)


def _look_at(page: Page, depth: int = 0) -> None:
    texts = [page.title, *page.anchors, *page.metas.values()]
    for text in (
        *texts,
        page.text,
        *page.hrefs,
        *page.rels,
        *page.metas,
        page.language or "",
        page.charset,
    ):
        text.encode()  # no half of a surrogate pair
    for text in texts:
        # As CSS and Python's str.split see it, white space is collapsed.
        assert "  " not in text, text[:200]
        assert not set(text) & set("\t\n\r\f"), text[:200]
    assert all(0 <= start <= end <= len(page.text) for _, start, end, *_ in page.spans)
    places = [0, *(place for part in page.main for place in part), len(page.text)]
    assert places == sorted(places), page.main
    assert len(page.hrefs) == len(page.anchors) == len(page.rels)
    assert all(href and href == href.strip() for href in page.hrefs), page.hrefs
    assert all(len(anchor) <= 1000 for anchor in page.anchors)
    assert page.directives <= {"noindex", "nofollow", "noarchive", "noai", "noimageai"}, (
        page.directives
    )
    assert page.refresh is None or (":" in page.refresh[0] and page.refresh[1] >= 0)
    assert page.canonical is None or ":" in page.canonical
    assert charset.encoding_name(page.charset) == page.charset
    page.body.decode()
    assert depth < 2
    for url, part in page.parts:
        assert ":" in url
        _look_at(part, depth + 1)


def check_xml(data: bytes) -> None:
    """The first byte chooses how the type is told; the rest is a feed or a sitemap."""
    types = ("application/rss+xml", "application/atom+xml", "application/xml", "text/xml",
             "application/rdf+xml", None)  # fmt: skip
    chosen = types[data[0] % len(types)] if data else None
    check_page(Source("http://example.com/feed.xml", data[1:], chosen))


def check_sitemap(data: bytes) -> None:
    """A sitemap as a list of entries; the first byte tells whether it is packed."""
    body = gzip.compress(data[1:], 1) if data[:1] == b"\x01" else data[1:]
    with Clock(SECONDS):
        try:
            content = read_sitemap(Source(URL, body), 20, 6_000, LINK_KINDS)
        except ParseFailed as error:
            assert REASON.fullmatch(error.reason), error.reason  # noqa: PT017
            return
    assert all(REASON.fullmatch(reason) and n > 0 for reason, n in content.dropped.items())
    assert sum(entry.kind not in LINK_KINDS for entry in content.entries) <= 20
    for entry in content.entries:
        entry.url.encode()
        assert entry.url == entry.url.strip()
        assert 0 < len(entry.url) <= 4096
        assert entry.priority is None or 0 <= entry.priority <= 1
        assert entry.lastmod is None or 0 < entry.lastmod < 2**48


def check_charset(data: bytes) -> None:
    """The first line is a Content-Type, the rest a body."""
    header, _, body = data.partition(b"\n")
    content_type = header.decode("latin-1")
    with Clock(SECONDS):
        text, name = charset.decode_body(body, content_type)
        utf8, same = charset.to_utf8(body, content_type)
        mime = sniff(body, content_type)
    assert charset.encoding_name(name) == name == same, (name, same)
    assert utf8.decode().replace("?", "") == text.encode("utf-8", "replace").decode().replace(
        "?", ""
    )
    text.encode()
    assert MIME.fullmatch(mime), mime
    assert mime == mime.lower()
    assert sniff(body, mime) in (mime, sniff(body, None))


def check_robots(data: bytes) -> None:
    """The first line is a URL, the rest a robots.txt."""
    line, _, body = data.partition(b"\n")
    url = line.decode("utf-8", "replace")
    with Clock(SECONDS):
        text = decode_robots(body)
        for agents in ("nutbeam", ("nutbeam", "other-bot")):
            rules = RobotsRules(RobotsRecord(200, text, 0), agents)
            allowed = rules.allows(url)
            assert isinstance(allowed, bool)
            delay = rules.crawl_delay
            assert delay is None or (delay >= 0 and math.isfinite(delay)), delay
            assert len(rules.sitemaps) <= MAX_SITEMAPS
            urls = absolute_sitemaps(rules.sitemaps, "http://example.com")
            assert all(re.match("(?i)https?://", sitemap) for sitemap in urls)
            again = RobotsRules(rules.record, agents)
            assert (again.allows(url), again.sitemaps) == (allowed, rules.sitemaps)
        _look_at_rules(text, url, ("nutbeam", "other-bot"))


def _look_at_rules(text: str, url: str, agents: tuple[str, ...]) -> None:
    """Finds the deciding rule with an index and, where they are few, without."""
    rules = read_robots_rules(text, agents).rules
    lines = split_lines(text)
    assert all(rule.pattern in lines[rule.line - 1] for rule in rules)
    line = deciding_line(text, url, agents)
    assert line is None or line.text == lines[line.number - 1].strip()
    others = [RobotsRule(False, f"no path {n}", 0) for n in range(40)]
    try:
        path = comparable_path(url)
        found, same = Matcher(rules).decide(path), Matcher([*rules, *others]).decide(path)
    except (ValueError, TooCostly):
        return
    assert (found.allow, found.rule) == (same.allow, same.rule)


def html_seeds() -> list[bytes]:
    """Returns pages of Debian's documentation, and what browsers stumble over."""
    made = [
        b"<title>T</title><base href=/x/><a href=b rel=nofollow>B</a><img src=i alt=I>",
        b"<html lang=de><meta charset=latin1><meta name=robots content=noindex>\xe4",
        b"<table><a href=1><tr><td><a href=2>x</table><svg><title>s</title></svg>",
        b"<frameset><frame src=a><noframes>x</noframes></frameset>",
        b"<meta http-equiv=refresh content='0; url=/y'><link rel=canonical href=/c>",
    ]
    return [b"; charset=utf-8\n" + body for body in (*made, *files("*/**/*.html"))]


def charset_seeds() -> list[bytes]:
    """Returns a sentence in many encodings, with and without a word of which it is."""
    text = "Straße über São, Ñandú; Москва и Київ; Ελλάδα; שלום; 日本語の文章; 中文网页; 한국어"
    found = []
    for name, codec in CODECS.items():
        body = (text * 5).encode(codec, "ignore")
        found += [b"text/html\n" + body, f"text/html; charset={name}\n".encode() + body,
                  f"\n<meta charset={name}>".encode() + body]  # fmt: skip
    return [*found, b"\n\xff\xfea\0", b"\n\xef\xbb\xbfx", b"\n%PDF-1.7\0", b"image/png\nGIF89a"]


def robots_seeds() -> list[bytes]:
    """Returns robots.txt files of all kinds of lines."""
    return [
        b"http://a/x\nUser-agent: *\nDisallow: /x\nAllow: /x/y$\nCrawl-delay: 5\n",
        b"http://a/x?q=1\nUser-agent: nutbeam/1.0\nUser-agent: other-bot\nDisallow: /*?q=\n",
        b"http://a/%7Ea/\xc3\xa4\n\xef\xbb\xbfuser agent nutbeam\nDisallow: /~a/%C3%A4*\nNoindex: /",
        b"http://a/\nSitemap: https://a/s.xml\nSITEMAP: /b\nRequest-rate: 1/10 0800-1200\nVisit-time: 1",
        b"/relative\nUser-agent: a\rDisallow:\rUser-agent: *\r\nDisallow: /**********$",
        b"http://a/ab5?c\nUser-agent: *\n" + b"".join(b"Allow: /*b%d*c$\n" % n for n in range(60)),
    ]


ROBOTS_WORDS = [
    *(b"User-agent: ", b"Disallow: ", b"Allow: ", b"Crawl-delay: ", b"Sitemap: ", b"\n", b"\r", b"*"),
    *(b"$", b"%2F", b"%", b"#", b"nutbeam", b"other-bot", b"/", b"?", b"http://a/", b"\0", b"\xff"),
    *(b"Request-rate: 1/", b"inf", b"nan", b"-1", b"1e999", b"0", b"Visit-time: 0600-0845", b"\x85"),
]  # fmt: skip


def xml_seeds() -> list[bytes]:
    """Returns feeds and sitemaps."""
    rss = (
        b"<rss version='2.0' xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel>"
        b"<title>N</title><link>http://example.com/</link><item><title>A</title><link>/a</link>"
        b"<description>&lt;p&gt;x &lt;a href=b&gt;B&lt;/a&gt;</description>"
        b"<pubDate>Sun, 22 Nov 2026 07:00:00 GMT</pubDate><guid>1</guid></item></channel></rss>"
    )
    atom = (
        b"<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://example.com/x/'>"
        b"<title>F</title><entry><title>E</title><link rel='alternate' href='e'/>"
        b"<content type='html'>&lt;b&gt;t</content><updated>2026-11-22T07:00:00Z</updated></entry></feed>"
    )
    rdf = (
        b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>"
        b"<item rdf:about='http://example.com/i'><title>I</title><link>http://example.com/i</link></item>"
        b"</rdf:RDF>"
    )
    sitemap = (
        b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://example.com/1</loc>"
        b"<lastmod>2026-01-01</lastmod><changefreq>daily</changefreq><priority>0.8</priority></url></urlset>"
    )
    index = b"<sitemapindex><sitemap><loc>http://example.com/s.xml</loc></sitemap></sitemapindex>"
    return [bytes([n]) + body for n in range(6) for body in (rss, atom, rdf, sitemap, index)]


def sitemap_seeds() -> list[bytes]:
    """Returns odd sitemaps."""
    bodies = (
        odd.body if isinstance(odd.body, bytes) else odd.body.encode() for odd in ODD.values()
    )
    return [bytes([number % 2]) + body[:6000] for number, body in enumerate(bodies)]


TARGETS = (
    Target("html", check_html, html_seeds, HTML_WORDS, 60_000),
    Target("charset", check_charset, charset_seeds, [b"charset=", b"<meta charset=", b"\xff\xfe", b"\0",
           b"<?xml encoding='", b"\xef\xbb\xbf", b"<!--", b"%PDF-", b"PK\x03\x04", b"\x1b$B", b"\x80"], 30_000),
    Target("robots", check_robots, robots_seeds, ROBOTS_WORDS, 4096),
    Target("xml", check_xml, xml_seeds, XML_WORDS, 8192),
    Target("sitemap", check_sitemap, sitemap_seeds, XML_WORDS, 8192),
)  # fmt: skip
