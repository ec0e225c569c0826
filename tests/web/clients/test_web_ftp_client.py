import contextlib
import email.utils
import ftplib
import os
import socket
import time
from collections import Counter

import pytest
from canary import HOSTS, LEADING, lookup
from ftp_servers import ftp_mapping, real_server, scripted_server
from hypothesis import given, settings
from hypothesis import strategies as st
from listed_folders import links

from nutbeam.web.clients.ftp_client import Session, status_of
from nutbeam.web.clients.http_client import Client
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.exchange.status import classify
from nutbeam.web.network.guard import Destination, Guard
from nutbeam.web.network.wire import Limits
from nutbeam.web.urls.row_keys import parse_url
from nutbeam.web.urls.schemes import split_ftp

SITE = "ftp://ftp.example.com"


def client(port, **options):
    given = {
        "schemes": ("http", "https", "ftp"),
        "connect_to": (ftp_mapping(port),),
        "timeout": 5.0,
    }
    return Client(HttpOptions(**given | options))


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "page.html").write_text("<title>Page</title>text")
    (folder / "sub" / "deep" / "a b.txt").write_text("below")
    os.utime(folder / "page.html", (1_700_000_000, 1_700_000_000))
    return folder


def test_a_file_is_a_page(site):
    with real_server(site) as server:
        response = client(server.port, agent_email="me@example.com").get(f"{SITE}/page.html")
        assert (response.status, response.body) == (200, b"<title>Page</title>text")
        assert response.header("content-type") == "text/html"
        assert response.header("content-length") == "23"
        date = email.utils.parsedate_to_datetime(response.header("last-modified"))
        assert date.timestamp() == 1_700_000_000
        assert response.ip == "127.0.0.1"
        assert classify(response)[:2] == (33, 1)
        below = client(server.port).get(f"{SITE}/sub/deep/a%20b.txt;type=i")
        assert below.body == b"below"
        assert server.logins == ["anonymous", "anonymous"]
        assert not [c for c in server.commands if c.startswith(("PORT", "EPRT"))]


def test_unchanged_files_are_not_read_again(site):
    with real_server(site) as server:
        asks = client(server.port)
        since = [("If-Modified-Since", email.utils.formatdate(1_700_000_000, usegmt=True))]
        response = asks.get(f"{SITE}/page.html", since)
        assert (response.status, classify(response)[:2]) == (304, (38, 21))
        assert "RETR /page.html" not in server.commands
        os.utime(site / "page.html", (1_700_000_001, 1_700_000_001))
        assert asks.get(f"{SITE}/page.html", since).status == 200


@pytest.mark.parametrize("mlsd", [True, False])
def test_a_folder_is_a_page_of_links(site, mlsd):
    with real_server(site, mlsd=mlsd) as server:
        response = client(server.port).get(f"{SITE}/")
        assert response.header("content-type") == "text/html; charset=utf-8"
        assert links(response) == [f"{SITE}/page.html", f"{SITE}/sub/"]
        below = client(server.port).get(f"{SITE}/sub/deep/")
        assert links(below) == [f"{SITE}/sub/deep/a%20b.txt"]
        slash = client(server.port).get(f"{SITE}/sub")
        assert (slash.status, slash.header("location")) == (301, f"{SITE}/sub/")
        (site / "empty").mkdir()
        empty = client(server.port).get(f"{SITE}/empty/")
        assert (empty.status, links(empty)) == (200, [])


@pytest.mark.parametrize(
    "name", [b"\xfe.txt", "日本.txt".encode(), b"a  b", b"-la", b"%0d%0a", b"x;y"]
)
def test_names_are_bytes(site, name):
    (site / "sub" / os.fsdecode(name)).write_bytes(b"here")
    data = b"type=file;size=4; " + name + b"\r\n"
    with scripted_server(data=data) as server:
        (url,) = links(client(server.port).get(f"{SITE}/sub/"))
    if name == b"\xfe.txt":
        return  # pyftpdlib knows UTF-8 alone
    with real_server(site) as server:
        assert client(server.port).get(url).body == b"here"
        assert url in links(client(server.port).get(f"{SITE}/sub/"))


def test_statuses(site):
    with real_server(site) as server:
        missing = client(server.port).get(f"{SITE}/missing")
        assert (missing.status, *classify(missing)[:2]) == (404, 37, 14)
        assert client(server.port).get(f"{SITE}/missing/").status == 404
    with real_server(site, user="u", password="p") as server:
        denied = client(server.port).get(f"{SITE}/page.html")
        assert (denied.status, *classify(denied)[:2]) == (401, 37, 17)
    answers = {
        "": (b"421 too many users\r\n", 503, (34, 16)),
        "USER": (b"530 not you\r\n", 401, (37, 17)),
        "RETR": (b"450 busy\r\n", 500, (34, 16)),
        "PASV": (b"425 no ports\r\n", 500, (34, 16)),
        "TYPE": (b"500 what?\r\n", 400, (37, 11)),
    }
    for word, (answer, status, codes) in answers.items():
        with scripted_server({word: answer}) as server:
            response = client(server.port).get(f"{SITE}/x")
            assert (response.status, classify(response)[:2]) == (status, codes), word
    with scripted_server(
        {"RETR": b"550 \x1b[2J Permission denied\r\n", "CWD": b"550 no\r\n"}
    ) as server:
        response = client(server.port).get(f"{SITE}/x")
        assert (response.status, response.reason) == (403, "550 ?[2J Permission denied")
    assert client(1).get(f"{SITE}/x").error == "refused"


