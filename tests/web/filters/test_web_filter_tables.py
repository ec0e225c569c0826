"""The URL filters, row by row, and that columns are filtered as single URLs are."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import assert_refused

from nutbeam.web.filters.list_filters import (
    DomainFilter,
    FastFilter,
    FastLimits,
    PrefixFilter,
    SuffixFilter,
)
from nutbeam.web.filters.regex_filter import RegexFilter, Validator
from nutbeam.web.patterns.brics import compile_automaton


def takes(rules, url):
    """Whether a URL is taken, alone and in a column, by the same rule."""
    said = rules.decide_column(pl.Series([None, url], dtype=pl.String))
    alone = rules.decide(url)
    assert list(zip(*said, strict=True)) == [(False, 0, False), tuple(alone)]
    assert rules.rule(alone.line)
    return alone.accept


def automaton(text):
    return RegexFilter(text, "a.txt", compile_automaton, "dk.brics expression")


# The file that Nutch ships, in both languages.
NUTCH_REGEX = """
-^(?:file|ftp|mailto):
-(?i)\\.(?:gif|jpg|png|ico|css|sit|eps|wmf|zip|ppt|mpg|xls|gz|rpm|tgz|mov|exe|jpeg|bmp|js)$
-[?*!@=]
-.*(/[^/]+)/[^/]+\\1/[^/]+\\1/
+.
"""
NUTCH_AUTOMATON = """
-(file|ftp|mailto):.*
-.*\\.(gif|GIF|jpg|JPG|png|PNG|ico|css|zip|exe|js)
-.*[?*!@=].*
+.*
"""


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("file:///etc/passwd", False),
        ("ftp://foo.com/", False),
        ("mailto:a@foo.com", False),
        ("http://foo.com/a.gif", False),
        ("http://foo.com/a.GIF", False),
        ("http://foo.com/a.js", False),
        ("http://foo.com/a.gif/x", True),
        ("http://foo.com/a?b", False),
        ("http://foo.com/a=b", False),
        ("http://foo.com/a@b", False),
        ("http://foo.com/a!b", False),
        ("http://foo.com/a*b", False),
        ("http://foo.com/", True),
    ],
)
@pytest.mark.parametrize("language", ["regex", "automaton"])
def test_nutchs_own_rules(language, url, accepted):
    made = RegexFilter(NUTCH_REGEX, "r") if language == "regex" else automaton(NUTCH_AUTOMATON)
    assert takes(made, url) is accepted


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("http://foo.com/a/x/a/y/a/", False),
        ("http://foo.com/a/x/a/y/b/", True),
        ("http://foo.com/a/a/a/", True),
    ],
)
def test_nutchs_rule_of_repeated_segments(url, accepted):
    assert takes(RegexFilter(NUTCH_REGEX, "r"), url) is accepted


PREFIXES = "# comment\nhttp://\nhttps://\n\nfile://\nftp://\n"


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("http://www.example.com/", True),
        ("https://www.example.com/", True),
        ("ftp://www.example.com/", True),
        ("file://www.example.com/", True),
        ("abcd://www.example.com/", False),
        ("www.example.com/", False),
        ("", False),
    ],
)
def test_prefix(url, accepted):
    assert takes(PrefixFilter(PREFIXES, "p.txt"), url) is accepted
    assert not takes(PrefixFilter("", "p.txt"), url)


SUFFIX_URLS = [
    ("test.gif", "ny ny n"),
    ("TEST.GIF", "yn ny y"),
    ("test.JPG", "yn ny y"),
    ("test.html", "yn yn y"),
    ("test.html?q=abc.js", "ny ny y"),
    ("test.js?foo=bar&baz=bar#12333", "yn yn n"),
]
SUFFIX_MODES = ["+", "-", "+I", "-I", "+P"]
SUFFIX_ROWS = [
    (mode, url, answer == "y")
    for url, answers in SUFFIX_URLS
    for mode, answer in zip(SUFFIX_MODES, answers.replace(" ", ""), strict=True)
]


@pytest.mark.parametrize(("mode", "url", "accepted"), SUFFIX_ROWS)
def test_suffix(mode, url, accepted):
    rules = SuffixFilter(f"{mode}\n.gif\n.jpg\n# comment\n .js \n", "s.txt")
    assert takes(rules, f"http://www.example.com/{url}") is accepted


def test_suffix_flags_may_stand_in_lines_of_their_own_as_nutchs_file_has_them():
    rules = SuffixFilter("+I\n+P\n.gif\n", "s.txt")
    assert not takes(rules, "http://foo.com/a.GIF?x")
    assert takes(rules, "http://foo.gif")
    assert takes(rules, "no url")
    assert not takes(rules, "no-url.gif")
    assert not takes(SuffixFilter(".gif", "s.txt"), "http://foo.com/")


DOMAINS = "net\napache.org\nbe\nwww.yahoo.com\n# a comment\n"


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("http://lucene.apache.org", True),
        ("http://hadoop.apache.org", True),
        ("http://www.apache.org", True),
        ("http://www.foobar.net", True),
        ("http://www.foobar.be", True),
        ("http://www.yahoo.com", True),
        ("http://www.google.com", False),
        ("http://mail.yahoo.com", False),
        ("http://www.adobe.com", False),
    ],
)
@pytest.mark.parametrize("deny", [False, True], ids=["domain", "domaindenylist"])
def test_domains(deny, url, listed):
    rules = DomainFilter(DOMAINS, "d.txt", deny)
    assert takes(rules, url) is (listed != deny)
    assert takes(DomainFilter("# none\n", "d.txt", deny), url)


def test_domains_in_other_spellings():
    rules = DomainFilter("CO.UK\nFoo.com\njp", "d.txt")
    assert takes(rules, "http://www.bbc.co.uk/")
    assert takes(rules, "http://user@WWW.FOO.COM:8080/")
    assert takes(rules, "http://foo.co.jp/"), "a top-level domain has all below it"
    assert not takes(rules, "http://foo.com.evil.org/")
    assert not takes(rules, "http://10.0.0.1/")
    assert not takes(rules, "mailto:someone@foo.com")
    for deny in (False, True):
        assert not takes(DomainFilter("x.com", "d", deny), "no url")
        assert not takes(DomainFilter("x.com", "d", deny), "file:///x")


FAST = """
# a comment
Host www.example.org
  DenyPath /path/to/be/excluded
  DenyPath /some/other/path/excluded   # and why

