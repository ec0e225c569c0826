"""JSON, XML, XHTML and the types that are read as plain text."""

import time

import pytest

from nutbeam.web.pages.page import NoParser, ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document


def read(text, header, headers=()):
    body = text if isinstance(text, bytes) else text.encode()
    return parse_document(Source("http://example.com/d/", body, header, headers), ParseOptions())


@pytest.mark.parametrize(
    "header",
    ["text/plain", "text/csv", "text/tab-separated-values", "text/markdown; charset=utf-8"],
)
def test_texts(header):
    page = read("# Words\n\n<b>, [a](http://example.com/a)\n", header)
    assert page.text == "# Words\n\n<b>, [a](http://example.com/a)"
    assert page.hrefs == ["http://example.com/a"]


@pytest.mark.parametrize(
    ("text", "hrefs"),
    [
        ("a,http://a/1,http://a/2\n", ["http://a/1", "http://a/2"]),
        ('http://a/1,"http://a/2,3"\n"x ""y"", z",http://a/4', ["http://a/1", "http://a/2,3", "http://a/4"]),
        ("http://a/1;2,http://a/3;4", ["http://a/1;2", "http://a/3;4"]),
        ("name;size\nhttp://a/1;0,5\nhttp://a/2,3;http://a/4", ["http://a/1", "http://a/2,3", "http://a/4"]),
        ('"never closed,http://a/1,http://a/2', ["http://a/1", "http://a/2"]),
    ],
    ids=["commas", "quotes", "semicolons-in-urls", "semicolons", "open"],
)  # fmt: skip
def test_links_in_values(text, hrefs):
    page = read(text, "text/csv; charset=utf-8")
    assert (page.text, page.hrefs) == (text.strip(), hrefs)


URLS = [
    "http://a.example/x(1)", "http://a.example/Käse/b", "http://münchen.example/ж?q=ж",
    "http://a.example/wiki/言語", "http://a.example/e\u0301", "http://[::1]:8080/x",
    "http://a.example/?a[]=1&b[x][y]=2", "http://a.example/O'Reilly", "http://a.example/50%off",
    f"http://a.example/{'x' * 2000}", "http://a.example/b{c}[1]", "http://a.example/日本",
    "http://a.example/A_(B_(C))", "http://a.example/A\u2013B", "http://a.example/ジョン・スミス",
    "http://a.example/web/http://b.example/",
]  # fmt: skip
IN_DOCUMENTS = {
    "text/plain; charset=utf-8": "{}\n",
    "text/csv; charset=utf-8": 'name,url\n"x","{}"\n',
    "application/json": '{{"url": "{}"}}',
    "application/xml": "<a><b>{}</b><c/></a>",
}


@pytest.mark.parametrize("header", IN_DOCUMENTS)
@pytest.mark.parametrize("url", URLS)
def test_a_value_that_is_a_url_is_whole(url, header):
    text = IN_DOCUMENTS[header].format(url.replace("&", "&amp;") if "xml" in header else url)
    assert read(text, header).hrefs == [url]


@pytest.mark.parametrize("header", IN_DOCUMENTS)
@pytest.mark.parametrize("end", ["Apple_Inc.", "Yahoo!", "What?", "D.C.;", "x:"])
def test_punctuation_at_the_end_of_a_value_belongs_to_its_url_but_not_in_a_text(end, header):
    url = f"http://a.example/{end}"
    is_text = header.startswith("text/plain")
    assert read(IN_DOCUMENTS[header].format(url), header).hrefs == [
        url.rstrip(".!?;:") if is_text else url
    ]
    sentence = f"see {url}, or {url}"
    assert read(IN_DOCUMENTS[header].format(sentence), header).hrefs == [url.rstrip(".!?;:")] * 2


@pytest.mark.parametrize("header", IN_DOCUMENTS)
@pytest.mark.parametrize(
    ("text", "hrefs"),
    [
        ("http://a.example/x\uff0c请看这里。", ["http://a.example/x"]),
        ("http://a.example/abc这是说明文字", ["http://a.example/abc"]),
        ("http://a.example/y。下一句话。", ["http://a.example/y"]),
        ("http://a.example/z\uff08说明\uff09", ["http://a.example/z"]),
        ("http://a.example/k“引用”", ["http://a.example/k"]),
        ("http://a.example/k・説明", ["http://a.example/k"]),
        ("(http://a.example/j)和其他", ["http://a.example/j"]),
        ("http://a.example/h),(http://a.example/i)", ["http://a.example/h", "http://a.example/i"]),
        ("http://a.example/e—dash", ["http://a.example/e"]),
        ("http://a.example/f…more", ["http://a.example/f"]),
        ("http://a.example/p|Title", ["http://a.example/p"]),
        ("http://a.example/q`", ["http://a.example/q"]),
        ("http://a.example/r}", ["http://a.example/r"]),
        ("http://a.example/s(", ["http://a.example/s"]),
        ("http://a.example/t[)]", ["http://a.example/t"]),
        ("http://a.example/x|http://a.example/y", ["http://a.example/x", "http://a.example/y"]),
        ("http://a.example/x)http://a.example/y(", ["http://a.example/x", "http://a.example/y"]),
    ],
)  # fmt: skip
def test_a_url_at_the_start_of_a_value_ends_before_the_text(text, hrefs, header):
    # A comma ends the value of CSV, unless it is in quotes, as here.
    assert read(IN_DOCUMENTS[header].format(text), header).hrefs == hrefs


