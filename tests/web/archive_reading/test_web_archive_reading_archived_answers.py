"""Records of many writers become the responses that a fetch would have had."""

import gzip

import brotli
import pytest
import zstandard

from nutbeam.web.archive_reading.archived_answers import (
    BadAnswer,
    BodyLimits,
    archived_response,
    reason_to_skip,
    revisited_response,
)
from nutbeam.web.archive_reading.archived_records import ArchivedRecord
from nutbeam.web.archives.captures import Capture
from nutbeam.web.archives.page_records import answer_of, capture_records
from nutbeam.web.exchange.status import Response

LIMITS = BodyLimits(1000, 2000)
HTTP = "application/http; msgtype=response"


def record(block=b"", kind="response", url="http://a.com/", content_type=HTTP, size=None, **fields):
    values = {"warc-type": kind, "warc-target-uri": url, "warc-date": "2020-01-02T03:04:05Z"}
    values |= {"content-type": content_type}
    values |= {name.replace("_", "-"): value for name, value in fields.items()}
    size = len(block) if size is None else size
    return ArchivedRecord("1.0", list(values.items()), 0, 0, 0, size, block)


def answer(head, body, **fields):
    block = head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body
    return archived_response(record(block, **fields), "", LIMITS, keeps_wire=True)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Content-Encoding: gzip", gzip.compress(b"page", mtime=0)),
        ("Content-Encoding: br", brotli.compress(b"page")),
        ("Content-Encoding: zstd", zstandard.compress(b"page")),
        ("Content-Encoding: gzip", b"page"),
        ("Content-Encoding: br", b"page"),
        ("Content-Encoding: zstd", b"page"),
        ("Transfer-Encoding: chunked", b"4\r\npage\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", b"page"),
        ("Content-Length: 1", b"page"),
    ],
)
def test_codings_are_undone_where_they_are_there(headers, body):
    response = answer(f"HTTP/1.1 200 OK\n{headers}", body)
    assert (response.body, response.truncated, response.error) == (b"page", None, None)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Transfer-Encoding: chunked", b"4\r\n<p>a\r\n"),
        ("Transfer-Encoding: chunked", b"ff\r\n<p>a"),
        ("Transfer-Encoding: chunked", b"4\r\n<p>a\r\nnot a size\r\n"),
        ("Content-Length: 99", b"<p>a"),
    ],
    ids=["no last chunk", "half a chunk", "a damaged chunk", "a short body"],
)
def test_an_answer_that_broke_off_is_marked_unless_its_document_is_whole(headers, body):
    html = f"HTTP/1.1 200 OK\nContent-Type: text/html\n{headers}"
    broken = answer(html, body)
    assert (broken.body, broken.truncated) == (b"<p>a", "disconnect")
    page = b"<html>a</html>"
    whole = answer(html, body.replace(b"<p>a", page).replace(b"4", b"%x" % len(page)))
    assert (whole.body, whole.truncated) == (page, "frame")


def test_an_archive_that_says_that_a_whole_document_broke_off_is_no_reason_not_to_parse_it():
    head = "HTTP/1.1 200 OK\nContent-Type: text/html"
    assert answer(head, b"<html>a</html>", warc_truncated="unspecified").truncated == "frame"
    assert answer(head, b"<html>a</html>", warc_truncated="length").truncated == "length"


def test_a_coding_that_cannot_be_undone_is_an_error_as_in_a_fetch():
    response = answer("HTTP/1.1 200 OK\nContent-Encoding: compress", b"\x1f\x9d...")
    assert response.error == "bad_encoding"


@pytest.mark.parametrize(
    "line", ["HTTP/2 200", "HTTP/1.1 200", "HTTP/2.0 200 OK", "http/1.0 200 x"]
)
def test_status_lines_of_browsers_and_their_pseudo_headers_are_read(line):
    response = answer(f"{line}\n:status: 200\nContent-Type: text/html", b"page")
    assert (response.status, response.body, response.header("content-type")) == (
        200,
        b"page",
        "text/html",
    )
    assert response.status_line == line


@pytest.mark.parametrize(
    "head", ["X: a\0b", "X\0: a", "\0", "Content-Type\0: x", "Content-Encoding: gzip\0"]
)
def test_nuls_in_the_head_of_an_answer_cost_at_most_its_header(head):
    response = answer(f"HTTP/1.1 200 OK\n{head}\nContent-Language: de", b"page")
    assert (response.status, response.body, response.header("content-language")) == (
        200,
        b"page",
        "de",
    )


