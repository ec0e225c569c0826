"""A written-down set of odd sitemaps: what each says, and what must be read of it."""

import gzip
from typing import NamedTuple

NS = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'"
DAY = 1_767_312_000_000  # 2026-01-02
HERE = "http://example.com"


class Odd(NamedTuple):
    """A sitemap.

    Attributes:
        body: The document.
        urls: URLs that must be read of it, in order; or the reason why nothing is.
        dropped: Counts by reason.
        mime: Content-Type.
        more: Of the first entry: lastmod, changefreq, priority.
    """

    body: bytes | str
    urls: str | list[str]
    dropped: dict[str, int] = {}  # noqa: RUF012
    mime: str | None = "application/xml"
    more: tuple | None = None


def entry(path="/a", inside=""):
    return f"<url><loc>{HERE}{path}</loc>{inside}</url>"


def of(*entries):
    return f"<?xml version='1.0' encoding='UTF-8'?>\n<urlset {NS}>{''.join(entries)}</urlset>"


def dated(date):
    return of(entry(inside=f"<lastmod>{date}</lastmod>"))


def one(value, count=None, **more):
    """Returns a sitemap with one URL."""
    return Odd(value, [f"{HERE}/a"], count or {}, **more)


A, B = f"{HERE}/a", f"{HERE}/b"
UNDECLARED = f"<urlset>{entry('/X.html')}{entry('/b')}</urlset>".encode().replace(b"X", b"\xff\xfe")
RSS = (
    "<rss version='2.0'><channel><title>T</title><link>http://example.com/</link>{}</channel></rss>"
)
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://example.com/'/>{}</feed>"
LAUGHS = "<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {y} '{f'&{x};' * 9}'>" for x, y in zip("abcd", "bcde", strict=True)
)
EXTENSIONS = (
    "<image:image><image:loc>http://cdn.net/i.png</image:loc></image:image>"
    "<video:video><video:content_loc>http://cdn.net/v.mp4</video:content_loc>"
    "<video:thumbnail_loc>http://cdn.net/t.png</video:thumbnail_loc></video:video>"
    "<xhtml:link rel='alternate' hreflang='de' href='http://example.com/de'/>"
)
NEWS = "<news:news><news:publication_date>2026-01-02</news:publication_date><news:title>T</news:title></news:news>"
MANY = " ".join(f"a{i}='1'" for i in range(5_000))

