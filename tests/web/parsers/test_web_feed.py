"""Feeds of each version: what is taken, and what a feed cannot do."""

import io
import socket
import time

import feedparser
import pytest
import real_feeds

from nutbeam.web.pages.page import ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers import feed as feed_parser
from nutbeam.web.parsers.dispatch import parse_document

HEAD = "<?xml version='1.0' encoding='utf-8'?>\n"
RDF = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'"
CHANNEL = "<title>News</title><link>http://example.com/</link><description>Of the day</description>"
ITEM = "<item><title>One</title><link>http://example.com/1</link><description>First</description></item>"
RSS = f"<channel>{CHANNEL}{ITEM}</channel>"
VERSIONS = [
    ("rss-0.90", (f"<rdf:RDF {RDF} xmlns='http://my.netscape.com/rdf/simple/0.9/'><channel>{CHANNEL}"
     f"</channel>{ITEM}</rdf:RDF>")),
    ("rss-0.91", ("<!DOCTYPE rss PUBLIC '-//Netscape Communications//DTD RSS 0.91//EN' "
     f"'http://my.netscape.com/publish/formats/rss-0.91.dtd'>\n<rss version='0.91'>{RSS}</rss>")),
    ("rss-0.92", f"<rss version='0.92'>{RSS}</rss>"),
    ("rss-0.93", f"<rss version='0.93'>{RSS}</rss>"),
    ("rss-1.0", (f"<rdf:RDF {RDF} xmlns='http://purl.org/rss/1.0/'><channel rdf:about='a'>{CHANNEL}"
     f"</channel>{ITEM}</rdf:RDF>")),
    ("rss-2.0", f"<rss version='2.0'>{RSS}</rss>"),
    ("atom-0.3", ("<feed version='0.3' xmlns='http://purl.org/atom/ns#'><title>News</title>"
     "<link rel='alternate' type='text/html' href='http://example.com/'/><tagline>Of the day"
     "</tagline><entry><title>One</title><link rel='alternate' type='text/html' "
     "href='http://example.com/1'/><summary>First</summary></entry></feed>")),
    ("atom-1.0", ("<feed xmlns='http://www.w3.org/2005/Atom'><title>News</title>"
     "<link href='/'/><link rel='self' href='/feed'/><subtitle>Of the day</subtitle>"
     "<entry><title>One</title><link href='1'/><summary>First</summary></entry></feed>")),
]  # fmt: skip


def read(text, header="application/xml", headers=(), **options):
    body = text if isinstance(text, bytes) else text.encode()
    source = Source("http://example.com/feed", body, header, headers)
    return parse_document(source, ParseOptions(**options))


@pytest.mark.parametrize("text", [row[1] for row in VERSIONS], ids=[row[0] for row in VERSIONS])
def test_versions(text):
    page = read(HEAD + text)
    assert (page.title, page.text) == ("News", "News\n\nOf the day\n\nOne\n\nFirst")
    assert page.hrefs == ["http://example.com/", "http://example.com/1"]
    assert page.anchors == ["", "One"]
    assert page.parts == []
    (part,) = read(HEAD + text, feed_documents=True).parts
    assert part[0] == "http://example.com/1"
    assert (part[1].title, part[1].text) == ("One", "First")


@pytest.mark.parametrize("header", ["application/rdf+xml", "text/rdf"])
def test_a_feed_that_comes_as_rdf(header):
    text = dict(VERSIONS)["rss-1.0"]
    assert read(HEAD + text, header).anchors == ["", "One"]


def rss(*items, more=""):
    return (
        f"{HEAD}<rss version='2.0'><channel><title>N</title>{more}{''.join(items)}</channel></rss>"
    )


def item(link, title="T", description="D", more=""):
    return (
        f"<item><title>{title}</title><link>{link}</link>"
        f"<description>{description}</description>{more}</item>"
    )


@pytest.mark.parametrize("name", ["links", "content", "enclosures", "tags", "authors", "title_detail",
                                  "summary_detail", "published_parsed", "value"])  # fmt: skip
def test_an_element_may_have_any_name(name):
    odd = f"<{name}>odd</{name}>"
    text = f"<rss version='2.0'><channel>{odd}<title>News</title>{ITEM.replace('<item>', '<item>' + odd)}"
    page = read(f"{HEAD}{text}</channel></rss>", feed_documents=True)
    assert page.text == "News\n\nOne\n\nFirst"
    assert page.hrefs == ["http://example.com/1"]


