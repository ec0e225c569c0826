"""Sitemaps, indexes of them, packed ones."""

import gzip

import pytest

from nutbeam.web.pages.page import NoParser, ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers import dispatch, sitemap
from nutbeam.web.parsers.dispatch import parse_document

XMLNS = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'"
SITEMAP = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {XMLNS} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
 xmlns:xhtml="http://www.w3.org/1999/xhtml">
<url><loc> http://example.com/?a=1&amp;b=2 </loc><lastmod>2026-03-01</lastmod>
<changefreq>daily</changefreq><priority>0.8</priority>
<image:image><image:loc>http://example.com/i.png</image:loc></image:image>
<xhtml:link rel="alternate" hreflang="de" href="http://example.com/de"/></url>
<url><loc>http://example.com/b</loc><lastmod>2026-05-01T10:00:00Z</lastmod></url>
</urlset>""".encode()
INDEX = f"""<sitemapindex {XMLNS}><sitemap><loc>http://example.com/1.xml.gz</loc></sitemap>
<sitemap><loc>http://example.com/2.xml</loc><lastmod>2026-01-01</lastmod></sitemap></sitemapindex>"""


def read(body, header="application/xml", url="http://example.com/sitemap.xml", headers=()):
    body = body if isinstance(body, bytes) else body.encode()
    return parse_document(Source(url, body, header, headers), ParseOptions())


@pytest.mark.parametrize("header", ["application/xml", "text/xml", "text/html", None])
def test_a_sitemap(header):
    page = read(SITEMAP, header)
    assert page.hrefs == [
        "http://example.com/?a=1&b=2", "http://example.com/de", "http://example.com/b",
    ]  # fmt: skip
    assert page.rels == ["", "alternate", ""]
    assert page.anchors == ["", "", ""]
    assert page.metas == {
        "sitemap:entries": "2",
        "sitemap:lastmod": "2026-05-01T10:00:00Z",
        "sitemap:changefreq": "1",
        "sitemap:priority": "1",
        "type_found": "application/x-sitemap+xml",
    }
    assert (page.title, page.text, page.dropped) == ("", "", {})


@pytest.mark.parametrize(
    ("dates", "latest"),
    [
        (["2025-01-01T00:30:00+10:00", "2024-12-31T23:00:00Z"], "2024-12-31T23:00:00Z"),
        (["2024-12-31", "bad", "2024"], "2024-12-31"),
        (["2024", "2025-02", "2025-01-31"], "2025-02"),
        (["2024-02-30", "tomorrow", "2024-1-1T"], None),
    ],
    ids=["zones", "none", "months", "all-none"],
)
def test_the_latest_date(dates, latest):
    entries = "".join(f"<url><loc>/{d}</loc><lastmod>{d}</lastmod></url>" for d in dates)
    page = read(f"<urlset {XMLNS}>{entries}</urlset>")
    assert page.metas.get("sitemap:lastmod") == latest


def test_an_index():
    page = read(INDEX)
    assert page.hrefs == ["http://example.com/1.xml.gz", "http://example.com/2.xml"]
    assert page.rels == ["sitemap", "sitemap"]
    assert page.metas == {
        "sitemap:entries": "2",
        "sitemap:lastmod": "2026-01-01",
        "type_found": "application/x-sitemapindex+xml",
    }


def test_a_list_of_urls_is_plain_text():
    page = read("http://example.com/a\nhttp://example.com/b?c=d\n", "text/plain")
    assert page.hrefs == ["http://example.com/a", "http://example.com/b?c=d"]


@pytest.mark.parametrize(
    ("body", "header"),
    [
        ("\ufeff\n" + INDEX, "text/xml"),
        (INDEX.encode("utf-16"), "application/xml"),
        ("\n <?xml version='1.0'?>" + INDEX, "application/xml"),
    ],
    ids=["mark", "utf-16", "space-before-declaration"],
)
def test_real_habits(body, header):
    assert len(read(body, header).hrefs) == 2


def test_entries_after_malformed_xml_are_lost():
    page = read("<urlset><url><loc>http://example.com/a</loc></url><url><loc>/b")
    assert page.hrefs == ["http://example.com/a"]
    assert page.dropped == {"malformed_xml": 1}
    with pytest.raises(ParseFailed) as failed:
        read("<urlset><url><loc")
    assert failed.value.reason == "malformed_xml"