def test_a_response_without_a_type_is_of_http_if_its_url_is():
    response = answer("HTTP/1.1 404 No\nX: y", b"page", content_type="")
    assert (response.status, response.body) == (404, b"page")
    ftp = archived_response(record(b"file", url="ftp://a.com/", content_type=""), "", LIMITS)
    assert (ftp.status, ftp.body) == (200, b"file")


def test_interim_heads_come_before_the_answer():
    assert answer("HTTP/1.1 103 Early Hints\n\nHTTP/1.1 404 No", b"").status == 404


@pytest.mark.parametrize(
    "block", [b"", b"<html>", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"]
)
def test_a_block_without_an_answer_has_a_reason(block):
    with pytest.raises(BadAnswer, match="bad_http"):
        archived_response(record(block), "", LIMITS)


def test_bodies_are_cut_at_their_limits_and_say_so():
    head = "HTTP/1.1 200 OK\nContent-Type: text/html"
    assert answer(head, b"x" * 1001).truncated == "length"
    assert len(answer(head, b"x" * 1001).body) == 1000
    pdf = answer("HTTP/1.1 200 OK\nContent-Type: application/pdf", b"x" * 1500)
    assert (len(pdf.body), pdf.truncated) == (1500, None)
    bomb = answer(head + "\nContent-Encoding: gzip", gzip.compress(b"x" * 10**7, mtime=0))
    assert (len(bomb.body), bomb.truncated) == (1000, "length")
    assert answer(head, b"x", size=9999).truncated == "length"
    assert answer(head, b"x", warc_truncated="time").truncated == "time"
    assert answer(head, b"x", warc_truncated="unspecified").truncated == "disconnect"


@pytest.mark.parametrize(
    ("record_", "reason"),
    [
        (record(kind="metadata"), "metadata"),
        (record(kind="strange"), "other_kind"),
        (record(url="dns:a.com"), "dns"),
        (record(url="urn:x:y"), "other_scheme"),
        (record(url="http://a.com/robots.txt?x"), None),
        (record(url="http://a.com/robots.txt"), "robots"),
        (record(warc_date="soon"), "bad_date"),
        (record(warc_date="2020-01-02T03:09:05Z"), None),  # 5 minutes: another machine's clock
        (record(warc_date="2020-01-02T03:09:06Z"), "future_date"),
        (record(kind="revisit", warc_date="2037-01-01"), "future_date"),
        (record(kind="Revisit"), None),
    ],
)
def test_other_records_are_left_out_with_a_reason(record_, reason):
    assert reason_to_skip(record_, record().time) == reason


def test_a_resource_becomes_a_page_with_its_type():
    response = archived_response(record(b"text", "resource", content_type="text/plain"), "", LIMITS)
    assert (response.status, response.header("content-type"), response.body) == (
        200,
        "text/plain",
        b"text",
    )


@pytest.mark.parametrize("wire", [None, gzip.compress(b"page", mtime=0)])
def test_the_records_that_we_write_are_read_back(wire):
    headers = (
        ("Content-Type", "text/html"),
        ("Content-Encoding", "gzip"),
        ("Content-Length", "24"),
    )
    capture = Capture(
        "https://a.com/", "1", 1_577_934_245_000, status=200, status_line="HTTP/1.1 200 OK",
        headers=headers, body=b"page", ip="1.2.3.4", wire=wire, cipher="TLSv1.3 TLS_AES_128_GCM_SHA256",
    )  # fmt: skip
    (written,) = capture_records(capture, answer_of(capture), request=False)
    fields = [("warc-type", written.kind), ("warc-date", "2020-01-02T03:04:05Z")]
    fields += [(name.lower(), value) for name, value in written.fields]
    block = b"".join(written.block)
    read = archived_response(
        ArchivedRecord("1.1", fields, 0, 0, 0, len(block), block), "", LIMITS, keeps_wire=True
    )
    assert (read.url, read.started, read.body, read.ip) == (
        capture.url, capture.time, b"page", "1.2.3.4"
    )  # fmt: skip
    assert tuple(read.headers) == headers
    assert read.wire == wire
    assert read.cipher == capture.cipher


def test_a_revisit_has_its_own_head_and_the_body_of_the_earlier_capture():
    source = Response("http://a/", status=200, headers=[("A", "1")], body=b"x")
    revisit = Response("http://b/", status=200, headers=[("A", "2")], started=5)
    page = revisited_response(revisit, source)
    assert (page.url, page.headers, page.body, page.started) == ("http://b/", [("A", "2")], b"x", 5)
    unchanged = revisited_response(Response("http://b/", status=304, started=5), source)
    assert (unchanged.status, unchanged.headers, unchanged.started) == (200, [("A", "1")], 5)
