import pathlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import assert_refused

from nutbeam.web.normalizers.basic import Basic, normalize_basic
from nutbeam.web.normalizers.normalizer_chain import Normalizer
from nutbeam.web.normalizers.regex_rules import RegexNormalizer
from nutbeam.web.rules import chains
from nutbeam.web.urls.row_keys import BadUrl, to_key

SHIPPED = pathlib.Path(chains.__file__).with_name("regex-normalize.xml").read_text()
# The shipped file with its default-page rule made active.
WITH_DEFAULT_PAGE = SHIPPED.replace("Not all sites do so:", "-->").replace(
    "</regex>\n-->", "</regex>"
)
chain = Normalizer((Basic(), RegexNormalizer(SHIPPED, "regex-normalize.xml")))


def rules(pattern, substitution=""):
    return RegexNormalizer(
        f"<regex-normalize><regex><pattern>{pattern}</pattern>"
        f"<substitution>{substitution}</substitution></regex></regex-normalize>",
        "rules.xml",
    )


# As Nutch has it.
@pytest.mark.parametrize(
    ("url", "normalized"),
    [
        ("http://foo.com/%66oo.htm%6c", "http://foo.com/foo.html"),
        ("http://foo.com/you too.html", "http://foo.com/you%20too.html"),
        ("http://foo.com/fast/dir%2fcz", "http://foo.com/fast/dir%2Fcz"),
        ("http://x.com/s?q=a%26b&m=10", "http://x.com/s?q=a%26b&m=10"),
        ("http://x.com/./a/../%66.html", "http://x.com/f.html"),
        (" http://foo.com/ ", "http://foo.com/"),
        ("https://example%2Ecom/", "https://example.com/"),
        ("http://foo.com", "http://foo.com/"),
        ("http://example.com?a=1", "http://example.com/?a=1"),
        ("http://foo.com/aa/bb/../cc/dd/../ee/foo.html", "http://foo.com/aa/cc/ee/foo.html"),
        ("http://foo.com/a..a/foo.html", "http://foo.com/a..a/foo.html"),
        ("http://foo.com/aa?referer=http://bar.com", "http://foo.com/aa?referer=http://bar.com"),
        ("http://www.example.com/p%zz%77%v", "http://www.example.com/p%25zzw%25v"),
        ("https://\u043d\u042d\u0431.\u0420\u0424/", "https://xn--90ax2c.xn--p1ai/"),
        # On purpose not Nutch's, since URLs are parsed as browsers do (WHATWG):
        # IDNA 2008 always; an empty host of file: is written; no user for ftp.
        ("https://stra\u00dfe.de/", "https://xn--strae-oqa.de/"),
        ("file:/var/www/html/////./bar/index.html", "file:///var/www/html/bar/index.html"),
        (
            "ftp://user:password@ftp.example.org/path/file.txt",
            "ftp://ftp.example.org/path/file.txt",
        ),
        # The rules of the text of 3.2.
        ("HTTP://FOO.com:80/", "http://foo.com/"),
        ("https://foo.com:443/", "https://foo.com/"),
        ("ftp://foo.com:21/", "ftp://foo.com/"),
        ("http://foo.com:/", "http://foo.com/"),
        ("http://foo.com:8080/", "http://foo.com:8080/"),
        ("http://foo.com./", "http://foo.com/"),
        ("http://foo.com/a#b", "http://foo.com/a"),
        ("http://user:secret@foo.com/", "http://foo.com/"),
        ("http://foo.com/../../a", "http://foo.com/a"),
        ("http://foo.com//a///b", "http://foo.com/a/b"),
        ("http://foo.com/%41%2d%7E%c3%a9\u00e9", "http://foo.com/A-~%C3%A9%C3%A9"),
        ('http://foo.com/"<>[]^`{|}', "http://foo.com/%22%3C%3E%5B%5D%5E%60%7B%7C%7D"),
        ('http://foo.com/?"<>[]^`{|}', "http://foo.com/?%22%3C%3E%5B%5D%5E%60%7B%7C%7D"),
        ("http://foo.com/%00\x7f\x01?", "http://foo.com/%00%7F%01?"),
        ("http://foo.com/%2e%2E/%", "http://foo.com/%25"),
        ("http://foo.com/%2%35", "http://foo.com/%2525"),
        ("http://[2600:1F18:0::1]:80/", "http://[2600:1f18::1]/"),
        ("http://1.2.3.4./", "http://1.2.3.4/"),
        ("http://foo.com\\a\\b", "http://foo.com/a/b"),
        ("http://foo.com/a\nb\tc", "http://foo.com/abc"),
    ],
)
def test_basic(url, normalized):
    assert normalize_basic(url) == normalized
    assert normalize_basic(normalized) == normalized


