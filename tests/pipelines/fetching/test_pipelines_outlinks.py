"""Outlinks that are followed within the same fetch: which, when, and what update makes of them."""

import itertools
import random
from collections import Counter

import polars as pl
import pytest
from crawling import asked as asked_of
from crawling import files_of, manifest_of, manifests_of, nutbeam, reach, state_of, statuses_of
from ending import flushed, kill_at
from simulated_web import served_web
from web_servers import connect_to, reply, serve

from nutbeam.io.storage.files import read_bytes
from nutbeam.pipelines.fetching.followed_links import OutlinkOptions, Outlinks, RequestedPages
from nutbeam.policy.components.blocklist import Names, blocklist_of
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import PAGES, Status, conform, empty
from nutbeam.web.base.progress import PROGRESS

A, B, C = (f"http://{name}.example.com" for name in "abc")
DELAY = 0.1
# A tree: each page has one parent, so that its score is the same whenever it is fetched.
LINKS = {
    f"{A}/": ["/1", "/2", "/3", f"{B}/x", f"{C}/", "/private", "/1"],
    f"{A}/1": ["/1/1", "/1/2"],
    f"{A}/1/1": ["/1/1/1"],
    f"{A}/2": ["/2/moved", "/"],
    f"{A}/2/there": ["/2/there/1"],
    f"{B}/": [f"/{n}" for n in range(12)],
    f"{B}/3": ["/3/1"],
}
MOVED = {f"{A}/2/moved": "/2/there"}
FOLLOW = ("--parse_while_fetching", "--follow_outlinks_depth", "2", "--redirect_max", "1")


def url_of(path, head):
    return f"http://{head.split('Host: ')[1].split()[0]}{path}"


def answer(path, head):
    url = url_of(path, head)
    if path == "/robots.txt":
        return reply(b"User-agent: *\nDisallow: /private\n")
    if url in MOVED:
        return reply(b"", "302 Found", f"Location: {MOVED[url]}")
    links = "".join(f'<a href="{link}">x</a>' for link in LINKS.get(url, ()))
    body = f"<html><title>{url}</title>{links}</html>".encode()
    return reply(body, "200 OK", "Content-Type: text/html")


@pytest.fixture
def server():
    def head_of(path):
        return next(head for name, head, _ in reversed(server.requests) if name == path)

    with serve(lambda path, _: answer(path, head_of(path))) as server:
        yield server


def words(server, *more):
    found = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
    return [*found, "--server_delay", str(DELAY), "--threads", "4", *more]


def asked(server):
    return [url_of(path, head) for path, head, _ in server.requests]


@pytest.fixture
def table(tmp_path):
    assert nutbeam("inject", tmp_path / "table", f"{A}/", f"{B}/") == 0
    assert nutbeam("generate", tmp_path / "table") == 0
    return tmp_path / "table"


# What two links lead to, or a link and a redirect; of B's root the first eight.
FIRST = {f"{A}/{n}" for n in (1, 2, 3)} | {f"{B}/{n}" for n in range(8)}
SECOND = {f"{A}/1/1", f"{A}/1/2", f"{A}/2/moved", f"{A}/2/there", f"{B}/3/1"}


def test_links_are_followed_each_once_and_in_the_turn_of_their_host(table, server):
    PROGRESS.reset()
    assert nutbeam("fetch", table, *words(server, *FOLLOW)) == 0
    robots = [f"{A}/robots.txt", f"{B}/robots.txt"]
    assert Counter(asked(server)) == Counter([*robots, f"{A}/", f"{B}/", *FIRST, *SECOND])
    for host in ("a.example.com", "b.example.com"):
        moments = [at for _, head, at in server.requests if f"Host: {host}" in head]
        assert len(moments) > 5
        assert all(after - at >= DELAY for at, after in itertools.pairwise(moments)), host
    manifest = manifest_of(table)
    (batch,) = manifest.batches.values()
    assert batch.phase == "parsed"
    counts = {k: n for k, n in manifest.counts.items() if k.startswith(("outlinks/", "redirects/"))}
    assert counts == {
        "outlinks/followed": len(FIRST | SECOND),  # one is denied, one was a redirect's
        "outlinks/repeated": 2,
        "outlinks/exceeded": 4,
        "outlinks/external": 2,
        "redirects/followed": 1,
    }
    fetch = PROGRESS.snapshot().by_phase()["fetch"]
    assert fetch.total == fetch.done == manifest.counts["pages"] == len(FIRST | SECOND) + 3


