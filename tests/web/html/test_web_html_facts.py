"""What a page says of itself: meta elements, alternates, JSON-LD, headings, language."""

import json
import pathlib
import sys

import polars as pl
import pyarrow as pa
import pytest
from html_trees import URL

from nutbeam.policy.components.host_rows import seeds_of
from nutbeam.policy.components.schema import PAGES, conform
from nutbeam.policy.parsing.documents import DocumentOptions, ParseRules, documents_of
from nutbeam.web.exchange.status import FETCH_SUCCESS
from nutbeam.web.pages import language
from nutbeam.web.pages.language import language_code, settle_language
from nutbeam.web.pages.metadata import metadata_of
from nutbeam.web.pages.page import Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document
from nutbeam.web.urls.row_keys import to_key


def test_facts(page):
    found = page(
        "<html lang=' de-CH '><head><meta name=Description content=' a\n b '>"
        "<meta property=og:title content=o><meta name=viewport content=no>"
        "<meta name=description content=second><link rel='x canonical' href=/c></head><p>x</html>"
    )
    assert found.metas == {"description": "a b", "og:title": "o"}
    assert (found.language, found.canonical) == ("de-CH", "http://h0.example.com/c")
    assert page("<meta http-equiv=content-language content=fr>x").language == "fr"


@pytest.mark.parametrize(
    "name",
    ["author", "keywords", "generator", "og:image", "twitter:card", "article:tag", "dc.title",
     "dcterms.date"],
)  # fmt: skip
def test_other_meta_elements(page, name):
    assert page(f"<meta name=' {name.upper()} ' content=x>").metas == {name: "x"}
    assert page(f"<meta property={name} content='a  b'>").metas == {name: "a b"}


def test_meta_elements_have_limits(page):
    found = page("".join(f"<meta name=og:{n} content='{'x' * 3000}'>" for n in range(100)))
    assert (len(found.metas), {*map(len, found.metas.values())}) == (64, {2000})


def test_headings(page):
    markup = (
        "<h1> The \n <b>first</b></h1><h2>a<script>no</script><style>no</style></h2><h3>no</h3>"
        "<div><h2 href=x src=y>b</h2></div><h2> </h2><H1>last</H1>"
    )
    assert page(markup).headings == [("h1", "The first"), ("h2", "a"), ("h2", "b"), ("h1", "last")]
    assert page(markup, headings=("h3",)).headings == [("h3", "no")]
    assert page(markup, headings=()).headings == []
    every = "".join(f"<h{level}>x</h{level}>" for level in range(1, 7))
    levels = tuple(f"h{level}" for level in range(1, 7))
    assert page(every, headings=levels).headings == [(level, "x") for level in levels]


def test_headings_have_limits(page):
    found = page("<h2>x</h2>" * 120 + "<h1>y</h1>")
    assert (len(found.headings), found.counts["too_many_headings"]) == (100, 21)
    assert [len(text) for _, text in page(f"<h1>{'x' * 3000}").headings] == [500]


def test_a_page_that_says_noindex_has_no_headings_but_its_metadata(page):
    found = page("<meta name=robots content=noindex><meta name=description content=d><h1>x</h1>")
    assert (found.headings, found.metas) == ([], {"description": "d"})


def test_hreflang(page):
    found = page(
        "<link rel=alternate hreflang=EN href=/en><link rel='x Alternate' hreflang=de_CH href=de>"
        "<link rel=alternate hreflang=x-default href=http://o.example.com/>"
        "<link rel=alternate hreflang=en href=/second><link rel=alternate href=/feed>"
        "<link rel=alternate hreflang='?' href=/bad><link rel=alternate hreflang=fr href=' '>"
        "<link rel=alternate hreflang=it href='http://[bad'><link rel=help hreflang=es href=/es>"
        "<base href=/b/>"
    )
    assert found.alternates == {
        "en": "http://h0.example.com/en",
        "de-ch": "http://h0.example.com/b/de",
        "x-default": "http://o.example.com/",
    }
    assert len(found.hrefs) == 8  # they are links, too


def test_alternates_have_limits(page):
    links = "".join(f"<link rel=alternate hreflang=a{n} href=/{n}>" for n in range(110))
    found = page(f"<link rel=alternate hreflang=z href=/{'x' * 5000}>{links}")
    assert (len(found.alternates), found.counts["too_many_alternates"]) == (100, 11)


JSON_LD = '{"@type": "Article",\n "name": "a </b> &amp; b"}'