@pytest.mark.parametrize(
    "url",
    [
        "",
        "foo.com",
        "http://",
        "http://./",
        "http://foo.com%2fx/",
        "http://foo.com%zz/",
        "http://foo..com/",
        "http://.foo.com/",
        "http://foo.com../",
        f"http://{'a' * 64}.com/",
        f"http://{'a.' * 130}com/",
        "http://foo.com/\ud800",
        "http://foo.com:99999/",
    ],
)
def test_malformed(url):
    with pytest.raises(BadUrl) as caught:
        normalize_basic(url)
    assert caught.value.reason == "malformed"


# As Nutch, with the default-page rule as there.
@pytest.mark.parametrize(
    ("url", "normalized"),
    [
        (
            "http://foo.com/foo.php?f=2&PHPSESSID=cdc993a493e899bed04f4d0c8a462a03&q=3",
            "http://foo.com/foo.php?f=2&q=3",
        ),
        (
            "http://foo.com/foo.php?PHPSESSID=cdc993a493e899bed04f4d0c8a462a03&f=2",
            "http://foo.com/foo.php?f=2",
        ),
        (
            "http://www.foo.com/foo.html;jsessionid=1E6FEC0D14D044541DD84D2D013D29ED?p=1&a=2",
            "http://www.foo.com/foo.html?p=1&a=2",
        ),
        (
            "http://www.foo.com/foo.php?&x=1&sid=xyz&something=1",
            "http://www.foo.com/foo.php?x=1&something=1",
        ),
        (
            "http://www.foo.com/foo.php?_pid=2&_spid=0&lang=en&_sessionid=e369",
            "http://www.foo.com/foo.php?_pid=2&_spid=0&lang=en",
        ),
        (
            "http://www.foo.com/fa/newsdetail.aspx?NewsID=1567539",
            "http://www.foo.com/fa/newsdetail.aspx?NewsID=1567539",
        ),
        (
            "http://www.foo.com/a.html?b=1&addressid=250646&c=2",
            "http://www.foo.com/a.html?b=1&addressid=250646&c=2",
        ),
        ("http://www.foo.com/home/index.html", "http://www.foo.com/home/"),
        ("http://www.foo.com/default.PHP3", "http://www.foo.com/"),
        ("http://www.foo.com/index.jspx", "http://www.foo.com/"),
        ("http://www.foo.com/index.jsps", "http://www.foo.com/index.jsps"),
        ("http://www.foo.com/index.jspfx", "http://www.foo.com/index.jspfx"),
        ("http://www.foo.com/something.html", "http://www.foo.com/something.html"),
        ("http://www.foo.com/foo.html#something?x=y", "http://www.foo.com/foo.html?x=y"),
        ("http://www.foo.com/foo.html?x=y&&&z=a", "http://www.foo.com/foo.html?x=y&z=a"),
        ("http://www.foo.com/foo.html?", "http://www.foo.com/foo.html"),
        ("http://www.foo.com//path//foo.html", "http://www.foo.com/path/foo.html"),
        ("file:///path//foo.html", "file:/path/foo.html"),
        # Nutch removes one character at the end, and another the next time.
        ("http://www.foo.com/wait...", "http://www.foo.com/wait"),
    ],
)
def test_shipped_rules(url, normalized):
    normalizer = RegexNormalizer(WITH_DEFAULT_PAGE, "regex-normalize.xml")
    assert len(normalizer.rules) == 8
    assert normalizer.apply(url) == normalized