def test_markup_is_taken_from_texts():
    described = "&lt;p>Hi &lt;a href='/x'>there&lt;/a>&lt;/p>&lt;script>no()&lt;/script>"
    page = read(rss(item("/1", "A &amp;amp; &lt;i>B&lt;/i>", described)), feed_documents=True)
    assert page.text == "N\n\nA & B\n\nHi there"
    assert page.anchors == ["A & B"]
    ((_, part),) = page.parts
    assert (part.title, part.text, part.hrefs, part.base) == (
        "A & B", "Hi there", ["/x"], "http://example.com/1",
    )  # fmt: skip


def test_an_item_has_its_content_rather_than_its_summary():
    content = (
        "<content:encoded xmlns:content='http://purl.org/rss/1.0/modules/content/'>"
        "<![CDATA[<p>All of it</p>]]></content:encoded><pubDate>Thu, 01 Jan 2026 00:00:00 GMT"
        "</pubDate><author>ann@example.com (Ann)</author><category>Old  news</category>"
        "<category domain='x'>two</category><category>two</category>"
    )
    page = read(rss(item("/1", description="A bit", more=content)), feed_documents=True)
    assert page.text == "N\n\nT\n\nA bit"
    ((_, part),) = page.parts
    assert part.text == "All of it"
    assert part.metas == {
        "author": "ann@example.com (Ann)",
        "published": "Thu, 01 Jan 2026 00:00:00 GMT",
        "tag": "Old news\ntwo",
    }
    atom = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>N</title><entry><title>T</title>"
        "<link href='http://example.com/1'/><category term='a b'/><category term='c'/>"
        "<published>2026-01-01T00:00:00Z</published><updated>2026-01-02T00:00:00Z</updated>"
        "</entry></feed>"
    )
    ((_, part),) = read(HEAD + atom, feed_documents=True).parts
    assert part.metas == {
        "published": "2026-01-01T00:00:00Z", "updated": "2026-01-02T00:00:00Z", "tag": "a b\nc",
    }  # fmt: skip


def test_items_on_other_hosts_are_links_only():
    links = ["/1", "http://other.org/2", "https://example.com/3", "http://www.example.com/4"]
    page = read(rss(*map(item, links)), feed_documents=True)
    assert [url for url, _ in page.parts] == ["http://example.com/1", "https://example.com/3"]
    assert page.dropped == {"foreign_item": 2}
    assert page.hrefs[1] == "http://other.org/2"


def test_an_item_is_a_document_once_and_never_the_feed_itself():
    page = read(
        rss(
            item("/1", "first"),
            item("/1", "again"),
            item("/feed"),
            "<item><title>no link</title></item>",
        ),
        feed_documents=True,
    )
    assert [(url, part.title) for url, part in page.parts] == [("http://example.com/1", "first")]


def test_links_that_are_no_urls_make_no_documents():
    page = read(rss(item("javascript:alert(1)"), item("http://[")), feed_documents=True)
    assert page.parts == []


def test_items_are_capped(monkeypatch):
    assert feed_parser.MAX_ITEMS == 1000
    monkeypatch.setattr(feed_parser, "MAX_ITEMS", 10)
    page = read(rss(*[item(f"/{i}") for i in range(feed_parser.MAX_ITEMS + 5)]))
    assert len(page.hrefs) == feed_parser.MAX_ITEMS
    assert page.dropped == {"feed_max_items": 5}


def test_language_and_next_page():
    page = read(rss(more="<language>de-AT</language>"))
    assert (page.language, page.metas["language_declared"]) == ("de", "de-AT")
    page = read("<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='fr'><title>N</title>"
                "<link rel='next' href='?page=2'/></feed>")  # fmt: skip
    assert (page.language, page.hrefs, page.rels) == (
        "fr", ["http://example.com/feed?page=2"], ["next"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (rss(item("/1", "Größe")).replace("utf-8", "iso-8859-1").encode("latin-1"), "text/xml"),
        (rss(item("/1", "Größe")).encode("utf-16"), "application/rss+xml"),
        (rss(item("/1", "Größe")).encode("cp1252"), "text/xml; charset=windows-1252"),
    ],
    ids=["declaration", "utf-16", "header"],
)
def test_charsets(body, header):
    assert read(body, header).anchors == ["Größe"]