def test_users_come_from_the_file_of_credentials_alone(site, tmp_path):
    file = tmp_path / "credentials"
    file.write_text("ftp://ftp.example.com basic me s3cret word\n")
    with real_server(site, user="me", password="s3cret word") as server:
        asks = client(server.port, http_credentials=str(file))
        assert asks.get(f"{SITE}/page.html").status == 200
        assert asks.get("ftp://you:other@ftp.example.com/page.html").status == 200
        mapping = ftp_mapping(server.port, "other.example.com")
        other = client(server.port, http_credentials=str(file), connect_to=(mapping,))
        assert other.get("ftp://other.example.com/page.html").status == 401
        assert other.get("ftp://me:s3cret%20word@other.example.com/page.html").status == 401
        assert server.logins == ["me", "me"]


HOSTILE_PATHS = (
    *("/a%0d%0aDELE%20b", "/a%0ADELE b", "/%0D", "/a%00b", "/a\r\nDELE b", "/a\nDELE", "/a%0d%0a/"),
    *("/%0d%0aDELE%20b/", "/a/%2e%2e%2fb", "/..%2f..%2fb", "/a%2Fb", "/a\tb", "/é", "/a b"),
)


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_nothing_in_a_url_becomes_a_command(path):
    with scripted_server() as server:
        response = client(server.port).get(SITE + path)
        assert response.error == "bad_url"
        assert server.connections == 0
        normal = parse_url(SITE + path)  # as the table would have it
        client(server.port).get(normal)
        assert not [c for c in server.commands if "DELE" in c.split(" ")[0]]
        words = {c.partition(" ")[0] for c in server.commands}
        assert words <= {"USER", "PASS", "TYPE", "MDTM", "SIZE", "PASV", "RETR", "CWD", "MLSD",
                         "LIST", "QUIT"}  # fmt: skip


@given(st.text(max_size=30))
@settings(max_examples=100)
def test_no_url_has_a_line_break_in_its_path(text):
    with contextlib.suppress(ValueError):
        assert not set("\r\n\0 ") & set(split_ftp(f"ftp://a.example.com/{text}")[2])


def test_a_session_never_sends_a_line_break_within_a_command():
    with scripted_server() as server:
        target = Destination(((socket.AF_INET, ("127.0.0.1", server.port)),), True)
        with Session(target, Limits(5.0, 10.0)) as session:
            for letter in "\r\n\0":
                with pytest.raises(ValueError, match="no line break"):
                    session.voidcmd(f"CWD a{letter}DELE b")
        assert [c for c in server.commands if c != "QUIT"] == []


def test_a_listing_is_cut_at_the_limit():
    def entries():
        for number in range(1_000_000):
            yield b"type=file;size=1; entry%07d\r\n" % number

    with scripted_server(data=entries) as server:
        response = client(server.port, content_limit=10_000).get(f"{SITE}/")
        assert response.status == 200
        assert len(response.body) <= 10_000
        assert 50 < len(links(response)) < 400
        assert links(response)[0] == f"{SITE}/entry0000000"


def test_a_file_is_cut_at_the_limit():
    with scripted_server(data=lambda: iter(lambda: b"x" * 10_000, None)) as server:
        response = client(server.port, content_limit=1000).get(f"{SITE}/endless")
        assert (len(response.body), response.truncated) == (1000, "length")


@pytest.mark.parametrize(
    ("answers", "data", "error"),
    [
        ({"": lambda s: iter(lambda: b"220-endless\r\n", None)}, b"", "protocol_error"),
        ({"": b"220 " + b"x" * 100_000 + b"\r\n"}, b"", "protocol_error"),
        ({"": b"HTTP/1.1 200 OK\r\n\r\n"}, b"", "protocol_error"),
        ({"": b"\xff\xfe\0\r\n"}, b"", "protocol_error"),
        ({"": b""}, b"", "too_slow"),
        ({"PASV": b"227 no numbers\r\n"}, b"", "protocol_error"),
        ({"PASV": b"227 (127,0,0,1,0,22)\r\n"}, b"", "port_denied"),
        ({"PASV": b"227 (999,0,0,1,255,255)\r\n"}, b"", "refused"),
        ({}, lambda: _slow(), "too_slow"),
        ({"SIZE": b"213 100\r\n"}, b"short", "incomplete"),
        ({"RETR": b"226 done already\r\n"}, b"", "too_slow"),
    ],
)  # fmt: skip
def test_hostile_servers_cost_a_reason(answers, data, error):
    with scripted_server(answers, data=data) as server:
        limit = 0.4 if error == "too_slow" else 60.0
        response = client(server.port, http_time_limit=limit, timeout=30.0).get(f"{SITE}/x")
        assert response.error == error
        assert classify(response)[:2] == (34, 16)


