"""SURT keys as Internet Archive's canonicalizer makes them, and lines of CDXJ."""

import json

import pytest

from nutbeam.web.archives.cdxj import IndexedRecord, cdxj_line
from nutbeam.web.archives.surt import surt_key

SESSION = "0123456789abcdef0123456789ABCDEF"


# Compared with the package surt, which pywb uses, and 3,000 more made-up URLs.
@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.com/", "com,example)/"),
        ("https://www2.example.com:443/A/B.html", "com,example)/a/b.html"),
        ("https://example.com:80/", "com,example:80)/"),
        ("http://example.com:8080/a/?b=2&a=1", "com,example:8080)/a?a=1&b=2"),
        ("http://example.com/?", "com,example)/"),
        (f"http://example.com/a;jsessionid={SESSION}?x=1", f"com,example)/a;jsessionid={SESSION.lower()}?x=1"),
        (f"http://example.com/a?jsessionid={SESSION}&x=1", "com,example)/a?x=1"),
        (f"http://example.com/a?x=1&PHPSESSID={SESSION}", "com,example)/a?&x=1"),
        ("http://example.com/a?cfid=123&cftoken=456&x=1", "com,example)/a?x=1"),
        ("http://example.com/a?b=&a", "com,example)/a?a&b="),
        ("http://example.com/%7Ea/%e4%f6?q=%C3%A9", "com,example)/~a/%e4%f6?q=%c3%a9"),
        ("http://example.com/a%3Fb?c=%26&a=%3D", "com,example)/a?b?&a==&c="),
        ("http://example.com/a%2541", "com,example)/aa"),
        ("http://example.com//a//b/../c", "com,example)/a/c"),
        ("http://example.com/(S(abcdefghijklmnopqrstuvwx))/page.aspx?x=1", "com,example)/page.aspx?x=1"),
        ("http://127.0.0.1:8000/x", "1,0,0,127:8000)/x"),
        ("http://[::1]:8080/x", "::1:8080)/x"),
        ("http://user:pw@example.com/x#y", "com,example)/x"),
        ("http://www.com/a", "com)/a"),
        ("file:///home/a", "file:/home/a"),
    ],
)  # fmt: skip
def test_keys_are_those_that_other_tools_look_up(url, key):
    assert surt_key(url) == key


def test_a_line_of_a_revisit_has_its_own_type_and_the_digest_of_the_payload():
    row = IndexedRecord(
        "http://a.com/", 1_795_883_544_123, "revisit", 200, "text/html", b"\0" * 20, "f", 1, 2
    )
    key, time, fields = cdxj_line(row).split(" ", 2)
    assert (key, time) == ("com,a)/", "20261128163224")
    assert json.loads(fields) == {
        "url": "http://a.com/", "mime": "warc/revisit", "status": "200", "digest": f"sha1:{'A' * 32}",
        "length": "2", "offset": "1", "filename": "f",
    }  # fmt: skip