def test_json_ld(page):
    found = page(
        f"<script type=application/ld+json> {JSON_LD} </script><script>no</script>"
        "<script type='application/json'>{}</script><p>x"
        "<script type=' Application/LD+JSON; charset=utf-8'>[</script>"
        "<script type=application/ld+json> </script>"
    )
    assert found.json_ld == [JSON_LD, "["]  # as they stand there, not checked
    assert json.loads(found.json_ld[0])["name"] == "a </b> &amp; b"
    assert found.text == "x"


def test_json_ld_has_limits(page):
    block = "<script type=application/ld+json>{}</script>".format
    found = page(block("x" * 60_000) + block("y" * 6_000) + block("z"))
    assert [text[0] for text in found.json_ld] == ["x", "z"]
    assert found.counts["json_ld_too_long"] == 1
    found = page(block("[]") * 30)
    assert (len(found.json_ld), found.counts["json_ld_too_long"]) == (20, 10)


def test_canonical_is_the_first_and_follows_the_base(page):
    found = page("<base href=/b/><link rel=Canonical href=' c '><link rel=canonical href=d>")
    assert found.canonical == "http://h0.example.com/b/c"
    assert page("<link rel=canonical href='http://[bad'>").canonical is None
    assert page("<link rel=canonical>").canonical is None
    later = page("<link rel=canonical href='javascript:x'><link rel=canonical href=y>")
    assert later.canonical == "http://h0.example.com/d/y"


def test_facts_of_a_page_are_stored_as_metadata(page):
    found = page(
        "<meta name=description content=d><link rel=canonical href=/c><h1>A</h1><h2>B</h2><h2>C</h2>"
        "<link rel=alternate hreflang=de href=/de>"
        "<script type=application/ld+json>{}</script><script type=application/ld+json>[]</script>"
    )
    assert metadata_of(found) == {
        "description": "d",
        "canonical": "http://h0.example.com/c",
        "hreflang:de": "http://h0.example.com/de",
        "h1": "A",
        "h2": "B\nC",
        "json-ld": "{}",
        "json-ld:2": "[]",
    }


LANGUAGES = [
    ("<html lang=de>", None, "de"),
    ("<html lang=de><meta http-equiv=content-language content=fr>", "es", "de"),
    ("<html lang=''><meta http-equiv=Content-Language content=fr>", "es", "fr"),
    ("<meta name=language content=it>", "es", "it"),
    ("<meta name=dc.language content=it>", "es", "it"),
    ("<meta http-equiv=content-language content='en, fr'>", "es", "es"),
    ("<html lang='<?php echo $lang ?>'>", "pt_BR", "pt"),
    ("<html lang=SV>", None, "sv"),
    ("<html lang=xx><meta http-equiv=content-language content=Swedish>", "es", "sv"),
    ("<html lang=iw>", None, "he"),
    ("<html xml:lang=nl>", "es", "nl"),
    ("<html lang=sv xml:lang=nl>", "es", "sv"),
    ("<p lang=de>", "es", "es"),
    ("<p>", "de, en", None),
    ("<p>", "x" * 100, None),
    ("<p>", None, None),
]


@pytest.mark.parametrize(("markup", "header", "expected"), LANGUAGES)
def test_declared_language(page, markup, header, expected):
    headers = [("content-language", header)] if header else []
    found = page(f"{markup}<p>x", headers=headers)
    settle_language(found)
    assert found.language == expected


# What Nutch's TestHTMLLanguageParser has, and what it must be; a list of several languages counts
# there, and here not.
SAID = {
    "sv": ["(SCHEME=ISO.639-1) sv", "(SCHEME=RFC1766) sv-FI", "(SCHEME=Z39.53) SWE",
           "Other (Svenska)", "SV", "SV charset=iso-8859-1", "SV-FI", "SV; charset=iso-8859-1",
           "SVE", "SWE", "SWEDISH", "Sv", "Svenska", "Swedish", "Swedish, svenska", "sv-SE",
           "sv_SE", "swe", "swe.SPR.", "sweden", "swedish,", "text/html; charset=sv-SE",
           "text/html; sv", "sv; Content-Language: sv"],
    "se": ["SE"],
    "sw": ["SW", "sw"],
    "zh": ["zh-Hant-TW", "chi", "zho", "Chinese", "\u4e2d\u6587"],
    "fr": ["fre", "fra", "Fran\u00e7ais", "francais", "FR-ca"],
    None: ["torp, stuga, uthyres, bed & breakfast", "xx", "tlh", "{{lang}}", "EN_US, SV, EN",
           "sv, be, dk", "English Swedish", "x" * 101],
}  # fmt: skip


