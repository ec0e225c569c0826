"""What the conformance benchmark counts at its servers: each counter sees a rude client."""

import importlib
import os
import socket
import sys

import pytest
from here import ROOT
from protego import Protego

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)
MODULES = ("counts", "network", "runs", "sites", "tables", "web")


@pytest.fixture(scope="module")
def bench():
    """The modules of the benchmark, by name."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        modules = {name: importlib.import_module(f"conformance_{name}") for name in MODULES}
        return type("Bench", (), modules | {"rivals": importlib.import_module("rivals")})
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture
def served(bench):
    """Serves scenarios: ``served(name)`` returns the server."""
    webs = []

    def serve(name):
        webs.append(bench.web.ServedWeb(bench.sites.scenarios()[name][1]))
        return webs[-1].__enter__()

    yield serve
    for web in webs:
        web.__exit__()


def ask(port, host, target="/"):
    """Requests a target of a host; returns the answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {target} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_requests_without_a_pause_are_short_gaps(bench, served):
    web, host = served("delays"), bench.sites.DELAY_HOST
    for target in ("/robots.txt", "/", "/1", "/2"):
        ask(web.port, host, target)
    assert bench.counts.short_gaps(web.seen, host, 3600) == (2, 2)
    assert bench.counts.short_gaps(web.seen, host, 0) == (0, 2)
    assert bench.counts.short_gaps(web.seen, "another.example.com", 3600) == (0, 0)


def test_a_forbidden_page_that_is_requested_is_counted(bench, served):
    web = served("robots")
    rules = {"plain": bench.sites.RULES["plain"]}
    forbidden, allowed = (bench.sites.urls_of(rules, kind) for kind in ("forbidden", "allowed"))
    ask(web.port, "plain.example.com", "/")
    assert bench.counts.requested(web.seen, forbidden) == (0, 1)
    ask(web.port, "plain.example.com", "/private/1")
    assert bench.counts.requested(web.seen, forbidden) == (1, 1)
    assert bench.counts.requested(web.seen, allowed) == (1, 2)


def test_forbidden_urls_are_those_of_each_robots_txt(bench, served):
    web = served("robots")
    for name, rules in bench.sites.RULES.items():
        head, _, body = ask(web.port, f"{name}.example.com", "/robots.txt").partition(b"\r\n\r\n")
        if b" 200 " not in head:
            continue
        robots = Protego.parse(body.decode("utf-8-sig"))
        paths = (*rules.forbidden, *rules.allowed)
        verdicts = {path: robots.can_fetch(path, bench.sites.AGENT) for path in paths}
        wanted = dict.fromkeys(rules.forbidden, False) | dict.fromkeys(rules.allowed, True)
        assert verdicts == wanted, name


def test_five_redirects_of_robots_txt_lead_to_rules(bench, served):
    web, host, target, hops = served("robots"), "hops.example.com", "/robots.txt", 0
    while b"Location: " in (answer := ask(web.port, host, target)):
        host = "elsewhere.example.com"
        target = answer.partition(b"elsewhere.example.com")[2].partition(b"\r\n")[0].decode()
        hops += 1
    assert hops == 5
    assert b"Disallow: /private" in answer


def test_requests_after_retry_after_are_counted(bench, served):
    web = served("busy")
    sites = bench.sites
    for host in sites.BUSY_HOSTS:
        answers = [ask(web.port, host, f"/{n}") for n in range(sites.FIRST_BUSY + 1)]
        assert b"Retry-After" in answers[-1]
        assert b"Retry-After" not in answers[-2]

    def after(host):
        return bench.counts.requests_while_busy(web.seen, host, sites.FIRST_BUSY, 3600)

    assert [after(host) for host in sites.BUSY_HOSTS] == [0, 0]
    ask(web.port, "busy-date.example.com", "/again")
    ask(web.port, "busy-date.example.com", "/robots.txt")
    assert [after(host) for host in sites.BUSY_HOSTS] == [0, 1]