@pytest.mark.long
def test_the_table_is_as_after_a_round_more(tmp_path, table, server):
    follow = ("--parse_while_fetching", "--follow_outlinks_depth", "1")
    assert nutbeam("fetch", table, *words(server, *follow)) == 0
    assert nutbeam("updatedb", table) == 0
    twin = tmp_path / "twin"
    assert nutbeam("inject", twin, f"{A}/", f"{B}/") == 0
    for _ in range(2):
        assert nutbeam("generate", twin) == 0
        assert nutbeam("fetch", twin, *words(server)) == 0
        assert nutbeam("parse", twin) == 0
        assert nutbeam("updatedb", twin) == 0
    mine, other = (
        state_of(some).select("key", "status", "distance", "score", "retries", "signature",
                              "protocol_status", "http_code", "fetch_interval")
        for some in (table, twin)
    )  # fmt: skip
    # The twin has also asked for what leads elsewhere, and for a page's ninth link and more.
    far = [f"com.example.b:http/{n}" for n in ("8", "9", "10", "11", "x")]
    far += ["com.example.c:http/"]
    other_far = other.filter(pl.col("key").is_in(far))
    mine_far = mine.filter(pl.col("key").is_in(far))
    assert mine_far["key"].to_list() == other_far["key"].to_list() == sorted(far)
    assert mine_far["status"].unique().to_list() == [1]
    mine, other = (some.filter(~pl.col("key").is_in(far)) for some in (mine, other))
    assert mine.to_dicts() == other.to_dicts()
    assert len(mine) == 18


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("scoring", ["opic", "opic_cash"])
def test_a_followed_page_that_is_unchanged_gives_no_score_again(table, server, scoring):
    def update():
        assert nutbeam("fetch", table, *words(server, *FOLLOW)) == 0
        assert nutbeam("updatedb", table, "--scoring", scoring) == 0
        names = ("key", "score", "cash", "status")
        return state_of(table).select(names).rows_by_key("key", unique=True)

    before = update()
    # The seeds are the best pages; all others are followed again.
    assert nutbeam("generate", table, "--add_days", "31", "--top_n", "2") == 0
    after = update()
    assert after["com.example.a:http/1/1"][-1] == Status.DB_NOTMODIFIED
    assert {key: row[:2] for key, row in after.items()} == {
        key: row[:2] for key, row in before.items()
    }


ALL = ("--parse_while_fetching", "--follow_outlinks_depth", "30", "--follow_outlinks_num_links",
       "1000", "--flush_seconds", "0.05", "--operation", "nightly")  # fmt: skip


web = served_web(hosts=2, pages=25, latency=0.02, scope="module")


@pytest.fixture(scope="module")
def right(web, tmp_path_factory):
    """What a fetch that nobody kills asks for."""
    table = tmp_path_factory.mktemp("whole") / "table"
    assert nutbeam("inject", table, *web.seeds) == 0
    assert nutbeam("generate", table) == 0
    assert nutbeam("fetch", table, *reach(web), *ALL) == 0
    assert len(flushed(table)) > 25
    return sorted(flushed(table)), manifest_of(table).counts


TRIALS = [*range(1, 3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 16))]


@pytest.mark.long
@pytest.mark.parametrize("seed", TRIALS)
def test_a_fetch_that_was_killed_goes_on_where_it_was(web, right, tmp_path, seed):
    table, dice = tmp_path / "table", random.Random(seed)
    assert nutbeam("inject", table, *web.seeds) == 0
    assert nutbeam("generate", table) == 0
    fetch, since = ("fetch", table, *reach(web), *ALL), len(asked_of(web))
    kill_at(fetch, web, dice.randint(4, len(right[0]) - 5))
    safe, since = flushed(table), len(asked_of(web))
    PROGRESS.reset()
    assert nutbeam(*fetch) == 0
    again = [url for url in asked_of(web)[since:] if not url.endswith("/robots.txt")]
    assert set(safe).isdisjoint(again)  # what was on disk is not asked for again
    assert len(again) == len(set(again))
    assert sorted(flushed(table)) == right[0]  # nothing is lost, nothing is there twice
    counts = manifests_of(table)[-1].counts
    assert counts["outlinks/followed"] == right[1]["outlinks/followed"]
    fetched = PROGRESS.snapshot().by_phase()["fetch"]
    assert fetched.total == fetched.done == len(right[0])


@pytest.mark.long
def test_hosts_of_other_partitions_are_not_requested(tmp_path):
    table, hosts = tmp_path / "table", [f"h{n}.example.com" for n in range(8)]

    def page(path, _):
        if path == "/robots.txt":
            return reply(b"", "404 No")
        links = "".join(f'<a href="http://{host}{path}1">x</a>' for host in hosts)
        return reply(links.encode(), "200 OK", "Content-Type: text/html")

    with serve(page) as server:
        assert nutbeam("inject", table, *(f"http://{host}/" for host in hosts)) == 0
        assert nutbeam("generate", table, "--num_fetchers", "3") == 0
        (batch,) = manifest_of(table).batches
        lists = files_of(table, f"batches/{batch}/fetchlist")
        sizes = [len(pl.read_parquet(read_bytes(file))) for file in lists]
        far = ("--follow_outlinks_ignore_external", "false", "--server_delay", "0")
        assert nutbeam("fetch", table, *words(server, *FOLLOW, *far)) == 0
    # Each page links to all hosts; at first eight of them are followed, then four of each page.
    assert server.paths.count("/1") == server.paths.count("/11") == len(hosts)
    counts = manifest_of(table).counts
    assert counts["outlinks/followed"] == 16
    assert counts["outlinks/elsewhere"] == 2 * sum(size * (8 - size) for size in sizes)


