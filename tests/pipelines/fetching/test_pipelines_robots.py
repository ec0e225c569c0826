"""robots.txt in a crawl: rules that are too costly, and an agent whose name has digits."""

import pytest
from crawling import manifests_of, nutbeam, state_of
from robots_texts import ATTACKS, MOST
from web_servers import connect_to, reply, serve

from nutbeam.policy.components.schema import STATUS_NAMES

MAKE, PATH = ATTACKS["permutations"]
COSTLY, HONEST, HONEST_TOO = (f"http://{host}.example.com{path}" for host, path in (
    ("costly", PATH), ("honest", PATH), ("costly", "/%21")
))  # fmt: skip
ROBOTS = "User-agent: bot2\nDisallow: /for/bot2\n\nUser-agent: bot\nDisallow: /\n"


@pytest.mark.long
def test_too_costly_urls_stay_due_and_are_counted(tmp_path):
    table, robots = tmp_path / "table", MAKE(MOST).encode()
    denied = "http://honest.example.com/for/bot2"

    def answer(path, _):
        head = server.requests[-1][1]
        if path != "/robots.txt":
            page = f"<p>{path} of {head}".encode()
            return reply(page, "200 OK", "Content-Type: text/html")
        return reply(robots if "Host: costly" in head else ROBOTS.encode())

    with serve(answer) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        reach += ["--agent_name", "bot2", "--server_delay", "0"]
        assert nutbeam("crawl", table, COSTLY, HONEST, HONEST_TOO, denied, *reach,
                       "--rounds", "1") == 0  # fmt: skip
        assert sorted(server.paths) == sorted(["/robots.txt"] * 2 + ["/%21", PATH])
        assert all("\r\nUser-Agent: bot2" in head for _, head, _ in server.requests)
    counts = next(manifest.counts for manifest in manifests_of(table) if manifest.job == "fetch")
    assert counts["dropped/robots_too_costly"] == 1
    rows = {
        row["url"]: (STATUS_NAMES[row["status"]], row["protocol_message"])
        for row in state_of(table).to_dicts()
    }
    assert rows == {
        COSTLY: ("db_unfetched", None), HONEST: ("db_fetched", None),
        HONEST_TOO: ("db_fetched", None), denied: ("db_gone", "robots.txt"),
    }  # fmt: skip


def test_a_crawl_ends_when_a_round_fetches_nothing(tmp_path, capsys):
    table, robots = tmp_path / "table", MAKE(MOST).encode()
    with serve(lambda path, _: reply(robots)) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        words = (COSTLY, *reach, "--server_delay", "0", "--rounds", "-1")
        assert nutbeam("crawl", table, *words) == 4
        assert server.paths == ["/robots.txt"]
    assert [manifest.job for manifest in manifests_of(table)].count("fetch") == 1
    *_, warning, _, last = capsys.readouterr().out.splitlines()
    why = "(robots.txt takes too long to compare)"
    assert warning == f"warning: 1 URL stayed due: robots_too_costly {why}"
    assert last == f"no page was fetched: robots_too_costly 1 {why}"


def test_a_crawl_tells_of_a_crawl_delay_that_is_no_time(tmp_path, capsys):
    robots = b"User-agent: *\nCrawl-delay: soon\nDisallow: /x"
    with serve(lambda path, _: reply(robots if path == "/robots.txt" else b"page")) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        words = (HONEST, *reach, "--rounds", "1", "--server_delay", "0")
        assert nutbeam("crawl", tmp_path / "table", *words) == 0
    text = "a crawl delay that is no time, so it is not obeyed"
    where = "http://honest.example.com/robots.txt"
    assert f"warning: 1 host has {text}: 'soon' in {where}" in capsys.readouterr().out.splitlines()