def test_urls_are_capped(monkeypatch):
    monkeypatch.setattr(sitemap, "MAX_URLS", 3)
    page = read("<urlset>" + "<url><loc>/a</loc></url>" * 5 + "</urlset>")
    assert (len(page.hrefs), page.dropped) == (3, {"sitemap_max_urls": 2})


def test_fifty_thousand_urls_are_read():
    entries = "".join(f"<url><loc>http://example.com/{i}</loc></url>" for i in range(50_001))
    page = read(f"<urlset>{entries}</urlset>")
    assert (len(page.hrefs), page.dropped) == (50_000, {"sitemap_max_urls": 1})


def test_long_and_empty_entries():
    page = read(f"<urlset><url><loc>/{'a' * 5000}</loc></url><url><loc> </loc></url></urlset>")
    assert (page.hrefs, page.dropped) == ([], {"url_too_long": 1})


def test_robots_header():
    page = read(SITEMAP, headers=[("x-robots-tag", "nofollow")])
    assert (page.hrefs, page.dropped) == ([], {"page_nofollow": 3})


@pytest.mark.parametrize(
    "header", ["application/gzip", "application/x-gzip", "application/octet-stream", "text/xml"]
)
def test_a_packed_sitemap(header):
    page = read(gzip.compress(SITEMAP), header, "http://example.com/sitemap.xml.gz")
    assert len(page.hrefs) == 3
    # Two members, and one that is cut.
    halves = gzip.compress(SITEMAP[:300]) + gzip.compress(SITEMAP[300:])
    assert len(read(halves, header).hrefs) == 3
    assert len(read(gzip.compress(SITEMAP, 0)[:-70], header).hrefs) == 2


@pytest.mark.parametrize(
    ("inside", "url", "text"),
    [
        (b"words", "http://example.com/a.txt.gz", "words"),
        (b"<!doctype html><p>words", "http://example.com/a.gz", "words"),
        (b'{"a": "words"', "http://example.com/a.gz", '{"a": "words"'),
        (b'{"a":"words"}\n{"b": "words"}\n', "http://example.com/a.json.gz", "words\nwords"),
    ],
)
def test_other_packed_documents(inside, url, text):
    assert read(gzip.compress(inside), "application/gzip", url).text == text


@pytest.mark.parametrize(
    "inside",
    [b"\x89PNG\r\n\x1a\n", gzip.compress(SITEMAP), b"\0\1\2" * 50],
    ids=["png", "gzip", "bin"],
)
def test_packed_documents_without_a_parser(inside):
    with pytest.raises(NoParser):
        read(gzip.compress(inside), "application/gzip")


def test_gzip_bombs(monkeypatch):
    unpacked = []
    inflate = dispatch.unpack_gzip
    monkeypatch.setattr(
        dispatch, "unpack_gzip", lambda *args: unpacked.append(inflate(*args)) or unpacked[-1]
    )
    assert dispatch.MAX_UNPACKED_BYTES == 50 << 20
    monkeypatch.setattr(dispatch, "MAX_UNPACKED_BYTES", 1 << 20)
    bomb = gzip.compress(b"<urlset>" + bytes([32]) * (9 << 20))
    with pytest.raises(ParseFailed) as failed:
        read(bomb, "application/gzip")
    assert failed.value.reason == "too_large"
    assert max(map(len, unpacked)) <= dispatch.MAX_UNPACKED_BYTES + 1
    # What no parser takes costs its first bytes.
    unpacked.clear()
    with pytest.raises(NoParser):
        read(gzip.compress(b"\x7fELF" + bytes(9 << 20)), "application/gzip")
    assert len(unpacked) == 1
    assert len(unpacked[0]) <= 65_536


def test_members_are_capped():
    assert read(gzip.compress(b"a") * 20_000, "application/gzip").text == "a" * 100


def test_invalid_gzip_is_a_reason():
    with pytest.raises(ParseFailed) as failed:
        read(b"\x1f\x8b\x08\x00garbage garbage", "application/gzip")
    assert failed.value.reason == "malformed_gzip"


def test_invalid_bytes_of_a_url_are_escaped_as_they_are_and_never_a_guess():
    body = b"<urlset><url><loc>/\xff\xfe.html</loc></url><url><loc>/b</loc></url></urlset>"
    page = read(body)
    assert page.hrefs == ["/%FF%FE.html", "/b"]
    wide = read(body, "text/xml; charset=gbk")
    assert (wide.hrefs, wide.dropped) == (["/b"], {"malformed": 1})
    named = read(body, "text/xml; charset=latin1")
    assert named.hrefs == ["/ÿþ.html", "/b"]
