"""Rule files as they are brought: names in Unicode, lines that could never match, encodings, folders."""

import polars as pl
import pytest

from nutbeam.web.filters.list_filters import DomainFilter, FastFilter, FastLimits
from nutbeam.web.filters.regex_filter import RegexFilter
from nutbeam.web.normalizers.host_rules import Host, Protocol, Slash
from nutbeam.web.normalizers.regex_rules import RegexNormalizer
from nutbeam.web.rule_files.rule_files import host_name
from nutbeam.web.rules.url_rules import UrlOptions, UrlRules, warnings_of
from nutbeam.web.urls.row_keys import parse_url


def folder(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / name
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text, "utf-8")
    return str(tmp_path)


def admitted(urls, **options):
    """The URLs that rules take, as they normalize them."""
    rules = UrlRules(UrlOptions(**options))
    return rules.admit(pl.Series(urls))["url"].drop_nulls().to_list()


IDN = ["http://bücher.de/secret", "http://www.москва.рф/", "http://foo.com/secret"]
PUNYCODE = [parse_url(url) for url in IDN]
XN = "xn--bcher-kva.de"


@pytest.mark.parametrize(
    ("name", "file", "text", "taken"),
    [
        ("domaindenylist", "domaindenylist-urlfilter.txt", "bücher.de\nмосква.рф", [2]),  # noqa: RUF001
        ("domaindenylist", "domaindenylist-urlfilter.txt", "BÜCHER.de.", [1, 2]),
        ("domain", "domain-urlfilter.txt", "Bu\u0308cher.de", [0]),
        ("domain", "domain-urlfilter.txt", "рф", [1]),
        ("regex", "regex-urlfilter.txt", "> bücher.de\n-secret\n<\n+.", [1, 2]),
        ("regex", "regex-urlfilter.txt", "> москва.рф\n-.\n<\n+.", [0, 2]),
        ("automaton", "automaton-urlfilter.txt", "> Bücher.de\n-.*\n<\n+.*", [1, 2]),
        ("fast", "fast-urlfilter.txt", "Host bücher.de\nDenyPath secret", [1, 2]),
        ("fast", "fast-urlfilter.txt", "Domain москва.рф\nDenyPath .*", [0, 2]),
    ],
)
def test_filters_know_names_in_unicode(tmp_path, name, file, text, taken):
    where = folder(tmp_path, {file: text})
    found = admitted(IDN, url_rules_dir=where, url_filters=(name,))
    assert found == [PUNYCODE[number] for number in taken]


@pytest.mark.parametrize(
    ("step", "url", "normalized"),
    [
        (Host("bücher.de x.de", "h"), f"http://{XN}/", "http://x.de/"),
        (Host("bücher.de x.de", "h"), "http://bücher.de/", "http://x.de/"),
        (Host("*.bücher.de bücher.de", "h"), f"http://www.{XN}/", f"http://{XN}/"),
        (Slash("bücher.de +", "s"), f"http://{XN}/a", f"http://{XN}/a/"),
        (Protocol("bücher.de https", "p"), f"http://{XN}/", f"https://{XN}/"),
        (Protocol("*.bücher.de https", "p"), f"http://www.{XN}/", f"https://www.{XN}/"),
    ],
)
def test_normalizers_know_names_in_unicode(step, url, normalized):
    assert step.apply(url) == normalized
    assert step.apply_column(pl.Series([url])).urls.to_list() == [normalized]
    assert step.touches(pl.Series([url])).to_list() == [True]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Foo.COM", "foo.com"),
        ("foo.com.", "foo.com"),
        ("a_b-c.foo", "a_b-c.foo"),
        ("straße.de", "xn--strae-oqa.de"),
        ("münchen。de", "xn--mnchen-3ya.de"),
        ("10.0.0.1", "10.0.0.1"),
        ("010.0.0.1", "8.0.0.1"),
        ("[2600:1F18:0::1]", "[2600:1f18::1]"),
        ("xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("1.example.2000.hu", "1.example.2000.hu"),
        ("a..b", None),
        ("ü..b", None),
        ("10.0.0.256", None),
        ("[::1]:80", None),
        ("foo%2ecom", None),
        ("\ud800.de", None),
        (".", None),
    ],
)
def test_host_names_are_those_of_urls(text, name):
    assert host_name(text) == name
    if name:
        assert host_name(name) == name
        assert (parse_url(f"http://{text}/") or "").replace("./", "/") == f"http://{name}/"


