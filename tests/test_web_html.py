import html as entities
import pathlib
import time
from urllib.parse import urljoin

import pytest
from bs4 import BeautifulSoup, NavigableString
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.web import urls
from nutbeam.web.parsers import html
from nutbeam.web.parsers.directives import robots_directives
from nutbeam.web.parsers.dispatch import parse as parse_source
from nutbeam.web.parsers.html import parse_html as parse_html_source
from nutbeam.web.parsers.html_guard import is_hazardous
from nutbeam.web.parsers.options import ParseOptions
from nutbeam.web.parsers.page import NoParser, ParseFailed, Source
from nutbeam.web.parsers.text import parse_text as parse_text_source

URL = "http://h0.example.com/d/page.html"
DOCS = (
    pathlib.Path("/usr/share/doc/python3.11/html"),
    pathlib.Path("/usr/share/doc/postgresql-doc-15/html"),
)
TREES = ["lexbor", "soup"]


def with_source(parser):
    def parsed(url, body, content_type=None, options=None, robots_header=None):
        headers = [("x-robots-tag", robots_header)] if robots_header else []
        return parser(Source(url, body, content_type, headers), options or ParseOptions())

    return parsed


parse, parse_html = with_source(parse_source), with_source(parse_html_source)
parse_text = with_source(parse_text_source)


@pytest.fixture(params=TREES)
def page(request, monkeypatch):
    """Parses with one parser, then with the other."""
    if request.param == "soup":
        monkeypatch.setattr(html, "is_hazardous", lambda body, max_nesting: True)

    def parsed(markup, robots_header=None, content_type="text/html; charset=utf-8", **options):
        body = markup if isinstance(markup, bytes) else markup.encode()
        return parse_html(URL, body, content_type, ParseOptions(**options), robots_header)

    return parsed


def test_title_and_text(page):
    found = page(
        "<html><head><title> A\n &lt;b>title </title><script>s</script></head><body>one<p>two"
        "<style>x</style><!-- no --><b>th</b>ree\t\f four&nbsp;<script>var a='<p>';</script>"
        "<ul><li>five<li>six</ul><textarea>7</textarea></body></html>"
    )
    assert found.title == "A <b>title"
    assert found.text == "one two th ree four\xa0 five six 7"


def test_a_title_in_a_drawing_is_not_the_pages(page):
    assert page("<p><svg><title>icon</title></svg>").title == ""
    assert page("<title>t</title><p><svg><title>icon</title></svg>").title == "t"


def test_links_in_document_order(page):
    found = page(
        "<html><head><link href=l rel=Stylesheet><script src=s></script></head><body>"
        "<a href=' a '> the \n<b>anchor</b></a><a name=x>no</a><a href=' '>no</a><a src=no>no</a><a href>no</a>"
        "<map><area href=r alt='an area'></map><iframe src=i></iframe>"
        "<a href=c><img alt='a  cat' src=m></a><source src=o><form action=f></form>"
        "<video src=no></video><a href=e></a></body></html>"
    )
    assert list(zip(found.hrefs, found.anchors, found.rels, strict=True)) == [
        ("l", "", "stylesheet"),
        ("s", "", ""),
        ("a", "the anchor", ""),
        ("r", "an area", ""),
        ("i", "", ""),
        ("c", "a cat", ""),
        ("m", "a cat", ""),
        ("o", "", ""),
        ("e", "", ""),
    ]


def test_no_element_is_read_twice(page):
    found = page(
        "<a href=a src=x>t</a><script src=b href=x></script><img src=c href=x>"
        "<style href=x src=y>s</style><link href=d src=x>e"
    )
    assert (found.hrefs, found.text) == (["a", "b", "c", "d"], "t e")


def test_frames(page):
    assert page("<html><frameset><frame src=a><frame src=b></frameset></html>").hrefs == ["a", "b"]


def test_forms_are_followed_on_demand_but_never_posted(page):
    markup = "<form action=a></form><form action=b method=POST></form><form action=c method=get>"
    assert page(markup).hrefs == []
    assert page(markup, form_use_action=True).hrefs == ["a", "c"]


