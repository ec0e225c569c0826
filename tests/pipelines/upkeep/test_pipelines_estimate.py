"""estimate says what the next round takes; then the round takes that."""

import json
import threading

import pytest
from crawling import crawl, manifests_of, nutbeam, reach
from simulated_web import served_web
from web_servers import reply, serve

web = served_web(hosts=3, pages=12, scope="module")


@pytest.fixture(scope="module")
def crawled(web, tmp_path_factory):
    """A table with a part of a small web."""
    table = tmp_path_factory.mktemp("estimate") / "table"
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
    return table


def estimate(table, capsys, *words, code=0):
    capsys.readouterr()
    assert nutbeam("estimate", table, "--format", "json", *words) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [[], ["--top_n", "5"], ["--max_count", "2"], ["--max_count", "3", "--top_n", "4"],
     ["--expr", "distance > 1"], ["--add_days", "40", "--max_count_expr", "1"]],
)  # fmt: skip
def test_the_estimated_urls_are_those_of_generate(crawled, tmp_path, capsys, words):
    copy = tmp_path / "copy"
    assert nutbeam("copy", crawled, copy) == 0
    number = estimate(copy, capsys, *words)["urls"]
    assert nutbeam("generate", copy, "--format", "json", *words) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["chosen"] == number > 0
    # The open batch is what the next round fetches, whatever the options say.
    assert estimate(copy, capsys)["urls"] == number


def test_an_estimate_names_slow_hosts_and_the_cost_of_pages(crawled, capsys):
    record = estimate(crawled, capsys, "--server_delay", "4", "--pages", "1000000")
    slowest = record["slowest"][0]
    assert record["bound"] == "hosts"
    assert slowest["seconds"] == pytest.approx(
        (slowest["turns"] - 1) * 4 + slowest["turns"] * slowest["answer"]
    )
    assert record["phases"]["fetch"] >= slowest["seconds"]
    assert record["bytes"] == record["urls"] * record["page"]["bytes"] > 0
    assert record["cost"]["disk_bytes"] == 1_000_000 * record["page"]["bytes"]
    assert record["cost"]["hosts"] == 3
    assert nutbeam("estimate", crawled, "--server_delay", "4", "--pages", "1000") == 0
    out = capsys.readouterr().out
    assert f"turns x ({slowest['answer']:.2g} s answer + 4 s pause, server_delay)" in out
    assert "a crawl of 1,000 pages: " in out


def test_hosts_are_not_named_where_they_do_not_hold_the_fetch_up(crawled, capsys):
    assert estimate(crawled, capsys, "--server_delay", "0")["bound"] == "start"
    assert nutbeam("estimate", crawled, "--server_delay", "0") == 0
    out = capsys.readouterr().out
    assert "the start and the end of the fetch take longer than its requests" in out
    assert "turns x" not in out


def test_a_time_limit_ends_it(crawled, capsys):
    record = estimate(crawled, capsys, "--server_delay", "10", "--fetch_time_limit", "15")
    assert record["bound"] == "time_limit"
    assert 0 < record["left"] < record["urls"]
    assert record["phases"]["fetch"] >= 15


def test_nothing_is_due(web, tmp_path, capsys):
    table = tmp_path / "table"
    assert crawl(table, web, *web.seeds) == 0
    assert estimate(table, capsys, code=1)["seconds"] == 0
    assert nutbeam("estimate", table) == 1
    assert "nothing is due; the next URL" in capsys.readouterr().out


class Hosts:
    """A web of hosts with some pages each, a crawl delay, and answers that take a time."""

    def __init__(self, pages, crawl_delay=None, answer_s=0.0):
        self.pages, self.crawl_delay, self.answer_s = pages, crawl_delay or {}, answer_s
        self.server = None
        self._pause = threading.Event()

    def answer(self, path, _):
        host = self.server.current.head.lower().partition("host: ")[2].split()[0].partition(".")[0]
        if path == "/robots.txt":
            delay = self.crawl_delay.get(host)
            text = f"User-agent: *\nCrawl-delay: {delay}\n" if delay else "User-agent: *\n"
            return reply(text.encode(), "200 OK", "Content-Type: text/plain")
        self._pause.wait(self.answer_s)
        links = "".join(f'<a href="/{n}">{n}</a>' for n in range(self.pages[host]))
        body = f"<title>{path}</title>{links if path == '/' else path * 20}".encode()
        return reply(body, "200 OK", "Content-Type: text/html")


WEBS = {
    "one big slow host": (
        Hosts({"big": 30, **{f"h{n}": 4 for n in range(8)}}, {"big": 2}), ["--server_delay", "0.5"],
    ),
    "many hosts with pauses": (
        Hosts({f"h{n:02}": 6 + n % 5 for n in range(30)}, answer_s=0.05), ["--server_delay", "5"],
    ),
    "slow answers and few threads": (
        Hosts({f"h{n:02}": 5 for n in range(12)}, answer_s=1.5),
        ["--server_delay", "0", "--threads", "3"],
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", WEBS)
def test_the_next_round_takes_the_estimated_time(tmp_path, capsys, name):
    hosts, pace = WEBS[name]
    table = tmp_path / "table"
    with serve(hosts.answer) as server:
        hosts.server = server
        where = ["--connect_to", f"*.example.com:80:127.0.0.1:{server.port}"]
        seeds = [f"http://{host}.example.com/" for host in hosts.pages]
        words = ["--rounds", "1", *pace, *where]
        assert nutbeam("crawl", table, *seeds, *words) == 0
        expected = estimate(table, capsys, *pace)
        assert nutbeam("crawl", table, *words) == 0
    round_manifests = [one for one in manifests_of(table) if ".1." in one.operation][-4:]
    assert [one.job for one in round_manifests] == ["generate", "fetch", "update", "dedup"]
    took = (round_manifests[-1].committed - round_manifests[0].time) / 1000
    with capsys.disabled():
        print(
            f"\n{name}: estimated {expected['seconds']:.1f} s ({expected['bound']}), took {took:.1f} s"
        )
    assert expected["urls"] == sum(hosts.pages.values())
    assert expected["seconds"] == pytest.approx(took, rel=0.25)
