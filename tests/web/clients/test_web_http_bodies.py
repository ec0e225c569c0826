"""Bodies: framing, limits and codings, with both HTTP clients."""

import functools
import gzip
import io
import random
import tracemalloc
import zipfile
import zlib

import brotli
import pytest
import zstandard
from http_clients import Client, HttpOptions
from one_request import URL, ask
from web_servers import connect_to, reply, serve

from nutbeam.web.content.whole_bodies import is_whole_document
from nutbeam.web.exchange.status import classify

pytestmark = pytest.mark.usefixtures("each_client")


def test_chunked_bodies():
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n"
    response, _ = ask(lambda _: wire)
    assert (response.body, response.error) == (b"abcde", None)


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_no_body_where_there_can_be_none(status):
    with serve(lambda path, connection: f"HTTP/1.1 {status}\r\n\r\n".encode()) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        assert [client.get(URL).error for _ in range(2)] == [None, None]
        assert server.connections == 1


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_that_breaks_off_is_an_error(chunked):
    head = (
        b"Transfer-Encoding: chunked\r\n\r\n64\r\n" if chunked else b"Content-Length: 100\r\n\r\n"
    )
    wire = b"HTTP/1.1 200 OK\r\n" + head + b"abc"
    response, _ = ask(lambda connection: connection.sendall(wire))
    assert (response.status, response.error, response.truncated) == (
        200,
        "incomplete",
        "disconnect",
    )
    assert classify(response)[:3] == (34, 16, "incomplete")


def test_a_broken_body_of_another_status_does_not_matter():
    wire = b"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nabc"
    response, _ = ask(lambda connection: connection.sendall(wire))
    assert classify(response)[:2] == (37, 14)


@pytest.mark.parametrize(
    "framing", ["", "Transfer-Encoding: chunked\r\n", "Content-Length: 99999999\r\n"]
)
def test_an_endless_body_is_cut_at_the_limit(framing):
    def answer(connection):
        connection.sendall(f"HTTP/1.1 200 OK\r\n{framing}\r\n".encode())
        part = b"x" * 10_000
        for _ in range(10_000):
            connection.sendall(b"2710\r\n%s\r\n" % part if "chunked" in framing else part)

    response, _ = ask(answer, content_limit=50_000)
    assert (response.body, response.truncated, response.error) == (b"x" * 50_000, "length", None)


@pytest.mark.parametrize(
    ("content_type", "options", "kept"),
    [
        ("text/html", {}, 1 << 20),
        ("application/pdf", {}, 3_000_000),
        (" Application/PDF; x=y", {}, 3_000_000),
        ("application/vnd.oasis.opendocument.text", {}, 3_000_000),
        ("application/pdf", {"document_limit": 2_000_000}, 2_000_000),
        ("application/pdf", {"document_limit": 10}, 1 << 20),
        ("application/pdf", {"document_limit": -1}, 3_000_000),
        ("application/pdf", {"content_limit": -1, "document_limit": 10}, 3_000_000),
    ],
)
def test_documents_have_a_limit_of_their_own(content_type, options, kept):
    header = f"Content-Type: {content_type}"
    options = {"content_limit": 1 << 20} | options
    response, _ = ask(lambda _: reply(b"x" * 3_000_000, "200 OK", header), **options)
    assert len(response.body) == kept
    assert response.truncated == (None if kept == 3_000_000 else "length")


def test_a_body_as_long_as_the_limit_is_whole():
    for length, truncated in ((10, None), (11, "length")):
        response, _ = ask(lambda _, length=length: reply(b"x" * length), content_limit=10)
        assert (response.body, response.truncated) == (b"x" * 10, truncated)


def test_a_body_that_breaks_off_at_the_limit_is_cut_by_it():
    """What follows the limit would not have been kept, so that it did not come changes nothing."""
    for length, error, truncated in ((10, None, "length"), (9, "incomplete", "disconnect")):
        wire = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * length
        response, _ = ask(lambda c, wire=wire: c.sendall(wire), content_limit=10)
        assert (len(response.body), response.error, response.truncated) == (
            length,
            error,
            truncated,
        )


def test_a_negative_limit_is_none():
    body = b"x" * 5_000_000
    assert ask(lambda _: reply(body), content_limit=-1)[0].body == body
    zipped = reply(gzip.compress(b"x" * 2_000), "200 OK", "Content-Encoding: gzip")
    assert len(ask(lambda _: zipped, content_limit=-1)[0].body) == 2_000