@pytest.mark.parametrize(
    "part", ["http://a/(", "(", ")", "[a]", "{", "http://a/b", "日a", "a:", "http://a/x|", "'"]
)
def test_urls_in_a_long_line_take_linear_time(part):
    start = time.process_time()
    for text in (f"http://a.example/{part * 50_000}", f"{part * 50_000} "):
        read(text, "text/plain; charset=utf-8")
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("text", "hrefs"),
    [
        ("see http://a/x(1) and (http://a/y), or [http://a/z].", ["http://a/x(1)", "http://a/y", "http://a/z"]),
        ("see http://a/Käse, “http://a/é” and http://a/x…", ["http://a/Käse", "http://a/é", "http://a/x"]),
        ("[a](http://a/x)[b](http://a/b_(c)) and http://a/x[1]", ["http://a/x", "http://a/b_(c)", "http://a/x"]),
        ("(see\nhttp://a/x)\n- http://a/日本", ["http://a/x", "http://a/日本"]),
        ("请看 http://a/b了解更多。http://a/日本。好", ["http://a/b", "http://a/日本"]),
        ("http://a/x's page, 'http://a/y'", ["http://a/x", "http://a/y"]),
        ("http://a/x,y,http://a/z;https://a/w,", ["http://a/x,y", "http://a/z", "https://a/w"]),
    ],
    ids=["brackets", "quotes", "markdown", "lines", "without-spaces", "apostrophes", "lists"],
)  # fmt: skip
def test_urls_in_running_text(text, hrefs):
    assert read(text, "text/plain; charset=utf-8").hrefs == hrefs


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("text/html", ("<title>a\x1b[2J b\x0c\x1fc</title><meta name=author content='d\x07'><h1>e&#x9;\x7f</h1>"
         "<a href='x\x07'>f\x9b\x08</a>")),
        ("text/plain", "a\x1b[2J\x07\x9b\n\x85b\ufffe"),
        ("application/json", '{"title": "a\\u001b[2J", "content": "b\\u0007\\u009b"}'),
        ("application/rss+xml", ("<rss><channel><title>a\x1b</title><item><description>b&lt;p>&amp;#7;&amp;#27;[2J"
         "</description></item></channel></rss>")),
    ],
)  # fmt: skip
def test_no_text_has_control_characters(header, body):
    page = parse_document(
        Source("http://a.com/", body.encode(), f"{header}; charset=utf-8"), ParseOptions()
    )
    texts = [
        page.title,
        *page.text.split("\n"),
        *page.anchors,
        *page.metas.values(),
        *sum(page.headings, ()),
    ]
    assert page.text
    assert [text for text in texts if not text.isprintable()] == []
    if header == "text/html":
        assert page.title == "a[2J b c"
        assert page.hrefs == ["x\x07"]  # a link stays as it is


def test_texts_and_titles_have_no_nul():
    text = "A few words, and more of them, with one \0 in so many others. "
    assert read(text, "text/plain").text == text.replace("\0", "").strip()
    page = read('{"title": "T\\u0000t"}', "application/json")
    assert (page.title, page.text) == ("Tt", "Tt")


@pytest.mark.parametrize(
    "header",
    ["application/json", "application/ld+json", "text/json", "application/feed+json",
     "application/vnd.foo+json"],
)  # fmt: skip
def test_json(header):
    page = read(
        '{"@type": "Article", "headline": "T  t", "inLanguage": "fr", "n": 1, "ok": true, "l": '
        '["caf\\u00e9", null, {"url": "http:\\/\\/example.com\\/a"}], "see": "/b"}', header,
    )  # fmt: skip
    assert (page.title, page.language) == ("T t", "fr")
    assert page.text == "Article\nT t\nfr\ncafé\nhttp://example.com/a\n/b"
    assert page.hrefs == ["http://example.com/a"]


