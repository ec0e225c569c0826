import functools
import gzip
import random
import socket
import ssl
import time
import tracemalloc
import zlib

import brotli
import pytest
import requests
from http_clients import Client, HttpOptions
from made_certificates import CERTIFICATE
from web_servers import doors, reply, serve

from nutbeam.io.batches.page_writer import page_row
from nutbeam.web.clients.requests_adapter import GuardedAdapter
from nutbeam.web.engine.tasks import Result, Task
from nutbeam.web.exchange.status import classify
from nutbeam.web.network.guard import Guard
from nutbeam.web.network.route import Route, split_url
from nutbeam.web.network.transport import Transport

pytestmark = pytest.mark.usefixtures("each_client")
URL = "http://a.example.com/"


def ask(answer, url=URL, headers=(), **options):
    """Returns the response to one request, and the server that gave it."""
    with serve(lambda path, connection: answer(connection)) as server:
        client = Client(HttpOptions(connect_to=doors(server.port), **options))
        return client.get(url, headers), server


def test_returns_what_came_over_the_wire():
    answer = reply(b"hello", "200 Fine", "Set-Cookie: a=1", "X: \xe9", "set-cookie: b=2")
    response, server = ask(lambda _: answer, "http://u:p@A.example.com/x?y=1#z")
    assert (response.status, response.reason, response.http_version) == (200, "Fine", "HTTP/1.1")
    assert response.headers == [
        ("Content-Length", "5"),
        ("Set-Cookie", "a=1"),
        ("X", "\xe9"),
        ("set-cookie", "b=2"),
    ]
    assert (response.body, response.truncated, response.error) == (b"hello", None, None)
    assert (response.header("set-cookie"), response.ip) == ("a=1", "127.0.0.1")
    assert response.request == server.requests[0][1]
    assert response.request.startswith("GET /x?y=1 HTTP/1.1\r\nHost: a.example.com\r\n")
    assert abs(response.started / 1000 - time.time()) < 5
    assert 0 <= response.elapsed_ms < 5000


def test_connections_are_kept_and_reused():
    with serve(lambda path, connection: reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        assert [client.get(URL).body for _ in range(5)] == [b"x"] * 5
        assert server.connections == 1
        client.close()


def test_a_kept_connection_that_was_closed_is_replaced():
    def answer(path, connection):
        connection.sendall(reply(b"x"))  # and closes, against what HTTP/1.1 promises

    with serve(answer) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        for _ in range(5):
            assert client.get(URL).body == b"x"
            time.sleep(0.05)  # else it is sent on the old one: see the next test
        assert server.connections == 5


def test_a_request_on_a_kept_connection_that_was_closed_may_be_sent_again():
    def answer(path, connection):
        return reply(b"x") if path == "/" else None

    with serve(answer) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        assert client.get(URL).body == b"x"
        first, second = client.get(f"{URL}closed"), client.get(f"{URL}closed")
        assert (first.error, first.resend, second.error, second.resend) == (
            "reset",
            True,
            "reset",
            False,
        )
        assert client.get(URL).body == b"x"
        assert client.get(URL, fresh=True).body == b"x"
        assert (server.connections, len(server.requests), client.transport.idle.count) == (4, 5, 1)


def test_idle_connections_are_bounded(monkeypatch):
    monkeypatch.setattr("nutbeam.web.network.idle_connections._MAX_IDLE", 10)
    with serve(lambda path, connection: reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        for number in range(30):
            assert client.get(f"http://h{number}.example.com/").body == b"x"
        assert client.transport.idle.count == 10
        assert sum(map(len, client.transport.idle._waiting.values())) == 10
        client.close()
        assert client.transport.idle.count == 0


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (b"\0garbage\r\n\r\n", "protocol_error"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "protocol_error"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nab", "incomplete"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nab", "incomplete"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000, "headers_too_large"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000, "headers_too_large"),
        (b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"y" * 60_000 + b"\r\n") * 6, "headers_too_large"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 50, "protocol_error"),
        (b"", "reset"),
    ],
)
def test_nonsense_has_a_reason(wire, error):
    response, _ = ask(lambda connection: connection.sendall(wire))
    assert response.error == error
    assert classify(response)[:3] == (34, 16, error)


