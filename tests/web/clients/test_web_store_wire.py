"""``--store_wire``: answers are kept as they came, as far as status line, headers and body lack it."""

import gzip

import pytest
from one_request import ask
from web_servers import reply

pytestmark = pytest.mark.usefixtures("each_client")

HTML = b"<title>Pears</title>" * 9
ZIPPED = gzip.compress(HTML)
CHUNKS = (
    b"".join(b"%x;n=v\r\n%s\r\n" % (len(p), p) for p in (ZIPPED[:5], ZIPPED[5:]))
    + b"0\r\nT: x\r\n\r\n"
)
PLAIN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


# Of each answer: what is kept of its head and of its body beside the fields of a response.
@pytest.mark.parametrize(
    ("head", "body", "kept_head", "kept_body"),
    [
        (PLAIN_HEAD + b"Content-Length: 180\r\n\r\n", HTML, False, False),
        (PLAIN_HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNKS, False, True),
        (PLAIN_HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(ZIPPED), ZIPPED, False, True),
        (b"HTTP/1.1 200 OK\nX:1\r\nContent-length:  180 \r\n\r\n", HTML, True, False),
        (PLAIN_HEAD + b"A: 1\r\n  folded\r\nContent-Length: 180\r\n\r\n", HTML, True, False),
        (b"HTTP/1.1 404 Gone away\r\nContent-Length: 180\r\n\r\n", HTML, False, True),
    ],
)  # fmt: skip
def test_bytes_that_the_fields_of_a_response_lack_are_kept(head, body, kept_head, kept_body):
    response, _ = ask(lambda _: head + body, store_wire=True)
    assert response.body == HTML
    assert response.wire_head == (head.decode() if kept_head else None)
    assert response.wire == (body if kept_body else None)


def test_nothing_is_kept_without_the_option():
    response, _ = ask(lambda _: b"HTTP/1.1 404 X\nA:1\r\nContent-Length: 2\r\n\r\nhi")
    assert (response.wire, response.wire_head, response.cipher) == (None, None, "")


def test_a_head_with_a_password_is_not_kept():
    answer = reply(b"", "302 Found", "Location:http://me:secret@b.example.com/")
    response, _ = ask(lambda _: answer, store_wire=True)
    assert response.wire_head is None
    assert response.header("location") == "http://b.example.com/"


def test_a_cut_answer_has_the_bytes_that_came():
    head = PLAIN_HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    response, _ = ask(lambda _: head + CHUNKS, store_wire=True, content_limit=10)
    assert (response.body, response.truncated) == (HTML[:10], "length")
    assert CHUNKS.startswith(response.wire)
