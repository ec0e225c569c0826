import itertools

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.policy.base.key_columns import host_keys
from nutbeam.web.rules.url_rules import UrlRules, absolute_urls
from nutbeam.web.urls.row_keys import (
    MAX_KEY_BYTES,
    BadUrl,
    from_host_key,
    from_key,
    host,
    host_key,
    host_key_of,
    parse_url,
    to_key,
)

# Nutch's examples, as far as the URLs are normalized.
KEYS = [
    ("http://foo.com/", "com.foo:http/"),
    ("http://foo.com:8900/", "com.foo:http:8900/"),
    ("ftp://bar.baz.com/", "com.baz.bar:ftp/"),
    (
        "http://bar.baz.com:8983/to/index.html?a=b&c=d",
        "com.baz.bar:http:8983/to/index.html?a=b&c=d",
    ),
    ("http://foo.com/?a=/a/b&c=0", "com.foo:http/?a=/a/b&c=0"),
    ("file:///var/www/index.html", ":file/var/www/index.html"),
    ("http://140.211.11.130/x", "130.11.211.140:http/x"),
    ("http://localhost/", "localhost:http/"),
    # Nutch cannot reverse this one.
    ("http://[2600:1f18::1]/", "[2600:1f18::1]:http/"),
    ("https://[2600:1f18::1]:8443/a:b", "[2600:1f18::1]:https:8443/a:b"),
]

label = st.from_regex(r"[a-z0-9_-]{1,8}", fullmatch=True)
hosts = st.lists(label, min_size=1, max_size=4).map(".".join) | st.sampled_from(
    ["[::1]", "[2600:1f18::1]", "10.0.0.1"]
)
visible = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#"))
normal = st.builds(
    "{}://{}{}/{}".format,
    st.sampled_from(["http", "https", "ftp"]),
    hosts,
    st.sampled_from(["", ":8080", ":1"]),
    visible,
)


@pytest.mark.parametrize(("url", "key"), KEYS)
def test_keys_are_nutchs(url, key):
    assert to_key(url) == key
    assert from_key(key) == url


@given(normal)
def test_keys_can_be_reversed(url):
    key = to_key(url)
    assert key.isascii()
    assert key.isprintable()
    assert from_key(key) == url
    assert host_key_of(key) == host_key(from_host_key(host_key_of(key)))
    assert key.startswith(f"{host_key_of(key)}:")


@given(normal, normal)
def test_different_urls_have_different_keys(one, other):
    assert (to_key(one) == to_key(other)) == (one == other)


@given(st.lists(hosts, min_size=2, max_size=5), visible)
def test_keys_are_in_the_order_of_reversed_hosts(names, rest):
    keys = sorted(to_key(f"http://{name}/{rest}") for name in names)
    assert [host_key_of(key) for key in keys] == sorted(
        map(host_key, names), key=lambda name: f"{name}:"
    )


# Nutch's examples, rows whose URL is not normalized: Nutch's key, and ours of what becomes of it.
@pytest.mark.parametrize(
    ("url", "nutchs", "ours"),
    [
        ("http://foo.com?a=/a/b&c=0", "com.foo:http/?a=/a/b&c=0", "com.foo:http/?a=/a/b&c=0"),
        ("http://foo.com", "com.foo:http", "com.foo:http/"),  # one row with http://foo.com/
        ("http://foo.com./", "com.foo:http/", "com.foo:http/"),  # the dot is no other host
        ("http://user@foo.com/a#b", "com.foo:http/a", "com.foo:http/a"),
        ("http://Foo.COM/", "COM.Foo:http/", "com.foo:http/"),
        ("http://[2600:1F18:0::1]/", "[2600:1F18:0::1]:http/", "[2600:1f18::1]:http/"),
        ("http://foo.com:80/", "com.foo:http:80/", "com.foo:http/"),
    ],
)
def test_keys_of_urls_as_they_are_found(url, nutchs, ours):
    (row,) = UrlRules().admit(pl.Series([url]), filters=False).rows()
    assert row[1] == ours
    assert from_key(ours) == row[0]
    assert nutchs.lower().startswith(ours.partition(":")[0][:3])


@given(st.lists(normal, min_size=2))
def test_a_host_is_one_range_of_keys(urls):
    groups = [host_key_of(key) for key in sorted(map(to_key, urls))]
    starts = [a for a, b in zip(groups, [None, *groups], strict=False) if a != b]
    assert len(starts) == len(set(starts))


