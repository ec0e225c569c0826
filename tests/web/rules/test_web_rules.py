import itertools
import pickle

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutbeam.web.base.options import validate
from nutbeam.web.rules.url_rules import UrlOptions, UrlRules, absolute_urls
from nutbeam.web.urls.row_keys import BadUrl, from_key, parse_url, to_key

pytestmark = pytest.mark.usefixtures("few_urls_count_as_many")
rules = UrlRules()


def test_admits_in_order():
    urls = [
        "http://foo.com/a?x=1",
        " HTTP://Foo.com/a?x=1#b ",
        None,
        "ftp://foo.com/",
        "http://foo.com/logo.png",
        "http://foo.com/a?x=1",
        "http://foo.com/?PHPSESSID=1",
        "no url",
        "http://foo.com/" + "x" * 5000,
        "http://foo.com/" + "|" * 2000,
        "http://xn--strae-oqa.de/",
        "https://[::1]:8443/%2F",
        "http://10.0.0.1:8080/",
        "mailto:a@b.c",
        "",
    ]
    admitted = rules.admit(pl.Series(urls))
    assert admitted.schema == {"url": pl.String, "key": pl.String, "reason": pl.String}
    assert admitted.rows() == [
        ("http://foo.com/a?x=1", "com.foo:http/a?x=1", None),
        ("http://foo.com/a?x=1", "com.foo:http/a?x=1", None),
        (None, None, "malformed"),
        (None, None, "scheme_not_allowed"),
        (None, None, "filtered"),
        ("http://foo.com/a?x=1", "com.foo:http/a?x=1", None),
        ("http://foo.com/", "com.foo:http/", None),
        (None, None, "malformed"),
        (None, None, "url_too_long"),
        (None, None, "key_too_long"),
        ("http://xn--strae-oqa.de/", "de.xn--strae-oqa:http/", None),
        ("https://[::1]:8443/%2F", "[::1]:https:8443/%2F", None),
        ("http://10.0.0.1:8080/", "1.0.0.10:http:8080/", None),
        (None, None, "scheme_not_allowed"),
        (None, None, "malformed"),
    ]


@pytest.mark.parametrize("values", [[], [None], [None, None], ["http://a.com/"], ["x", None, "x"]])
def test_as_many_rows_as_urls(values):
    admitted = rules.admit(pl.Series(values, dtype=pl.String))
    assert len(admitted) == len(values)
    assert len(rules.admit(pl.Series(values))) == len(values)


def test_options_switch_steps_off():
    picture, session = pl.Series(["http://foo.com/a.png"]), pl.Series(["http://Foo.com/?sid=1"])
    assert UrlRules(UrlOptions(no_filter=True)).admit(picture)["reason"].item() is None
    assert rules.admit(picture, filters=False)["reason"].item() is None
    # The basic form stays: a row key needs it.
    kept = UrlRules(UrlOptions(no_normalize=True)).admit(session)
    assert kept["url"].item() == "http://foo.com/?sid=1"


def test_lengths():
    long = pl.Series(["http://foo.com/" + "x" * 4000])
    short = UrlRules(UrlOptions(max_url_length=100)).admit(long)
    assert short["reason"].item() == "url_too_long"
    assert rules.admit(long)["reason"].item() is None
    without = UrlRules(UrlOptions(max_url_length=-1))
    assert without.admit(pl.Series(["http://foo.com/" + "/" * 5000]))["reason"].item() is None
    assert without.admit(long + "x" * 1000)["reason"].item() == "key_too_long"
    with pytest.raises(ValueError, match="max_url_length must be at least -1 characters, got -2"):
        validate(UrlOptions(max_url_length=-2))


def test_files_are_read_once(tmp_path):
    wanted, rewritten = tmp_path / "filter.txt", tmp_path / "normalize.xml"
    wanted.write_text("+/keep/")
    rewritten.write_text(
        "<r><regex><pattern>(?&lt;=/)old</pattern><substitution>new</substitution></regex></r>"
    )
    options = UrlOptions(url_filter_file=str(wanted), url_normalizer_file=str(rewritten))
    here = UrlRules(options)
    there = pickle.dumps(here)
    wanted.unlink()
    rewritten.unlink()
    urls = pl.Series(["http://foo.com/keep/old", "http://foo.com/drop/", "http://foo.com/keep/x"])
    for copy in (here, pickle.loads(there)):
        assert copy.admit(urls)["url"].to_list() == [
            "http://foo.com/keep/new",
            None,
            "http://foo.com/keep/x",
        ]


def test_bad_files(tmp_path):
    with pytest.raises(ValueError, match="must be readable, got '/no/such/file': No such file"):
        UrlRules(UrlOptions(url_filter_file="/no/such/file"))
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="it is not utf-8 text"):
        UrlRules(UrlOptions(url_filter_file=str(binary)))
    with pytest.raises(ValueError, match="binary:1: it must be xml"):
        UrlRules(UrlOptions(url_normalizer_file=str(binary)))
    bad = tmp_path / "bad.txt"
    bad.write_text("+.\n-[\n")
    with pytest.raises(ValueError, match=r"bad.txt:2: .*got '-\['"):
        UrlRules(UrlOptions(url_filter_file=str(bad)))


