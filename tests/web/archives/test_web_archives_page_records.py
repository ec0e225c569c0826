"""Records of captures, read back with warcio: bytes, digests, what is said where bytes are not the wire's."""

import gzip
import hashlib
import io

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from nutbeam.web.archives.captures import Capture
from nutbeam.web.archives.http_messages import http_answer
from nutbeam.web.archives.member_codecs import record_encoder
from nutbeam.web.archives.page_records import (
    EarlierCapture,
    PageContent,
    answer_of,
    capture_records,
    comparable_digest,
    truncation,
    warcinfo_record,
)
from nutbeam.web.archives.warc_records import encode_record, label_digest

HTML = b"<title>Pears</title> A pear is green."
ZIPPED = gzip.compress(HTML, mtime=0)
CHUNKED = (
    b"".join(b"%x;a=b\r\n%s\r\n" % (len(p), p) for p in (ZIPPED[:9], ZIPPED[9:])) + b"0\r\n\r\n"
)
TYPE = ("Content-Type", "text/html; charset=utf-8")
CODED = (TYPE, ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked"))


def page(*headers, body=HTML, status=200, line=None, **more):
    line = f"HTTP/1.1 {status} OK" if line is None else line
    request = "GET /a HTTP/1.1\r\nHost: a.com\r\n\r\n"
    known = {"request": request, "ip": "::1", "content_type": "text/html", **more}
    return Capture("http://a.com/a", "1-a", 1_795_883_544_123, status=status, status_line=line,
                   headers=headers, body=body, **known)  # fmt: skip


def records(capture, version="1.1", **more):
    return list(capture_records(capture, answer_of(capture), version, **more))


def read_back(made, version="1.1", compression="gzip"):
    """Returns the records as warcio reads them: (type, headers, HTTP head, content, digests right)."""
    encode = record_encoder(compression)
    data = b"".join(encode(encode_record(record, version)) for record in made)
    if compression == "zstd":
        data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    found = []
    for record in ArchiveIterator(io.BytesIO(data), check_digests=True):
        content = record.raw_stream.read()
        found.append((record, content))
    return found


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_page_is_a_request_and_a_response_that_name_each_other(version, compression):
    capture = page(TYPE, ("Content-Length", str(len(HTML))))
    (asked, _), (answer, content) = read_back(records(capture, version), version, compression)
    assert (asked.rec_type, answer.rec_type) == ("request", "response")
    fields = answer.rec_headers
    assert asked.rec_headers["WARC-Concurrent-To"] == fields["WARC-Record-ID"]
    assert fields.protocol == f"WARC/{version}"
    assert fields["WARC-Date"] == f"2026-11-28T16:32:24{'.123' * (version == '1.1')}Z"
    assert fields["WARC-IP-Address"] == "::1"
    assert fields["WARC-Truncated"] is None
    assert content == HTML
    assert answer.digest_checker.passed is True


# Of each body that is stored decoded: what the head says of the body afterwards.
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (CODED, {"X-Crawl-Content-Encoding": "gzip", "X-Crawl-Transfer-Encoding": "chunked"}),
        ([("content-length", "9")], {"X-Crawl-content-length": "9"}),
        ([("Content-Encoding", "BR"), ("Content-Length", "37")],
         {"X-Crawl-Content-Encoding": "BR", "X-Crawl-Content-Length": "37"}),
        ([("Content-Encoding", "utf-8"), ("Transfer-Encoding", "chunked")],
         {"Content-Encoding": "utf-8", "X-Crawl-Transfer-Encoding": "chunked"}),
        ([("Content-Length", "37")], {}),
        ([], {}),
    ],
)  # fmt: skip
def test_the_head_of_a_decoded_body_fits_it_and_tells_the_sent_values(headers, expected):
    head, body, payload = http_answer(page(*headers))
    lines = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:] if line)
    assert expected.items() <= lines.items()
    assert body == payload == HTML
    assert {name.lower() for name in lines}.isdisjoint({"transfer-encoding"})
    assert all(value == str(len(HTML)) for name, value in lines.items() if name == "Content-Length")


