import email.utils
import time

import pytest

from nutbeam.web.exchange.status import (
    FETCH_STATUS_NAMES,
    PROTOCOL_STATUS_NAMES,
    STATUS_TABLE,
    Response,
    classify,
    parse_codes,
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "fetch_status", "protocol_status"),
    [
        *((200, 33, 1), (201, 33, 1), (203, 33, 1), (204, 33, 1), (206, 33, 1)),
        *((300, 36, 12), (301, 36, 12), (305, 36, 12), (308, 36, 12), (399, 36, 12)),
        *((302, 35, 13), (303, 35, 13), (307, 35, 13)),
        *((400, 37, 11), (410, 37, 11), (418, 37, 11), (451, 37, 11)),
        *((401, 37, 17), (403, 37, 17), (407, 37, 17), (404, 37, 14)),
        *((408, 34, 16), (425, 34, 16), (429, 34, 16), (500, 34, 16), (503, 34, 16), (599, 34, 16)),
        *((304, 34, 16), (600, 34, 16), (999, 34, 16)),
    ],
)
def test_each_status(status, fetch_status, protocol_status):
    outcome = classify(Response("http://a/", status=status, reason="Why"))
    assert outcome[:2] == (fetch_status, protocol_status)
    assert protocol_status in PROTOCOL_STATUS_NAMES
    assert bool(outcome.message) == (status >= 300)


def test_each_code_is_in_the_table_once_and_is_classified_as_there():
    rows = {code: row for row in STATUS_TABLE for code in parse_codes(row.codes)}
    codes = [code for row in STATUS_TABLE for code in parse_codes(row.codes)]
    assert sorted(codes) == list(range(100, 600))
    request = "GET / HTTP/1.1\r\nIf-None-Match: x\r\n\r\n"
    for code, row in rows.items():
        outcome = classify(Response("http://a/", status=code, reason="Why", request=request))
        assert outcome[:2] == (row.fetch_status, row.protocol_status), code
        assert row.fetch_status in FETCH_STATUS_NAMES
        assert row.protocol_status in PROTOCOL_STATUS_NAMES
        assert row.meaning.endswith(".")


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503, 599])
def test_retry_after_counts_for_statuses_that_are_tried_again(status):
    headers = [("Retry-After", "7")]
    assert classify(Response("http://a/", status=status, headers=headers)).retry_after_s == 7


@pytest.mark.parametrize("status", [200, 301, 403, 404, 410])
def test_retry_after_is_ignored_for_statuses_that_are_not_tried_again(status):
    headers = [("Retry-After", "7")]
    assert classify(Response("http://a/", status=status, headers=headers)).retry_after_s is None


def test_304_after_a_conditional_request_is_not_modified():
    request = "GET / HTTP/1.1\r\nIf-None-Match: x\r\n\r\n"
    assert classify(Response("http://a/", status=304, request=request))[:2] == (38, 21)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "http://a.example/b"),
        ("https://b.example", "https://b.example/"),
        ("?q", "http://a.example/x/y?q"),
        ("../ä".encode().decode("latin-1"), "http://a.example/%C3%A4"),
        # Bytes that are not UTF-8: Latin-1, windows-1251, Shift-JIS (with an ASCII byte), GBK.
        ("/caf\xe9", "http://a.example/caf%E9"),
        ("caf\xe9?q=\xfc&x=a b#\xe9", "http://a.example/x/caf%E9?q=%FC&x=a%20b#%E9"),
        ("/\xcf\xf0\xe8", "http://a.example/%CF%F0%E8"),
        ("/\x95\x5c.html", "http://a.example/%95/.html"),  # a backslash is a slash in URLs
        ("/?w=\xd6\xd0", "http://a.example/?w=%D6%D0"),
        ("/\xc3\xa4\xe9", "http://a.example/%C3%A4%E9"),
        ("/\x80\xff%e9", "http://a.example/%80%FF%e9"),
        ("//b.example/\xe9", "http://b.example/%E9"),
        ("http://b\xfccher.example/\xe9", "http://xn--bcher-kva.example/%E9"),
        ("http://b\xc3\xbccher.example/\xe9", "http://xn--bcher-kva.example/%E9"),
        ("http://me:\xe9@b.example/\xe9", "http://b.example/%E9"),
        ("//[", None),
        ("", None),
        (None, None),
    ],
)
def test_redirect_targets(location, target):
    headers = [] if location is None else [("LOCATION", location)]
    outcome = classify(Response("http://a.example/x/y", status=302, headers=headers))
    assert outcome.redirect_target == target
    assert outcome.fetch_status == 35


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("2592000", 2_592_000),
        ("2592001", 2_592_000),
        ("9" * 5000, 2_592_000),
        *(("-5", None), ("+5", None), ("1.5", None), ("1e3", None), ("soon", None), ("", None)),
        *(("\u0665", None), ("Tue, 99 Foo 9999 99:99:99 GMT", None), (None, None)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 2_592_000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ],
)
def test_retry_after(value, seconds):
    headers = [] if value is None else [("Retry-After", value)]
    outcome = classify(Response("http://a/", status=503, headers=headers))
    assert outcome.retry_after_s == seconds


@pytest.mark.parametrize("off", [-50 * 365 * 86_400, -3600, 86_400])
def test_a_date_of_retry_after_counts_from_the_date_of_the_answer(off):
    now = time.time() + off
    headers = [(name, email.utils.formatdate(now + wait, usegmt=True))
               for name, wait in (("Date", 0), ("Retry-After", 100))]  # fmt: skip
    assert classify(Response("http://a/", status=429, headers=headers)).retry_after_s == 100


def test_retry_after_as_a_date():
    for ahead, expected in ((100, 100), (-100, 0)):
        date = email.utils.formatdate(time.time() + ahead, usegmt=True)
        outcome = classify(Response("http://a/", status=429, headers=[("Retry-After", date)]))
        assert outcome.retry_after_s == pytest.approx(expected, abs=2)