def test_rules_that_make_no_url_are_a_reason(tmp_path):
    path = tmp_path / "normalize.xml"
    path.write_text(
        "<r><regex><pattern>^http://gone.*</pattern><substitution></substitution></regex>"
        "<regex><pattern>^http://upper/$</pattern><substitution>http://upper/ x</substitution>"
        "</regex></r>"
    )
    odd = UrlRules(UrlOptions(url_normalizer_file=str(path)))
    admitted = odd.admit(pl.Series(["http://gone.com/", "http://upper/", "http://foo.com/"]))
    assert admitted["url"].to_list()[::2] == [None, "http://foo.com/"]
    assert admitted["reason"][0] == "malformed"
    assert all(key is None or key.isprintable() for key in admitted["key"])


SESSION_IDS = r"(?i)(;?\b_?(l|j|bv_)?(sid|phpsessid|sessionid)=.*?)(\?|&|#|$)"


def test_each_change_is_named_with_its_rule():
    assert rules.normalizer().trace("http://Foo.com/a?sid=1#x") == [
        ("basic normalizer", "http://foo.com/a?sid=1"),
        (f"regex-normalize.xml:11 {SESSION_IDS}", "http://foo.com/a?"),
        (r"regex-normalize.xml:44 (?<![\?&\.])[\?&\.]+$", "http://foo.com/a"),
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://foo.com/a.exe", None),
        ("tel:1", "scheme_not_allowed"),
        ("http://", "malformed"),
        ("http://a/" + "x" * 9999, "url_too_long"),
    ],
)
def test_one_url_is_refused_before_the_filters(url, reason):
    assert rules.refusal(url) == reason


def test_the_rule_that_refuses_a_url_is_named():
    reason, by, rule = rules.filters.judge("http://foo.com/a.exe")
    assert (reason, by, rule[:5]) == ("filtered", "regex-urlfilter.txt:24", "-(?i)")
    assert rules.filters.judge("http://foo.com/a") == (None, "regex-urlfilter.txt:27", "+.")


fragments = st.lists(
    (
        st.sampled_from(["/", "//", ".", "..", "/./", "%", "%2e", "%2F", "%41", "%C3"])
        | st.sampled_from(["%5C", "a", "B", "sid=1", ";", "?", "&", "&&", "#", "=", ":", "|"])
        | st.sampled_from(["\\", "'", '"', " ", "~", "$", "\t", "\u00e9", "\x00", "["])
        | st.sampled_from(["index.html", "http://", "_", "@", "!", "(", ",", "*", "+", "1"])
        | st.sampled_from([".png", "/a/b/a"])
    ),
    max_size=8,
).map("".join)
sites = (
    st.sampled_from(["http://foo.com/", "https://a-b_c.foo.com:8443/x/"])
    | st.sampled_from(["http://foo.com:80/", "http://foo.com", "http://xn--strae-oqa.de/"])
    | st.sampled_from(["http://xn--a/", "http://10.0.0.1/", "http://10.0.0.256/"])
    | st.sampled_from(["http://10.1/", "http://[::1]/", "http://[::1/", "http://Foo.com/"])
    | st.sampled_from(["http://foo.com./", "http://a..b/", "http://a.1/", "http://1a/"])
    | st.sampled_from(["http://u@foo.com/", "HTTP://foo.com/", "http:/"])
    | st.sampled_from([f"http://{'a' * 64}/", "https://foo.com:443/"])
    | st.sampled_from(["https://foo.com:80/", "ftp://foo.com/", ""])
    | st.sampled_from(["http://foo.com:08080/", "http://foo.com:99999/"])
    | st.sampled_from(["http://foo.com:5/", "http://-/", "http:///"])
)
found = st.builds("{}{}".format, sites, fragments)


@pytest.mark.long
@given(st.lists(found, max_size=16))
@settings(max_examples=40, deadline=None)
def test_a_column_is_admitted_as_single_urls_are(urls):
    for filters in (True, False):
        admitted = rules.admit(pl.Series(urls, dtype=pl.String), filters=filters).rows()
        for raw, row in zip(urls, admitted, strict=True):
            url, key, reason = rules._admit_one(raw)
            if url is not None and filters and rules.filters.judge(url)[0]:
                url, key, reason = None, None, "filtered"
            assert row == (url, key, reason)
            if key is not None:
                assert key == to_key(url)
                assert from_key(key) == url
                assert rules.normalizer().normalize(url) == url


def check_admitted(urls):
    admitted = rules.admit(pl.Series(urls), filters=False).rows()
    assert admitted == [rules._admit_one(url) for url in urls]