def test_a_kept_wire_is_written_as_it_came_and_its_payload_has_no_chunks():
    sent_head = "HTTP/1.1  200 OK\r\nContent-type:text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    capture = page(*CODED, wire=CHUNKED, wire_head=sent_head.replace("  ", " "))
    message = http_answer(capture)
    assert message.head + message.body == sent_head.replace("  ", " ").encode() + CHUNKED
    assert message.payload == ZIPPED
    (answer, content) = read_back(records(capture, request=False))[0]
    assert content == CHUNKED
    right = label_digest(hashlib.sha1(ZIPPED).digest())
    assert answer.rec_headers["WARC-Payload-Digest"] == right
    # warcio's issues 74 and 75: it compares the payload digest with the chunks. Nothing else is wrong.
    assert [text.split(" ")[0] for text in answer.digest_checker.problems] == ["payload"]


def test_chunks_with_the_coding_identity_are_chunks():
    headers = [("Transfer-Encoding", "chunked, identity"), ("Content-Encoding", "gzip")]
    assert http_answer(page(*headers, wire=CHUNKED)).payload == ZIPPED


def test_a_reader_goes_on_after_a_large_head_unless_it_must_read_it():
    large = page(TYPE, *((f"X-{number}", "y" * 1000) for number in range(40)))
    made = [*records(large), *records(page(TYPE))]
    data = b"".join(record_encoder("gzip")(encode_record(record)) for record in made)
    assert len(list(FastIterator(io.BytesIO(data), parse_http=False))) == 4
    assert len(read_back(made)) == 4
    # FastWARC's limit is 32 kB; the guide says so.
    with pytest.raises(OSError, match="Maximum header length"):
        list(FastIterator(io.BytesIO(data)))


# Readers give up a file at a status line that they do not know.
@pytest.mark.parametrize("line", ["HTTP/0.9 200", "HTTP 200 fine", "http/1.1 200 OK", "HTTP/2 200"])
def test_an_odd_status_line_becomes_one_that_readers_know(line):
    (answer, content) = read_back(records(page(TYPE, line=line), request=False))[0]
    assert answer.http_headers.get_statuscode() == "200"
    assert answer.http_headers["X-Crawl-Status-Line"] == line
    assert content == HTML


@pytest.mark.parametrize(
    ("capture", "reason"),
    [
        (page(truncated="length"), "length"),
        (page(truncated="ratio"), "length"),
        (page(truncated="time"), "time"),
        (page(truncated="disconnect"), "disconnect"),
        (page(truncated="encoding"), "unspecified"),
        (page(truncated="checksum"), None),
        (page(truncated="frame"), "disconnect"),
        # The wire is whole, and only its decoded form is cut.
        (page(*CODED, body=HTML[:9], truncated="length", wire=CHUNKED), None),
        (page(*CODED, body=HTML[:9], truncated="length", wire=CHUNKED[:-9]), "length"),
        (page(("Content-Length", "37"), body=b"", truncated="encoding", wire=HTML), None),
        (page(("Content-Length", "99"), truncated="frame", wire=HTML), "disconnect"),
        (page(TYPE, wire_head="HTTP/1.1 200 OK\r\nContent-Type: text/h"), "disconnect"),
        (page(status=404, body=None), "unspecified"),
        (page(("Content-Length", "0"), status=404, body=None), None),
        (page(status=204, body=None), None),
        (page(body=b""), None),
    ],
)
def test_a_body_that_is_not_whole_has_the_reason_of_the_standard(capture, reason):
    assert truncation(capture) == reason
    (answer, _) = read_back(records(capture, request=False))[0]
    assert answer.rec_headers["WARC-Truncated"] == reason
    if b"\r\n0\r\n" not in (capture.wire or b""):  # warcio's issue 74, see above
        assert answer.digest_checker.passed is not False


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize(
    ("status", "profile"), [(200, "identical-payload-digest"), (304, "server-not-modified")]
)
def test_a_revisit_has_the_head_and_names_the_earlier_response(version, status, profile):
    first = page()
    earlier = EarlierCapture(first.url, first.time, first.batch)
    later = Capture("http://a.com/b", "2-b", first.time + 5, status=status, body=HTML if status == 200 else None,
                    status_line=f"HTTP/1.1 {status} OK", headers=(("ETag", "x"),))  # fmt: skip
    original = records(first, version)[-1]
    (revisit, content) = read_back(records(later, version, earlier=earlier), version)[0]
    fields = revisit.rec_headers
    assert revisit.rec_type == "revisit"
    assert fields["WARC-Profile"] == f"http://netpreserve.org/warc/{version}/revisit/{profile}"
    assert fields["WARC-Refers-To"] == f"<{original.id}>"
    assert fields["WARC-Refers-To-Target-URI"] == first.url
    assert fields["WARC-Refers-To-Date"].startswith("2026-11-28T16:32:24")
    assert revisit.http_headers["ETag"] == "x"
    assert content == b""
    assert fields["WARC-Payload-Digest"] == (
        original.field("WARC-Payload-Digest") if status == 200 else None
    )