# Each would be read, and never match.
DEAD = [".com", "*.foo.com", "foo.com:8080", "http://foo.com", "foo.com/", "a..b", "*", "a?b"]


@pytest.mark.parametrize("name", DEAD)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda name: DomainFilter(f"org\n{name}", "f"), "f:2: an entry must be a host, a domain or"),
        (lambda name: FastFilter(f"#\nHost {name}", "f"), "f:2: a block must be for a host or a domain"),
        (lambda name: FastFilter(f"#\nDomain {name}", "f"), "f:2: a block must be for a host or a d"),
        (lambda name: RegexFilter(f"#\n> {name}\n+.", "f"), "f:2: a section must be for a host or"),
        (lambda name: Slash(f"#\n{name} +", "f"), r"f:2: a line must be HOST \+ or HOST -"),
    ],
    ids=["domain", "host of fast", "domain of fast", "section", "slash"],
)  # fmt: skip
def test_names_that_no_url_has_are_refused(make, message, name):
    with pytest.raises(ValueError, match=message) as caught:
        make(name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (Host, "*a.com b.com"),
        (Host, "* z.com"),
        (Host, "*.com z.com"),
        (Host, ".a.com b.com"),
        (Host, "a.com:80 b.com"),
        (Host, "a.com b.com:80"),
        (Protocol, "*a.com https"),
        (Protocol, "a.com:80 https"),
        (Protocol, "example.org gopher"),
        (Protocol, "example.org file"),
        (Protocol, "example.org httpss"),
    ],
)
def test_lines_that_no_url_has_use_for_are_refused(make, line):
    with pytest.raises(ValueError, match="f:1: a line must be HOST ") as caught:
        make(line, "f")
    assert repr(line) in str(caught.value)


def test_an_empty_section_is_refused():
    with pytest.raises(ValueError, match="f:1: a section must be"):
        RegexFilter("> \n-.", "f")


@pytest.mark.parametrize(
    ("step", "url", "normalized"),
    [
        (Host("a.com b.com\nA.com c.com", "h"), "http://a.com/", "http://c.com/"),
        (Host("*.a.com b.com\n*.a.com c.com", "h"), "http://x.a.com/", "http://c.com/"),
        (Slash("a.com +\na.com -", "s"), "http://a.com/x/", "http://a.com/x"),
        (Protocol("a.com https\na.com ftp", "p"), "http://a.com/", "ftp://a.com/"),
        (Host("bücher.de b.com\nxn--bcher-kva.de c.com", "h"), f"http://{XN}/", "http://c.com/"),
    ],
)
def test_the_last_of_two_lines_for_a_host_counts(step, url, normalized):
    assert step.apply(url) == normalized  # hostsMap.put of Nutch


@pytest.mark.parametrize(
    "url",
    [
        "http://u@foo.com/secret", "http://u:p@foo.com:80/secret", "http://foo.com:80/secret",
        "http://FOO.com/secret", "http://f%6Fo.com/secret", "http://foo.com?secret", "http://foo.com#secret",
    ],
)  # fmt: skip
def test_sections_hold_for_urls_that_are_not_normalized(url):
    rules = RegexFilter("> foo.com\n-secret\n<\n+.", "f")
    assert rules.decide(url) == (False, 2, False)
    assert rules.decide_column(pl.Series([url])).line.to_list() == [2]
    other = url.replace("foo", "bar").replace("FOO", "bar").replace("f%6Fo", "bar")
    assert rules.decide(other).accept