def test_line_breaks_within_a_header_are_spaces():
    wire = b"HTTP/1.1 200 OK\r\nX: a\r\r\n\r\r\nY: a\0b\rZ: c\r\nContent-Length: 1\r\n\r\nx"
    response, _ = ask(lambda _: wire)
    assert (response.body, response.error) == (b"x", None)
    assert response.headers == [("X", "a"), ("Y", "a b Z: c"), ("Content-Length", "1")]


def test_interim_responses_are_skipped():
    wire = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + reply(b"x")
    response, _ = ask(lambda _: wire)
    assert (response.status, response.body) == (200, b"x")


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        ("HTTP/1.1 200 OK", 200, "OK"),
        ("HTTP/1.1 200", 200, ""),
        ("HTTP/1.1 200 ", 200, ""),
        ("HTTP/1.0  404  Not \xe9 Found ", 404, "Not \xe9 Found"),
        ("HTTP/1.1\t200\tOK", 200, "OK"),
        ("HTTP/2 200", 200, ""),
        ("HTTP/1.1 999 What", 999, "What"),
        ("HTTP/1.1 099 Low", 0, None),
        ("HTTP/1.1 2000 OK", 0, None),
        ("HTTP/1.1 +20 OK", 0, None),
        ("HTTP/1.1 2\xb20 OK", 0, None),
        ("http/1.1 200 OK", 200, "OK"),
        ("HTTP/1.1 200: OK", 200, "OK"),
        ("ICY 200 OK", 0, None),
    ],
)
def test_status_lines_are_kept_as_they_came(line, status, reason):
    wire = f"{line}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")
    response, _ = ask(lambda _: wire)
    assert response.status == status
    if status:
        assert (response.status_line, response.reason) == (line, reason)
        assert page_row(Result(Task(URL), response, 33, 1))["status_line"] == line
    else:
        assert response.error == "protocol_error"


def test_folded_and_odd_header_lines():
    wire = b"HTTP/1.1 200 OK\nA: b\r\n  c\r\nno colon\r\nD : e\r\nContent-Length: 1\r\n\r\nx"
    response, _ = ask(lambda _: wire)
    assert response.headers == [("A", "b c"), ("D", "e"), ("Content-Length", "1")]


def test_http_1_0_ends_with_the_connection():
    wire = b"HTTP/1.0 200 OK\r\n\r\nall of it"
    response, _ = ask(lambda connection: connection.sendall(wire))
    assert (response.http_version, response.body, response.error) == (
        "HTTP/1.0",
        b"all of it",
        None,
    )


def test_chunked_bodies():
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n"
    response, _ = ask(lambda _: wire)
    assert (response.body, response.error) == (b"abcde", None)


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_no_body_where_there_can_be_none(status):
    with serve(lambda path, connection: f"HTTP/1.1 {status}\r\n\r\n".encode()) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
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
    response, _ = ask(lambda _: reply(b"x" * 3_000_000, "200 OK", header), **options)
    assert len(response.body) == kept
    assert response.truncated == (None if kept == 3_000_000 else "length")


def test_a_body_as_long_as_the_limit_is_whole():
    for length, truncated in ((10, None), (11, "length")):
        response, _ = ask(lambda _, length=length: reply(b"x" * length), content_limit=10)
        assert (response.body, response.truncated) == (b"x" * 10, truncated)


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
        ("zstd", b"x"),
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
    """1 GiB of zeros: 1 MB of gzip, 1.6 kB of brotli."""
    part = bytes(1 << 20)
    if coding == "gzip":
        member = gzip.compress(part, 9)  # RFC 1952 2.2: members may follow each other
        return member * 1024
    compressor = brotli.Compressor(quality=5)
    return b"".join(compressor.process(part) for _ in range(1024)) + compressor.finish()


@pytest.mark.parametrize("coding", ["gzip", "br"])
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


def test_what_is_decoded_is_what_is_asked_for():
    response, _ = ask(lambda _: reply(b"x"))
    assert "\r\nAccept-Encoding: gzip, deflate, br\r\n" in response.request


