"""Hostile XML, to each parser that reads it: it ends soon, with a reason or with little."""

import resource
import time

import pytest

from nutbeam.web.pages.page import ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document

# Root element and what holds text in it.
KINDS = {
    "sitemap": ("urlset", "<url><loc>http://example.com/a", "</loc></url>"),
    "feed": ("rss", "<channel><title>T</title><item><title>a", "</title></item></channel>"),
    "xml": ("data", "<p>words ", "</p>"),
}
LAUGHS = '<!ENTITY e0 "lol">' + "".join(
    f'<!ENTITY e{i} "' + f"&e{i - 1};" * 10 + '">' for i in range(1, 12)
)
QUADRATIC = f'<!ENTITY e11 "{"x" * 50_000}">'
PARAMETER = "<!ENTITY % a \"<!ENTITY e11 'xxx'>\"> %a;"
MANY = "&e11;" * 50_000


def read(text):
    return parse_document(Source("http://example.com/x", text.encode(), "text/xml"), ParseOptions())


def document(kind, subset, inside):
    root, before, after = KINDS[kind]
    doctype = f"<!DOCTYPE {root} [{subset}]>" if subset else ""
    return f"<?xml version='1.0'?>\n{doctype}<{root}>{before}{inside}{after}</{root}>"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("subset", "inside"),
    [(LAUGHS, "&e11;"), (LAUGHS.replace("><", ">\n<"), "&e11;"), (QUADRATIC, MANY),
     ("\n" + QUADRATIC + "\n", MANY), (PARAMETER, MANY),
     (f"<!ATTLIST a b CDATA '{'x' * 50_000}'>", "<a/>" * 50_000)],
    ids=["laughs", "laughs-in-lines", "quadratic", "quadratic-in-lines", "parameter", "attribute"],
)  # fmt: skip
def test_entities_are_refused(kind, subset, inside):
    with pytest.raises(ParseFailed) as failed:
        read(document(kind, subset, inside))
    assert failed.value.reason == "xml_entities"


@pytest.mark.parametrize("junk", ["x", "<!-- -- -->", "&amp;", "<?xml?>"])
def test_a_mistake_before_the_declarations_does_not_hide_them(junk):
    text = junk + document("feed", LAUGHS, "&e11;").partition("?>")[2]
    try:
        source = Source("http://example.com/", text.encode(), "application/rss+xml")
        assert len(parse_document(source, ParseOptions()).text) < 100
    except ParseFailed as failed:
        assert failed.reason in ("xml_entities", "malformed_feed")  # noqa: PT017


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["file:///etc/passwd", "http://127.0.0.1:9/x"])
def test_external_entities_are_nothing(kind, place, monkeypatch):
    import socket

    monkeypatch.setattr(socket, "socket", None)
    page = read(
        document(kind, f"<!ENTITY e SYSTEM '{place}'><!ENTITY % p SYSTEM '{place}'> %p;", "&e;")
    )
    assert "root:" not in page.text
    assert "root:" not in "".join(page.hrefs)
    assert page.text or page.hrefs


@pytest.mark.parametrize("kind", KINDS)
def test_deep_nesting_is_refused(kind):
    with pytest.raises(ParseFailed) as failed:
        read(document(kind, "", "<a>" * 1_000_000))
    assert failed.value.reason == "too_complex"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "inside",
    [
        f"<a b='{'x' * 1_000_000}'/>",
        "<a " + " ".join(f"b{i}='1'" for i in range(100_000)) + "/>",
        f"<a{'b' * 1_000_000}/>",
        "<a/>" * 5_000,
        f"<!--{'-' * 1_000_000}",
        f"<![CDATA[{']]' * 50_000}]]>",
        "&#65;" * 5_000,
    ],
    ids=["attribute", "attributes", "name", "elements", "comment", "cdata", "references"],
)
def test_large_things_end(kind, inside):
    # feedparser is slow on elements and references; its time limit is the parser's.
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    try:
        read(document(kind, "", inside))
    except ParseFailed as failed:
        assert failed.reason in ("malformed_xml", "malformed_feed", "too_complex")  # noqa: PT017
    assert time.process_time() - start < 20
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 500_000  # KiB
