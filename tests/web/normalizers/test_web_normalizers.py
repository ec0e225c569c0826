"""URL normalizers, row by row, and chains of them: scopes, order, rounds."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import assert_refused
from slow_patterns import SLOW, STALLS

from nutbeam.web.base.options import validate
from nutbeam.web.normalizers.basic import Ajax, Basic, Querystring
from nutbeam.web.normalizers.host_rules import Host, Protocol, Slash
from nutbeam.web.normalizers.normalizer_chain import Normalizer
from nutbeam.web.normalizers.normalizer_step import Pass
from nutbeam.web.normalizers.regex_rules import RegexNormalizer
from nutbeam.web.rules.url_rules import UrlOptions, UrlRules
from nutbeam.web.urls.row_keys import BadUrl, from_key

pytestmark = pytest.mark.usefixtures("few_urls_count_as_many")


def xml(*rules):
    return "<r>" + "".join(
        f"<regex><pattern>{pattern}</pattern><substitution>{by}</substitution></regex>"
        for pattern, by in rules
    ) + "</r>"  # fmt: skip


SLASHES = "# hosts\nwww.example.org\t+\nwww.example.net -\n"
HOSTS = "example.org www.example.org\nwww.example.net example.net\n*.example.com example.com\n"
PROTOCOLS = (
    "# hosts\nexample.org\thttp\nexample.net http\nexample.io\thttps\nexample.nl https\n"
    "*.example.com https\n"
)


@pytest.mark.parametrize(
    ("step", "url", "normalized"),
    [
        (Querystring(), "http://example.com/?c=d&a=b&a=c", "http://example.com/?a=b&a=c&c=d"),
        (
            Querystring(),
            "http://example.com:1234/a/b/c?c=d&a=b#ref",
            "http://example.com:1234/a/b/c?a=b&c=d#ref",
        ),
        (Querystring(), "http://example.com/", None),
        (Querystring(), "http://example.com/?", None),
        (Querystring(), "http://example.com/?b&a&", "http://example.com/?a&b"),
        (Querystring(), "http://example.com/#?b&a", None),
        (
            Ajax(),
            "http://example.org/#!k=v&something=is wrong",
            "http://example.org/?_escaped_fragment_=k=v%26something=is%20wrong",
        ),
        (
            Ajax(),
            "http://example.org/path.html?q=v#!key1=value1&key2=value2",
            "http://example.org/path.html?q=v&_escaped_fragment_=key1=value1%26key2=value2",
        ),
        (Ajax(), "http://example.org/#!k=%#+", "http://example.org/?_escaped_fragment_=k=%25%23%2B"),
        (Ajax(), "http://example.org/#k", None),
        (
            Ajax("indexer"),
            "http://example.org/?key=value&_escaped_fragment_=key=value",
            "http://example.org/?key=value#!key=value",
        ),
        (
            Ajax("indexer"),
            "http://example.org/page?_escaped_fragment_=k=v%26something=is%20wrong",
            "http://example.org/page#!k=v&something=is wrong",
        ),
        (Ajax("indexer"), "http://example.org/#!x", None),
        (Pass(), "http://www.example.com/test/..//", None),
        (Slash(SLASHES, "s"), "http://www.example.org/page?a=b&c=d", "http://www.example.org/page/?a=b&c=d"),
        (Slash(SLASHES, "s"), "http://www.example.org/page", "http://www.example.org/page/"),
        (Slash(SLASHES, "s"), "http://www.example.org/noise.mp3", None),
        (Slash(SLASHES, "s"), "http://www.example.org/page.shtml", None),
        (
            Slash(SLASHES, "s"),
            "http://www.example.org/this.is.not.an_extension",
            "http://www.example.org/this.is.not.an_extension/",
        ),
        (Slash(SLASHES, "s"), "http://www.example.org/", None),
        (Slash(SLASHES, "s"), "http://www.example.org/path/", None),
        (
            Slash(SLASHES, "s"),
            "http://www.example.net/path/to/something/",
            "http://www.example.net/path/to/something",
        ),
        (Slash(SLASHES, "s"), "http://www.example.net/", None),
        (Slash(SLASHES, "s"), "http://www.example.com/page", None),
        # Nutch's loses the port, and so leads to another server.
        (Slash(SLASHES, "s"), "http://www.example.org:8080/a", "http://www.example.org:8080/a/"),
        (Host(HOSTS, "h"), "http://example.org/page.html", "http://www.example.org/page.html"),
        (Host(HOSTS, "h"), "http://www.example.net/p", "http://example.net/p"),
        (Host(HOSTS, "h"), "http://whatever.example.com/blaat", "http://example.com/blaat"),
        (Host(HOSTS, "h"), "http://a.b.example.com:81/", "http://example.com:81/"),
        (Host(HOSTS, "h"), "http://example.com/page", None),
        (Host(HOSTS, "h"), "http://myexample.com/page", None),
        (Host("*.a.com x.com\n*.b.a.com y.com", "h"), "http://c.b.a.com/", "http://x.com/"),
        (Protocol(PROTOCOLS, "p"), "https://example.org/", "http://example.org/"),
        (Protocol(PROTOCOLS, "p"), "https://example.net/", "http://example.net/"),
        (
            Protocol(PROTOCOLS, "p"),
            "http://example.io/path?q=uery",
            "https://example.io/path?q=uery",
        ),
        (Protocol(PROTOCOLS, "p"), "http://example.io:8080/path", None),
        (Protocol(PROTOCOLS, "p"), "http://example.com/", "https://example.com/"),
        (
            Protocol(PROTOCOLS, "p"),
            "http://www.subdomain.example.com/",
            "https://www.subdomain.example.com/",
        ),
        (Protocol(PROTOCOLS, "p"), "http://myexample.com/", None),
        (Protocol("*.com http\n*.a.com https", "p"), "http://x.a.com/", "https://x.a.com/"),
        (
            RegexNormalizer(xml((r"^http://www\.foo\.bar\.com/", "http://bar.com/")), "scope1"),
            "http://www.foo.bar.com/",
            "http://bar.com/",
        ),
    ],
)  # fmt: skip
def test_rows(step, url, normalized):
    assert step.apply(url) == (normalized or url)
    assert step.apply_column(pl.Series([url])).urls.to_list() == [normalized or url]
    if normalized:
        assert step.touches(pl.Series([None, url])).to_list() == [False, True]
    (name, apply), *_ = step.functions()
    assert name
    assert apply(url) == step.apply(url)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Slash("a +\nb x", "s.txt"), r"s\.txt:2: a line must be HOST \+ or HOST -, got 'b x'"),
        (lambda: Host("a", "h.txt"), r"h\.txt:1: a line must have two words, got 'a'"),
        (lambda: Host("a http://b/", "h.txt"), r"h\.txt:1: a line must be HOST TARGET"),
        (lambda: Protocol("a http://", "p.txt"), r"p\.txt:1: a line must be HOST SCHEME"),
        (
            lambda: RegexNormalizer("<r>\n<regex>\n<pattern>a</pattern><substitution/></regex>\n<regex>"
                                    "<pattern>\n(b</pattern><substitution/></regex></r>", "r.xml"),
            r"r\.xml:4: rule 2 must be a regular expression, got '\\n\(b': missing \)",
        ),
        (lambda: RegexNormalizer("<r>\n<regex></r>", "r.xml"), r"r\.xml:2: it must be xml"),
    ],
)  # fmt: skip
def test_bad_lines(make, message):
    assert_refused(make, message)


pieces = st.lists(
    st.sampled_from(["http://", "HTTPS://", "www.example.org", "example.com", "a.example.net"])
    | st.sampled_from(["/", "b", "?", "&", "#!", "#", "z=1", "a=2", "//", ".", "..", ":8080"])
    | st.sampled_from(["sid=1", "_escaped_fragment_=", "%41", " ", "@", "\u00e9", "old", "%26"])
    | st.text(max_size=2),
    max_size=9,
).map("".join)

REPLACED = [
    ("(?i)(;?\\b_?(l|j|bv_)?(sid|phpsessid|sessionid)=.*?)(\\?|&amp;|#|$)", "$4", True),
    ("(?&lt;![?&amp;.])[?&amp;.]+$", "", True),
    ("(?&lt;![?&amp;.])[?&amp;.]+", "", False),
    ("(?&lt;!:)/{2,}", "/", False),
    ("a*", "x", False),
    ("(a)|b", "[$1]", True),
    ("(?:a|b)?z", "\\$1$1", None),
    ("(a)(?:b)(z=)?", "\\\\$2$1$$", None),
    ("(a)(?:b)(z=)?", "\\\\$2$13\\$", True),
    ("\\bz=", "${}", None),
    ("$", "/", False),
    ("a{2}|/$", "-", True),
    ("[^/]a+?", "<>", True),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("pattern", "by", "in_column"), REPLACED)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_polars_and_java_replace_the_same(pattern, by, in_column, data):
    text = xml((pattern, by.replace("<", "&lt;")))
    if in_column is None:
        with pytest.raises(ValueError, match="must substitute groups"):
            RegexNormalizer(text, "r")
        return
    step = RegexNormalizer(text, "r")
    assert (step.rules[0].column is not None) is in_column
    urls = data.draw(st.lists(pieces, min_size=1, max_size=8))
    assert step.apply_column(pl.Series(urls)).urls.to_list() == [step.apply(url) for url in urls]


def folder(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / name.replace("__", "-").replace("_", ".")).write_text(text)
    return str(tmp_path)


def test_order_and_names(tmp_path):
    where = folder(
        tmp_path, slashes_txt=SLASHES, host__urlnormalizer_txt=HOSTS, protocols_txt=PROTOCOLS
    )
    options = UrlOptions(
        url_rules_dir=where,
        url_normalizers=("ajax", "host", "basic", "slash", "protocol", "querystring", "pass"),
    )
    rules = UrlRules(options)
    made = rules.admit(
        pl.Series(["HTTP://WWW.example.net/x/?b&a#!z", "http://a.example.com/?c#!d"])
    )
    assert made["url"].to_list() == [
        "http://example.net/x/?_escaped_fragment_=z&a&b",
        "https://example.com/?_escaped_fragment_=d&c",
    ]
    assert [type(s).__name__ for s in UrlRules(UrlOptions(url_normalizers=("pass",))).normalizer().steps] == ["Pass", "Basic"]  # fmt: skip
    without_key = UrlRules(UrlOptions(url_normalizers=("querystring",)))
    assert (
        without_key.admit(pl.Series(["http://Foo.com/?b&a#x"]))["url"].item()
        == "http://foo.com/?a&b"
    )
    assert rules.normalizer().trace("http://example.org/x") == [
        ("host normalizer", "http://www.example.org/x"),
        ("slash normalizer", "http://www.example.org/x/"),
    ]


def test_scopes(tmp_path):
    where = folder(
        tmp_path,
        regex__normalize_xml=xml(("a", "b")),
        regex__normalize__inject_xml=xml(("a", "c")),
    )
    options = UrlOptions(url_rules_dir=where, url_normalizers_in=("outlink=basic+querystring",))
    rules = UrlRules(options)
    validate(options)
    urls = pl.Series(["http://x.org/a?z&y"])
    found = {
        scope: rules.admit(urls, scope)["url"].item() for scope in ("default", "inject", "outlink")
    }
    assert found == {
        "default": "http://x.org/b?z&y",
        "inject": "http://x.org/c?z&y",
        "outlink": "http://x.org/a?y&z",
    }
    back = UrlRules(UrlOptions(url_normalizers=("basic", "ajax")))
    assert (
        back.normalizer("indexer").normalize("http://X.org/?_escaped_fragment_=a")
        == "http://x.org/#!a"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url_normalizers_in": ("inject=basic", "inject=pass")}, "'inject' twice"),
        ({"url_filters": ("suffix",)}, "must be a folder with suffix-urlfilter.txt, which suffix needs, got ''"),
        ({"url_filters": ("suffix",), "url_rules_dir": "tests"}, "got 'tests/suffix-urlfilter.txt': No such file"),
        ({"url_rules_dir": "/no/such"}, "url_rules_dir must be a folder that can be read, got '/no/such'"),
        ({"url_rules_dir": "pyproject.toml"}, "must be a folder that can be read, got 'pyproject.toml'"),
        ({"url_rules_dir": "/no", "no_filter": True, "no_normalize": True}, "must be a folder"),
        ({"url_normalizers": ("slash",)}, "must be a folder with slashes.txt, which slash needs"),
    ],
)  # fmt: skip
def test_missing_and_invalid_rule_options_are_reported(options, message):
    with pytest.raises(ValueError, match=message):
        UrlRules(UrlOptions(**options))


@pytest.mark.parametrize(
    "options",
    [{"url_normalizers_in": ("inject",)}, {"url_normalizers_in": ("often=basic",)},
     {"url_filters": ("./gif.py",)}, {"url_normalizer_loop_count": 0}],
)  # fmt: skip
def test_options_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        validate(UrlOptions(**options))


def test_rounds(tmp_path):
    growing = RegexNormalizer(xml(("$", "x")), "r.xml")
    once = Normalizer((Basic(), growing), rounds=1)
    assert once.normalize("HTTP://foo.com/") == "http://foo.com/x"
    assert once.normalize_column(pl.Series(["HTTP://foo.com/"])).rows() == [
        ("http://foo.com/x", None)
    ]
    column = Normalizer((Basic(), growing)).normalize_column(pl.Series(["http://foo.com/", "x"]))
    assert column.rows() == [(None, "normalizer_loop"), (None, "malformed")]
    spaces = Normalizer((Basic(), RegexNormalizer(xml(("x", " ")), "r.xml")), rounds=1)
    assert spaces.normalize("http://foo.com/axb") == "http://foo.com/a%20b", "fit for a row key"


def test_many_urls_are_normalized_as_single_ones_are():
    escapes = [f"%{a}{b}" for a in "0123456789abcdefABCDEF" for b in "0123456789abcdefABCDEF"]
    chars = [chr(code) for code in range(0x100)]
    urls = [f"{start}{text}{end}" for text in (*escapes, *chars)
            for start, end in (("http://Foo.com/a", "b?c"), ("https://foo.com:443/?x=", "#y"),
                               ("HTTP://foo.com", "/a/"), ("http://foo.com/a", ""))]  # fmt: skip
    urls += [f"http://Foo.com:{port}{rest}" for port in ("", "0", "80", "080", "443", "8080", "99999", "x")
             for rest in ("", "/", "?", "#", "/a", "?a", "#a", "/a b#", "/a #", "//a", "/a/../b", "/a%2e/")]  # fmt: skip
    rules = UrlRules()
    assert rules.admit(pl.Series(urls), filters=False).rows() == list(map(rules._admit_one, urls))


def test_a_rule_that_runs_out_of_time_costs_one_url(tmp_path):
    where = folder(tmp_path, regex__normalize_xml=xml((STALLS, "-"), ("b", "c")))
    rules = UrlRules(UrlOptions(url_rules_dir=where))
    admitted = rules.admit(pl.Series(["http://foo.com/b", SLOW]))
    assert admitted["url"].to_list() == ["http://foo.com/c", None]
    assert admitted["reason"].to_list() == [None, "normalizer_timeout"]
    with pytest.raises(BadUrl, match="normalizer_timeout"):
        rules.normalizer().normalize(SLOW)
    assert rules.refusal(SLOW) == "normalizer_timeout"


STEPS = (
    Basic(), Ajax(), Querystring(), Slash(SLASHES, "s"), Host(HOSTS, "h"),
    Protocol(PROTOCOLS, "p"), RegexNormalizer(xml(("old", "new"), ("(?&lt;=z)=", "-"), ("b", "ol")), "r"),
)  # fmt: skip
CHAINS = [
    Normalizer(STEPS),
    Normalizer(STEPS[::-1]),
    Normalizer((*STEPS[3:], Basic()), rounds=1),
    Normalizer((Basic(), RegexNormalizer(xml(("z", "zz"), ("zzzz$", "")), "r"))),
    Normalizer((Basic(),), last=(Ajax("indexer"),)),
    Normalizer((Ajax(), Basic(), Querystring()), rounds=2),
]


def one(chain, url):
    try:
        return chain.normalize(url), None
    except BadUrl as error:
        return None, error.reason


@given(st.lists(pieces, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_columns_are_normalized_as_single_urls_are(urls):
    for chain in CHAINS:
        column = pl.Series(urls)
        assert chain.normalize_column(column).rows() == [one(chain, url) for url in urls]
        for url in urls:
            made, _ = one(chain, url)
            if made is not None:
                trace = chain.trace(url)
                assert (trace[-1][1] if trace else url) == made
                if chain.rounds > 1 and not chain.last:
                    assert one(chain, made) == (made, None)


EVERY = UrlRules(
    UrlOptions(
        url_normalizers=("basic", "regex", "querystring"), url_filters=("regex", "validator")
    )
)


@pytest.mark.long
@given(st.lists(pieces, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_admitted_urls_have_a_key_and_are_admitted_again_unchanged(urls):
    for rules in (EVERY, UrlRules()):
        admitted = rules.admit(pl.Series(urls), by=True)
        for raw, (url, key, reason, by) in zip(urls, admitted.rows(), strict=True):
            alone = rules._admit_one(raw)
            said = rules.filters.judge(alone[0]) if alone[0] else (None, None, "")
            assert by == (said[1] if said[0] else None)
            assert (url, key, reason) == ((None, None, said[0]) if said[0] else alone)
            if url is not None:
                assert from_key(key) == url
                assert rules.admit(pl.Series([url])).row(0) == (url, key, None)
