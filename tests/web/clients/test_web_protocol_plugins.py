import sys
import threading

import pytest
from plugin_template import gopher_site

from nutbeam.web.base.errors import UsageError
from nutbeam.web.base.options import validate
from nutbeam.web.clients import protocol_plugins
from nutbeam.web.clients.aio_client import client_of
from nutbeam.web.clients.http_client import Client
from nutbeam.web.clients.protocol_plugins import PluginClient, ProtocolAnswer
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.exchange.status import classify

LOCAL = ("127.0.0.0/8", "::1/128")
URL = "x://localhost/a"


def get(function, url=URL, limit=-1, gate=None, connects=False, **options):
    """Fetches a URL with a plug-in; returns the response and the client."""
    function.connects = connects
    options = HttpOptions(**{"allow_addresses": LOCAL, "agent_name": "me", **options})
    client = PluginClient("mine", function, options, Client(options).dialer, gate)
    return client.get(url, content_limit=limit), client


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize(
    ("key", "url"),
    [
        ("x:", "x://h.example/a"),
        ("h.example", "http://h.example/a"),
        ("H.example", "https://h.example/a"),
    ],
)
def test_a_client_asks_the_plug_in_for_its_scheme_or_host(tmp_path, kind, key, url):
    path = tmp_path / "p.py"
    path.write_text(
        "from nutbeam.web.clients.protocol_plugins import ProtocolAnswer\n"
        "def get(request):\n    return ProtocolAnswer(body=request.host.encode(), content_type='a/b')\n"
        "get.connects = False\n"
    )
    schemes = ("http", "https", *(["x"] if key == "x:" else []))
    options = HttpOptions(protocols=(f"{key}={path}:get",), schemes=schemes, http_client=kind)
    client = client_of(options)
    try:
        response = client.get(url)
        assert (response.status, response.body, response.headers) == (
            200, b"h.example", [("Content-Type", "a/b")],
        )  # fmt: skip
        assert client.host(url) == "h.example"
        assert (
            client.get("http://127.0.0.1/").error == "address_denied"
        )  # all other hosts are as before
    finally:
        client.close()


def test_the_guard_checks_addresses_and_ports_before_the_call():
    def never(request):
        raise AssertionError("not called")

    denied, _ = get(never, connects=True, allow_addresses=())
    assert denied.error == "address_denied"
    assert get(never, "x://localhost:99/", connects=True)[0].error == "port_denied"
    assert (
        get(never, connects=True, http_proxy="http://127.0.0.1:9")[0].error
        == "plugin_through_proxy"
    )
    assert get(never, gate=lambda: False)[0].error == "stopped"
    assert get(never, "x:///a")[0].error == "bad_url"


def test_a_connection_goes_to_the_checked_address():
    def over_gopher(request):
        with request.connect(request.port) as connection:
            connection.sendall(b"/text\r\n")
            return ProtocolAnswer(body=connection.makefile("rb").read())

    def elsewhere(request):
        return request.connect(request.port + 1)

    with gopher_site() as port:
        url, ports = f"x://localhost:{port}/", (str(port),)
        response, _ = get(over_gopher, url, connects=True, allowed_ports=ports)
        assert (response.body, response.ip) == (b"one two three", "127.0.0.1")
        assert get(elsewhere, url, connects=True, allowed_ports=ports)[0].error == "port_denied"
        assert (
            get(over_gopher, url, allowed_ports=ports)[0].error == "port_denied"
        )  # says it does not


def test_a_body_is_cut_at_the_limit_and_has_a_type():
    response, _ = get(lambda request: ProtocolAnswer(body=b"<html>" * 9), limit=12)
    assert (response.body, response.truncated) == (b"<html><html>", "length")
    assert response.header("content-type") == "text/html"


def test_redirects_and_conditions_are_those_of_http():
    moved, _ = get(lambda request: ProtocolAnswer(301, headers=[("Location", "/b")]))
    assert classify(moved).redirect_target == "x://localhost/b"

    def since(request):
        return ProtocolAnswer(304 if request.since.year == 2026 else 200)

    options = HttpOptions()
    since.connects = False
    client = PluginClient("mine", since, options, Client(options).dialer)
    header = ("If-Modified-Since", "Mon, 05 Jan 2026 10:00:00 GMT")
    assert client.get(URL, [header]).status == 304


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero (test_web_protocol_plugins.py:"),
        (lambda: sys.exit(3), "SystemExit(3)"),
        (lambda: b"page", "TypeError: expected a ProtocolAnswer, got b'page'"),
        (lambda: ProtocolAnswer(999), "ValueError: a status must be 100 to 599, got 999"),
        (lambda: ProtocolAnswer(body="text"), "TypeError: a body must be bytes, got str"),
        (lambda: ProtocolAnswer(headers=[("A", "b\r\nC: d")]), "ValueError: a header must be a text"),
        (lambda: ProtocolAnswer(headers=[5]), "TypeError"),
    ],
)  # fmt: skip
def test_a_fault_costs_the_page_under_the_name_of_the_plug_in(answer, said):
    response, client = get(lambda request: answer())
    assert (response.status, response.error, response.body) == (0, "protocol_mine", b"")
    assert said in client.fault


def test_an_error_of_the_network_is_none_of_the_plug_in():
    def refused(request):
        raise ConnectionRefusedError

    response, client = get(refused)
    assert (response.error, client.fault) == ("refused", "")


def test_a_call_that_takes_too_long_is_given_up_and_many_are_the_last(monkeypatch):
    monkeypatch.setattr(protocol_plugins, "_MOST_STUCK", 2)
    end = threading.Event()

    def slow(request):
        end.wait(60)
        return ProtocolAnswer()

    slow.connects = False
    options = HttpOptions(http_time_limit=0.05)
    client = PluginClient("mine", slow, options, Client(options).dialer)
    try:
        assert [client.get(URL).error for _ in range(3)] == [
            "too_slow",
            "too_slow",
            "protocol_mine",
        ]
        assert "2 earlier calls have not ended" in client.fault
    finally:
        end.set()


def test_a_scheme_needs_its_plug_in():
    with pytest.raises(ValueError, match="'gemini': a plug-in for it is --protocols gemini:=NAME"):
        validate(HttpOptions(schemes=("http", "gemini")))
    with pytest.raises(ValueError, match=r"may have 'a\.com' once"):
        validate(HttpOptions(protocols=("a.com=x", "a.com=y")))
    with pytest.raises(UsageError, match="no protocol 'none' is installed"):
        Client(HttpOptions(schemes=("x",), protocols=("x:=none",)))