def test_text_and_links_refer_to_the_response():
    parsed = PageContent("A pear.", [("title", "Pears\r\nX: y")], ["http://a.com/b"])
    made = records(page(), request=False, page=parsed, text=True, data=True)
    answer, text, data = read_back(made)
    own = answer[0].rec_headers["WARC-Record-ID"]
    assert text[0].rec_headers["WARC-Refers-To"] == data[0].rec_headers["WARC-Concurrent-To"] == own
    assert text[1] == b"A pear."
    assert data[1] == b"title: Pears X: y\r\noutlink: http://a.com/b L a/@href\r\n"


def test_a_file_is_a_resource_and_a_failure_nothing():
    local = Capture("file:///a", "1-a", 0, body=b"abc", content_type="text/plain")
    ((record, content),) = read_back(records(local))
    assert (record.rec_type, content, record.rec_headers["Content-Type"]) == (
        "resource",
        b"abc",
        "text/plain",
    )
    assert records(Capture("http://a.com/", "1-a", 0)) == []
    assert records(Capture("file:///a", "1-a", 0)) == []


def test_no_revisit_is_of_an_empty_or_cut_payload():
    for capture in (page(body=b""), page(truncated="length"), page(body=None)):
        assert comparable_digest(capture, answer_of(capture)) is None
    assert comparable_digest(page(), answer_of(page())) == hashlib.sha1(HTML).digest()


def test_values_of_a_page_add_no_line_to_a_record():
    odd = page(content_type="a\r\nWARC-Type: x")
    local = Capture("ftp://a.com/x", "1-a", 0, body=b"", content_type=odd.content_type)
    data = encode_record(records(local)[0])
    assert b"\nWARC-Type: x" not in data
    assert b"Content-Type: a WARC-Type: x\r\n" in data


def test_the_same_capture_makes_the_same_bytes_and_another_one_other_ids():
    assert records(page()) == records(page())
    first, later = page(), Capture("http://a.com/a", "2-a", 9, status=200, body=b"")
    assert records(first)[-1].id != records(later)[-1].id
    assert warcinfo_record("a", 0, []).id != warcinfo_record("b", 0, []).id


def test_fastwarc_finds_the_same_records_and_digests():
    made = [warcinfo_record("a.warc.gz", 0, [("software", "x")]), *records(page(*CODED))]
    data = b"".join(record_encoder("gzip")(encode_record(record)) for record in made)
    kinds = []
    for record in FastIterator(io.BytesIO(data), parse_http=False):
        kinds.append(record.headers["WARC-Type"])
        assert record.verify_block_digest(consume=False)
        if kinds[-1] == "response":
            record.parse_http()
            assert record.verify_payload_digest(consume=False)
            assert record.reader.read() == HTML
    assert kinds == ["warcinfo", "request", "response"]