# Nutch's examples: byte order. Its row com.foo:http, without a path, is none of ours.
IN_ORDER = [
    "com.foo-bar:http/",
    "com.foo.a:http/",
    "com.foo.www:http/",
    "com.foo1:http/",
    "com.foo:http/",
    "com.foo:http/a",
    "com.foo:http/a/",
    "com.foo:http/a?x=1",
    "com.foo:http:8900/",
    "com.foo:https/",
    "com.fooz:http/",
]


@pytest.mark.parametrize(("before", "after"), list(itertools.pairwise(IN_ORDER)))
def test_keys_sort_as_documented(before, after):
    urls = [from_key(key) for key in (after, before)]
    assert sorted(map(to_key, urls)) == [before, after]


@pytest.mark.parametrize(
    ("scan", "found"),
    [
        ("com.foo:", [key for key in IN_ORDER if key.startswith("com.foo:")]),
        ("com.foo.", ["com.foo.a:http/", "com.foo.www:http/"]),
    ],
    ids=["one host", "below a domain"],
)
def test_a_prefix_is_a_range_of_keys(scan, found):
    assert [key for key in IN_ORDER if scan <= key < f"{scan}\uffff"] == found


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://foo.com",
        "http:///x",
        "http://Foo.com/",
        "http://user@foo.com/",
        "http://foo.com/#x",
        "http://foo.com/\u00e9",
        "http://foo.com/a b",
        "http://foo.com/\n",
        "http://foo.com/\x7f",
        "http://f\u00f6o.com/",
        "mailto:someone@example.com",
        "com.foo:http/",
    ],
)
def test_urls_that_are_not_normalized_have_no_key(url):
    with pytest.raises(BadUrl) as caught:
        to_key(url)
    assert caught.value.reason == "malformed"


def test_long_keys_are_refused():
    start = "http://foo.com/"
    assert len(to_key(start + "x" * (MAX_KEY_BYTES - len("com.foo:http/")))) == MAX_KEY_BYTES
    with pytest.raises(BadUrl, match=r"key_too_long: 'http://foo.com/xx") as caught:
        to_key(start + "x" * MAX_KEY_BYTES)
    assert caught.value.reason == "key_too_long"
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("key", ["", "com.foo", "com.foo:http", "com.foo/x:http/", "a b:http/"])
def test_invalid_keys_have_no_url(key):
    with pytest.raises(BadUrl):
        from_key(key)


def test_parses_as_browsers_do():
    assert parse_url("HTTP:\\\\Foo.com\\a\tb") == "http://foo.com/ab"
    assert parse_url("http://0x7f.1/") == "http://127.0.0.1/"
    assert parse_url("http://a%2fb/") is None
    assert parse_url("\ud800", "http://foo.com/") is None
    assert parse_url("x", "no base") is None


def test_host():
    assert host("https://user@WWW.Foo.com:8080/x") == "www.foo.com"
    with pytest.raises(BadUrl):
        host("http://")


# RFC 3986 5.4.1 and Nutch's examples, but g:h, which is below; hosts have a path as browsers write it.
@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("g:h", "g:h"),
    ],
)
def test_relative_links(link, url):
    base = "http://a/b/c/d;p?q"
    assert parse_url(link, base) == url
    followed = None if url == "g:h" else url.partition("#")[0]
    assert absolute_urls(pl.Series([base]), pl.Series([link])).to_list() == [followed]


@pytest.mark.parametrize(
    ("base", "link", "url"),
    [
        (
            "http://www.fleurie.org/entreprise.asp",
            "?id_entrep=111",
            "http://www.fleurie.org/entreprise.asp?id_entrep=111",
        )
    ],
    ids=["fleurie.org"],
)
def test_links_that_are_a_query(base, link, url):
    assert parse_url(link, base) == url
    assert absolute_urls(pl.Series([base]), pl.Series([link])).to_list() == [url]


def test_host_keys():
    keys = ["com.foo:http:8080/a:b", "[2600::1]:http/x:y", "com.foo", None]
    assert host_keys(pl.Series(keys)).to_list() == ["com.foo", "[2600::1]", "com.foo", None]
    assert [host_key_of(key) for key in keys[:3]] == ["com.foo", "[2600::1]", "com.foo"]
    assert host_keys(pl.Series([], dtype=pl.String)).to_list() == []