def raw_deflate(data):
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflater.compress(data) + deflater.flush()


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("br", brotli.compress),
        ("BR", brotli.compress),
        ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
        ("br, deflate", lambda data: zlib.compress(brotli.compress(data))),
        ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
        ("gzip", lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:])),
        ("gzip", lambda data: gzip.compress(data) + b"trailing"),
        ("zstd", zstandard.compress),
        ("zstd", lambda data: zstandard.compress(data[:1000]) + zstandard.compress(data[1000:])),
        ("zstd", lambda data: zstandard.compress(data) + b"trailing"),
        ("gzip", lambda data: data),
        ("identity", lambda data: data),
        ("utf-8", lambda data: data),
    ],
)
def test_codings_are_undone(coding, encode):
    body = b"<html>" + bytes(range(256)) * 1000
    wire = reply(encode(body), "200 OK", f"Content-Encoding: {coding}")
    response, _ = ask(lambda _: wire)
    assert (response.body, response.truncated, response.error) == (body, None, None)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("br", b"\xff" * 20),
        ("br", brotli.compress(bytes(range(256)) * 100)[:200] + b"\xff" * 200),
        ("br, br, br", b"x"),
        ("zstd", b"x" * 20),
        ("compress", b"x"),
        ("gzip, gzip, gzip", b"x"),
        ("gzip", gzip.compress(b"x" * 10_000, mtime=0)[:15] + b"\xff" * 20),
    ],
)
def test_codings_that_cannot_be_undone(coding, body):
    response, _ = ask(lambda _: reply(body, "200 OK", f"Content-Encoding: {coding}"))
    assert (response.error, response.truncated) == ("bad_encoding", "encoding")


def test_a_gzip_body_without_its_end_is_kept_as_truncated():
    half = gzip.compress(b"x" * 10_000)[:-8]
    response, _ = ask(lambda _: reply(half, "200 OK", "Content-Encoding: gzip"))
    assert (response.body, response.truncated, response.error) == (b"x" * 10_000, "encoding", None)


@functools.cache
def bomb(layers):
    """200 MB of zeros, 200 kB once compressed, 1 kB twice."""
    deflater = zlib.compressobj(9, wbits=31)
    data = b"".join(deflater.compress(bytes(1_000_000)) for _ in range(200)) + deflater.flush()
    return data if layers == 1 else gzip.compress(data)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("limit", [2_000_000, -1])
def test_bombs_are_cut(layers, limit):
    wire = reply(bomb(layers), "200 OK", "Content-Encoding: " + ", ".join(["gzip"] * layers))
    response, _ = ask(lambda _: wire, content_limit=limit)
    # One layer of gzip cannot hide 2 MB in what is read at once; two can.
    assert response.truncated == ("length" if (layers, limit) == (1, 2_000_000) else "ratio")
    assert len(response.body) < 25_000_000
    assert response.error is None


@functools.cache
def gigabyte(coding):
    """1 GiB of zeros: 1 MB of gzip, 1.6 kB of brotli, 33 kB of zstd."""
    part = bytes(1 << 20)
    if coding == "gzip":
        member = gzip.compress(part, 9)  # RFC 1952 2.2: members may follow each other
        return member * 1024
    if coding == "zstd":
        encoder = zstandard.ZstdCompressor().compressobj()
        return b"".join(encoder.compress(part) for _ in range(1024)) + encoder.flush()
    compressor = brotli.Compressor(quality=5)
    return b"".join(compressor.process(part) for _ in range(1024)) + compressor.finish()


