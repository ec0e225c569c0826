"""The console: figures for people and programs, and requests that are hostile, slow or too many."""

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

import pytest
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards
from simulated_web import served_web

from nutbeam.io.snapshots.heartbeats import write_heartbeat
from nutbeam.io.storage.processes import this_process
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.base.served_address import ServedAddress
from nutbeam.pipelines.watching.console_command import Options
from nutbeam.pipelines.watching.console_serving import ConsoleServer, SearchedIndex
from nutbeam.pipelines.watching.table_watch import TableWatch
from nutbeam.policy.components.heartbeat import FailedRequest, Heartbeat, HeldHost, PhaseUnderWay
from nutbeam.web.base.clock import now_ms

web = served_web(hosts=1, pages=3, scope="module")
EVIL = "<script>document.title='obeyed'</script>\u202e\x1b[2J"
SECRET = "a-secret-of-the-tests"


class Watched:
    """A table with a console."""

    def __init__(self, table, server, looks):
        self.table, self.server, self.looks = table, server, looks

    def ask(self, path, host=None, **headers):
        """Returns (status, headers, text) of a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        named = host or f"127.0.0.1:{self.server.port}"
        connection.request("GET", path, headers={"Host": named, **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def fresh(self, path):
        """Returns the text of a page after the next look at the table."""
        self.server.figures._looked -= 10
        return self.ask(path)[2]


@pytest.fixture
def console(web, tmp_path_factory, request):
    """A console of a table of two URLs; a marker may name who may ask, and the secret."""
    address, secret = getattr(request, "param", (ServedAddress(), ""))
    folder = tmp_path_factory.mktemp("console")
    table = folder / "table"
    assert nutbeam("inject", table, "http://a.example.com/", "http://b.example.com/x") == 0
    looks = []

    class CountingWatch(TableWatch):
        def look(self):
            looks.append(time.monotonic())
            return super().look()

    watch = CountingWatch(str(table), 3600.0, 1000)
    index = SearchedIndex(str(table), "main", str(folder / "cache"))
    with ConsoleServer(watch, address, Options(), index, secret) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield Watched(table, server, looks)
        server.shutdown()
        thread.join()


def beat(table):
    """Writes the heartbeat of a fetch by this process, with names as strangers choose them."""
    phase = PhaseUnderWay(
        "fetch", "pages", 40, 10, 5.0, 2.5, 99.0, "2 of 3", {"success": 9, "bytes": 5000}, 1, 2,
        (HeldHost(f"slow.example.com{EVIL}", 30, 95.0, 1.5, True),),
    )  # fmt: skip
    failure = FailedRequest(now_ms(), f"http://b.example.com/{EVIL}", "timeout")
    write_heartbeat(
        open_table(str(table)).files,
        Heartbeat("77", "crawl", this_process(), now_ms(), 2.0, phase, (failure,)),
    )


def test_the_page_has_the_figures_of_status(console, capsys):
    beat(console.table)
    record = json.loads(console.fresh("/status.json"))
    capsys.readouterr()
    assert nutbeam("status", console.table, "--format", "json") == 0
    same = ("state", "problems", "running", "last", "batches")
    of_status = json.loads(capsys.readouterr().out)
    assert {name: record[name] for name in same} == {name: of_status[name] for name in same}
    status, headers, text = console.ask("/")
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers
    for shown in ("10 of 40 pages", "2.5 pages/s now", "slow.example.com", "timeout", "2 of 3"):
        assert shown in text
    assert "<script>document" not in text
    assert "\u202e" not in text


def test_the_page_follows_the_table_and_says_when_it_cannot_be_read(console):
    assert "Nothing runs" in console.ask("/live")[2]
    beat(console.table)
    assert "crawl: fetch" in console.fresh("/live")
    assert nutbeam("dedup", console.table) == 0
    (console.table / "operations" / "77.beat").unlink()
    assert "dedup ended well" in console.fresh("/live")
    console.table.rename(console.table.with_name("hidden"))
    console.server.figures._looked -= 10
    status, _, text = console.ask("/status.json")
    assert (status, json.loads(text)["state"]) == (503, "unknown")
    assert 'role="alert"' in console.ask("/")[2]


def test_a_url_is_explained(console):
    text = console.ask("/explain?url=http://a.example.com/")[2]
    assert "in the table, chosen next if its score is enough" in text
    assert "accepted, and not in the table" in console.ask("/explain?url=http://b.example.com/y")[2]
    status, _, text = console.ask(f"/explain?url=http://c/{'x' * 5000}%3Cscript%3E%00%ff")
    assert (status, "<script>\x00" in text) == (400, False)
    assert console.ask("/explain")[0] == 200


def test_the_console_has_the_report_on_the_newest_snapshot(console, tmp_path):
    assert "/report" in console.ask("/")[2]
    for snapshot, urls in ((1, "2 URLs"), (2, "3 URLs")):
        assert nutbeam("report", console.table, "-o", tmp_path / "report.html") == 0
        status, headers, page = console.ask("/report")
        assert (status, f"snapshot {snapshot}" in page) == (200, True)
        assert "script" not in headers["Content-Security-Policy"]
        assert (
            page.partition("<main>")[2]
            == (tmp_path / "report.html").read_text().partition("<main>")[2]
        )
        assert urls.partition(" ")[0] in page
        assert nutbeam("inject", console.table, "http://c.example.com/") == 0
        console.fresh("/live")


def test_an_index_is_searched_if_there_is_one(console):
    assert "Search the index" not in console.ask("/")[2]
    assert console.ask("/search/?q=river")[0] == 404
    commit_shards(console.table, write_shards(console.table, [page("http://a/", "A river")]), "1")
    assert "Search the index" in console.fresh("/")
    status, _, text = console.ask("/search/?q=river")
    assert (status, "A river" in text, 'action="/search/"' in text) == (200, True, True)
    assert json.loads(console.ask("/search/search.json?q=river")[2])["total"] == 1


@pytest.mark.parametrize(
    "host", ["evil.example.com", "127.0.0.1", "localhost:1", "127.0.0.1.evil.com", "é", "\x7f" * 90]
)
def test_requests_for_other_hosts_are_refused(console, host):
    assert console.ask("/status.json", host.encode())[0] == 421


LOCKED = ServedAddress(allowed_hosts=("console.example.com",)), SECRET


@pytest.mark.parametrize("console", [LOCKED], indirect=True)
def test_without_the_token_nothing_is_shown(console):
    wrong = {"Cookie": "nutbeam_1=x", "Authorization": "Bearer é"}
    for path in ("/", "/live", "/status.json", "/explain?url=x", "/search/", "/?token=wrong"):
        status, _, text = console.ask(path)
        assert (status, "example.com" in text) == (403, False)
    assert console.ask("/status.json", **{n: v.encode() for n, v in wrong.items()})[0] == 403
    status, headers, _ = console.ask(f"/?token={SECRET}", host="console.example.com")
    assert (status, headers["Location"]) == (303, "/")
    cookie = headers["Set-Cookie"]
    assert ("HttpOnly" in cookie, "SameSite=Strict" in cookie) == (True, True)
    assert console.ask("/", Cookie=cookie.partition(";")[0])[0] == 200
    assert console.ask("/status.json", Authorization=f"Bearer {SECRET}")[0] == 200


def test_many_requests_share_one_look(console):
    beat(console.table)
    began, before = time.monotonic(), len(console.looks)
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: console.ask("/status.json")[0], range(400)))
    assert set(answers) == {200}
    # At most one look in each second, however many ask.
    assert len(console.looks) - before <= time.monotonic() - began + 2


def test_slow_readers_and_endless_requests_do_not_hold_others_up(console):
    slow = [socket.create_connection(("127.0.0.1", console.server.port)) for _ in range(50)]
    for number, connection in enumerate(slow):
        start = b"GET / HTTP/1.1\r\nHost: x" if number % 2 else b"GET /" + b"x" * 60_000
        connection.sendall(start)
    assert console.ask("/status.json")[0] == 200
    for connection in slow:
        connection.close()
    with socket.create_connection(("127.0.0.1", console.server.port)) as connection:
        connection.sendall(b"GET /explain?url=" + b"u" * 70_000)
        assert b" 414 " in connection.recv(100)
    assert console.ask("/nothing")[0] == 404
    with socket.create_connection(("127.0.0.1", console.server.port)) as connection:
        connection.sendall(b"POST / HTTP/1.0\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert b" 501 " in connection.recv(100)


EVERYWHERE = ServedAddress(host="0.0.0.0", allowed_hosts=("127.0.0.2",))


@pytest.mark.parametrize("console", [(EVERYWHERE, SECRET)], indirect=True)
def test_the_printed_addresses_open_the_page(console):
    hosts = [urlsplit(url).netloc for url in console.server.urls]
    assert hosts == [f"127.0.0.2:{console.server.port}", f"localhost:{console.server.port}"]
    for url in console.server.urls:
        opener = build_opener(ProxyHandler({}), HTTPCookieProcessor())
        with opener.open(f"{url}?token={SECRET}", timeout=60) as answer:
            assert answer.status == 200


def test_a_request_that_never_ends_is_ended(console):
    console.server.longest_s = 0.1
    with socket.create_connection(("127.0.0.1", console.server.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x")
        connection.settimeout(60)
        assert connection.recv(100) == b""  # it was closed


def test_bad_options_are_refused_before_anything_is_served(tmp_path, refuse, console):
    table = str(console.table)
    assert "no web table" in refuse("console", tmp_path / "none")
    short = tmp_path / "token"
    short.write_text("short\n")
    assert "16 to 500" in refuse("console", table, "--token_file", short)
    assert "'none'" in refuse("console", table, "--token_file", "none")
    assert "--allowed_hosts" in refuse("console", table, "--host", "0.0.0.0")
    assert "'local'" in refuse("console", table, "--host", "local")
