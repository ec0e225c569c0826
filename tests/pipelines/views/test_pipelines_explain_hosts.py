"""explain shows settings of hosts, the history of a row, and asks for robots.txt on request."""

import itertools
import json

import pytest
from crawling import json_lines, manifest_of, nutbeam, reach, state_of
from simulated_web import SimWeb
from web_servers import connect_to, reply, serve

HOSTS = ("blocked", "capped", "boosted", "free")
URLS = [f"http://{name}.example.com/{page}" for name in HOSTS for page in ("1", "2", "3")]
SETTINGS = """\
blocked.example.com blocked=true
capped.example.com max_count=1 min_interval=86400
boosted.example.com boost=3 delay=2.5
"""


@pytest.fixture
def table(tables, tmp_path):
    table = tables(tmp_path / "table")
    (tmp_path / "hosts.txt").write_text(SETTINGS)
    assert nutbeam("inject", table, *URLS) == 0
    assert nutbeam("hostinject", table, tmp_path / "hosts.txt") == 0
    return table


def explained(capsys, table, *words):
    capsys.readouterr()
    assert nutbeam("explain", table, *words, "--format", "json") == 0
    return json_lines(capsys.readouterr().out)


def reasons(record):
    return [why["reason"] for why in record["generate"]]


def chosen_by(capsys, table, *words):
    """Runs generate; returns the URLs that its batch has, by explain's word for it."""
    assert nutbeam("generate", table, *words) == 0
    found = explained(capsys, table, *URLS, *words)
    return {r["row"]["url"] for r in found if r["last_generate"]["reason"] == "chosen"}, found


@pytest.mark.long
def test_settings_of_hosts_count_as_generate_counts_them(table, capsys):
    before = explained(capsys, table, *URLS)
    free = {record["row"]["url"] for record in before if not reasons(record)}
    assert {url.split("/")[2].partition(".")[0] for url in free} == {*HOSTS} - {"blocked"}
    chosen, after = chosen_by(capsys, table)
    assert chosen == free
    assert len(chosen) == 7
    fates = {r["row"]["url"]: r["last_generate"]["reason"] for r in after}
    assert {fates[url] for url in URLS if "blocked" in url} == {"host_blocked"}
    assert sorted(fates[url] for url in URLS if "capped" in url) == [
        "chosen", "max_count", "max_count"
    ]  # fmt: skip
    hosts = {record["row"]["url"]: record["host"] for record in before}
    assert hosts[URLS[0]]["settings"] == {"blocked": True}
    assert (hosts[URLS[3]]["max_count"], hosts[URLS[3]]["delay"]) == (1, None)
    assert (hosts[URLS[6]]["boost"], hosts[URLS[6]]["delay"]) == (3.0, 2.5)
    assert hosts[URLS[9]] == {"settings": {}, "max_count": None, "delay": None, "boost": None}


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("--max_count", 4, "--count_mode", "domain"), 5),  # the capped host counts apart
        (("--max_count_expr", "numRecords - 1"), 5),
        (("--max_count", 1), 3),
    ],
)
def test_boosts_and_limits_decide_which_urls_are_chosen(table, capsys, words, number):
    free = {r["row"]["url"] for r in explained(capsys, table, *URLS, *words) if not reasons(r)}
    chosen, _ = chosen_by(capsys, table, *words)
    assert chosen == free
    assert len(chosen) == number
    if "domain" in words:
        assert {url for url in URLS if "boosted" in url} < chosen