@pytest.mark.few(3)
@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
@pytest.mark.parametrize(("limit", "most"), [(1 << 20, 1 << 20), (-1, 16 << 20)])
def test_a_gigabyte_in_disguise_takes_little_memory(coding, limit, most):
    wire = reply(gigabyte(coding), "200 OK", f"Content-Encoding: {coding}")
    ask(lambda _: reply(b"x"))  # what is loaded once is not counted
    tracemalloc.start()
    try:
        response, _ = ask(lambda _: wire, content_limit=limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert response.truncated in ("length", "ratio")
    assert response.error is None
    assert len(response.body) <= most
    assert peak < 3 * most + (8 << 20)


def test_a_brotli_body_without_its_end_is_kept_as_truncated():
    body = random.Random(1).randbytes(100_000)
    half = brotli.compress(body)[:-1000]
    response, _ = ask(lambda _: reply(half, "200 OK", "Content-Encoding: br"))
    assert (response.truncated, response.error) == ("encoding", None)
    assert body.startswith(response.body)


def test_accept_encoding_names_the_decoded_encodings():
    response, _ = ask(lambda _: reply(b"x"))
    assert "\r\nAccept-Encoding: gzip, deflate, br\r\n" in response.request


HTML = b"<!doctype html><title>One</title><p>" + b"text " * 3000 + b"</html>\n<!-- cached -->"
ZIPPED = gzip.compress(HTML)
RSS = b'<?xml version="1.0"?>\n<!-- a > b --><rss><channel><item>x</item></channel></rss>\n'
WRONG_CRC = ZIPPED[:-8] + bytes(byte ^ 1 for byte in ZIPPED[-8:-4]) + ZIPPED[-4:]
WRONG_SIZE = ZIPPED[:-4] + b"\0\0\1\0"
WRONG_ADLER = zlib.compress(HTML)[:-1] + b"\0"
GZIP = "Content-Encoding: gzip\r\n"
TEXT, HTML_TYPE = "Content-Type: text/plain\r\n", "Content-Type: text/html\r\n"


PDF = b"%PDF-1.4 x startxref 9 %%EOF\n"


def archive(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(name, content)
    return file.getvalue()


PACKED = archive("a", b"b")
OUTER = archive("a.zip", PACKED)


def by_length(body, more, headers=""):
    return f"{headers}Content-Length: {len(body) + more}\r\n\r\n".encode() + body


def in_chunks(body, headers="", size=1000, rest=b""):
    parts = (body[at : at + size] for at in range(0, len(body), size))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return f"{headers}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + rest


# (wire after the status line, body, reason that it is marked with)
WHOLE = {
    "gzip, length of the page": (by_length(ZIPPED, len(HTML) - len(ZIPPED), GZIP), HTML, "frame"),
    "gzip, no last chunk": (in_chunks(ZIPPED, GZIP), HTML, "frame"),
    "gzip, a size that is no number": (in_chunks(ZIPPED, GZIP, rest=b"zz\r\n"), HTML, "frame"),
    "gzip without its trailer": (by_length(ZIPPED[:-8], 0, GZIP), HTML, "frame"),
    "gzip, wrong crc": (by_length(WRONG_CRC, 0, GZIP), HTML, "checksum"),
    "gzip, wrong crc, chunks": (in_chunks(WRONG_CRC, GZIP, 7, b"0\r\n\r\n"), HTML, "checksum"),
    "gzip, wrong size": (by_length(WRONG_SIZE, 0, GZIP), HTML, "checksum"),
    "deflate, wrong checksum": (by_length(WRONG_ADLER, 0, "Content-Encoding: deflate\r\n"), HTML,
                                "checksum"),
    "brotli": (by_length(brotli.compress(HTML), 9, "Content-Encoding: br\r\n"), HTML, "frame"),
    "html, length": (by_length(HTML, 5, HTML_TYPE), HTML, "frame"),
    "html, a large length": (by_length(HTML, 100_000), HTML, "frame"),
    "html, no last chunk": (in_chunks(HTML), HTML, "frame"),
    "html in UTF-16": (by_length(HTML.decode().encode("utf-16"), 5), HTML.decode().encode("utf-16"),
                       "frame"),
    "html that begins with its title": (by_length(b"<title>a</title>b</HTML >", 40),
                                        b"<title>a</title>b</HTML >", "frame"),
    "rss": (by_length(RSS, 500), RSS, "frame"),
    "xml of its own": (by_length(b"<?xml version='1.0'?><a:b><c/></a:b>", 500),
                       b"<?xml version='1.0'?><a:b><c/></a:b>", "frame"),
    "html without an end tag": (by_length(b"<title>a</title><p>b < c", 16),
                                b"<title>a</title><p>b < c", "frame"),
    "html without any tag": (by_length(b"a &lt; b", 16, HTML_TYPE), b"a &lt; b", "frame"),
    "a script after the end": (by_length(b"<html>a</html><script>'<a'</script>\n<!-- b -->", 99),
                               b"<html>a</html><script>'<a'</script>\n<!-- b -->", "frame"),
    "pdf": (by_length(PDF, 500), PDF, "frame"),
    "zip": (by_length(PACKED, 500), PACKED, "frame"),
    "a file of gzip": (by_length(ZIPPED, 500), ZIPPED, "frame"),
    "json": (by_length(b'{"a": [1]}', 500, "Content-Type: application/json\r\n"), b'{"a": [1]}',
             "frame"),
    "text, length": (by_length(b"One line", 3, TEXT), b"One line", "frame"),
    "text, no last chunk": (in_chunks(b"One line", TEXT), b"One line", "frame"),
}  # fmt: skip
CUT = {
    "gzip": by_length(ZIPPED[:-20], 20, GZIP),
    "html": by_length(HTML[:5000], 17, HTML_TYPE),
    "html in an attribute": by_length(b"<html><p title='</html>'", 5, HTML_TYPE),
    "html whose comment has its end": by_length(b"<html><!-- </html> -->", 50, HTML_TYPE),
    "html in a comment": by_length(b"<html>a<!-- </html>", 5, HTML_TYPE),
    "html in a script": by_length(b"<html>a<script>'</html>'", 5, HTML_TYPE),
    "html whose script has its end": by_length(b"<html><script>'</html>'</script>a", 50, HTML_TYPE),
    "html in a script after its end": by_length(b"<html>a</html><script>'a", 5, HTML_TYPE),
    "html with text after its end": by_length(b"<html>a</html>" + b"a " * 200, 99, HTML_TYPE),
    "html after html": by_length(b"<html>a</html><html>b", 99, HTML_TYPE),
    "html, no last chunk": in_chunks(HTML[:5000], HTML_TYPE),
    "html whose script has an end tag": by_length(
        b"<html><script>'</a>'" + b" " * 5000, 5, HTML_TYPE
    ),
    "rss": by_length(RSS[:-8], 8),
    "rss with an end in a text": by_length(b"<rss><item><![CDATA[</rss>]]></item>", 8),
    "rss within a text": by_length(b"<rss><item><![CDATA[</rss>", 8),
    "xml": by_length(b"<?xml version='1.0'?><a><c></c>", 4),
    "xml with an element like its root": by_length(b"<?xml version='1.0'?><a><a></a><b>", 4),
    "pdf": by_length(b"%PDF-1.4 x", 5),
    "pdf after its first end": by_length(PDF.replace(b"9", b"0") + b"2 0 obj", 5),
    "pdf whose change is cut": by_length(PDF + b"2 0 obj <<", 5),
    "zip": by_length(PACKED[:-1], 5),
    "zip after a zip in it": by_length(OUTER[: OUTER.index(PACKED) + len(PACKED)], 5),
    "a file of gzip with two members": by_length(ZIPPED + ZIPPED[:-9], 5),
    "json": by_length(b'{"a": [1', 5, "Content-Type: application/json\r\n"),
    "text": by_length(b"One line", 300, TEXT),
    "text in the middle of a chunk": in_chunks(b"One", TEXT, rest=b"9\r\nline"),
    "an image": by_length(b"\x89PNG\r\n\x1a\n", 5, "Content-Type: image/png\r\n"),
}


def ask_for(wire, **options):
    wire = b"HTTP/1.1 200 OK\r\n" + wire
    return ask(lambda connection: connection.sendall(wire), **options)[0]


@pytest.mark.long
@pytest.mark.parametrize(("wire", "body", "mark"), WHOLE.values(), ids=WHOLE)
def test_a_body_that_is_whole_by_its_format_is_a_page_and_marked(wire, body, mark):
    response = ask_for(wire)
    assert (response.error, response.truncated) == (None, mark)
    assert response.body == body
    assert classify(response)[:2] == (33, 1)


@pytest.mark.parametrize("wire", CUT.values(), ids=CUT)
def test_a_body_that_is_cut_is_a_failure_unless_the_operator_keeps_it(wire):
    response, kept = ask_for(wire), ask_for(wire, keep_incomplete=True)
    assert (response.error, response.truncated) == ("incomplete", "disconnect")
    assert (kept.error, kept.truncated) == (None, "disconnect")
    assert kept.body == response.body != b""


def test_a_page_is_whole_although_its_server_waits_after_it():
    wire = b"HTTP/1.1 200 OK\r\n" + by_length(HTML, 5)
    response, _ = ask(lambda connection: wire, timeout=0.3)
    assert (response.error, response.truncated, response.body) == (None, "frame", HTML)


def test_noise_is_never_whole_and_never_fails():
    numbers = random.Random(5)
    for start in (b"<html>", b"<?xml", b"PK\3\4", b"\x1f\x8b", b"%PDF-", b"{", b"<!--", b"<"):
        for _ in range(50):
            noise = start + numbers.randbytes(300).replace(b"</", b"")
            assert not is_whole_document(noise, "application/json", 900)
    assert not is_whole_document(b"<!--" * 100_000, "text/html", 9)  # and that takes no time