@pytest.mark.parametrize(("code", "said"), [(code, s) for code in SAID for s in SAID[code]])
def test_languages_are_codes_of_iso_639_1_or_none(code, said):
    assert language_code(said) == code
    body = f'{{"inLanguage": "{said}"}}'.encode()
    for document, mime in (
        (f"<html lang='{said}'>x".encode(), "text/html"),
        (body, "application/json"),
    ):
        found = parse_document(Source(URL, document, f"{mime}; charset=utf-8"), ParseOptions())
        assert found.language == code
        kept = found.metas.get("language_declared")
        # JSON's is cut before.
        assert kept is None if said == code else " ".join(said.split()).startswith(kept)


def test_every_code_is_its_own_and_no_name_is_of_two():
    lines = (
        (pathlib.Path(language.__file__).parent / "languages.txt").read_text("utf-8").splitlines()
    )
    names = [n for line in lines if line[0] != "#" for n in line.replace(": ", ", ").split(", ")]
    assert len(names) == len({*names}) > 800
    codes = [line[:2] for line in lines if line[0] != "#"]
    assert [language_code(code) for code in codes] == codes
    assert len(codes) == 184


def test_the_items_of_a_feed_have_codes_too():
    feed = (
        "<rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel>"
        "<language>Deutsch</language><item><title>t</title><dc:language>de-AT</dc:language><link>http://h0.example.com/i</link></item></channel></rss>"
    )
    options = ParseOptions(feed_documents=True)
    found = parse_document(Source(URL, feed.encode(), "application/rss+xml"), options)
    ((_, item),) = found.parts
    assert (found.language, found.metas["language_declared"]) == ("de", "Deutsch")
    assert (item.language, item.metas["language_declared"]) == ("de", "de-AT")


GERMAN = "Dies ist ein Satz, an dem man die Sprache wohl erkennen kann. "


def test_language_is_detected_on_demand_where_none_is_declared():
    pytest.importorskip("py3langid")
    guess = ParseOptions(detect_language=True)

    def language(markup, content_type="text/html", options=guess):
        return parse_document(Source(URL, markup.encode(), content_type), options).language

    assert language(GERMAN) == "de"
    assert language(GERMAN, "text/plain") == "de"
    assert language("The cat sat on the mat, and the dog went out of the house.") == "en"
    assert language(f"<html lang=nl>{GERMAN}") == "nl"
    assert language("1 2 3 4 5 6 7 8 9 10 11 12 13 14") is None
    assert language("ja") is None
    assert language(GERMAN, options=ParseOptions()) is None


def test_a_missing_package_is_an_error_at_the_start(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", None)  # as if it were not installed
    with pytest.raises(
        ValueError, match=r"--detect_language needs py3langid: .*nutbeam\[language\]"
    ):
        ParseOptions(detect_language=True)


def document(markup, headers=(), **options):
    """Returns what is stored of a page, and the counts."""
    row = {
        "key": to_key(URL), "fetch_status": FETCH_SUCCESS, "fetch_time": 1_750_863_600_000,
        "content_type": "text/html", "body": markup.encode(),
        "headers": [{"name": name, "value": value} for name, value in headers],
    }  # fmt: skip
    pages = conform(pa.Table.from_pylist([row]), PAGES)
    seeds = seeds_of(pl.Series(["com.example.h0"]))
    documents, counts = documents_of(pages, ParseRules(DocumentOptions(**options), seeds))
    (found,) = documents.to_pylist()
    return found, counts


def test_documents_hold_it_and_the_fetch_time_decides():
    found, counts = document(
        "<h1>A</h1><link rel=alternate hreflang=de href=/de>" + "<h2>x</h2>" * 100,
        [("X-Robots-Tag", "bot: unavailable_after: 2025-06-24"), ("Content-Language", "fr")],
        agent_name="Other",
    )
    metadata = dict(found["metadata"])
    assert (metadata["h1"], metadata["hreflang:de"]) == ("A", "http://h0.example.com/de")
    assert (found["language"], found["directives"]) == ("fr", [])
    assert counts["too_many_headings"] == 1
    hidden, _ = document("<h1>A</h1>", [("X-Robots-Tag", "unavailable_after: 2025-06-24")])
    assert (hidden["directives"], hidden["text"]) == (["noindex"], "")
    early, _ = document("<h1>A</h1>", [("X-Robots-Tag", "unavailable_after: 2025-06-26")])
    assert (early["directives"], early["text"]) == ([], "A")
