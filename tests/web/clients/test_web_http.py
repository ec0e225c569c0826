"""Requests, connections, and the heads of responses, with both HTTP clients."""

import socket
import time

import pytest
from http_clients import Client, HttpOptions
from one_request import URL, ask
from web_servers import connect_to, reply, serve

from nutbeam.io.batches.page_writer import page_row
from nutbeam.web.engine.tasks import Result, Task
from nutbeam.web.exchange.status import classify
from nutbeam.web.network.dialer import split_url

pytestmark = pytest.mark.usefixtures("each_client")


def test_a_response_has_the_bytes_from_the_wire():
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
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        assert [client.get(URL).body for _ in range(5)] == [b"x"] * 5
        assert server.connections == 1
        client.close()


def test_a_kept_connection_that_was_closed_is_replaced():
    def answer(path, connection):
        connection.sendall(reply(b"x"))  # and closes, against what HTTP/1.1 promises

    with serve(answer) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        for _ in range(5):
            assert client.get(URL).body == b"x"
            time.sleep(0.05)  # else it is sent on the old one: see the next test
        assert server.connections == 5


def test_a_request_on_a_kept_connection_that_was_closed_may_be_sent_again():
    def answer(path, connection):
        return reply(b"x") if path == "/" else None

    with serve(answer) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
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


def test_a_fresh_connection_is_new_even_if_another_thread_has_just_put_one_there(monkeypatch):
    with serve(lambda _, __: reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        client.get(URL)
        idle = client.transport.idle
        monkeypatch.setattr(idle, "forget", lambda _: None)  # as if it came right after
        assert client.get(URL, fresh=True).body == b"x"
        assert (server.connections, idle.count) == (2, 2)


def test_idle_connections_are_bounded(monkeypatch):
    monkeypatch.setattr("nutbeam.web.network.transport._MAX_IDLE", 10)
    with serve(lambda path, connection: reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
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


def test_a_name_that_does_not_resolve():
    options = HttpOptions(agent_name="bot", agent_email="a@b")
    assert Client(options).get("http://no-such-host.invalid/").error == "dns"


def test_a_refused_port():
    with serve(lambda path, connection: reply()) as server:
        pass
    client = Client(HttpOptions(connect_to=connect_to(server.port)))
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
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        assert all("Cookie" not in client.get(URL).request for _ in range(2))


def test_ipv6():
    try:
        server = serve(lambda path, connection: reply(b"six"), family=socket.AF_INET6)
        with server as running:
            mapping = f"[::1]:80:[::1]:{running.port}"
            response = Client(HttpOptions(connect_to=(mapping,))).get("http://[::1]/")
    except OSError:
        pytest.skip("no IPv6 here")
    assert (response.body, response.ip) == (b"six", "::1")
    assert "\r\nHost: [::1]\r\n" in response.request


def test_split_url():
    assert split_url("https://H:8443?a") == (("https", "h", 8443), "/?a")
    assert split_url("http://[::1]/") == (("http", "[::1]", 80), "/")


def test_a_page_row_keeps_request_and_headers_verbatim():
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
