"""The simulated web, seen through real sockets by a walker that shares no code with it."""

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import urllib.robotparser
from collections import Counter
from html.parser import HTMLParser
from http.client import HTTPConnection
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import pytest
from here import TESTS
from simulated_web import SimWeb, TrueSite, served_web

from nutbeam.web.simweb.model import SitePlan
from nutbeam.web.simweb.site import Site

web = served_web(hosts=5, pages=20, scope="module")


@pytest.fixture(scope="module")
def walk(web):
    return Walk(web.port, web.seeds)


class Links(HTMLParser):
    """The links that a browser's user could click, and what <meta> tells robots."""

    def __init__(self, url, text):
        super().__init__()
        self.base, self.urls, self.robots, self.title = url, [], "", ""
        self._in_title = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self._in_title = tag == "title"
        if tag == "base":
            self.base = urljoin(self.base, attributes["href"])
        elif tag == "meta" and attributes.get("name") == "robots":
            self.robots = attributes["content"]
        elif tag == "a" and attributes.get("href") is not None:
            rel = attributes.get("rel", "").lower().split()
            if "nofollow" not in rel:
                self.urls.append(normalize(urljoin(self.base, attributes["href"].strip())))

    def handle_data(self, data):
        if self._in_title:
            self.title += data

    def handle_endtag(self, tag):
        self._in_title = False


def normalize(url):
    parts = urlsplit(urldefrag(url).url)
    host = (parts.hostname or "") if parts.port in (None, 80) else parts.netloc
    path = quote(parts.path or "/", safe="/%")
    return parts._replace(netloc=host, path=path).geturl()


class Walk:
    """Visits everything an obedient robot may, and notes what each URL was."""

    def __init__(self, port, seeds):
        self.port, self.kinds, self.titles, self.bodies = port, {}, {}, {}
        self._robots = {}
        queue = list(seeds)
        while queue:
            url = queue.pop()
            if url not in self.kinds and url.startswith("http:"):
                queue += self.visit(url)

    def visit(self, url):
        if not self.rules(urlsplit(url).netloc).can_fetch("walker", url):
            self.kinds[url] = "denied"
            return []
        status, headers, body = get(self.port, url)
        if status in (301, 302):
            self.kinds[url] = "redirect"
            return [headers["Location"]]
        self.kinds[url] = "page" if status == 200 else "missing"
        if status != 200:
            return []
        page = Links(url, body.decode())
        self.titles[url], self.bodies[url] = page.title, body
        return [] if "nofollow" in page.robots else page.urls

    def rules(self, host):
        if host not in self._robots:
            status, _, body = get(self.port, f"http://{host}/robots.txt")
            self._robots[host] = urllib.robotparser.RobotFileParser()
            self._robots[host].parse(body.decode().splitlines() if status == 200 else [])
        return self._robots[host]