SEPARATORS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_json_per_line_is_only_cut_at_newlines(separator):
    page = read(f'{{"title": "A{separator}a"}}\r\n{{"x": "B{separator}b"}}\n', "application/json")
    assert (page.title, page.text) == ("A a", "A a\nB b")


def test_json_per_line():
    page = read('{"title": "A", "x": "1"}\n\n{"title": "B"}\n', "application/x-ndjson")
    assert (page.title, page.text) == ("A", "A\n1\nB")


@pytest.mark.parametrize("end", ['{"title": "C', "x", '{"x": "C"}}\n{"x": "D"}\n'])
def test_json_per_line_is_read_up_to_a_mistake(end):
    page = read('{"title": "A", "x": "1"}\n{"title": "B"}\n' + end, "application/json")
    assert (page.title, page.text, page.dropped["malformed_json"]) == ("A", "A\n1\nB", 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "malformed_json"),
        ("", "malformed_json"),
        ("<p>", "malformed_json"),
        ('{"b"\n{"a":1}\n', "malformed_json"),
        ("[" * 1_000_000, "too_complex"),
        ("[" * 300 + "]" * 300, "too_complex"),
        ('{"a":' * 100_000, "too_complex"),
    ],
    ids=["cut", "empty", "html", "line", "deep-cut", "deep", "deep-objects"],
)
def test_json_that_cannot_be_read(text, reason):
    with pytest.raises(ParseFailed) as failed:
        read(text, "application/json")
    assert failed.value.reason == reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'["a", {"9" * 1_000_000}, 1e{"9" * 1000}, NaN]', "a"),
        ('["\\ud800 a", "\\ud83d\\ude00"]', "? a\n😀"),
        ('["a\tb\nc"]', "a b\nc"),
        ('["a\\u0000b", "\\u0000 c"]', "ab\nc"),
        ('﻿["a"]', "a"),
        ('["a"]'.encode("utf-16"), "a"),
    ],
    ids=["numbers", "surrogates", "controls", "nul", "mark", "utf-16"],
)
def test_odd_json(text, expected):
    assert read(text, "application/json").text == expected


def test_robots_header_of_json():
    def said(what):
        return read(
            '{"title": "http://example.com/a"}', "application/json", [("x-robots-tag", what)]
        )

    assert (said("noindex").title, said("noindex").text) == ("", "")
    assert said("noindex").hrefs == ["http://example.com/a"]
    assert (said("nofollow").hrefs, said("nofollow").dropped) == ([], {"page_nofollow": 1})


@pytest.mark.parametrize(
    "header", ["application/xml", "text/xml; charset=utf-8", "application/vnd.foo+xml"]
)
def test_xml(header):
    page = read(
        "<?xml version='1.0'?><!DOCTYPE book SYSTEM 'book.dtd'><book xml:lang='en'>"
        "<title>A <i>b</i></title><p>caf&#233; &amp; caf&eacute;&nbsp;&unknown;"
        "<![CDATA[ <raw> ]]></p><x:a xmlns:x='u' href='q'/>see http://example.com/a.</book>", header,
    )  # fmt: skip
    assert (page.title, page.language) == ("A b", "en")
    assert page.text == "A\nb\ncafé & café <raw>\nsee http://example.com/a."
    assert page.hrefs == ["q", "http://example.com/a"]


def test_numbers_of_windows_1252_in_xml_are_its_characters():
    page = read(
        "<a><title>It&#146;s</title><b href='&#x92;'/>&#133;<![CDATA[&#146;]]></a>", "text/xml"
    )
    assert (page.title, page.text, page.hrefs) == ("It\u2019s", "It\u2019s\n…&#146;", ["\u2019"])


def test_svg_and_rdf():
    page = read(
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>"
        "<title>T</title><style>a{}</style><a xlink:href='/a'><text>words</text></a></svg>",
        "image/svg+xml",
    )
    assert (page.title, page.text, page.hrefs) == ("T", "T\nwords", ["/a"])
    page = read(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
        "<a rdf:about='/x'><b rdf:resource='/y'/>words</a></rdf:RDF>",
        "application/rdf+xml",
    )
    assert (page.text, page.hrefs) == ("words", ["/x", "/y"])
    page = read(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:d='http://purl.org/"
        "dc/elements/1.1/'><a rdf:about='/x'><d:title>A</d:title><d:title>B</d:title></a></rdf:RDF>",
        "text/rdf",
    )
    assert (page.title, page.text) == ("A", "A\nB")


@pytest.mark.parametrize(
    "inner",
    ["<feed>b</feed>", "<html>b</html>", "<![CDATA[<?xml version='1.0'?>b]]>", "<!-- <rss> -->b"],
)
def test_xml_begins_with_its_root_element(inner):
    text = f"<data><title>a</title>{inner}<c>d</c></data>"
    page = read(text, "application/xml")
    assert (page.title, page.text.split()[0], page.text.split()[-1]) == ("a", "a", "d")