def test_connections_to_the_canary_are_counted(bench, served):
    web = served("private")
    with bench.web.Canary(["127.0.0.1"]) as canary:
        ask(canary.port, "127.1", "/link/3")
        ask(canary.port, "127.1", "/link/3?again")
        ask(canary.port, "127.1", "/redirect/0")
    assert canary.connections == 3
    assert [bench.counts.reached(canary.targets, kind) for kind in ("link", "redirect")] == [1, 1]
    links = ask(web.port, bench.sites.LINKS_HOST).count(b"<a href")
    assert links == len(bench.sites.SPELLINGS) + len(bench.sites.REDIRECTED) == 72


def test_urls_of_the_trap_and_repeated_requests_are_counted(bench, served):
    web, sites = served("kills"), bench.sites
    for target in ("/", "/2024/2", "/2024/2/3", "/2024/2/3"):
        ask(web.port, sites.TRAP_HOST, target)
    assert bench.counts.pages_requested(web.seen, sites.TRAP_HOST) == 3
    for target in ("/", "/1.html", "/"):
        ask(web.port, sites.KEPT_HOST, target)
    assert bench.counts.repeated_requests(web.seen, sites.KEPT_HOST) == 1
    assert bench.counts.lost_pages({"a", "b"}, {"b", "c"}) == (1, 2)


HOARDER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"GET / HTTP/1.0\\r\\nHost: endless.hostile.example.com\\r\\n\\r\\n")
kept = []
while sys.argv[2] == "rude" or len(kept) < 9:
    kept.append(connection.recv(65536))
"""


def test_a_client_that_keeps_an_endless_body_is_ended(bench, served, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.runs, "MEMORY_LIMIT", 60 << 20)
    port = str(served("endless").port)

    def used(manner, stop=lambda: False):
        command = [sys.executable, "-c", HOARDER, port, manner]
        return bench.runs.run_commands([command], tmp_path, os.environ, 600, stop)

    assert used("rude").end == "memory"
    assert used("polite").end == "by itself"
    assert used("rude", lambda: True).end == "killed"


def test_each_run_has_a_network_of_its_own(bench):
    if bench.network.missing():
        pytest.skip(bench.network.missing())
    program = (
        "import conformance_network as network, socket\n"
        "network.set_up(['a.example.com'], ['10.0.0.1'], {'b.example.net': '127.0.0.1'})\n"
        "socket.create_server((network.WEB_ADDRESS, 80))\n"
        "socket.create_server(('10.0.0.1', 80))\n"
        "print(*map(socket.gethostbyname, ('a.example.com', 'b.example.net')))\n"
    )
    monkey = f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r})\n"
    done = bench.network.run_within([sys.executable, "-c", monkey + program])
    assert done.stdout.split() == [bench.network.WEB_ADDRESS, "127.0.0.1"], done.stderr


def used_of(**changed):
    return {"seconds": 2.4, "cpu": 1.0, "peak": 5_000_000, "end": "by itself"} | changed


def test_the_tables_show_the_counts(bench, tmp_path):
    results = {
        "nutbeam": {"delays": {"gaps": [0, 9], "shortest": 1.0, "crawl_delay": [1, 4]}},
        "colly": {"bombs": {"honest": [3, 20], "used": used_of(end="memory", peak=10**9)}},
    }
    text = bench.tables.tables(results)
    assert "| gaps shorter than the delay of 1 s | 0 of 9 | not run |" in text
    assert "| bombs: peak memory, MB | not run | over 1,000, ended |" in text
    assert "| bombs: honest pages not requested | not run | 17 of 20 |" in text
    page = tmp_path / "page.md"
    page.write_text("# A\n<!-- benchmarks/conformance.py -->\nold\n<!-- end -->\nkept\n")
    bench.tables.write_page(page, "new")
    assert page.read_text() == (
        "# A\n<!-- benchmarks/conformance.py -->\n\nnew\n<!-- end -->\nkept\n"
    )


def test_the_page_names_each_crawler_and_its_pinned_version(bench):
    page = (ROOT / "docs" / "comparison.md").read_text()
    for rival in bench.rivals.RIVALS.values():
        version = rival.version or "this one"
        assert f"| {rival.name} | {version} |" in page or f"- {rival.name}" in page
    assert all(f"- {name}: " in page for name in bench.rivals.NOT_RUN)