def get(port, url, **headers):
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", target, headers={"Host": parts.netloc, **headers})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def exchange(port, *requests):
    """Sends raw requests at once and returns all that comes until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"".join(requests))
        with connection.makefile("rb") as answer:
            return answer.read()


def test_the_oracle_agrees_with_an_independent_walk(web, walk):
    assert walk.kinds == web.site.reachable()
    assert Counter(walk.kinds.values())["page"] == 5 * 20
    assert set(walk.kinds.values()) == {"page", "redirect", "missing", "denied"}


@pytest.mark.parametrize(
    ("hosts", "pages", "seed"), [(1, 1, 0), (1, 60, 1), (13, 2, 2), (12, 9, -3)]
)
def test_oracle_holds_for_other_sizes(hosts, pages, seed):
    with SimWeb(hosts, pages, seed) as web:
        kinds = Walk(web.port, web.seeds).kinds
        assert kinds == web.site.reachable()
        assert sum(kind == "page" for kind in kinds.values()) == hosts * pages


def test_every_page_is_reachable_in_a_large_web():
    site = TrueSite(hosts=150, pages=30, seed=11)
    assert len(site.urls("page")) == 150 * 30
    assert site.urls("page") == {site.plan.url(page) for page in site.plan.all_pages()}


def test_oracle_knows_duplicates_titles_and_robots_meta(web, walk):
    bodies = {}
    for url, body in walk.bodies.items():
        bodies.setdefault(hashlib.sha256(body).digest(), set()).add(url)
    sets = {frozenset(urls) for urls in bodies.values() if len(urls) > 1}
    assert set(web.site.duplicates()) == sets
    hosts = {frozenset(urlsplit(url).netloc for url in urls) for urls in sets}
    assert {len(names) for names in hosts} == {1, 2}  # within a host, and across
    assert walk.titles == {url: web.site.title(url) for url in walk.titles}
    found = {url for url, body in walk.bodies.items() if 'content="noindex"' in body.decode()}
    assert found == web.site.noindex()
    assert web.site.noindex()
    assert web.site.nofollow()


def test_there_is_a_bit_of_everything(web, walk):
    text = "".join(body.decode() for body in walk.bodies.values())
    for part in (
        "<base href",
        "../",
        "HTTP://H",
        ":80/",
        'href="//h',
        "view?page=",
        "é/",
        "mailto:",
    ):
        assert part in text, part
    average = sum(map(len, walk.bodies.values())) / len(walk.bodies)
    links = sum(len(Links(url, body.decode()).urls) for url, body in walk.bodies.items())
    assert 5_000 < average < 8_000
    assert 10 < links / len(walk.bodies) < 16
    redirects = {url for url, kind in walk.kinds.items() if kind == "redirect"}
    answers = [get(web.port, url) for url in redirects]
    assert {status for status, _, _ in answers} == {301, 302}
    assert any(headers["Location"] in redirects for _, headers, _ in answers)


def test_expected_knows_urls_that_no_crawl_finds(web):
    expected = web.site.expected
    assert expected("http://h0.example.com/hidden/0.html") == "hidden"
    assert expected("http://h0.example.com/robots.txt") == "robots"
    assert expected("http://h0.example.com/img/0.png?5") == "asset"
    assert expected("http://h0.example.com/nothing") == "unknown"
    assert expected("http://h9.example.com/") == "unknown"
    assert get(web.port, "http://h9.example.com/")[0] == 421


def test_only_the_last_host_has_a_crawl_delay():
    site = Site(hosts=3, pages=2, crawl_delay=1)
    assert "Crawl-delay: 1" in site.robots("h2.example.com")
    assert "Crawl-delay" not in site.robots("h1.example.com")
    assert "Crawl-delay" not in Site(hosts=3, pages=2, crawl_delay=0).robots("h2.example.com")


DIGEST = """
import hashlib
from simulated_web import TrueSite
site = TrueSite(hosts=3, pages=20, seed=7)
answers = [site.answer(url[7:].split("/")[0], "/" + url.split("/", 3)[3]) for url in site.urls()]
print(hashlib.sha256(repr(sorted(answers)).encode()).hexdigest())
"""


def test_same_seed_same_bytes_in_another_process():
    digests = {
        subprocess.run(
            [sys.executable, "-P", "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS / "support")},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    root = ("h0.example.com", "/")
    assert Site(3, 20, 7).answer(*root) == Site(3, 20, 7).answer(*root)
    assert Site(3, 20, 7).answer(*root) != Site(3, 20, 8).answer(*root)


def test_pages_that_did_not_change_are_304(web):
    url = web.seeds[0]
    _, headers, body = get(web.port, url)
    for name, value in (
        ("If-None-Match", headers["ETag"]),
        ("If-None-Match", f'"other", W/{headers["ETag"]}'),
        ("If-Modified-Since", headers["Last-Modified"]),
    ):
        status, again, nothing = get(web.port, url, **{name: value})
        assert (status, nothing, again["ETag"]) == (304, b"", headers["ETag"])
    both = {"If-None-Match": '"other"', "If-Modified-Since": headers["Last-Modified"]}
    assert get(web.port, url, **both)[::2] == (200, body)


def test_pipelined_requests_are_answered_in_order(web):
    head = b"HEAD / HTTP/1.1\r\nHost: h1.example.com\r\n\r\n"
    robots = b"GET /robots.txt HTTP/1.1\r\nhost:H0.example.com:80\r\n\r\n"
    last = b"GET http://h0.example.com/gone/0.html HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = exchange(web.port, head, robots, robots, last)
    statuses = re.findall(rb"HTTP/1.1 (...) ", answer)
    assert statuses == [b"200", b"200", b"200", b"404"]
    assert answer.count(b"Disallow: /private/") == 2


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : h0.example.com\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: h0.example.com\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: h0.example.com\r\nContent-Length: 1\r\n\r\nx", 413),
        (b"GET / HTTP/1.1\r\nHost: h0.example.com\r\nX: " + b"x" * 40_000, 431),
    ],
)
def test_bad_requests_are_refused(web, request_bytes, status):
    try:
        answer = exchange(web.port, request_bytes)
    except ConnectionResetError:  # it need not read all that it refuses
        assert status == 431
    else:
        assert answer.startswith(b"HTTP/1.1 %d " % status)


def test_log_of_two_processes_is_complete_and_in_order():
    with SimWeb(hosts=2, pages=3, crawl_delay=0, processes=2) as web:
        before = time.monotonic()
        urls = [f"http://h{i % 2}.example.com/{i}" for i in range(40)]
        for url in urls:
            get(web.port, url)
        requests = web.requests()
        assert [f"http://{host}{path}" for _, host, path in requests] == urls
        assert before < requests[0].time <= requests[-1].time < time.monotonic()


def test_latency_delays_each_answer():
    with SimWeb(hosts=1, pages=1, latency=0.1) as web:
        start = time.monotonic()
        ask = b"GET / HTTP/1.1\r\nHost: h0.example.com\r\n\r\n"
        exchange(web.port, ask, ask.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert time.monotonic() - start >= 0.2


@pytest.mark.parametrize(
    "name", [f"{kind}.hostile.example.com" for kind in ("slow", "hang", "endless", "reset", "cut")]
)
def test_hostile_hosts_are_hostile_but_their_robots_txt_is_not(web, name):
    assert get(web.port, f"http://{name}/robots.txt")[0] == 404
    with socket.create_connection(("127.0.0.1", web.port), timeout=0.5) as connection:
        connection.sendall(f"GET /x HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        received, end = read_some(connection)
    kind = name.partition(".")[0]
    assert end == {"hang": "silence", "endless": "more", "reset": "reset"}.get(kind, end)
    assert (received == b"") == (kind == "hang")
    assert get(web.port, web.seeds[0])[0] == 200  # the others do not suffer


def read_some(connection):
    received = b""
    try:
        while len(received) < 1_000_000:
            data = connection.recv(65_536)
            if not data:
                return received, "end"
            received += data
            if b"slow" in received:
                return received, "slow"
    except TimeoutError:
        return received, "silence"
    except ConnectionResetError:
        return received, "reset"
    return received, "more"


ORPHAN = """
import time
from nutbeam.web.simweb.server import SimWeb
with SimWeb(hosts=1, pages=1) as web:
    print(web.port, flush=True)
    time.sleep(60)