def test_every_short_url_and_escape_is_admitted_as_a_single_url_is():
    tokens = ["", "a", "/", ".", "..", "%", "?", "&", "'", "|", "\\", ":", "=", "sid=", " ", "B~"]
    rests = ["".join(parts) for parts in itertools.product(tokens, repeat=3)]
    check_admitted([f"http://foo.com/{rest}" for rest in rests])
    escapes = [f"%{byte:02X}" for byte in range(256)] + [f"%{byte:02x}" for byte in range(256)]
    characters = [chr(code) for code in range(256)]
    for where in ("/{}", "/a/.{}/b", "/x?{}", "/x?a{}b"):
        check_admitted([f"http://foo.com{where.format(text)}" for text in escapes + characters])
    check_admitted([f"http://f{text}o.com/" for text in escapes + characters])
    check_admitted([f"http://foo.com:{port}/" for port in [*range(1200), *range(65000, 65600)]])
    check_admitted([f"https://1.2.3.{number}/" for number in range(300)])


bases = (
    st.sampled_from(["http://foo.com/", "http://foo.com/a/b/c.html?q#f"])
    | st.sampled_from(["http://foo.com/a//b//", "http://Foo.com:80"])
    | st.sampled_from(["https://u:p@foo.com:8080/a/b", "http://[::1]/x/y;z?/../k"])
    | st.sampled_from(["ftp://foo.com/a/b", "file:///a/b"])
    | st.sampled_from(["http://foo.com/1/2/3/4/5/6/7/8/9/10/11/12", "about:blank"])
    | st.sampled_from(["no base", "data:text/html,x", "http://foo.com/a b/\u00e9/x"])
    | st.sampled_from(["http://foo.com/..%2e/%2e/a", None])
)
steps = (
    st.sampled_from(["", "../", "./", "../../", "./../", "../" * 10, "/", "//", "?"])
    | st.sampled_from(["http://", "https://foo.com/", "http://10.0.0.1/"])
    | st.sampled_from(["http://a.foo.com:8080/", "mailto:", "javascript:", "a:", "http:"])
    | st.sampled_from(["//x/", "http://xn--a/", "http://FOO.com/", "http://foo.com:80/"])
    | st.sampled_from(["a/../", " ", "\\", "tel:1", "12:"])
)
links = st.builds("{}{}".format, steps, fragments) | steps | st.none() | st.text(max_size=5)


def absolute_url(base, href):
    url = None if href is None else parse_url(href, base)
    if url is None or not url.startswith(("http:", "https:", "ftp:", "file:")):
        return None
    return url.partition("#")[0]


@given(st.lists(st.tuples(bases, links), max_size=8))
@settings(max_examples=300, deadline=None)
def test_links_become_absolute_as_the_parser_says(pairs):
    resolved = absolute_urls(
        pl.Series([base for base, _ in pairs], dtype=pl.String),
        pl.Series([href for _, href in pairs], dtype=pl.String),
    )
    assert resolved.dtype == pl.String
    assert resolved.to_list() == [absolute_url(*pair) for pair in pairs]


@pytest.mark.parametrize(
    "base", ["http://foo.com/a/b/c.html?q", "https://foo.com", "http://f.com/a//b//"]
)
def test_every_short_link_becomes_absolute_as_the_parser_says(base):
    tokens = [
        "",
        "a",
        "/",
        ".",
        "..",
        "./",
        "../",
        "%2e",
        "?",
        "#",
        ":",
        " ",
        "'",
        "|",
        "\\",
        "http:",
    ]
    hrefs = ["".join(parts) for parts in itertools.product(tokens, repeat=3)]
    hrefs += [f"a{chr(code)}b" for code in range(300)] + [f"?{chr(code)}" for code in range(300)]
    hrefs += [f"https://foo.com/a{href}" for href in hrefs]
    resolved = absolute_urls(pl.Series([base] * len(hrefs)), pl.Series(hrefs))
    assert resolved.to_list() == [absolute_url(base, href) for href in hrefs]


def test_links_become_absolute():
    page = "http://docs.foo.com/a/b/c.html?q"
    hrefs = {
        "d.html#x": "http://docs.foo.com/a/b/d.html",
        "#x": page,
        "": page,
        "../../../d": "http://docs.foo.com/d",
        "/d?e": "http://docs.foo.com/d?e",
        "?e": "http://docs.foo.com/a/b/c.html?e",
        "//bar.com": "http://bar.com/",
        "x:y": None,
        "./x:y": "http://docs.foo.com/a/b/x:y",
        "mailto:a@b.c": None,
        "javascript:void(0)": None,
        "data:text/html,x": None,
        "tel:1": None,
        "http://": None,
        "https://www.foo.com/a/../b": "https://www.foo.com/b",
    }
    resolved = absolute_urls(pl.Series([page] * len(hrefs)), pl.Series(list(hrefs)))
    assert dict(zip(hrefs, resolved, strict=True)) == hrefs


@pytest.mark.long
def test_keys_are_refused_or_clean():
    for char in map(chr, [*range(0x21), 0x7F, 0x80, 0xE9, 0x2028, 0x1F600]):
        for url in (f"http://foo.com/a{char}b", f"http://f{char}o.com/", f"http://foo.com/?{char}"):
            key = rules.admit(pl.Series([url]))["key"].item()
            assert key is None or (key.isascii() and key.isprintable() and " " not in key)
    with pytest.raises(BadUrl):
        to_key("http://foo.com/\x00")