def test_a_time_limit_leaves_the_rest_to_update(table, server):
    assert nutbeam("fetch", table, *words(server, *FOLLOW, "--fetch_time_limit", "0")) == 0
    assert [path for path in server.paths if path != "/robots.txt"] == []
    assert manifest_of(table).counts["dropped/time_limit"] == 2


@pytest.mark.long
def test_next_goes_on_with_updatedb(table, server):
    assert nutbeam("next", table, *words(server, *FOLLOW)) == 0
    assert manifest_of(table).job == "fetch"
    assert nutbeam("next", table) == 0
    assert manifest_of(table).job == "update"
    assert statuses_of(table)[f"{A}/1/2"] == "db_fetched"


def test_without_parsing_there_are_no_links(table, capsys):
    assert nutbeam("fetch", table, "--follow_outlinks_depth", "1") == 2
    assert "--follow_outlinks_depth needs --parse_while_fetching" in capsys.readouterr().err
    assert nutbeam("crawl", table, "--follow_outlinks_depth", "1",
                   "--parse_while_fetching", "false") == 2  # fmt: skip


def outlinks(
    *, listed=("com.example.a:http/", "com.example.b:http/"), blocklist=None, have=(), **more
):
    rows = pl.DataFrame({"key": listed, "score": 1.0, "delay": 2.5, "address": None})
    tried = conform(pl.DataFrame({"key": have}, {"key": pl.String}), PAGES)
    seen = RequestedPages(rows, pl.concat([empty(PAGES), pl.from_arrow(tried)]))
    options = OutlinkOptions(parse_while_fetching=True, **{"follow_outlinks_depth": 2, **more})
    return Outlinks(options, seen, blocklist or blocklist_of(Names().rows(0)))


def document(key, *links, score=1.0, distance=0):
    found = [{"key": f"com.example.{link}", "anchor": "", "rel": ""} for link in links]
    row = {"key": f"com.example.{key}", "score": score, "distance": distance, "outlinks": found}
    return conform(pl.DataFrame([row]), DOCUMENTS)


def test_a_task_for_an_outlink():
    following = outlinks()
    following.add(document("a:http/", "a:http/x", "a:http/y", score=2.0, distance=3))
    first, second = following.take()
    assert (first.url, first.score, first.distance) == (f"{A}/x", 1.0, 4)
    assert (first.depth, first.delay, first.hops) == (1, 2.5, 0)
    assert second.url == f"{A}/y"
    assert following.take() == []


def test_no_link_is_followed_beyond_the_depth_or_a_pages_share():
    following = outlinks(follow_outlinks_num_links=1)
    following.add(document("a:http/", *(f"a:http/{n}" for n in range(3))))
    assert len(following.take()) == 2
    following.add(document("a:http/0", *(f"a:http/0/{n}" for n in range(3))))
    (deep,) = following.take()
    assert deep.depth == 2
    following.add(document("a:http/0/0", "a:http/0/0/0"))
    assert following.take() == []
    assert following.counts == {"outlinks/followed": 3, "outlinks/exceeded": 3}


@pytest.mark.parametrize(
    ("link", "more", "count"),
    [
        ("b:http/x", {}, "external"),
        ("b:http/x", {"follow_outlinks_ignore_external": False}, "followed"),
        ("c:http/x", {"follow_outlinks_ignore_external": False}, "elsewhere"),
        ("a:http/1", {"listed": ("com.example.a:http/", "com.example.a:http/1")}, "repeated"),
        ("a:http/1", {"depth": 0}, "too_deep"),
    ],
)
def test_each_link_is_followed_or_counted_by_its_reason(link, more, count):
    following = outlinks(**more)
    following.add(document("a:http/", link))
    assert following.counts == {f"outlinks/{count}": 1}
    assert len(following.take()) == (count == "followed")


def test_purged_links_are_not_followed():
    following = outlinks(blocklist=blocklist_of(Names(urls=("com.example.a:http/x",)).rows(0)))
    following.add(document("a:http/", "a:http/x"))
    assert (following.take(), following.counts) == ([], {})


def test_links_that_an_earlier_attempt_fetched_count_and_are_not_requested():
    following = outlinks(have=["com.example.a:http/x"], follow_outlinks_num_links=1)
    following.add(document("a:http/", *(f"a:http/{name}" for name in "xyz")))
    assert [task.url for task in following.take()] == [f"{A}/y"]
    assert following.counts == {"outlinks/followed": 2, "outlinks/exceeded": 1}
