import logging
import ssl

import private_spellings
import pytest
from http_clients import Client, HttpOptions
from made_certificates import CERTIFICATE
from proxy_servers import WHO, proxied, tunnel
from web_servers import connect_to, reply, serve

from nutbeam.web.base.option_checks import check_setup
from nutbeam.web.engine.engine import Engine, FetchOptions
from nutbeam.web.engine.tasks import Task
from nutbeam.web.exchange.status import classify
from nutbeam.web.network.guard import Denied
from nutbeam.web.network.proxy import judge_name, parse_proxy
from nutbeam.web.urls.row_keys import parse_url

pytestmark = pytest.mark.usefixtures("each_client")
PASSWORD = "s3cret"


def test_http_requests_to_a_proxy_have_the_absolute_form():
    with proxied() as (client, server):
        responses = [client.get(f"http://www.example.org:8080/a?b{n}") for n in range(2)]
        heads = [head for _, head, _ in server.requests]
        assert server.connections == 1
    assert [r.body for r in responses] == [b"through"] * 2
    assert heads[0].startswith("GET http://www.example.org:8080/a?b0 HTTP/1.1\r\n")
    assert "\r\nHost: www.example.org:8080\r\n" in heads[0]
    assert responses[0].request == heads[0]
    assert responses[0].ip == ""  # the server's is not known
    assert client.run(client.locate("http://www.example.org/")) is None


def test_https_goes_through_a_tunnel(tmp_path):
    pem = tmp_path / "a.pem"
    pem.write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with (
        serve(lambda path, connection: reply(b"safe"), context=context) as site,
        proxied(tunnel(site.port), ca_file=str(pem)) as (client, proxy),
    ):
        responses = [client.get(f"https://a.example.com/{n}") for n in range(2)]
        other = client.get("https://b.example.com/")
        heads = [head for _, head, _ in proxy.requests]
    assert [(r.body, r.error, r.tls) for r in responses] == [(b"safe", None, "checked")] * 2
    assert other.error == "tls_name"  # the certificate is of a.example.com
    assert heads[0].startswith("CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\n")
    assert len(heads) == 2
    assert site.requests[0][1].startswith("GET /0 HTTP/1.1\r\nHost: a.example.com\r\n")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_credentials_go_to_the_proxy_alone(tmp_path, scheme):
    pem = tmp_path / "a.pem"
    pem.write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    file = tmp_path / "credentials"
    with serve(lambda path, connection: reply(b"safe"), context=context) as site:
        through = tunnel(site.port)

        def answer(path, connection):
            return through(path, connection) if scheme == "https" else reply(b"safe")

        with serve(answer) as server:
            proxy = f"http://127.0.0.1:{server.port}"
            file.write_text(f"{proxy} basic user {PASSWORD}\n")
            options = HttpOptions(
                http_proxy=proxy, http_credentials=str(file), ca_file=str(pem), **WHO
            )
            response = Client(options).get(f"{scheme}://a.example.com/")
            heads = [head for _, head, _ in server.requests]
        inside = [head for _, head, _ in site.requests]
    assert response.body == b"safe"
    assert all("Proxy-Authorization: Basic dXNlcjpzM2NyZXQ=\r\n" in head for head in heads)
    assert not any("uthorization" in head for head in inside)
    assert "dXNlcjpzM2NyZXQ" not in repr(response)


@pytest.mark.parametrize("status", ["407 Who?", "403 No", "502 Bad"])
def test_a_proxy_that_refuses_is_not_the_page(status):
    with proxied(tunnel(0, status)) as (client, _):
        response = client.get("https://www.example.org/")
        error = "proxy_error" if status.startswith("407") else "proxy_refused"
        assert (response.status, response.error) == (0, error)
    if status.startswith("407"):
        with proxied(lambda path, connection: reply(b"", status)) as (client, _):
            response = client.get("http://www.example.org/")
            assert classify(response)[:3] == (34, 16, "proxy_error")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there(scheme):
    with proxied() as (client, server):
        server.close()
        assert client.get(f"{scheme}://www.example.org/").error == "proxy_error"


def test_pages_stay_due_where_the_proxy_is_not_there():
    with proxied() as (client, server):
        server.close()
        engine = Engine(FetchOptions(server_delay=0.0), client)
        tasks = [Task(f"http://h{n}.example.org/{m}") for n in range(3) for m in range(2)]
        assert list(engine.run(tasks)) == []
    assert engine.drop_counts == {"proxy_error": 6}