def test_robots_headers():
    def said(what):
        return read(rss(item("/1")), headers=[("x-robots-tag", what)], feed_documents=True)

    page = said("noindex")
    assert (page.title, page.text, page.hrefs) == ("", "", ["http://example.com/1"])
    ((_, part),) = page.parts
    assert (part.title, part.text, part.directives) == ("", "", {"noindex"})
    page = said("nofollow")
    assert (page.text, page.hrefs, page.dropped) == ("N\n\nT\n\nD", [], {"page_nofollow": 1})


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("A & B</title>", "A & B"),
        ("A &nbsp;& B &eacute;</title>", "A & B é"),
        ("Tea &#55356;&#57205; &#xD83C;&#xDF75;!</title>", "Tea 🍵 🍵!"),
        ("Tea &#55356; &#0;&#xFFFE;&#x110000;!</title>", "Tea \ufffd !"),
        ("Tea &#99999999999;&#xFFFFFFFFF;&#00000000000065;!</title>", "Tea A!"),
        ("It&#146;s</title>", "It\u2019s"),
        ("&#128;&#0147;It&#x92;s&#X94;&#127;&#133; &#159;</title>", "€“It\u2019s”… Ÿ"),
        ("&#160;&#255;&#1046;</title>", "ÿЖ"),
        ("<![CDATA[A & B &amp; C]]></title>", "A & B & C"),
        ("a\x0bb\x00</title>", "ab"),
        ("A &1; &; &#xg;</title>", "A &1; &; &#xg;"),
        ("A<br>B<p>C</title>", "A B C"),
        ("A <b>B</title></b>", "A B"),
        ("<b x=1 y='2' x=3>A</b> 1 < 2</TITLE>", "A 1 < 2"),
        ("A</title></odd><!-- -- -->", "A"),
    ],
)
def test_a_feed_with_mistakes_is_read(title, anchor):
    text = "<rss><channel><title>N</title><item><title>{}<link>/1</link>{}"
    for end in ("</item></channel></rss>", "</item>", ""):
        page = read(text.format(title, end), "application/rss+xml")
        assert (page.title, page.hrefs, page.anchors) == ("N", ["http://example.com/1"], [anchor])


@pytest.mark.parametrize(
    "junk",
    ["\n\n", "<!-- cached in 3 ms -->\n", "<!-- a <rss> -->", "\n\ufeff",
     "<br />\n<b>Warning</b>:  include(): no file in <b>/x.php</b> on line <b>3</b><br />\n",
     "\ufeff\ufeff", "\ufeff\n\ufeff",
     "<script>if (1 <n) a = '<b>'</script >\n<style>.x{}</style><link rel=x><meta name=y>",
     "Notice: 3 > 2 & so on in x.php\n"],
)  # fmt: skip
@pytest.mark.parametrize("header", ["application/rss+xml", "text/xml", "text/html"])
@pytest.mark.parametrize("encoding", ["utf-8", "koi8-r"])
def test_junk_before_a_feed_is_dropped(junk, header, encoding):
    text = junk + rss(item("/1", "Чай")).replace("utf-8", encoding)
    body = text.encode(encoding, "ignore")
    page = read(body, header)
    assert (page.title, page.anchors) == ("N", ["Чай"])


@pytest.mark.parametrize("mark", ["\ufeff\ufeff", " \ufeff"])
def test_a_feed_without_a_declaration_may_have_a_second_mark(mark):
    text = mark + rss(item("/1", "Чай")).partition("?>")[2]
    for header in ("text/xml", "text/html", None):
        assert read(text, header).anchors == ["Чай"]


@pytest.mark.parametrize(
    "junk",
    ["<script src='/x.js'></script>", "<br />\n<b>Warning</b>: x", "\n3 ms", "</div></body></html>",
     "<html><head><title>X</title></head><body><item><title>Y</title></item></body></html>"],
)  # fmt: skip
def test_junk_after_a_feed_is_dropped(junk):
    page = read(rss(item("/1", "Tea")) + junk, "application/rss+xml")
    assert (page.title, page.hrefs, page.anchors) == ("N", ["http://example.com/1"], ["Tea"])


@pytest.mark.parametrize(
    "text",
    ["<rss version='2.0'><channel/></rss>", "<rss><channel></channel></rss>",
     "<feed xmlns='http://www.w3.org/2005/Atom'/>",
     '{"version": "https://jsonfeed.org/version/1", "items": []}'],
)  # fmt: skip
def test_a_feed_may_be_empty(text):
    page = read(text, "application/rss+xml")
    assert (page.title, page.text, page.hrefs) == ("", "", [])