RULE = "<regex><pattern>{}</pattern><substitution>{}</substitution></regex>"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_xml_in_any_encoding(tmp_path, encoding):
    declared = encoding.replace("-sig", "")
    text = f'<?xml version="1.0" encoding="{declared}"?>\n<regex-normalize>{RULE.format("x", "é")}</regex-normalize>'
    where = folder(tmp_path, {"regex-normalize.xml": text.encode(encoding)})
    assert admitted(["http://foo.com/x"], url_rules_dir=where) == ["http://foo.com/%C3%A9"]
    # What is text already is not in the encoding that it names.
    assert RegexNormalizer(text, "f").apply("x") == "é"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<rules/>", "f:1: .* its root is <regex-normalize>, got 'rules'"),
        ("<html>\n<body/></html>", "f:2: .* <regex> may stand in <html>, got 'body'"),
        ("<regex-normalize>\n<Regex/></regex-normalize>", "f:2: .* got 'Regex'"),
        (f"<regex-normalize>\n<rule>{RULE}</rule></regex-normalize>", "f:2: .* got 'rule'"),
        ("<regex-normalize><regex>\n<Pattern>a</Pattern></regex></regex-normalize>",
         "f:2: .* <pattern> and <substitution> may stand in <regex>, got 'Pattern'"),
        ("<r><regex><pattern>a<b/></pattern></regex></r>", "no element may stand in <pattern>, got 'b'"),
        ("<r><regex>\n<pattern>a</pattern></regex></r>", "f:2: rule 1 must have a substitution"),
        ("<r><regex><substitution/></regex></r>", "f:1: rule 1 must have a pattern"),
        ("<pattern/>", "got 'pattern'"),
        ('<?xml version="1.0" encoding="moon"?><r/>', "f:1: it must be xml .* unknown encoding"),
    ],
)  # fmt: skip
def test_xml_that_is_none_of_the_format(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        RegexNormalizer(text.encode(), "f")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("<regex-normalize/>", 0),
        ("<!-- none --><regex-normalize>\n<!-- here --></regex-normalize>", 0),
        # Nutch logs an error of the root, and reads its rules all the same.
        (f"<rules>{RULE.format('a', '')}</rules>", 1),
        ("<r><regex><pattern>a</pattern><substitution/></regex></r>", 1),
    ],
)
def test_xml_of_the_format(text, rules):
    assert len(RegexNormalizer(text, "f").rules) == rules


FAST = FastFilter("", "f.txt", FastLimits(url=40, path=10, query=5))


@pytest.mark.parametrize(
    ("rules", "url", "accepted", "said"),
    [
        (FAST, "foo", False, "refuses text that is not a url"),
        (FAST, "http://foo.com/1234567890", False, "refuses urls longer than fast_path_max_length, 10 characters"),
        (FAST, "http://foo.com/?123456", False, "refuses urls longer than fast_query_max_length, 5 characters"),
        (FAST, "http://foo.com/#" + "x" * 40, False, "refuses urls longer than fast_url_max_length, 40 characters"),
        (FAST, "http://foo.com/", True, "accepts what no rule refuses, and is not too long"),
        (DomainFilter("org", "d", deny=True), "foo", False, "refuses text that is not a url with a host"),
        (DomainFilter("org", "d", deny=True), "http://foo.com/", True, "accepts all other hosts"),
        (DomainFilter("org", "d"), "http://foo.com/", False, "no entry accepts it"),
        (DomainFilter("", "d"), "foo", True, "has no entries, and accepts all"),
    ],
)  # fmt: skip
def test_verdicts_without_a_rule_give_their_reason(rules, url, accepted, said):
    verdict = rules.decide(url)
    assert (verdict.accept, verdict.line) == (accepted, 0)
    assert rules.rule(0, url) == said


NEVER = "never found: urls are ascii when rules see them, with hosts in punycode and paths in escapes, got"