def test_nonsense_of_a_proxy():
    with proxied(lambda path, connection: connection.sendall(b"SSH-2.0\r\n")) as (client, _):
        assert client.get("https://www.example.org/").error == "proxy_error"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "0", "10.0.0.1"),
        *("169.254.169.254", "0xa9fea9fe", "[::1]", "[::ffff:127.0.0.1]", "[fd00::1]", "192.168.1"),
        *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "100.64.0.1", "224.0.0.1", "1.2.3.4.5", "0x7f"),
        *("localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local", "intranet", "x"),
        *(
            "metadata.google.internal",
            "router.home.arpa",
            "a.onion",
            "x.test",
            "1.2.3.999",
            "a.0x7",
            "127.0.0.1.",
            "127.0.0.1..",
            "kubernetes.default.svc",
            "a.svc.cluster.local",
        ),
    ],
)
def test_literals_and_special_names_do_not_reach_the_proxy(host):
    with proxied() as (client, server):
        for scheme in ("http", "https"):
            assert client.get(f"{scheme}://{host}/").error == "address_denied"
        assert server.connections == 0


@pytest.mark.parametrize("kind", ["ADDRESSES", "V6", "NAMES"])
def test_no_spelling_and_no_private_name_is_sent_to_the_proxy(kind):
    with proxied() as (client, server):
        for host in getattr(private_spellings, kind):
            for url in (f"http://{host}/", f"https://{host}/"):
                read = parse_url(url)
                errors = {client.get(asked).error for asked in (url, read) if asked is not None}
                assert errors <= {"address_denied", "bad_url"}, (url, read)
                assert read is None or client.get(read).error == "address_denied", (url, read)
        assert server.connections == 0


def test_there_are_enough_spellings_and_names():
    assert len({*private_spellings.ADDRESSES, *private_spellings.V6}) >= 400
    assert len(set(private_spellings.NAMES)) >= 100


def test_ports_and_the_agent_are_checked():
    with proxied() as (client, server):
        assert client.get("http://www.example.org:6379/").error == "port_denied"
        assert server.connections == 0
    with proxied(agent_name="") as (client, server):
        assert client.get("http://www.example.org/").error == "agent_missing"
        assert server.connections == 0


def test_addresses_that_the_operator_opens_are_reached():
    with proxied(allow_addresses=("10.0.0.0/8",)) as (client, server):
        assert client.get("http://10.1.2.3/").body == b"through"
        assert client.get("http://192.168.0.1/").error == "address_denied"
        assert server.paths == ["http://10.1.2.3/"]
    with (
        serve(lambda path, connection: reply(b"past")) as site,
        proxied(connect_to=connect_to(site.port)) as (client, server),
    ):
        assert client.get("http://a.example.com/").body == b"past"
        assert server.connections == 0


@pytest.mark.parametrize(
    "text",
    ["proxy:3128", "https://proxy:3128", "http://proxy", "http://p:0", "http://p:99999", "http://a b:1",
     "http://p:1/x", "http://p:1\r\n", "socks5://p:1"],
)  # fmt: skip
def test_invalid_proxies_are_refused(text):
    with pytest.raises(ValueError, match=r"^http_proxy must be http://HOST:PORT, got"):
        HttpOptions(http_proxy=text)


def test_a_password_in_the_proxy_is_not_repeated():
    with pytest.raises(ValueError, match="http_credentials") as error:
        HttpOptions(http_proxy=f"http://user:{PASSWORD}@proxy:3128")
    assert PASSWORD not in str(error.value)


def test_a_proxy_that_resolves_names_itself_causes_a_warning_at_the_start(caplog):
    with caplog.at_level(logging.WARNING):
        check_setup(HttpOptions(http_proxy="http://proxy.example.com:3128", **WHO))
    assert "http://proxy.example.com:3128, which resolves names itself" in caplog.text


def test_names_that_pass():
    for name in (
        *("www.example.org", "www.example.org.", "xn--nxasmq6b.xn--p1ai", "a1.museum", "1.1.1.1"),
        *("127.0.0.1.nip.io", "www.home.com", "localhost.com", "local.net", "arpa.com", "lan.de"),
        *("box.com", "www.o3.box", "asus.com", "consul.io", "corp.com", "a_b.example.co.uk"),
    ):
        judge_name(name)
    with pytest.raises(Denied):
        judge_name("")
    assert parse_proxy("") is None
    assert parse_proxy("http://[::1]:8080") == ("::1", 8080)