# Deny everything from *.example.com and example.com
Domain example.com
  DenyPath .*

Domain example.org
  DenyPathQuery /resource/.*?action=exclude

Domain .
  DenyPath (?i)\\.exe$
  DenyPath (?<=secret)/x
"""


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://www.example.org/path/to/be/excluded", 4),
        ("http://www.example.org/a/some/other/path/excluded/b", 5),
        ("http://example.org/path/to/be/excluded", 0),
        ("http://example.com/", 9),
        ("http://a.b.example.com/x?y", 9),
        ("http://myexample.com/", 0),
        ("http://example.org/resource/x?action=exclude", 12),
        ("http://www.example.org/resource/x?action=exclude", 12),
        ("http://example.org/resource/x?action=include", 0),
        ("http://foo.com/a.EXE", 15),
        ("http://foo.com/a?b.exe", 0),
        ("http://foo.com/secret/x", 16),
        ("http://localhost/", 0),
    ],
)
def test_fast(url, line):
    rules = FastFilter(FAST, "f.txt")
    assert takes(rules, url) is (line == 0)
    assert rules.decide(url).line == line


def test_fast_global_rules_hold_for_urls_without_a_host_and_other_text_is_refused():
    rules = FastFilter(FAST, "f.txt")
    assert takes(rules, "file:/path/file.txt")
    assert not takes(rules, "file:/path/file.exe")
    assert not takes(rules, "no url")


def test_fast_lengths():
    rules = FastFilter("", "f.txt", FastLimits(url=40, path=10, query=5))
    assert takes(rules, "http://foo.com/123456789?12345")
    assert not takes(rules, "http://foo.com/1234567890")
    assert not takes(rules, "http://foo.com/?123456")
    assert not takes(rules, "http://foo.com/#" + "x" * 40)


def test_fast_order_of_hosts_and_domains():
    rules = FastFilter(
        "Domain com\nDenyPath x\nDomain foo.com\nDenyPath x\nDomain www.foo.com\nDenyPath x\n"
        "Host www.foo.com\nDenyPath x\nDomain .\nDenyPath x\n",
        "f.txt",
    )
    hosts = ["www.foo.com", "a.www.foo.com", "foo.com", "bar.com", "bar.org"]
    assert [rules.decide(f"http://{host}/x").line for host in hosts] == [8, 6, 4, 2, 10]


LONG_QUERY = "http://domain.tld/function.cgi?url=http://fonzi.com/&amp;name=Fonzi&amp;mood=happy&amp;coat=leather"


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("http://issues.apache.org/jira/NUTCH-1127", True),
        ("https://issues.apache.org/jira/NUTCH-1127", True),
        (LONG_QUERY, True),
        ("http://www.thehackettgroup.com/", True),
        ("ftp://alfa.bravo.pi/foo/bar/plan.pdf", True),
        ("ftp://alfa.bravo.pi/mike/check/plan.pdf", True),
        ("http://10.0.0.255/", True),
        ("http://foo.com:65535/", True),
        ("http://foo.com", True),
        ("http://foo.com/#x", True),
        ("http://foo.com/a/b/c/../d", True),
        ("example.com/file[/].html", False),
        ("http://www.example.com/space here.html", False),
        ("/main.html", False),
        ("www.example.com/main.html", False),
        ("ftp:www.example.com/main.html", False),
        ("http://999.000.456.32/nutch/trunk/README.txt", False),
        (" http://www.example.com/ma|in\\toc.html", False),
        ("http://localhost/", False),
        ("http://foo.c/", False),
        ("http://foo.1com/", False),
        ("http://foo..com/", False),
        ("http://foo.com:123456/", False),
        ("http://foo.com:/", False),
        ("http://foo.com/\u00e9", False),
        ("http://foo.com/../b", False),
        # Nutch counts tokens with those that overlap; a host with _ is none, a scheme is letters.
        ("http://foo.com/a/b/.../d", True),
        ("http://foo.com/a/.../d", False),
        ("http://foo.com/a/b/..../d", False),
        ("http://foo.com/a/b///c/../d", True),
        ("http://foo.com/a///..", False),
        ("http://foo_bar.com/", False),
        ("http://foo.bar_com/", False),
        ("http://foo.com/a_b", True),
        ("svn+ssh://foo.com/", False),
        ("h2://foo.com/", False),
        ("", False),
    ],
)
def test_validator(url, accepted):
    assert takes(Validator(), url) is accepted


@pytest.mark.parametrize(("most", "accepted"), [(-1, True), (5, True), (4, False), (0, False)])
def test_longest_top_level_domain(most, accepted):
    assert takes(Validator(most), "http://foo.photo/") is accepted


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SuffixFilter("+.jpg", "s.txt"), r"s\.txt:1: .* flags P and I alone, got '\+\.jpg'"),
        (lambda: DomainFilter("a\nhttp://a/", "d.txt"), r"d\.txt:2: an entry must be a host"),
        (lambda: FastFilter("DenyPath x", "f.txt"), r"f\.txt:1: .* below Host or Domain"),
        (lambda: FastFilter("Host a\nDeny x", "f.txt"), r"f\.txt:2: .* got 'Deny x'"),
        (lambda: FastFilter("Host", "f.txt"), r"f\.txt:1: a line must be Host NAME"),
        (lambda: FastFilter("Host a\nDenyPath (", "f.txt"), r"f\.txt:2: .* expression, got '\('"),
        (lambda: automaton("+a\n+(b"), r"a\.txt:2: .* dk\.brics expression, got '\+\(b': missing \)"),
        (lambda: automaton("+a)"), "nothing may follow at character 2"),
        (lambda: automaton("+[z-a]"), "a range must go up, got z-a"),
        (lambda: automaton("+a{1000}"), "250 times at most"),
        (lambda: automaton("+a{,3}"), "a number is missing"),
        (lambda: automaton("+<alpha>"), "must be a range of numbers, got '<alpha>'"),
        (lambda: automaton('+"a'), 'missing " after character 1'),
        (lambda: automaton("+a|"), "it ends too early"),
        (lambda: automaton("+" + "(" * 5000), "nested too deeply"),
        (lambda: automaton("+" + "".join(f"{chr(n)}{{250}}" for n in range(300, 400))), "too large"),
    ],
)  # fmt: skip
def test_bad_lines(make, message):
    assert_refused(make, message)


pieces = st.lists(
    st.sampled_from(["http://", "https://", "foo.com", "www.", "example.org", "/", "a", ".gif"])
    | st.sampled_from(["?", "#", ".", ":80", "@", "..", "//", "|", "[::1]", "net", "A", "-", " "])
    | st.text(max_size=2),
    max_size=8,
).map("".join)
ALL = [
    PrefixFilter("http://www\nhttp://\nhttps://foo\n\u00e9\n", "p"),
    SuffixFilter("-PI\n.gif\na\n\u00e9\n", "s"),
    SuffixFilter("+\n.gif\n/", "s"),
    DomainFilter("net", "d"),
    DomainFilter("net\nfoo.com\nwww.example.org", "d", deny=True),
    FastFilter(FAST, "f", FastLimits(path=5)),
    Validator(),
    automaton(NUTCH_AUTOMATON),
    automaton("+.*a.*&~(.*gif.*)\n-.*[.]\n+@"),
    RegexFilter(NUTCH_REGEX, "r"),
    RegexFilter("> foo.com\n-a\n-gif\n<\n-//a\n-[.]{2}\n+(?=h)http\n", "r"),
]


@given(st.lists(pieces, max_size=6))
@settings(max_examples=15, deadline=None)
def test_columns_are_filtered_as_single_urls_are(urls):
    for rules in ALL:
        said = rules.decide_column(pl.Series(urls, dtype=pl.String))
        assert list(zip(*said, strict=True)) == [tuple(rules.decide(url)) for url in urls], rules


def test_many_rules_and_sites():
    text = "".join(f"-^https?://site{n}[.]com/\n" for n in range(2000))
    text += "".join(f"> host{n}.org\n-/private/\n" for n in range(2000)) + "<\n+."
    rules = RegexFilter(text, "r.txt")
    assert max(map(len, rules._groups)) > 10
    urls = [
        "http://site1999.com/",
        "http://host1999.org/private/",
        "http://host1999.org/",
        "http://x/",
    ]
    said = rules.decide_column(pl.Series(urls))
    assert said.line.to_list() == [2000, 6000, 6002, 6002]
    assert [rules.decide(url) for url in urls] == list(zip(*said, strict=True))


def test_many_domains():
    names = "\n".join(f"d{number}.example{number % 7}.com" for number in range(200_000))
    rules = DomainFilter(names, "d.txt", deny=True)
    urls = pl.Series([f"http://d{number}.example1.com/" for number in range(50_000)])
    said = rules.decide_column(urls)
    assert said.accept.sum() == 50_000 - len(range(1, 50_000, 7))
    assert said.line[8] == 9
    fast = FastFilter("\n".join(f"Domain x{n}.com\nDenyPath .*" for n in range(100_000)), "f.txt")
    assert fast.decide_column(pl.Series(["http://a.x77.com/", "http://y.com/"])).line.to_list() == [
        156,
        0,
    ]