@pytest.mark.parametrize(
    ("name", "file", "text", "lines"),
    [
        (
            "regex",
            "regex-urlfilter.txt",
            "# é\n\u00a0é\n+http://нэб\\.рф/\n> рф\n-\\.png$\n+.",
            {3},
        ),
        ("automaton", "automaton-urlfilter.txt", "-.*é\n+@", {1}),
        ("prefix", "prefix-urlfilter.txt", "\ufeff# é\nhttp://\nhttp://é", {3}),
        ("suffix", "suffix-urlfilter.txt", "+I\n# é\n .é", {3}),
        ("fast", "fast-urlfilter.txt", "Host é.de # é\n DenyPath é\nDenyPath x # é", {2}),
        ("ignoreexempt", "db-ignore-external-exemptions.txt", "+é", {1}),
        ("domain", "domain-urlfilter.txt", "é.de", set()),
    ],
)
def test_lines_that_never_match_cause_a_warning(tmp_path, name, file, text, lines):
    where = folder(tmp_path, {file: text.replace("\u00a0", " ")})
    said = warnings_of(UrlRules(UrlOptions(url_rules_dir=where, url_filters=(name,))))
    assert {int(line.split(":")[1]) for line in said} == lines
    assert all(line.startswith(f"{file}:") and NEVER in line for line in said)


def test_only_a_few_of_many_such_lines_are_named(tmp_path):
    where = folder(tmp_path, {"regex-urlfilter.txt": "-é\n" * 5})
    said = warnings_of(UrlRules(UrlOptions(url_rules_dir=where)))
    assert len(said) == 4
    assert said[-1] == "regex-urlfilter.txt: 2 more lines are never found"


def test_rules_of_the_regex_normalizer_may_get_urls_before_normalization(tmp_path):
    where = folder(tmp_path, {"regex-normalize.xml": f"<r>\n{RULE.format('é', 'e')}</r>"})
    (said,) = warnings_of(UrlRules(UrlOptions(url_rules_dir=where)))
    assert said == f"regex-normalize.xml:2: {NEVER} 'é'"
    before = UrlOptions(url_rules_dir=where, url_normalizers=("regex", "basic"))
    assert warnings_of(UrlRules(before)) == []
    assert admitted(["http://foo.com/é"], url_rules_dir=where, url_normalizers=("regex", "basic")) == [
        "http://foo.com/e"
    ]  # fmt: skip


def test_files_of_no_scope_are_warned_of(tmp_path):
    none = f"<regex-normalize>{RULE.format('a', '')}</regex-normalize>"
    where = folder(
        tmp_path, {"regex-normalize-inject.xml": none, "regex-normalize-scope1.xml": none}
    )
    options = UrlOptions(url_rules_dir=where)
    (said,) = warnings_of(UrlRules(options))
    assert said.startswith(
        "regex-normalize-scope1.xml is not read: 'scope1' is none of the scopes d"
    )
    assert "outlink" in said
    assert warnings_of(UrlRules(UrlOptions(url_rules_dir=where, no_normalize=True))) == []


def test_patterns_of_options_that_are_never_found_are_warned_of():
    options = UrlOptions(include=("/docs/", "/bücher/"), exclude=("нэб",), no_filter=True)
    assert [text.partition(": urls")[0] for text in warnings_of(UrlRules(options))] == [
        "--include: never found",
        "--exclude: never found",
    ]


def test_which_file_it_was(tmp_path):
    where = folder(tmp_path, {"regex-urlfilter.txt": "+."})
    rules = UrlRules(UrlOptions(url_rules_dir=where))
    assert rules.sources == {
        "regex-urlfilter.txt": f"{where}/regex-urlfilter.txt",
        "regex-normalize.xml": "built-in regex-normalize.xml",
    }
    named = UrlRules(UrlOptions(url_filter_file=f"{where}/regex-urlfilter.txt"))
    assert named.source_of(f"{where}/regex-urlfilter.txt:1") == f"{where}/regex-urlfilter.txt"
    assert named.source_of("validator") is None
