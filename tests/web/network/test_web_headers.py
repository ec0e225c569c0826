import pytest
from web_servers import connect_to, reply, serve

from nutbeam.web.clients.http_client import Client
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.network.heads import parse_headers


def test_headers_go_with_every_request():
    entries = ("X-Crawl: nightly run", "From:crawl@example.com")
    with serve(lambda path, connection: reply(b"x")) as server:
        options = HttpOptions(connect_to=connect_to(server.port), http_header=entries)
        response = Client(options).get("http://a.example.com/")
    head = server.requests[0][1]
    assert "\r\nX-Crawl: nightly run\r\n" in head
    assert "\r\nFrom: crawl@example.com\r\n" in head
    assert response.request == head


@pytest.mark.parametrize(
    "entry",
    [
        *(
            "X: a\r\nY: b",
            "X: a\nY: b",
            "X: a\rY",
            "X: a\0b",
            "X: \x7f",
            "X: ä",
            "X\r\n: a",
            "X : a",
        ),
        *("X:", "X", ": a", "", "X\0: a", "GET / HTTP/1.1"),
        *("Host: a", "host: a", "Content-Length: 5", "Transfer-Encoding: chunked", "Expect: x"),
        *("Connection: close", "Keep-Alive: 1", "TE: x", "Trailer: x", "Upgrade: h2c"),
        *(
            "Proxy-Connection: x",
            "Proxy-Authenticate: x",
            "Accept-Encoding: zstd",
            "Range: bytes=0-",
        ),
        *("Authorization: Basic secret", "COOKIE: secret", "Proxy-Authorization: secret"),
        *("User-Agent: x", "Accept: x", "If-None-Match: x", "Accept-Language: x"),
    ],
)
def test_invalid_and_reserved_headers_are_refused(entry):
    with pytest.raises(ValueError, match=r"^http_header must") as error:
        HttpOptions(http_header=(entry,))
    assert "secret" not in str(error.value)


def test_a_header_stands_once():
    with pytest.raises(ValueError, match="got x twice"):
        parse_headers(["X: a", "x: b"])
