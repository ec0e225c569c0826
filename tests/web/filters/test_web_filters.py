import pathlib

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_patterns import SLOW, STALLS

from nutbeam.web.filters.list_filters import PrefixFilter
from nutbeam.web.filters.regex_filter import RegexFilter, exclude_filter, include_filter
from nutbeam.web.filters.verdicts import FilterChain
from nutbeam.web.rules import url_rules as rules_module

SHIPPED = pathlib.Path(rules_module.__file__).with_name("regex-urlfilter.txt").read_text()
shipped = RegexFilter(SHIPPED, "regex-urlfilter.txt")


def in_column(rules, urls):
    """Which URLs are taken; that the column's verdicts are those of single URLs is checked."""
    said = rules.decide_column(pl.Series(urls, dtype=pl.String))
    verdicts = list(zip(*said, strict=True))
    assert verdicts == [
        tuple(rules.decide(url)) if url is not None else (False, 0, False) for url in urls
    ]
    return said.accept.to_list()


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("http://foo.com/", True),
        ("http://foo.com/a.html?x=1&y=2", True),
        ("https://foo.com/a!b@c=d*e", True),
        ("file:///a/b", True),  # whether it is taken is for the option schemes to say
        ("ftp://foo.com/", True),
        ("mailto:a@foo.com", False),
        ("javascript:void(0)", False),
        ("http://foo.com/a.gif", False),
        ("http://foo.com/a.JPeG", False),
        ("http://foo.com/a.css?v=3", False),
        ("http://foo.com/a.js", False),
        ("http://foo.com/a.tar.gz", False),
        ("http://foo.com/sitemap.xml.gz", True),
        ("http://foo.com/a.xml.gz.exe", False),
        ("http://foo.com/a.woff2?x", False),
        ("http://foo.com/get?file=a.zip", False),
        ("http://foo.com/a.gif/page", True),
        ("http://foo.com/a.gift", True),
        ("http://foo.com/a.json", True),
        ("http://foo.com/a.pdf", True),
        ("http://foo.com/a/a/a/a/a/x", True),
        ("http://foo.com/a/b/a/c/x", True),
        ("http://foo.com/2011/11/11/x", True),
    ],
)
def test_shipped_file(url, accepted):
    assert shipped.decide(url).accept is accepted
    assert in_column(shipped, [url]) == [accepted]


URLS = ["http://foo.com/docs/", "http://foo.com/docs/a1", "http://foo.com/b22", None, ""]


def test_patterns_of_options():
    # The last two are no column patterns.
    for more in ([], [r"(b)2\1"], [f"(?<={'x' * 3})y"]):
        assert in_column(include_filter(["/docs/", "[0-9]{2,}$", *more]), URLS) == [
            True, True, True, False, False
        ]  # fmt: skip
        assert in_column(exclude_filter(["a1", "[0-9]{2,}$", *more]), URLS) == [
            True, False, False, False, True
        ]  # fmt: skip
    chain = FilterChain([exclude_filter(["a[0-9]"]), include_filter(["/docs/"])])
    judged = chain.judge_column(pl.Series(URLS))
    assert judged.rows() == [
        (None, "--include:1"),
        ("excluded", "--exclude:1"),
        ("not_included", "--include"),
        (None, None),
        ("not_included", "--include"),
    ]
    assert [chain.judge(url)[:2] for url in URLS if url is not None] == [
        row for url, row in zip(URLS, judged.rows(), strict=True) if url is not None
    ]


def test_a_pattern_that_needs_too_long_refuses_the_url():
    slow = SLOW.replace("foo", "stalls")
    for made in (include_filter([STALLS]), exclude_filter([STALLS])):
        assert FilterChain([made]).judge(slow)[0] == "filter_timeout"
        assert made.decide_column(pl.Series([slow])).slow.to_list() == [True]


def test_the_first_rule_that_is_found_decides():
    rules = RegexFilter("# comment\n\n -x\n-foo\n+o+.com\r\n-.\n", "f")
    assert [str(rule) for rule in rules.rules] == ["-foo", "+o+.com", "-."]
    assert not rules.decide("http://foo.com/").accept
    assert rules.decide("http://boo.com/").accept
    assert rules.decide("http://bar.org/") == (False, 6, False)
    assert rules.rule(6) == "-."


def test_without_a_matching_rule_a_url_is_rejected():
    assert RegexFilter("+foo", "f").decide("http://bar.com/") == (False, 0, False)
    assert RegexFilter("+foo", "f").rule(0) == "no rule accepts it"
    assert not RegexFilter("+foo", "f").decide("http://bar.com/").accept
    assert not RegexFilter("", "f").decide("http://bar.com/").accept


SECTIONS = "> Foo.org\n-/private/\n> www.bar.com\n-secret\n<\n+.\n"


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("http://foo.org/private/x", False),
        ("http://a.b.foo.org:8080/private/x", False),
        ("http://foo.org/x", True),
        ("http://other.org/private/x", True),
        ("http://www.bar.com/secret", False),
        ("http://bar.com/secret", True),
    ],
)
def test_sections(url, accepted):
    rules = RegexFilter(SECTIONS, "f")
    assert rules.decide(url).accept is accepted
    assert in_column(rules, [url]) == [accepted]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+.\n-(a\n", r"my.txt:2: a rule must be a regular expression, got '-\(a': missing \)"),
        ("http://foo.com/", "my.txt:1: a rule must begin with .* got 'http://foo.com/'"),
        ("\n+[z-a]", "my.txt:2: "),
        (r"+(?P<n>a)", "my.txt:1: "),
    ],
)
def test_bad_rules(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        RegexFilter(text, "my.txt")
    assert "\n" not in str(caught.value)


words = (
    st.sampled_from(["/a", "/b", "/", "a", "B", "b", ".gif", ".CSS", "?", "x=1", "&"])
    | st.sampled_from(["&&", ":", "//", "http:", ".", "sid=", "_", "-", "%20", "|", "<"])
    | st.sampled_from(["foo.org", "{2}", "[", "]", "^", "$", "\\"])
)
PATTERNS = (
    [rule.pattern.text for rule in shipped.rules]
    + [
        r"(?<!:)/{2,}",
        r"(?<![?.])[?.]+$",
        r"(a|b)x\1",
        r"([^/]/)[ab]\1",
        r"a(?i)b|B$",
        "(?i:a)b",
        r"\b_?sid=.*?(&|$)",
    ]
    + [r"^http:[^?]*$", r"[\]\[^]", r"[^\w/]{2}", r"a{2}b?", r"(?<!a)b", r"[&|]", r"\{2\}|\$"]
    + [r"(?<=/)a", r"(a)(?:b)\1", r"(?i)(a)b\1", r"\Q.\E", r"a++", "[a-z&&[^b]]", r"\S\B."]
)


@given(st.lists(words, max_size=10).map("".join))
@settings(max_examples=60)
def test_columns_are_filtered_as_single_urls_are(url):
    for number, text in enumerate(PATTERNS):
        rules = RegexFilter(f"+{text}", f"pattern {number}")
        assert in_column(rules, [url]) == [rules.decide(url).accept], text


def test_nulls_are_not_taken():
    urls = [None, "http://foo.com/"]
    assert in_column(shipped, urls) == [False, True]
    assert in_column(RegexFilter("+(?=h)", "f"), urls) == [False, True]


def test_a_url_that_is_not_utf_8_is_judged_too():
    url = "http://foo.com/\udcff"  # as Python has bytes of a command line that are not UTF-8
    assert PrefixFilter("http:", "p").decide(url).accept
    assert shipped.decide(url).accept