def test_the_default_page_rule_is_not_active():
    assert len(RegexNormalizer(SHIPPED, "").rules) == 7
    assert chain.normalize("http://foo.com/index.html") == "http://foo.com/index.html"


def test_the_chain_cuts_the_fragment_before_the_rules_see_it():
    # So "?x=y" of a fragment is not rescued; browsers would not send it either.
    assert chain.normalize("http://foo.com/foo.html#something?x=y") == "http://foo.com/foo.html"


def test_java_replacements():
    assert rules("(a)(b)?", "[$1$2]").apply("xa") == "x[a]"
    assert rules("(a)", "$12").apply("xa") == "xa2"
    assert rules("(?&lt;n>a)", "${n}${n}").apply("a") == "aa"
    assert rules("a", r"\$1\\").apply("a") == "$1\\"
    assert (
        rules("^http://www[.]foo[.]bar[.]com/", "http://bar.com/").apply("http://www.foo.bar.com/x")
        == "http://bar.com/x"
    )


def test_java_dialect():
    assert rules("(?i)A(?-i)B", "-").apply("aB ab") == "- ab"
    assert rules(r"\Qa.b\E+", "-").apply("a.bb axb") == "- axb"
    assert rules("a++b", "-").apply("aaab") == "-"
    assert rules(r"\w", "-").apply("\u00e9") == "\u00e9"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rules("(a"), r"rules.xml:1: rule 1 must be a regular expression, got '\(a': "),
        (lambda: rules(""), "rules.xml:1: rule 1 must have a pattern, got ''"),
        (lambda: rules("a", "$1"), "rules.xml:1: rule 1 must substitute groups .* got '\\$1'"),
        (lambda: rules("a", "$"), "rules.xml:1: rule 1 must substitute"),
        (lambda: RegexNormalizer("no xml", "x"), "x:1: it must be xml like regex-normalize.xml: "),
    ],
)
def test_bad_rules(make, message):
    assert_refused(make, message)


def test_rules_without_end_are_a_reason():
    growing = Normalizer((Basic(), rules("$", "a")))
    with pytest.raises(BadUrl) as caught:
        growing.normalize("http://foo.com/")
    assert caught.value.reason == "normalizer_loop"


def test_steps_end_where_normalizing_does():
    url = "http://Foo.com/a?sid=1&&b#x"
    assert chain.trace(url)[-1][1] == chain.normalize(url) == "http://foo.com/a?b"
    assert chain.trace("http://foo.com/") == []


pieces = st.lists(
    (
        st.sampled_from(["/", "//", ".", "..", "%", "%2", "%2e", "%2F", "%41", "%c3", "%25"])
        | st.sampled_from(["a", "B", "sid=", ";", "jsessionid=1", "PHPSESSID=", "?", "&"])
        | st.sampled_from(["&&", "#", "=", ":", "|", "\\", "'", '"', " ", "\t", "\u00e9"])
        | st.sampled_from(["\x00", "\x7f", "{", "[", "]", "^", "index.html", "http://", "_"])
        | st.sampled_from(["@"])
    )
    | st.text(max_size=3),
    max_size=12,
).map("".join)
origins = (
    st.sampled_from(["http://foo.com", "HTTPS://u:p@Foo.com.:443", "http://[::1]:80"])
    | st.sampled_from(["http://1.2.3", "http:", "ftp://f.org", "http://"])
    | st.sampled_from(["http://foo.com:8080/a/b", "http://stra\u00dfe.de/x", "file:", ""])
)


@given(origins, pieces)
@settings(max_examples=500)
def test_normalizing_twice_is_normalizing_once(origin, rest):
    for normalizer in (Normalizer(), chain):
        try:
            once = normalizer.normalize(origin + rest)
        except BadUrl:
            continue
        assert normalizer.normalize(once) == once
        if once.startswith("http"):
            assert to_key(once).isascii()