def _slow():
    while True:
        time.sleep(0.1)
        yield b"x"


def test_answers_that_trickle_are_cut():
    with scripted_server(data=_slow) as server:
        asks = client(server.port, min_rate=1000.0, min_rate_grace=0.2)
        assert asks.get(f"{SITE}/x").error == "low_rate"


def test_a_server_that_closes_is_a_reset():
    def close(server):
        raise OSError

    with scripted_server({"TYPE": close}) as server:
        assert client(server.port).get(f"{SITE}/x").error == "reset"


def test_the_data_connection_goes_where_the_control_connection_went():
    with scripted_server(data=b"data", host="10,0,0,1") as server:  # that is what PASV says
        response = client(server.port).get(f"{SITE}/x")
        assert (response.body, response.ip) == (b"data", "127.0.0.1")


def test_the_guard_judges_ftp_servers():
    with scripted_server() as server:
        who = {"agent_name": "bot", "agent_email": "a@b", "connect_to": ()}
        asks = client(server.port, allowed_ports=(str(server.port),), **who)
        for host in ("127.0.0.1", "localhost", "0x7f.1", "[::1]", "2130706433"):
            url = f"ftp://{host}:{server.port}/"
            assert asks.get(parse_url(url)).error == "address_denied", host
        assert server.connections == 0
        assert (
            client(server.port, **who).get(f"ftp://1.1.1.1:{server.port}/").error == "port_denied"
        )
        opened = client(
            server.port, allowed_ports=(str(server.port),), allow_addresses=("127.0.0.1",), **who
        )
        assert opened.get(f"ftp://127.0.0.1:{server.port}/").status == 200
        assert opened.run(opened.locate(f"ftp://127.0.0.1:{server.port}/")) == "127.0.0.1"
        assert opened.host("ftp://A.example.com:2121/") == "a.example.com"
    nameless = Client(HttpOptions(schemes=("ftp",)))
    assert nameless.get("ftp://1.1.1.1/").error == "agent_missing"


def test_no_spelling_leads_an_ftp_session_inside():
    with scripted_server() as server:
        guard = Guard(allowed_ports=(str(server.port),), lookup=lookup())
        options = HttpOptions(schemes=("ftp",), agent_name="bot", agent_email="a@b", timeout=0.2)
        errors = Counter()
        for host in HOSTS:
            url = parse_url(f"ftp://{host}:{server.port}/")
            if url is not None:
                errors[Client(options, guard).get(url).error] += 1
        assert server.connections == 0
        assert errors["address_denied"] > len(LEADING), errors
        # A name that has public addresses, too, is asked there.
        assert set(errors) <= {"address_denied", "dns", "bad_url", "unreachable", "timeout"}, errors
        opened = Guard(("127.0.0.0/8",), (), (str(server.port),), lookup())
        assert Client(options, opened).get(f"ftp://inside.test:{server.port}/").status == 200


def test_port_21_is_ftps_alone():
    guard = Guard(lookup=lambda host, port, **_: [(socket.AF_INET, 1, 6, "", ("1.1.1.1", 0))])
    assert guard.target("a.example.com", 21, own=21).addresses[0][1] == ("1.1.1.1", 21)
    http = Client(HttpOptions(schemes=("http", "ftp"), agent_name="a", agent_email="b@c"))
    assert http.get("http://1.1.1.1:21/").error == "port_denied"


def test_a_gate_that_is_shut_lets_nothing_through():
    with scripted_server() as server:
        options = HttpOptions(schemes=("ftp",), connect_to=(ftp_mapping(server.port),))
        assert Client(options, gate=lambda: False).get(f"{SITE}/").error == "stopped"
        assert server.connections == 0


def test_ftp_is_not_requested_through_a_proxy():
    with scripted_server() as server:
        options = {"agent_name": "a", "agent_email": "b@c", "http_proxy": "http://127.0.0.1:1"}
        asks = client(server.port, connect_to=(), **options)
        assert asks.get("ftp://a.example.com/").error == "ftp_through_proxy"
        past = client(server.port, **options)  # hosts of connect_to are reached past it
        assert past.get(f"{SITE}/").status == 200


def test_ftp_is_off_by_default():
    with scripted_server() as server:
        assert Client(HttpOptions(connect_to=(ftp_mapping(server.port),))).get(
            f"{SITE}/"
        ).error == ("bad_url")
        assert server.connections == 0


def test_refusals_have_statuses():
    assert status_of("") == 400
    assert ftplib.error_perm("550 x").args == ("550 x",)