@pytest.mark.long
def test_as_people_read_it(table, capsys):
    capsys.readouterr()
    assert nutbeam("explain", table, URLS[0], URLS[3], URLS[6]) == 0
    blocked, capped, boosted = capsys.readouterr().out.split("\n\n")[:3]
    assert "not chosen: host_blocked: a setting of its host blocks it (hostinject)" in blocked
    assert blocked.endswith("verdict: in the table, not chosen now: host_blocked")
    assert "host settings: blocked True" in blocked
    assert "host settings: max_count 1, min_interval 86400" in capped
    assert "generate uses for its host: delay 2.5, boost 3" in boosted
    assert max(text.count("\n") for text in (blocked, capped, boosted)) < 24, "one screen"


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.bigtable
@pytest.mark.parametrize("tables", ["folder", "bigtable"], indirect=True)
def test_a_row_has_its_history_its_last_generate_and_its_inlinks(tables, tmp_path, capsys):
    table = tables(tmp_path / "table")
    with SimWeb(hosts=1, pages=4, seed=7, crawl_delay=0) as web:
        # In Bigtable, the history reaches back over few commits.
        words = ("--links", "true", "--rounds", "1", *reach(web))
        assert nutbeam("crawl", table, *web.seeds, *words) == 0
    (record,) = explained(capsys, table, web.seeds[0])
    history = record["history"]
    assert history[-1]["job"] == "inject"
    assert (history[-1]["status"], history[0]["status"]) == ("db_unfetched", "db_fetched")
    assert [v["snapshot"] for v in history] == sorted(
        (v["snapshot"] for v in history), reverse=True
    )
    row = record["row"]
    assert all(history[0][name] == row[name] for name in ("status", "fetch_time", "score"))
    values = [{n: v for n, v in version.items() if n not in ("snapshot", "time", "job")}
              for version in history]  # fmt: skip
    assert all(one != other for one, other in itertools.pairwise(values))
    assert record["last_generate"]["reason"] in ("not_due", "chosen")
    linked = [r for r in explained(capsys, table, *state_of(table)["url"]) if r["inlinks"]]
    assert linked
    assert all(r["inlinks"]["best"] for r in linked)
    capsys.readouterr()
    assert nutbeam("explain", table, web.seeds[0]) == 0
    assert f"history: {history[0]['time']}: {history[0]['job']}: status db_fetched" in (
        capsys.readouterr().out
    )


def test_a_url_that_never_had_a_row_has_no_history(table, capsys):
    (record,) = explained(capsys, table, "http://nowhere.example.net/x")
    assert (record["row"], record["history"]) == (None, [])
    assert nutbeam("explain", table, "http://nowhere.example.net/x") == 0
    assert "history:" not in capsys.readouterr().out


def test_explain_requests_robots_txt_once_and_only_with_ask_robots(tmp_path, capsys):
    table = tmp_path / "table"
    assert nutbeam("inject", table, "http://a.example.com/x", "http://a.example.com/y") == 0

    def answer(path, connection):
        return reply(b"User-agent: *\nDisallow: /x\n", "200 OK", "Content-Type: text/plain")

    urls = ("http://a.example.com/x", "http://a.example.com/y")
    with serve(answer) as server:
        words = [word for door in connect_to(server.port) for word in ("--connect_to", door)]
        found = explained(capsys, table, *urls, *words)
        assert server.paths == []
        assert [r["robots"]["verdict"] for r in found] == ["unknown"] * 2
        found = explained(capsys, table, *urls, *words, "--ask_robots", "true")
        assert server.paths == ["/robots.txt"]
        assert [r["robots"]["verdict"] for r in found] == ["denied", "allowed"]
        assert [(r["robots"]["line"], r["robots"]["requested"]) for r in found] == [
            (2, True),
            (None, True),
        ]
        # Without a table, too.
        (record,) = explained(capsys, "-", urls[0], *words, "--ask_robots", "true")
        assert record["robots"]["verdict"] == "denied"
    # The guard is that of fetch.
    (record,) = explained(capsys, table, "http://127.0.0.1/", "--ask_robots", "true",
                         "--agent_name", "t", "--agent_email", "t@example.com")  # fmt: skip
    assert record["robots"]["verdict"] == "deferred"
    assert record["robots"]["error"] == "address_denied"


def test_explain_does_not_request_robots_txt_without_an_agent_name(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("NUTBEAM_AGENT_NAME", raising=False)
    for name in ("AGENT_NAME", "AGENT_URL", "AGENT_EMAIL"):
        monkeypatch.delenv(f"NUTBEAM_{name}", raising=False)
    assert nutbeam("explain", "-", "http://a.example.com/", "--ask_robots", "true") == 2
    assert "agent" in capsys.readouterr().err


@pytest.mark.long
def test_a_crawl_says_that_all_that_is_due_is_blocked(table, tmp_path, capsys):
    (tmp_path / "all.txt").write_text("".join(f"{n}.example.com blocked=true\n" for n in HOSTS))
    assert nutbeam("hostinject", table, tmp_path / "all.txt") == 0
    with SimWeb(hosts=1, pages=1) as web:
        capsys.readouterr()
        assert nutbeam("crawl", table, *reach(web), "--format", "json") == 1
    record = json.loads(capsys.readouterr().out)
    assert record["ending"] == "none_chosen"
    assert record["message"] == (
        "12 URLs are due, and none was chosen: 12 host_blocked (a setting of its host blocks it; "
        "hostinject with blocked=false allows it)"
    )
    assert record["due"] == {"now": 12, "within_a_day": 0, "later": 0}
    assert manifest_of(table).job == "generate"