def test_xml_with_a_mistake():
    page = read("<a>words<b>more</a>and", "text/xml")
    assert (page.text, page.dropped) == ("words\nmore", {"malformed_xml": 1})
    with pytest.raises(ParseFailed) as failed:
        read("<", "application/xml")
    assert failed.value.reason == "malformed_xml"


def xhtml(head, body, attributes=""):
    return (
        "<?xml version='1.0' encoding='utf-8'?><!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict"
        f"//EN' 'x'><html xmlns='http://www.w3.org/1999/xhtml' {attributes}><head>{head}</head>"
        f"<body>{body}</body></html>"
    )


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        ("<script src='s.js'/><title>T</title>", "words", "words"),
        ("<script src='s.js' /><title>T</title><style/>", "words<br/>more", "words\nmore"),
        (
            "<title>T</title>",
            "<p><a id='x'/>one</p><div/><iframe src='f'/><textarea/>two",
            "one\n\ntwo",
        ),
        ("<title>T</title>", "<p>1 <![CDATA[< 2 & <b>]]> 3</p>", "1 < 2 & <b> 3"),
        (
            "<title>T</title>",
            "<script>//<![CDATA[\nif (a<b) w('<b/>')\n//]]></script>words",
            "words",
        ),
        ("<title>T</title>", "<!-- <div/> -->words", "words"),
        ("<title>T</title>", "<a href='a/b/'>words</a><img alt='>/>' src='i'/>", "words>/>"),
        (
            "<title>T</title>",
            "<p>not well-formed & <b>all the same",
            "not well-formed & all the same",
        ),
    ],
    ids=["script", "style", "empty", "cdata", "script-cdata", "comment", "slashes", "mistakes"],
)
def test_xhtml(head, body, expected):
    for header in (
        "application/xhtml+xml", "application/vnd.wap.xhtml+xml", "application/xml", None,
    ):  # fmt: skip
        page = read(xhtml(head, body), header)
        assert (page.title, page.text) == ("T", expected)


def test_xhtml_has_links_language_and_charset():
    text = xhtml("<title/><script src='s'/>", "<a id='x'/><a href='é'>é</a>", "xml:lang='de'")
    text = text.replace("utf-8", "iso-8859-1")
    page = read(text.encode("latin-1"), "application/xhtml+xml")
    assert (page.hrefs, page.anchors) == (["s", "é"], ["", "é"])
    assert (page.language, page.charset, page.text) == ("de", "windows-1252", "é")
    assert page.soup.find("script").string is None


@pytest.mark.parametrize("header", ["application/xhtml+xml", "application/xml", None])
def test_xhtml_with_a_prefix(header):
    page = read(
        "<?xml version='1.0'?><x-y:html xmlns:x-y='http://www.w3.org/1999/xhtml' xml:lang='fr'>"
        "<x-y:head><x-y:script src='s'/><x-y:title>T</x-y:title>"
        "<x-y:meta name='robots' content='noarchive'/></x-y:head>"
        "<x-y:body>a <x-y:a href='b'>c</x-y:a></x-y:body></x-y:html>",
        header,
    )
    assert (page.title, page.text, page.hrefs) == ("T", "a c", ["s", "b"])
    assert (page.directives, page.language) == ({"noarchive"}, "fr")


def test_html_that_looks_like_xhtml_stays_html():
    # As browsers read it: the script does not end, so the rest of the page is script.
    page = read(xhtml("<title>T</title><script src='s.js'/>", "words"), "text/html")
    assert (page.title, page.text) == ("T", "")


@pytest.mark.parametrize(
    ("text", "header", "found"),
    [
        ("<!doctype html><p>x", "application/octet-stream", "text/html"),
        ("<!doctype html><p>x", None, "text/html"),
        ("<html><p>x", "application/pdf", "text/html"),
        ("<rss version='2.0'><channel><title>x</title></channel></rss>", "text/xml", "application/rss+xml"),
        (xhtml("", "x"), "application/xml; charset=utf-8", "application/xhtml+xml"),
        ("<!doctype html><p>x", "Text/HTML; charset=utf-8", None),
        ("x", "text/plain", None),
    ],
)  # fmt: skip
def test_a_type_that_only_the_bytes_show_is_metadata(text, header, found):
    assert read(text, header).metas.get("type_found") == found


@pytest.mark.parametrize(
    "header",
    ["image/png", "text/css", "text/javascript", "video/mp4", "application/x-thing", "a/b+c"],
)
def test_types_without_a_parser(header):
    with pytest.raises(NoParser) as failed:
        read("x", header)
    assert failed.value.reason == "no_parser"