def test_ignored_tags(page):
    markup = "<a href=a>x</a><img src=b><iframe src=c></iframe>"
    assert page(markup, outlinks_ignore_tags=("IMG", "iframe")).hrefs == ["a"]
    assert page(markup, outlinks_ignore_tags=("a",)).hrefs == ["b", "c"]


def test_links_that_say_nofollow_are_counted_not_taken(page):
    found = page("<a href=a rel='UGC NoFollow'>x</a><a href=b rel=nofollowing>y</a>")
    assert (found.hrefs, found.rels, found.dropped) == (["b"], ["nofollowing"], {"nofollow": 1})


def test_giant_links_are_counted_not_taken(page):
    found = page(f"<img src='data:{'x' * 70_000}'><a href={'y' * 5000}>z</a>")
    assert found.hrefs == ["y" * 5000]
    assert found.dropped == {"url_too_long": 1}


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("", URL),
        ("<base href=/x/>", "http://h0.example.com/x/"),
        ("<base target=t><base href='//o.example.com/b'><base href=/no>", "http://o.example.com/b"),
        ("<base href='javascript:1'>", URL),
        ("<base href='http://[bad'>", URL),
    ],
)
def test_base(page, base, expected):
    assert page(f"<head>{base}</head><body>x").base == expected


def test_robots_meta(page):
    markup = "<head><title>t</title><meta name=ROBOTS content='{}'></head><body>x <a href=a>y</a>"
    assert page(markup.format("index,follow")).directives == set()
    unindexed = page(markup.format("NoIndex"))
    assert (unindexed.title, unindexed.text, unindexed.hrefs) == ("", "", ["a"])
    unfollowed = page(markup.format("nofollow"))
    assert (unfollowed.title, unfollowed.text, unfollowed.hrefs) == ("t", "x y", [])
    assert unfollowed.dropped == {"page_nofollow": 1}
    assert page(markup.format("none, noarchive")).directives == {
        "noindex",
        "nofollow",
        "noarchive",
    }
    assert page("<meta http-equiv=Pragma content=no-cache>x").directives == {"noarchive"}


def test_robots_header(page):
    assert page("<a href=a>x</a>", robots_header="noindex").text == ""
    found = page("<meta name=robots content=noarchive><a href=a>x</a>", robots_header="nofollow")
    assert (found.directives, found.hrefs) == ({"nofollow", "noarchive"}, [])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", set()),
        ("noindex;nofollow", {"noindex", "nofollow"}),
        ("max-image-preview:none, noarchive", {"noarchive"}),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", {"noindex"}),
        ("noindex, otherbot: nofollow", {"noindex"}),
        ("nofollowing", set()),
    ],
)
def test_robots_directives(value, expected):
    assert robots_directives(value) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("5", (URL, 5)),
        ("0; url=next", ("http://h0.example.com/d/next", 0)),
        ("0;URL='a b'", ("http://h0.example.com/d/a%20b", 0)),
        (' 3.7 ;url="/x" ignored', ("http://h0.example.com/x", 3)),
        ("1,other", ("http://h0.example.com/d/other", 1)),
        ("now", None),
        ("0;url=http://[bad", None),
    ],
)
def test_refresh(page, content, expected):
    markup = f'<meta http-equiv="Refresh" content="{entities.escape(content)}">x'
    assert page(markup).refresh == expected


def test_facts(page):
    found = page(
        "<html lang=' de-CH '><head><meta name=Description content=' a\n b '>"
        "<meta property=og:title content=o><meta name=viewport content=no>"
        "<meta name=description content=second><link rel='x canonical' href=/c></head><p>x</html>"
    )
    assert found.metas == {"description": "a b", "og:title": "o"}
    assert (found.language, found.canonical) == ("de-CH", "http://h0.example.com/c")
    assert page("<meta http-equiv=content-language content=fr>x").language == "fr"


def test_charsets(page):
    legacy = "<meta charset=windows-1251><title>Тест</title>".encode("cp1251")
    found = page(legacy, content_type="text/html")
    assert (found.title, found.charset) == ("Тест", "windows-1251")
    wide = "\ufeff<title>é</title>x".encode("utf-16-le")
    assert (page(wide).title, page(wide).charset) == ("é", "utf-16le")
    assert page(b"<title>a\xffb</title>").title == "a\ufffdb"