def test_a_server_that_hangs_times_out():
    began = time.monotonic()
    response, _ = ask(lambda _: time.sleep(2), timeout=0.2)
    assert response.error == "timeout"
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_server_that_drips_is_too_slow(part):
    def answer(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: " + (b"" if part == "head" else b"y\r\n\r\n"))
        for _ in range(50):
            connection.sendall(b"x")
            time.sleep(0.05)

    began = time.monotonic()
    response, _ = ask(answer, timeout=1, http_time_limit=0.3)
    assert response.error == "too_slow"
    assert 0.25 < time.monotonic() - began < 1


def test_a_name_that_does_not_resolve():
    options = HttpOptions(agent_name="bot", agent_email="a@b")
    assert Client(options).get("http://no-such-host.invalid/").error == "dns"


def test_a_refused_port():
    with serve(lambda path, connection: reply()) as server:
        pass
    client = Client(HttpOptions(connect_to=doors(server.port)))
    assert client.get(URL).error == "refused"


def test_a_port_that_is_not_allowed():
    options = HttpOptions(agent_name="bot", agent_email="a@b")
    assert Client(options).get("http://1.1.1.1:22/").error == "port_denied"


def test_redirects_are_not_followed():
    wire = reply(b"", "301 Moved", "Location: /elsewhere")
    response, server = ask(lambda _: wire)
    assert (response.status, server.paths) == (301, ["/"])


@pytest.mark.parametrize(
    "url",
    [
        *("http://a/\r\nX: y", "http://a/ b", "http://a/\xe9", "http://a\r\n/", "http://\xe9/"),
        *("http://a/\0", "http://a:99999/", "http://a%2eb/", "http://a b/", "ftp://a/", ""),
    ],
)
def test_nothing_odd_goes_into_a_request(url):
    assert Client(HttpOptions()).get(url).error == "bad_url"


def test_nothing_odd_goes_into_a_header():
    conditions = [("If-None-Match", 'a"\r\nX: y'), ("If-Modified-Since", "now")]
    response, _ = ask(lambda _: reply(), headers=conditions)
    assert "If-None-Match" not in response.request
    assert "\r\nIf-Modified-Since: now\r\n" in response.request


def test_nothing_comes_from_the_environment(monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine a.example.com login u password p")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    response, _ = ask(lambda _: reply(b"x"))
    assert response.body == b"x"
    assert "Authorization" not in response.request


def test_cookies_are_not_sent_back():
    with serve(lambda path, connection: reply(b"x", "200 OK", "Set-Cookie: a=1")) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        assert all("Cookie" not in client.get(URL).request for _ in range(2))


@pytest.fixture
def pem(tmp_path):
    path = tmp_path / "a.pem"
    path.write_text(CERTIFICATE)
    return str(path)


@pytest.mark.parametrize(
    ("host", "trusted", "error"),
    [("a", True, None), ("a", False, "tls"), ("b", True, "tls")],
)
def test_certificates_and_names_are_checked(pem, host, trusted, error):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with serve(lambda path, connection: reply(b"safe"), context=context) as server:
        door = f"*.example.com:443:127.0.0.1:{server.port}"
        client = Client(HttpOptions(connect_to=(door,), ca_file=pem if trusted else ""))
        response = client.get(f"https://{host}.example.com/")
        again = client.get(f"https://{host}.example.com/")
    assert (response.error, response.body) == (error, b"" if error else b"safe")
    assert again.error == error
    assert server.connections == (2 if error else 1)


@pytest.mark.slow
def test_tls_to_a_server_without_it():
    with serve(lambda path, connection: reply(b"x")) as server:
        door = f"a.example.com:443:127.0.0.1:{server.port}"
        client = Client(HttpOptions(connect_to=(door,), timeout=1))
        assert client.get("https://a.example.com/").error in ("tls", "timeout", "reset")


def test_ipv6():
    try:
        server = serve(lambda path, connection: reply(b"six"), family=socket.AF_INET6)
        with server as running:
            door = f"[::1]:80:[::1]:{running.port}"
            response = Client(HttpOptions(connect_to=(door,))).get("http://[::1]/")
    except OSError:
        pytest.skip("no IPv6 here")
    assert (response.body, response.ip) == (b"six", "::1")
    assert "\r\nHost: [::1]\r\n" in response.request


def test_the_adapter_can_be_mounted_on_a_session():
    with serve(lambda path, connection: reply(b"x", "200 OK", "A: b")) as server:
        session = requests.Session()
        session.trust_env = False
        route = Route(Guard(connect_to=doors(server.port)))
        session.mount("http://", GuardedAdapter(route, Transport(route)))
        response = session.get(URL)
        assert (response.status_code, response.content, response.headers["a"]) == (200, b"x", "b")
        with pytest.raises(requests.ConnectionError):
            session.get(f"http://127.0.0.1:{server.port}/")


def test_split_url():
    assert split_url("https://H:8443?a") == (("https", "h", 8443), "/?a")
    assert split_url("http://[::1]/") == (("http", "[::1]", 80), "/")


def test_an_answer_that_drips_is_cut():
    def answer(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.02)

    began = time.monotonic()
    response, _ = ask(answer, min_rate=1000, min_rate_grace=0.1)
    assert (response.error, response.truncated) == ("low_rate", "time")
    assert classify(response)[:3] == (34, 16, "low_rate")
    assert time.monotonic() - began < 1
    assert ask(lambda _: reply(b"x" * 10), min_rate=1e9, min_rate_grace=1)[0].error is None


@pytest.mark.parametrize("grace", [0.1, 60])
def test_a_head_that_drips_is_cut_too(grace):
    def answer(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(20):
            connection.sendall(b"x")
            time.sleep(0.02)
        connection.sendall(b": y\r\nContent-Length: 0\r\n\r\n")

    response, _ = ask(answer, min_rate=1000, min_rate_grace=grace)
    assert response.error == ("low_rate" if grace < 1 else None)


def test_the_time_before_an_answer_does_not_count_as_slow():
    def answer(connection):
        time.sleep(0.3)
        return reply(b"x")

    with serve(lambda path, connection: answer(connection)) as server:
        options = HttpOptions(connect_to=doors(server.port), min_rate=1000, min_rate_grace=0.1)
        client = Client(options)
        assert [client.get(URL).error for _ in range(2)] == [None, None]
        assert server.connections == 1


@pytest.mark.parametrize(
    ("host", "insecure", "tls", "error"),
    [
        ("a", (), None, "tls"),
        ("a", ("A.example.com",), "unchecked", None),
        ("b", ("b.example.com",), "unchecked", None),  # the name is not that of the certificate
        ("b", ("a.example.com", "example.com"), None, "tls"),
    ],
)
def test_certificates_are_unchecked_only_where_the_operator_says_so(
    pem, host, insecure, tls, error
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with serve(lambda path, connection: reply(b"x"), context=context) as server:
        door = f"*.example.com:443:127.0.0.1:{server.port}"
        client = Client(HttpOptions(connect_to=(door,), insecure_host=insecure))
        response = client.get(f"https://{host}.example.com/")
        row = page_row(Result(Task(response.url), response, 33 if error is None else 34, 1))
    assert (response.error, response.tls) == (error, tls)
    assert row["tls"] == tls
    assert row["protocol_message"] == ("certificate not checked" if tls else None)


def test_what_a_page_keeps_of_the_exchange():
    """What a WARC record needs: verbatim, in order."""
    wire = reply(
        b"hello", "200 Quite  Fine", "Cache-Control: max-age=5", "X-a: 1", "ETag: \"e\"", "x-A:  2",
        "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT", "Expires: 0", "Age: 1", "Vary: x",
    )  # fmt: skip
    response, server = ask(lambda _: wire)
    row = page_row(Result(Task(response.url), response, 33, 1))
    assert row["status_line"] == "HTTP/1.1 200 Quite  Fine"
    assert [(h["name"], h["value"]) for h in row["headers"]] == [
        ("Content-Length", "5"),
        *(("Cache-Control", "max-age=5"), ("X-a", "1"), ("ETag", '"e"'), ("x-A", "2")),
        ("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"),
        *(("Expires", "0"), ("Age", "1"), ("Vary", "x")),
    ]
    assert (row["ip"], row["request"]) == ("127.0.0.1", server.requests[0][1])
    assert (row["etag"], row["tls"], row["body"]) == ('"e"', None, b"hello")