@pytest.mark.parametrize("header", ["application/rss+xml", "application/atom+xml", "text/xml"])
def test_an_error_page_that_comes_as_a_feed_is_read_as_html(header):
    text = "<html><head><title>Log in</title></head><body>Please <a href='/in'>log in</a><br></body></html>"
    for start in ("", "<!DOCTYPE html>\n", "\n<!-- x -->"):
        page = read(start + text, header)
        assert (page.title, page.text, page.hrefs) == ("Log in", "Please log in", ["/in"])


# Paragraphs of the text, links with anchors, and of the first item: text, author, tags, published, updated.
REAL = {
    "wordpress": (
        real_feeds.WORDPRESS, "A blog|Just another site|Tea & cake é a post|Short … more",
        {"/": "", "/2026/01/post/": "Tea & cake é a post"},
        ("All of it", "Ann", "Food\nTea & more", "Fri, 02 Jan 2026 00:00:00 +0000", None),
    ),
    "blogger": (
        real_feeds.BLOGGER, "A blog|Just another site|Tea <3|All of it",
        {"/": "", "/feeds/posts/default?start-index=26&max-results=25": "", "/2026/01/post.html": "Tea <3"},
        ("All of it", "Bob", "Food", "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"),
    ),
    "podcast": (
        real_feeds.PODCAST, "A show|In short|Episode|About tea", {"/show": "", "/show/1": "Episode"},
        ("About tea", "Ann", None, "Fri, 02 Jan 2026 00:00:00 GMT", None),
    ),
    "youtube": (
        real_feeds.YOUTUBE, "A channel|Tea|How to make it https://example.com/shop",
        {"/channel/7": "", "/watch?v=1": "Tea"},
        ("How to make it https://example.com/shop", "Ann", None, "2026-01-01T00:00:00+00:00",
         "2026-01-02T00:00:00+00:00"),
    ),
    "atom-xhtml": (
        real_feeds.ATOM_XHTML, "A blog|AT&T|All of it <3", {"/blog/": "", "/blog/2026/post": "AT&T"},
        ("All of it <3", None, None, "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z"),
    ),
    "rdf": (
        real_feeds.RDF, "A site|Of news|One|First", {"/": "", "/1": "One"},
        ("First", "Ann", "Food", "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z"),
    ),
    "json": (
        real_feeds.JSON_FEED, "A blog|Of tea|Tea 🍵|All of it",
        {"/": "", "/feed.json?page=2": "", "/post": "Tea 🍵"},
        ("All of it", "Ann, Bob", "food\ntea", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    ),
    "json-1": (
        real_feeds.JSON_FEED_1, "Links|1 < 2", {"/7": "", "http://other.example/": ""},
        ("1 < 2", None, None, "2026-01-02", None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_feeds_of_well_known_programs(name):
    body, paragraphs, links, (content, author, tags, published, updated) = REAL[name]
    page = read(body, "application/json" if body[0] == "{" else "text/xml", feed_documents=True)
    links = {href if ":" in href else f"http://example.com{href}": a for href, a in links.items()}
    hrefs = [href.replace("example.com", "example.com/") if href == "http://example.com" else href
             for href in page.hrefs]  # fmt: skip
    text = paragraphs.replace("|", "\n\n")
    assert (page.text, dict(zip(hrefs, page.anchors, strict=True))) == (text, links)
    (_, part), *_ = page.parts
    names = {"author": author, "tag": tags, "published": published, "updated": updated}
    assert (part.text, part.metas) == (content, {k: v for k, v in names.items() if v})


def test_links_within_xhtml_are_relative_to_its_base():
    ((url, part),) = read(real_feeds.ATOM_XHTML, feed_documents=True).parts
    assert (url, part.hrefs) == ("http://example.com/blog/2026/post", ["x.html?a=1&b=2"])
    assert part.base == "http://example.com/blog/2026/"


@pytest.mark.parametrize("name", [name for name in REAL if "json" not in name])
def test_items_are_those_that_feedparser_reads(name):
    theirs = feedparser.parse(io.BytesIO(REAL[name][0].encode()),
                              response_headers={"content-location": "http://example.com/feed"})  # fmt: skip
    page = read(REAL[name][0], "text/xml", feed_documents=True)
    assert [url for url, _ in page.parts] == [entry.link for entry in theirs.entries]


def test_a_guid_that_is_no_permalink_is_no_link():
    guid = "<item><title>T</title><guid isPermaLink='{}'>http://example.com/7</guid></item>"
    assert read(rss(guid.format("false"))).hrefs == []
    assert read(rss(guid.format("true"))).hrefs == ["http://example.com/7"]


def test_an_item_that_is_left_open_ends_with_the_next():
    text = (
        "<rss><channel><item><title>A</title><link>/1</link><item><title>B</title><link>/2</link>"
    )
    assert read(text, "application/rss+xml").anchors == ["A", "B"]


@pytest.mark.parametrize(
    "text",
    [
        "<item><title>A<link>/1</link></item>",
        "<item><title>A<link>/1<description>B<item><title>C</item>",
        "<item><link>/1<title>A</title></b></item>",
        "<item><title>A</title><guid isPermaLink='true'>/1</guid></item>",
        "<item><title>A</title><link><![CDATA[http://example.com/1]]></link></item>",
        "<item><title>A</title><link url='/1'/></item>",
    ],
)
def test_a_link_survives_mistakes_around_it(text):
    page = read(f"<rss><channel><title>N</title>{text}", "application/rss+xml")
    assert (page.hrefs[0], page.anchors[0]) == ("http://example.com/1", "A")


@pytest.mark.parametrize("link", ["<![CDATA[/1?a=1&amp;b=2]]>", "/1?a=1&amp;amp;b=2"])
def test_a_link_that_is_escaped_twice_is_unescaped_twice(link):
    assert read(rss(f"<item><link>{link}</link></item>")).hrefs == ["http://example.com/1?a=1&b=2"]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<description><![CDATA[a &#55357;&#56832; &#xD83D;&#xDE00;]]></description>", "a 😀 😀"),
        ("<description>R&D; b</description>", "R&D; b"),
        ("<abstract>a</abstract>", "a"),
        ("<fullitem>a</fullitem>", "a"),
        ("<body xmlns='http://www.w3.org/1999/xhtml'>a<p>b</p></body>", "a\n\nb"),
        ("<content type='text/plain' mode='base64'>YcOk</content>", "aä"),
        ("<content type='text/html' mode='base64'>a</content>", ""),
    ],
)
def test_texts_that_feeds_give_in_odd_ways(text, content):
    feed = rss(f"<item><title>T</title><link>http://example.com/1</link>{text}</item>")
    ((_, part),) = read(feed, feed_documents=True).parts
    assert part.text == content


def test_an_entry_of_atom_may_stand_alone():
    text = "<entry xmlns='http://www.w3.org/2005/Atom'><title>T</title><link href='/1'/></entry>"
    page = read(text, "application/atom+xml;type=entry")
    assert (page.hrefs, page.anchors) == (["http://example.com/1"], ["T"])


def of_1_mb(piece):
    return piece * (1_000_000 // len(piece))


LONG_BASE = f"xml:base='{'a/' * 2_000}'"


@pytest.mark.long
@pytest.mark.few(6)
@pytest.mark.parametrize(
    "text",
    [
        f"<rss><channel><item><title><b {LONG_BASE}>" + of_1_mb("<a xml:base='b'>x</a>"),
        f"<rss><channel {LONG_BASE}><item>" + of_1_mb("<q xml:base='b'/>"),
        f"<feed {LONG_BASE}><entry>" + of_1_mb("<link href='b'/>"),
        f"<feed {LONG_BASE}>" + of_1_mb("<entry xml:base='b'><link href='../c'/></entry>"),
        f"<feed {LONG_BASE}>" + of_1_mb("<link rel='next' href='c'/>"),
        *("<rss><channel><item><description>" + of_1_mb(piece) for piece in
          ("&", "&#", "&a;", "<b>x</b></c>", "<", "</b>", '<a b="', "<b>x</b>", "&#1;&copy;")),
    ],
)  # fmt: skip
def test_a_megabyte_takes_little_time(text):
    began = time.process_time()
    read(text, "application/rss+xml")
    assert time.process_time() - began < 4  # mostly 0.2 s, on a busy machine more


@pytest.mark.parametrize(
    "text", ["<rss/>", "<rss></rss>", "no feed at all", "", "<rss version='2.0'>"]
)
def test_invalid_feeds_are_a_reason(text):
    with pytest.raises(ParseFailed) as failed:
        read(text, "application/rss+xml")
    assert failed.value.reason == "malformed_feed"


@pytest.mark.parametrize("text", ["http://example.com/other", "/etc/passwd", "file:///etc/passwd"])
def test_a_body_is_never_taken_for_a_place(text, monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(ParseFailed):
        read(text, "application/rss+xml")