@pytest.mark.parametrize("markup", ["", " ", "<", "<!-- ", "</html>", "<a href", "\0", "<base>"])
def test_scraps(page, markup):
    assert page(markup).hrefs == []


@given(st.text(st.sampled_from("<>/ab =\"'!-&;\0\n") | st.characters(codec="utf-8")))
def test_any_text_parses(text):
    for markup in (text, f"<a href={text}>{text}</a><meta name=robots content='{text}'>"):
        found = parse_html(URL, markup.encode(), "text/html", ParseOptions())
        assert len(found.hrefs) == len(found.anchors) == len(found.rels)
        assert all("  " not in anchor for anchor in found.anchors)


def test_soup_is_built_once_and_only_on_demand():
    found = parse_html(URL, b"<p>x", "text/html", ParseOptions())
    assert found._soup is None
    assert found.soup is found.soup
    assert found.soup.p.text == "x"


def test_dispatch_by_type():
    assert parse(URL, b"<title>t</title>", None, ParseOptions()).title == "t"
    assert parse(URL, b"<title>t</title>", "text/plain", ParseOptions()).title == ""
    assert parse(URL, b"<title>t", "application/xhtml+xml", ParseOptions()).title == "t"
    with pytest.raises(NoParser, match="no_parser") as error:
        parse(URL, b"%PDF-1.7", "application/pdf", ParseOptions())
    assert error.value.reason == "no_parser"


def test_plain_text():
    found = parse_text(URL, b"Go to  http://a.example.com/x?y#z, or\nftp://b.example.com/.", None)
    assert (found.title, found.base) == ("", URL)
    assert found.text == "Go to http://a.example.com/x?y#z, or ftp://b.example.com/."
    assert found.hrefs == ["http://a.example.com/x?y#z", "ftp://b.example.com/"]
    assert found.anchors == found.rels == ["", ""]
    assert parse_text(URL, b"http://a.example.com/x", robots_header="nofollow").hrefs == []


HOSTILE = {
    "nested": b"<div>" * 200_000,
    "nested_and_closed": b"<div>" * 30_000 + b"</div>" * 30_000,
    "nested_with_stray_ends": b"<div></x>" * 20_000,
    "lists": b"<ul><li>" * 20_000,
    "million_attributes": b"<p " + b" ".join(b"a%x=1" % i for i in range(1_000_000)) + b">x",
    "attributes": b"<p " + b" ".join(b"a%x" % i for i in range(50_000)) + b"><a href=a>x",
    "same_attributes": b"<p " + b"a=1 " * 50_000 + b">x",
    "giant_attribute": b'<p title="' + b"x" * 10_000_000 + b'"><a href=a>x</a>',
    "formatting": b"<p>" + b"".join(b"<font size=%d>" % i for i in range(3000)) + b"<p>x" * 20_000,
    "unclosed": b"<p>x<li>y<br>" * 50_000,
    "links_in_links": b"<a href=x><table><td>" * 1200 + b"word " * 100_000,
    "empty_links": b"<a href=x></a>" * 70_000,
    "brackets": b"<" * 1_000_000,
    "comments": b"<!--" * 250_000,
    "ampersands": b"&" * 1_000_000,
    "spaces": b"a" + b" " * 1_000_000 + b"b",
    "refresh": b"<meta http-equiv=refresh content='1" + b" " * 1_000_000 + b"'>",
    "metas": b"<meta name=og:x content=y>" * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_end_soon(name):
    started = time.process_time()
    try:
        found = parse_html(URL, HOSTILE[name], "text/html", ParseOptions())
        assert sum(map(len, found.anchors)) <= 4 * len(HOSTILE[name])
    except ParseFailed:
        assert len(HOSTILE[name]) > 4 << 20
    assert time.process_time() - started < 5


def test_what_no_parser_takes_has_a_reason():
    with pytest.raises(ParseFailed, match="too_complex") as error:
        parse_html(URL, b"<div>" * 1_000_000, "text/html", ParseOptions())
    assert error.value.reason == "too_complex"


def test_hostile_text_ends_soon():
    started = time.process_time()
    for body in (b"a" * 1_000_000, b"a:" * 500_000, b"a://b." * 200_000):
        parse_text(URL, body, "text/plain")
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<div>" * 4_000, False),
        (b"<div>" * 6_000, True),
        (b"<div>" * 6_000 + b"</div>" * 6_000, True),
        (b"<div><b>x</b></div>" * 30_000, False),
        (b"<tr><td>x<br><p>y" * 30_000, False),
        (b"<p>" + b"<b id=1>" * 2_000 + b"<p>x" * 2_000, True),
        (b"<script>" + b"i<n " * 2_000 + b"x" * 100_000 + b"</script>", False),
        (b"<img src='data:" + b"A" * 200_000 + b"'>", False),
        (b"<p>" + b"word " * 40_000, False),
        (b"<p " + b"".join(b"a%d " % i for i in range(40_000)), True),
        (b"<p " + b"".join(b"a%d=''" % i for i in range(40_000)) + b">", True),
    ],
)
def test_hazards(body, expected):
    assert is_hazardous(body, 5000) is expected