ODD = {
    # Plain ones, and habits.
    "plain": one(of(entry())),
    "two": Odd(of(entry(), entry("/b")), [A, B]),
    "empty": Odd(of(), []),
    "no-namespace": one(f"<urlset>{entry()}</urlset>"),
    "old-namespace": one(f"<urlset xmlns='http://www.google.com/schemas/sitemap/0.84'>{entry()}</urlset>"),
    "prefixed": one(f"<s:urlset xmlns:s='x'><s:url><s:loc>{A}</s:loc></s:url></s:urlset>"),
    "upper-case": one(f"<URLSET><URL><LOC>{A}</LOC></URL></URLSET>"),
    "white-space": one(f"<urlset><url>\n<loc>\n  {A}\t\n</loc></url></urlset>"),
    "cdata": one(f"<urlset><url><loc><![CDATA[{A}]]></loc></url></urlset>"),
    "comment-in-loc": one(f"<urlset><url><loc>{HERE}<!-- x -->/a</loc></url></urlset>"),
    "escaped": Odd(of(entry("/?a=1&amp;b=2")), [f"{HERE}/?a=1&b=2"]),
    "bare-ampersand": Odd(of(entry(), entry("/?a=1&b=2&copy=3&#x;")), [A, f"{HERE}/?a=1&b=2&copy=3&#x;"]),
    "ampersands-in-cdata": Odd(f"<urlset><url><loc><![CDATA[{HERE}/?a&amp;b&c]]></loc></url></urlset>",
                               [f"{HERE}/?a&b&c"]),
    "wrong-references": Odd(of(entry("/&#55356;&#57205;&#0;&#xFFFE;")), [f"{HERE}/🍵"]),
    "comment-before-declaration": one("<!-- 3 ms -->\n" + of(entry())),
    "warning-before-declaration": one("<br />\n<b>Warning</b>:  x in <b>/x.php</b> on line <b>3</b><br />\n"
                                      + of(entry()), mime="text/html"),
    "warning-before-latin-1": Odd(("Notice: x\n" + of(entry("/é")).replace("UTF-8", "latin1")).encode("latin-1"),
                                  [f"{HERE}/é"]),
    "declaration-without-quotes": Odd(f"<?xml version=1.0 encoding=latin1?><urlset {NS}>{entry('/é')}</urlset>".encode("latin-1"),
                                      [f"{HERE}/é"]),
    "declaration-without-encoding": one(of(entry()).replace("UTF-8", "")),
    "declaration-with-curly-quotes": one(of(entry()).replace("'", "\u201d", 4)),
    "declaration-of-html": one(of(entry()).replace("?>", ">", 1)),
    "warning-before-root": one(f"Warning: x.php\n<urlset {NS}>{entry()}</urlset>"),
    "html-entity": Odd(of(entry("/&eacute;")), [f"{HERE}/é"]),
    "relative": Odd("<urlset><url><loc>/a</loc></url></urlset>", ["/a"]),
    "two-locs": one(of(entry(inside=f"<loc>{B}</loc>"))),
    "no-loc": one(of("<url><lastmod>2026-01-02</lastmod></url>", entry()), {"no_url": 1}),
    "empty-loc": one(of("<url><loc> </loc></url>", entry()), {"no_url": 1}),
    "loc-outside": one(f"<urlset><loc>{B}</loc>{entry()}</urlset>"),
    "stylesheet": one("<?xml version='1.0'?><?xml-stylesheet href='x.xsl'?>" + of(entry())[38:]),
    "space-before-declaration": one("\n\n  " + of(entry())),
    "byte-order-mark": one(b"\xef\xbb\xbf" + of(entry()).encode()),
    "utf-16": one(of(entry()).replace("UTF-8", "UTF-16").encode("utf-16")),
    "latin-1": Odd(of(entry("/é")).replace("UTF-8", "ISO-8859-1").encode("latin-1"), [f"{HERE}/é"]),
    "invalid-utf-8": Odd(of(entry("/X"), entry("/b")).encode().replace(b"X", b"\xff\xfe"), [f"{HERE}/%FF%FE", B]),
    "invalid-undeclared": Odd(UNDECLARED, [f"{HERE}/%FF%FE.html", B]),
    "invalid-gbk": Odd(UNDECLARED, [B], {"malformed": 1}, mime="text/xml; charset=gbk"),
    "latin-1-of-header": Odd(UNDECLARED, [f"{HERE}/ÿþ.html", B], mime="text/xml; charset=latin1"),
    "wrong-charset": Odd(of(entry("/é")).encode(), [f"{HERE}/é"], mime="text/xml; charset=latin1"),
    "text-invalid": Odd(f"{A}\n".encode() + A.encode() + b"\xe9\n", [A, f"{A}%E9"], mime="text/plain"),
    "control-characters": one(of(entry()).replace("/a", "/\x00\x08a")),
    "form-feed": one(of(entry()).replace("<url>", "\x0c<url>")),
    "type-html": one(of(entry()), mime="text/html"),
    "type-image": one(of(entry()), mime="image/png"),
    "no-type": one(of(entry()), mime=None),
    # Dates.
    "day": one(dated("2026-01-02"), more=(DAY, None, None)),
    "month": one(dated("2026-01"), more=(1_767_225_600_000, None, None)),
    "year": one(dated("2026"), more=(1_767_225_600_000, None, None)),
    "day-with-zone": one(dated("2026-01-02+01:00"), more=(DAY - 3_600_000, None, None)),
    "day-of-utc": one(dated("2026-01-02Z"), more=(DAY, None, None)),
    "time-of-utc": one(dated("2026-01-02 00:00:00 UTC"), more=(DAY, None, None)),
    "month-with-zone": one(dated("2026-01-05:00"), more=(1_767_225_600_000 + 18_000_000, None, None)),
    "zone": one(dated("2026-01-02T02:00:00+02:00"), more=(DAY, None, None)),
    "fraction": one(dated("2026-01-02T00:00:00.000Z"), more=(DAY, None, None)),
    "mail-date": one(dated("Fri, 02 Jan 2026 00:00:00 GMT"), more=(DAY, None, None)),
    "empty-date": one(dated(""), more=(None, None, None)),
    "year-40000": one(dated("40000-01-01"), {"bad_lastmod": 1}, more=(None, None, None)),
    "year-1": one(dated("0001-01-01T00:00:00Z"), {"bad_lastmod": 1}, more=(None, None, None)),
    "year-9999": one(dated("9999-12-31T23:59:59-12:00"), more=(253402343999000, None, None)),
    "february-30": one(dated("2026-02-30"), {"bad_lastmod": 1}),
    "epoch-seconds": one(dated("1767312000"), {"bad_lastmod": 1}),
    "words": one(dated("yesterday"), {"bad_lastmod": 1}),
    "long-date": one(dated("2" * 100_000), {"bad_lastmod": 1}),
    # Frequency and priority.
    "frequency": one(of(entry(inside="<changefreq> Daily </changefreq>")), more=(None, "daily", None)),
    "bad-frequency": one(of(entry(inside="<changefreq>often</changefreq>")), {"bad_changefreq": 1}),
    "priority": one(of(entry(inside="<priority>0.8</priority>")), more=(None, None, 0.8)),
    "priority-0": one(of(entry(inside="<priority>0</priority>")), more=(None, None, 0.0)),
    "priority-2": one(of(entry(inside="<priority>2</priority>")), {"bad_priority": 1}),
    "priority-negative": one(of(entry(inside="<priority>-0.5</priority>")), {"bad_priority": 1}),
    "priority-nan": one(of(entry(inside="<priority>nan</priority>")), {"bad_priority": 1}),
    "priority-infinite": one(of(entry(inside="<priority>1e999</priority>")), {"bad_priority": 1}),
    "priority-comma": one(of(entry(inside="<priority>0,8</priority>")), {"bad_priority": 1}),
    # Extensions.
    "extensions": Odd(of(entry(inside=EXTENSIONS)),
                      [A, "http://cdn.net/i.png", "http://cdn.net/v.mp4", f"{HERE}/de"]),
    "news": one(of(entry(inside=NEWS)), more=(DAY, None, None)),
    "news-and-date": one(of(entry(inside=NEWS + "<lastmod>2026</lastmod>")),
                         more=(1_767_225_600_000, None, None)),
    "unknown-extension": one(of(entry(inside="<x:y><x:loc>http://evil.net/</x:loc></x:y>"))),
    "amp-link": one(of(entry(inside="<xhtml:link rel='amphtml' href='/amp'/>"))),
    # Indexes.
    "index": Odd(f"<sitemapindex {NS}><sitemap><loc>{A}</loc></sitemap></sitemapindex>", [A]),
    "index-with-urls": Odd(f"<sitemapindex>{entry('/b')}<sitemap><loc>{A}</loc></sitemap></sitemapindex>",
                           [B, A]),
    "urlset-with-sitemaps": Odd(f"<urlset>{entry('/b')}<sitemap><loc>{A}</loc></sitemap></urlset>", [B, A]),
    # Feeds and lists.
    "rss": one(RSS.format(f"<item><link>{A}</link><pubDate>Fri, 02 Jan 2026 00:00:00 GMT</pubDate></item>"),
               more=(DAY, None, None)),
    "rss-guid": one(RSS.format(f"<item><guid>{A}</guid></item>")),
    "rss-no-permalink": Odd(RSS.format("<item><guid isPermaLink='false'>17</guid></item>"), [], {"no_url": 1}),
    "rss-guid-no-permalink": Odd(RSS.format(f"<item><guid isPermaLink='false'>{A}</guid></item>"), [], {"no_url": 1}),
    "rss-ampersand": Odd(RSS.format(f"<item><title>A & B</title><link>{A}?x=1&y=2</link></item>"), [f"{A}?x=1&y=2"]),
    "rss-soup": one(RSS.format(f"<item><description><br>x</b></description><link>{A}</link></item>")),
    "rss-cut": one(RSS.format(f"<item><link>{A}</link></item><item><title>x")[:-19], {"no_url": 1}),
    "rss-after-a-warning": one("<b>Warning</b>: x.php\n" + RSS.format(f"<item><link>{A}</link></item>")),
    "atom-base": one(ATOM.replace("<link ", f"<link xml:base='{HERE}/x/' ", 1).format(
        "<entry xml:base='/b/c/'><link href='../../a' xml:base='d'/></entry>")),
    "json-feed": one('{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "url": "/a",'
                     ' "date_modified": "2026-01-02T00:00:00Z"}, {"id": "2"}]}', {"no_url": 1}, more=(DAY, None, None)),
    "json-bomb": Odd('{"version": ' + "[" * 500_000, "not_a_sitemap"),
    "rss-without-items": Odd(RSS.format(""), []),
    "rdf": one(f"<rdf:RDF><channel/><item rdf:about='x'><link>{A}</link><dc:date>2026-01-02</dc:date></item></rdf:RDF>",
               more=(DAY, None, None)),
    "atom": one(ATOM.format(f"<entry><link rel='self' href='{B}'/><link href='{A}'/><updated>2026-01-02T00:00:00Z</updated></entry>"),
                more=(DAY, None, None)),
    "atom-dates": one(ATOM.format(f"<entry><published>2020-01-01</published><link href='{A}'/><updated>2026-01-02</updated></entry>"),
                      more=(DAY, None, None)),
    "text": Odd(f"{A}\n{B}\n", [A, B], mime="text/plain"),
    "text-windows": Odd(f"\ufeff{A}\r\n\r\n  {B}  \r\n".encode(), [A, B], mime="text/plain"),
    "text-with-words": Odd(f"# comment\n{A}\nnot a url\n", [A], {"not_a_url": 2}, "text/plain"),
    "text-as-xml": Odd(A, [A], mime="text/xml"),
    "long-url": one(of(entry("/" + "x" * 5_000), entry()), {"url_too_long": 1}),
    "long-text-url": Odd(f"{HERE}/{'x' * 500_000}\n{A}", [A], {"url_too_long": 1}),
    # Packed.
    "gzip": one(gzip.compress(of(entry()).encode()), mime="application/x-gzip"),
    "gzip-members": Odd(b"".join(map(gzip.compress, (b"<urlset>", entry().encode(), b"</urlset>"))), [A]),
    "gzip-padded": one(gzip.compress(of(entry()).encode()) + bytes(100)),
    "gzip-text": Odd(gzip.compress(A.encode()), [A]),
    "gzip-cut": Odd(gzip.compress(of(*map(entry, ["/a", "/b"])).encode(), 0)[:-40], [A],
                    {"cut_gzip": 1, "malformed_xml": 1}),
    "gzip-twice": Odd(gzip.compress(gzip.compress(of(entry()).encode())), "not_text"),
    "gzip-garbage": Odd(b"\x1f\x8b\x08\x00garbage garbage", "malformed_gzip"),
    "gzip-head": Odd(b"\x1f\x8b", "not_a_sitemap"),
    # Broken and hostile ones.
    "nothing": Odd(b"", "not_a_sitemap"),
    "cut": Odd(of(entry(), entry("/b"))[:-20], [A], {"malformed_xml": 1}),
    "cut-early": Odd("<urlset><url><loc>http", "malformed_xml"),
    "wrong-nesting": Odd(f"<urlset>{entry()}<url><loc>{B}</url></loc></urlset>", [A], {"malformed_xml": 1}),
    "two-roots": Odd(of(entry()) + f"<urlset>{entry('/b')}</urlset>", [A], {"malformed_xml": 1}),
    "html": Odd("<!DOCTYPE html><html><p>Not found", "not_a_sitemap", mime="text/html"),
    "html-as-xml": Odd("<html><body><a href='/a'>a</a></body></html>", "not_a_sitemap"),
    "xhtml": Odd("<?xml version='1.0'?><html xmlns='x'><url/></html>", "not_a_sitemap"),
    "other-xml": Odd("<opml><url><loc>http://example.com/</loc></url></opml>", "not_a_sitemap"),
    "words-only": Odd("Please log in.", "not_a_sitemap", mime="text/plain"),
    "json": Odd('{"urls": ["http://example.com/"]}', "not_a_sitemap", mime="application/json"),
    "png": Odd(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not_a_sitemap"),
    "pdf": Odd(b"%PDF-1.7\n\0\1\2\3\4" + bytes(range(32)) * 9, "not_text"),
    "laughs": Odd(f"<!DOCTYPE urlset [{LAUGHS}]><urlset><url><loc>&e;</loc></url></urlset>", "xml_entities"),
    "external-entity": Odd("<!DOCTYPE urlset [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"
                           f"<urlset>{entry()}<url><loc>&e;</loc></url></urlset>", [A], {"no_url": 1}),
    "external-dtd": one(f"<!DOCTYPE urlset SYSTEM 'http://evil.net/x.dtd'><urlset>{entry()}</urlset>"),
    "deep": Odd(f"<urlset>{entry()}" + "<a>" * 6_000, "too_complex"),
    "deep-in-entry": Odd("<urlset><url>" + "<a>" * 6_000, "too_complex"),
    "long-name": Odd(f"<urlset>{entry()}<{'a' * 300_000}", [A], {"malformed_xml": 1}),
    "many-attributes": one(f"<urlset><url {MANY}><loc>{A}</loc></url></urlset>"),
    "script-url": Odd(of("<url><loc>javascript:alert(1)</loc></url>"), ["javascript:alert(1)"]),
}  # fmt: skip
