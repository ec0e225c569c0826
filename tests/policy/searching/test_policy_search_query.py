# ruff: noqa: RUF001 - letters that look alike are what is tested
import pytest

from nutbeam.policy.searching.search_query import Clause, parse_search
from nutbeam.web.urls.domains import sites_of


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("beam", [Clause("", "beam")]),
        ('"direct runner"', [Clause("", "direct runner", phrase=True)]),
        ('beam -"old runner"', [Clause("", "beam"), Clause("", "old runner", True, True)]),
        ("x site:WWW.Example.com", [Clause("", "x"), Clause("site", "www.example.com")]),
        ("site:https://example.com/", [Clause("site", "example.com")]),
        ("site:bücher.example", [Clause("site", "xn--bcher-kva.example")]),
        ("site:faß.example", [Clause("site", "xn--fa-hia.example")]),  # IDNA 2008, as in browsers
        ("site:B%C3%9Ccher.example.", [Clause("site", "xn--bcher-kva.example")]),
        ("site:https://ｂücher.example/ inurl:Käse", [
            Clause("site", "xn--bcher-kva.example"), Clause("inurl", "Käse")]),
        ("type:rss", [Clause("type", "application/rss+xml")]),
        ("ｓｉｔｅ：a.com　“x” ﬁ\u00ads e\u0301", [
            Clause("site", "a.com"), Clause("", "“x”"), Clause("", "fis"), Clause("", "é")]),
        ("type:pdf -type:.DOCX", [Clause("type", "pdf"), Clause(
            "type", "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            excluded=True)]),
        ("lang:de-AT", [Clause("lang", "de")]),
        ("AFTER:2026-01-31", [Clause("after", "1769817600000")]),
        ('intitle:"a b" inurl:x', [Clause("intitle", "a b", phrase=True), Clause("inurl", "x")]),
        ("l'hiver dell’acqua don't d'a", [Clause("", t) for t in ("hiver", "acqua", "don't", "d'a")]),
        ("title:x FILETYPE:pdf text:y author:z since:2026", [
            Clause("intitle", "x"), Clause("type", "pdf"), Clause("", "y"), Clause("", "z"),
            Clause("after", "1767225600000")]),
        ("title: date: 12:30 a\x00b", [Clause("", t) for t in ("title:", "date:", "12:30", "a", "b")]),
        ("http://a.com/ c++ a-b", [Clause("", t) for t in ("http://a.com/", "c++", "a-b")]),
    ],
)  # fmt: skip
def test_a_query_is_read(text, clauses):
    assert list(parse_search(text)) == clauses


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a "b', "a quotation mark is not closed in the query 'a \"b'"),
        ("", "a query must say what to find, got ''"),
        ("-x -site:a.com", "a query must say what to find, got '-x -site:a.com'"),
        ("a site:", "site: needs a value, as in site:example.com"),
        ("site:a%.com", "site: takes a host or a domain, got 'a%.com'"),
        ("site:example.com/docs", "site: takes a host or a domain, got 'example.com/docs'"),
        ("lang:german", "lang: takes a code of two or three letters, got 'german'"),
        ("after:soon", "after: takes a date, such as 2026, 2026-01 or 2026-01-31, got 'soon'"),
        ("after:2026-02-30", "after: takes a date, such as 2026, 2026-01 or 2026-01-31, got '2026"),
        ("a " * 40, "a query has at most 32 words and phrases, got 40"),
        ("a" * 1001, "a query has at most 1,000 characters, got 1,001"),
    ],
)  # fmt: skip
def test_a_wrong_query_is_one_line(text, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is compared
        parse_search(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_host_is_found_by_the_names_above_it():
    assert sites_of("a.b.example.com") == ["a.b.example.com", "b.example.com", "example.com"]
    assert sites_of("") == [""]
    assert sites_of("[::1]") == ["[::1]"]
