"""``--store_wire``: answers are kept as they came, as far as status line, headers and body lack it."""

import gzip
import ssl

import http_clients
import pytest
from http_clients import Client
from made_certificates import CERTIFICATE
from one_request import URL
from web_servers import connect_to, reply, serve

from nutbeam.web.base.dataclass import dataclass
from nutbeam.web.exchange.http_options import HttpOptions, WireOptions

pytestmark = pytest.mark.usefixtures("each_client")


@dataclass(frozen=True)
class Options(HttpOptions, WireOptions):
    """Options of fetch, as far as they matter here."""


def ask(answer, **options):
    """Returns the response to one request that gets the given bytes."""
    with serve(lambda path, connection: answer) as server:
        where = {"http_client": http_clients.chosen, "connect_to": connect_to(server.port)}
        return Client(Options(**where, **options)).get(URL)


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
    response = ask(head + body, store_wire=True)
    assert response.body == HTML
    assert response.wire_head == (head.decode() if kept_head else None)
    assert response.wire == (body if kept_body else None)


def test_nothing_is_kept_without_the_option():
    response = ask(b"HTTP/1.1 404 X\nA:1\r\nContent-Length: 2\r\n\r\nhi")
    assert (response.wire, response.wire_head, response.cipher) == (None, None, "")


def test_a_head_with_a_password_is_not_kept():
    answer = reply(b"", "302 Found", "Location:http://me:secret@b.example.com/")
    response = ask(answer, store_wire=True)
    assert response.wire_head is None
    assert response.header("location") == "http://b.example.com/"


def test_a_cut_answer_has_the_bytes_that_came():
    head = PLAIN_HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = ask(head + CHUNKS, store_wire=True, content_limit=10)
    assert (response.body, response.truncated) == (HTML[:10], "length")
    assert CHUNKS.startswith(response.wire)


def test_an_answer_that_broke_off_has_the_bytes_that_came():
    """It is a failure, whose body is not stored; also if it has no coding."""
    wire = PLAIN_HEAD + b"Content-Length: 5000\r\n\r\n" + HTML

    def answer(_, connection):
        connection.sendall(wire)

    with serve(answer) as server:
        where = {"http_client": http_clients.chosen, "connect_to": connect_to(server.port)}
        response = Client(Options(**where, store_wire=True)).get(URL)
    assert (response.error, response.wire) == ("incomplete", HTML)


def test_the_cipher_of_each_answer_of_a_connection_is_kept(tmp_path):
    pem = tmp_path / "a.pem"
    pem.write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with serve(lambda path, connection: reply(b"safe"), context=context) as server:
        to = (f"*.example.com:443:127.0.0.1:{server.port}",)
        where = {"http_client": http_clients.chosen, "connect_to": to, "ca_file": str(pem)}
        client = Client(Options(**where, store_wire=True))
        ciphers = [client.get("https://a.example.com/").cipher for _ in range(2)]
    version, suite = ciphers[0].split(" ")
    assert (version, suite[:4], server.connections) == ("TLSv1.3", "TLS_", 1)
    assert ciphers[0] == ciphers[1]