"""


def test_serving_processes_die_with_their_parent():
    command = [sys.executable, "-P", "-c", ORPHAN]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        port = int(parent.stdout.readline())
        assert get(port, "http://h0.example.com/")[0] == 200
        os.kill(parent.pid, signal.SIGKILL)
    for _ in range(50):
        try:
            get(port, "http://h0.example.com/")
        except OSError:
            return
        time.sleep(0.1)
    pytest.fail("still served after its parent was killed")


def test_run_prints_its_address_until_interrupted():
    code = (
        "from nutbeam.web.simweb.server import SimWeb, serve; raise SystemExit(serve(SimWeb(2, 3)))"
    )
    command = [sys.executable, "-P", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        lines = [server.stdout.readline() for _ in range(3)]
        port = int(lines[0].split(":")[1])
        assert get(port, "http://h0.example.com/")[0] == 200
        assert lines[2] == f"crawl it with --connect_to '*.example.com:80:127.0.0.1:{port}'\n"
        server.send_signal(signal.SIGINT)
        assert server.wait(5) == 0


def test_configuration_is_checked(web):
    for arguments, message in (
        ({"hosts": 0}, "hosts must be at least 1, got 0"),
        ({"pages": -1}, "pages must be at least 1, got -1"),
        ({"crawl_delay": -1}, "crawl_delay must be at least 0 seconds, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            Site(**arguments)
    for processes in (1, 2):
        with (
            pytest.raises(ValueError, match=f"port must be a free port or 0, got {web.port}"),
            SimWeb(port=web.port, processes=processes),
        ):
            pass


def test_sizes_fall_and_sum_up():
    for hosts, pages in ((1, 1), (7, 1), (20, 50), (1000, 3)):
        sizes = SitePlan(hosts, pages, 0).sizes
        assert sum(sizes) == hosts * pages
        assert min(sizes) >= 1
        assert list(sizes) == sorted(sizes, reverse=True)


def test_imports_little():
    """It starts in a moment, as it is started for each test: benchmarks/simweb.py says how fast."""
    code = "import sys, nutbeam.web.simweb.server; print(*sys.modules)"
    command = [sys.executable, "-P", "-c", code]
    loaded = set(subprocess.check_output(command, text=True).split())
    assert not loaded & {
        "apache_beam",
        "asyncio",
        "numpy",
        "pandas",
        "polars",
        "pyarrow",
        "requests",
    }