# The oracle: the same, written with BeautifulSoup alone.

LINKS = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("frame", "iframe", "img", "script", "source"), "src"),
}


def oracle(body):
    document = BeautifulSoup(body, "html.parser", multi_valued_attributes=None)
    base = document.find("base", href=True)
    places = not base
    base = urljoin(URL, base["href"]) if base else URL
    links = set()
    for tag, attribute in LINKS.items():
        for element in document.find_all(tag, attrs={attribute: True}):
            link, rel = element[attribute], element.get("rel", "").lower().split()
            if link and "nofollow" not in rel and not (places and link.startswith("#")):
                links.add(urljoin(base, element[attribute].strip()))
    title = " ".join(document.title.get_text().split()) if document.title else ""
    texts = document.body.find_all(string=True) if document.body else []
    text = " ".join(
        str(text)
        for text in texts
        if type(text) is NavigableString and not text.find_parents(["script", "style", "iframe"])
    )
    return title, links, text.split()


def assert_agrees(body):
    found = parse_html(URL, body, "text/html", ParseOptions())
    title, links, words = oracle(body)
    assert found.title == title
    assert {urljoin(found.base, href) for href in found.hrefs} == links
    assert found.text.split() == words


@pytest.mark.parametrize(
    "body",
    [
        (
            b"<html><head><title>T</title><base href='/b/'></head><body><p>a<a href=x>b</a>c</p>"
            b"<script>no</script><a href='?q'>q</a><a rel=nofollow href=n>n</a></body></html>"
        ),
        "<html><body><h1>Größe</h1><ul><li><a href='f#f'>日本</a></li></ul></body></html>".encode(),
        (
            b"<html><body><table><tr><td><img src=i.png alt=I></td></tr></table><pre> a\n  b </pre>"
            b"<area href=z><!-- c --></body></html>"
        ),
    ],
)
def test_agrees_with_beautifulsoup(body):
    assert_agrees(body)


def test_agrees_with_beautifulsoup_on_documentation():
    pages = [sorted(docs.rglob("*.html")) for docs in DOCS if docs.is_dir()]
    if not pages:
        pytest.skip("neither python3.11-doc nor postgresql-doc-15 is installed")
    sample = [path for paths in pages for path in paths[:: max(1, len(paths) // 30)]]
    for path in (path for path in sample if path.stat().st_size < 100_000):
        assert_agrees(path.read_bytes())


def test_hrefs_resolve_as_browsers_do():
    found = parse_html(URL, b"<base href=/x/y><a href='..\\z'>z</a>", None, ParseOptions())
    assert urls.parse(found.hrefs[0], found.base) == "http://h0.example.com/z"


def test_places_on_the_page_are_no_links(page):
    markup = "<a href=#top>up</a><a href=#!state>state</a><link href='#x'><a href='a#b'>a</a>"
    assert page(markup).hrefs == ["#!state", "a#b"]
    # What they are relative to is then another page.
    for base in ("<base href=/other>", "<BASE href=/other>"):
        assert page(f"<head>{base}</head>{markup}").hrefs == ["#top", "#!state", "#x", "a#b"]
