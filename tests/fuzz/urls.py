"""Fuzzing of URLs: parsing, normalizing, row keys, links of pages, and columns of them."""

import re
from collections.abc import Callable

import polars as pl

from nutbeam.policy.base.key_columns import host_keys
from nutbeam.policy.scope import TrapOptions, trap_reasons
from nutbeam.web.normalizers import basic
from nutbeam.web.normalizers.basic import normalize_basic
from nutbeam.web.rules import url_rules as rules
from nutbeam.web.rules.url_rules import UrlRules
from nutbeam.web.urls import row_keys as urls
from nutbeam.web.urls.absolute_links import absolute_urls
from nutbeam.web.urls.row_keys import BadUrl, from_key, host_key_of, to_key
from nutbeam.web.urls.schemes import scheme_of

from .target import DATA, Clock, Target

REASONS = {
    "malformed", "scheme_not_allowed", "file_elsewhere", "url_too_long", "key_too_long",
    "normalizer_loop", "normalizer_timeout", "filtered", "filter_timeout",
}  # fmt: skip
WORDS = [
    *(b"http://", b"https:", b"file:///", b"ftp://", b"//", b"/../", b"/./", b"%2e", b"%2F", b"%"),
    *(b"@", b":80", b":443", b":", b"?", b"#", b"&", b"[::1]", b"xn--", b"\\", b"\t", b"\n", b" "),
    *(b".", b"..", b"0x7f.1", b"\xc3\xa4", b"\xe2\x80\x8b", b"sid=1", b";jsessionid=", b"#!", b"|"),
]

_RULES = UrlRules()
_ALL = UrlRules(rules.UrlOptions(schemes=("http", "https", "ftp", "file")))


def check(data: bytes) -> None:
    """The input is a URL."""
    line = data.decode("utf-8", "replace")
    with Clock(1):
        _check_parsed(line)
        _check_normalized(line)
        url, key, reason = _admitted(line, _RULES)
        if url is not None:
            assert _admitted(url, _RULES) == (url, key, None), (line, url)
        assert reason is None or reason in REASONS
        assert _RULES.admit(pl.Series([line])).row(0) == (url, key, reason)


def check_columns(data: bytes) -> None:
    """Lines of the input are URLs; what is made of a column is what is made of each."""
    lines = data.decode("utf-8", "replace").split("\r")[:20]
    with Clock(3):
        _check_resolved(lines)
        _check_admitted(lines, _ALL)
        keys = pl.Series([key for line in lines if (key := _admitted(line, _ALL)[1])])
        if len(keys):
            assert host_keys(keys).to_list() == [host_key_of(key) for key in keys]
            first = trap_reasons(keys.head(1), TrapOptions()).item()
            assert trap_reasons(keys, TrapOptions())[0] == first, keys


def _check_parsed(line: str) -> None:
    url = urls.parse_url(line)
    if url is not None:
        assert url.isascii() or not url.startswith(("http:", "https:")), url
        assert urls.parse_url(url) == url, (line, url, urls.parse_url(url))


def _check_normalized(line: str) -> None:
    url = _or_reason(normalize_basic, line)
    if url in REASONS:
        return
    assert normalize_basic(url) == url, (line, url, normalize_basic(url))
    if url.startswith(("http:", "https:", "ftp:", "file:///")):
        key = _or_reason(to_key, url)
        if key == "key_too_long":
            assert len(url) > 4000
        else:
            assert from_key(key) == url, (url, key)


def _or_reason(function: Callable[[str], str], url: str) -> str:
    try:
        return function(url)
    except BadUrl as error:
        return error.reason


def _admitted(line: str, use: UrlRules) -> tuple[str | None, str | None, str | None]:
    """Returns URL and key, or the reason for neither, as the parts of the rules say one by one."""
    if len(line) > use.options.max_url_length:
        return None, None, "url_too_long"
    try:
        url = use.normalizer("outlink").normalize(line)
        if scheme_of(url) not in use.options.schemes:
            return None, None, "scheme_not_allowed"
        if url.startswith("file:") and not url.startswith("file:///"):
            return None, None, "file_elsewhere"
        key = to_key(url)
    except BadUrl as error:
        return None, None, error.reason
    reason = use.filters.judge(url)[0]
    return (None, None, reason) if reason else (url, key, None)


def _check_resolved(lines: list[str]) -> None:
    base, *hrefs = lines
    found = absolute_urls(
        pl.Series([base] * len(hrefs), dtype=pl.String), pl.Series(hrefs, dtype=pl.String)
    )
    for href, url in zip(hrefs, found, strict=True):
        right = urls.parse_url(href, base)
        if right is None or not right.startswith(("http:", "https:", "ftp:", "file:")):
            right = None
        else:
            right = right.partition("#")[0]
        assert url == right, (base, href, url, right)


def _check_admitted(lines: list[str], use: UrlRules) -> None:
    few = rules.FEW, basic._FEW
    rules.FEW = basic._FEW = 0  # else so few go one by one
    try:
        admitted = use.admit(pl.Series(lines, dtype=pl.String)).rows()
    finally:
        rules.FEW, basic._FEW = few
    assert admitted == [_admitted(line, use) for line in lines], lines


def seeds() -> list[bytes]:
    """Returns URLs of the tests, and such as are met."""
    text = (DATA / "web" / "rules" / "test_web_normalize.py").read_text("utf-8")
    found = [url for url in re.findall(r'"([^"\n]*)"', text) if "://" in url]
    links = ("g", "../g", "?y#s", "//g", "", ";x", "#!a=b", "javascript:0", "mailto:a@b")
    return [url.encode() for url in (*dict.fromkeys(found), *links)]


def column_seeds() -> list[bytes]:
    """Returns several URLs at once, a base before relative ones among them."""
    known = seeds()
    parts = [known[at : at + 5] for at in range(0, len(known), 5)]
    return [b"\r".join(part) for part in (*parts, [b"http://a/b/c/d;p?q", *known[-9:]])]


TARGETS = (
    Target("urls", check, seeds, WORDS, 600),
    Target("columns", check_columns, column_seeds, [*WORDS, b"\r"], 1500),
)
