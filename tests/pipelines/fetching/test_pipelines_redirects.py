"""Redirects that are followed at once: which, in whose turn, and what update makes of them."""

import dataclasses
import itertools
from collections import Counter

import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam, rows_of, statuses_of
from web_servers import connect_to, reply, serve

from nutbeam.io.storage.files import read_bytes
from nutbeam.pipelines.fetching.followed_links import RedirectOptions, Redirects, RequestedPages
from nutbeam.policy.components.blocklist import Names, blocklist_of
from nutbeam.policy.components.host_rows import seeds_of
from nutbeam.policy.components.schema import PAGES, empty
from nutbeam.web.engine.tasks import Task
from nutbeam.web.urls.row_keys import to_key

A, B, C = (f"http://{name}.example.com" for name in "abc")
MOVED = {
    f"{A}/other": f"{B}/target",
    f"{A}/loop": "/loop2",
    f"{A}/loop2": "/loop",
    f"{A}/self": "/self",
    f"{A}/chain": "/chain1",
    f"{A}/chain1": "/chain2",
    f"{A}/chain2": "/chain3",
    f"{A}/twin1": f"{B}/twin",
    f"{A}/twin2": f"{B}/twin",
    f"{A}/listed": f"{B}/page",
    f"{A}/stranger": f"{C}/page",
    f"{A}/outside": "http://a.example.org/",
    f"{A}/filtered": "/picture.jpg",
    f"{A}/denied": f"{B}/private",
    f"{A}/inside": "http://169.254.169.254/",
    f"{A}/file": "file:///etc/passwd",
}
SEEDS = [url for url in MOVED if url[-1] not in "0123456789" or "twin" in url] + [f"{B}/page"]
DELAY = 0.1


def answer(path, head):
    url = f"http://{head.split('Host: ')[1].split()[0]}{path}"
    if path == "/robots.txt":
        return reply(b"User-agent: *\nDisallow: /private\n")
    if url in MOVED:
        return reply(b"", f"30{1 + len(url) % 2} Moved", f"Location: {MOVED[url]}")
    return reply(b"<html><title>" + url.encode() + b"</title>Hello</html>", "200 OK",
                 "Content-Type: text/html")  # fmt: skip


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A table after one round with redirects followed; and what the server was asked."""
    table = str(tmp_path_factory.mktemp("redirects") / "table")
    with serve(lambda path, _: answer(path, _head_of(server, path))) as server:
        words = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        assert nutbeam("inject", table, *SEEDS) == 0
        assert nutbeam("generate", table) == 0
        more = ("--redirect_max", "2", "--server_delay", str(DELAY), "--threads", "4")
        assert nutbeam("fetch", table, *words, *more) == 0
        fetched = manifest_of(table)
        assert nutbeam("parse", table) == 0
        assert nutbeam("updatedb", table) == 0
    return table, fetched, server


def _head_of(server, path):
    return next(head for name, head, _ in reversed(server.requests) if name == path)


def asked(server):
    return [
        f"http://{head.split('Host: ')[1].split()[0]}{path}" for path, head, _ in server.requests
    ]


FOLLOWED = {f"{B}/target", f"{A}/loop2", f"{A}/chain1", f"{A}/chain2", f"{B}/twin"}


def test_each_page_is_requested_once_and_strangers_never(crawled):
    _, _, server = crawled
    robots = [f"{A}/robots.txt", f"{B}/robots.txt"]
    assert Counter(asked(server)) == Counter([*robots, *SEEDS, *FOLLOWED])


def test_no_hop_is_sent_before_the_turn_of_its_host(crawled):
    _, _, server = crawled
    for host in ("a.example.com", "b.example.com"):
        moments = [at for _, head, at in server.requests if f"Host: {host}" in head]
        assert len(moments) > 3
        assert all(after - at >= DELAY for at, after in itertools.pairwise(moments)), host


def test_redirects_are_counted_by_outcome(crawled):
    _, fetched, _ = crawled
    counts = {k: n for k, n in fetched.counts.items() if k.startswith("redirects/")}
    assert counts == {
        "redirects/followed": 6,  # one of them denied by robots.txt
        "redirects/repeated": 3,  # the loop, the second twin, a page of the list
        "redirects/exceeded": 1,
        "redirects/elsewhere": 1,
    }


def test_sources_and_targets_are_pages_of_their_own(crawled):
    table, _, _ = crawled
    statuses = statuses_of(table)
    moved = {url: statuses[url] for url in MOVED if url in statuses}
    assert {s for url, s in moved.items()} == {"db_redir_temp", "db_redir_perm"}
    assert set(moved) == set(SEEDS) - {f"{B}/page"} | {f"{A}/loop2", f"{A}/chain1", f"{A}/chain2"}
    fetched = {url for url, status in statuses.items() if status == "db_fetched"}
    assert fetched == {f"{B}/page", f"{B}/target", f"{B}/twin"}
    assert statuses[f"{B}/private"] == "db_gone"
    # What was not followed is there for a later round.
    left = {url for url, status in statuses.items() if status == "db_unfetched"}
    assert left == {f"{A}/chain3", f"{C}/page"}
    assert not [url for url in statuses if "example.org" in url or url.endswith(".jpg")]


def test_a_key_is_in_the_pages_once(crawled):
    table, fetched, _ = crawled
    (batch,) = fetched.batches
    files = files_of(table, f"batches/{batch}/pages")
    keys = pl.concat(pl.read_parquet(read_bytes(file)).select("key") for file in files)
    assert len(keys) == keys.n_unique() == len(SEEDS) + len(FOLLOWED) + 1


def redirects(options=None, blocklist=None, keys=("com.example.a:http/1", "com.example.b:http/1")):
    seeds = seeds_of(pl.Series(["com.example.a"]))
    options = options or RedirectOptions(redirect_max=1)
    listed = pl.DataFrame({"key": keys, "score": 1.0}).with_columns(delay=None, address=None)
    asked = RequestedPages(listed, empty(PAGES))
    return Redirects(options, asked, seeds, blocklist or blocklist_of(Names().rows(0)))


def test_a_task_for_a_target():
    task = Task(f"{A}/1", "com.example.a:http/1", 2.0, 3)
    key, followed = redirects().follow(task, "HTTP://B.example.com/x", False)
    assert key == "com.example.b:http/x"
    assert followed == Task(f"{B}/x", key, 0.0, 3, hops=1)


@pytest.mark.parametrize(
    ("url", "hops", "count"),
    [
        (f"{B}/x", 1, "exceeded"),
        (f"{C}/x", 0, "elsewhere"),
        (f"{B}/1", 0, "repeated"),
        (f"{A}/1", 0, None),
        ("http://b.example.org/", 0, None),
        ("ftp://b.example.com/", 0, None),
        (f"{B}/x.jpg", 0, None),
    ],
)
def test_redirects_that_are_not_followed_are_counted_by_reason(url, hops, count):
    decide = redirects()
    task = Task(f"{A}/1", "com.example.a:http/1", hops=hops)
    assert decide.follow(task, url, False).task is None
    assert decide.counts == ({f"redirects/{count}": 1} if count else {})


def test_purged_redirect_targets_are_not_followed():
    blocklist = blocklist_of(Names(urls=("com.example.b:http/x",)).rows(0))
    task = Task(f"{A}/1", "com.example.a:http/1")
    assert redirects(blocklist=blocklist).follow(task, f"{B}/x", False).task is None


def test_the_scope_counts():
    options = RedirectOptions(redirect_max=1, scope="host")
    task = Task(f"{A}/1", "com.example.a:http/1")
    assert redirects(options).follow(task, f"{B}/x", False).task is None


def test_without_redirect_max_only_redirects_that_set_a_cookie_are_followed():
    decide, task = redirects(RedirectOptions()), Task(f"{A}/1", "com.example.a:http/1", hops=4)
    assert decide.follow(task, f"{B}/x", False).task is None
    assert decide.follow(task, f"{B}/x", True).task is not None
    task.hops = 5
    assert decide.follow(task, f"{B}/y", True).task is None
    assert decide.counts == {"redirects/followed": 1, "redirects/exceeded": 1}


@pytest.mark.parametrize(
    ("url", "target"),
    [
        (f"{A}/", f"{A}/;jsessionid=0123456789ABCDEF"),
        (f"{A}/", f"{A}/?PHPSESSID=0123456789abcdef0123456789abcdef"),
        (f"{A}/x", f"{A}/x?"),
        (f"{A}/x", f"{A}//x"),
        (f"{A}/x", f"{A}:80/x"),
        (f"{A}/x", f"{A}./x"),
        (f"{A}/~x", f"{A}/%7Ex"),
        (f"{A}/x", f"{A}/./x"),
    ],
)
def test_a_redirect_to_the_own_url_is_requested_once_as_it_stands(url, target):
    decide, task = redirects(), Task(url, to_key(url), 2.0, 3, etag="e")
    key, again = decide.follow(task, f"{target}#top", False)
    assert again == dataclasses.replace(task, at=target, again=1)
    assert key == task.key
    assert decide.follow(again, url, True).task is None
    assert decide.counts["redirects/own_url"] == 1


def reach(server):
    return [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]


@pytest.mark.long
def test_no_redirect_is_followed_into_another_partition(tmp_path):
    table, hosts = str(tmp_path / "table"), [f"h{n}.example.com" for n in range(12)]
    following = dict(zip(hosts, [*hosts[1:], hosts[0]], strict=True))

    def answer(path, _):
        host = _head_of(server, path).split("Host: ")[1].split()[0]
        if path == "/robots.txt":
            return reply(b"", "404 No")
        moved = path == f"/{host}"
        target = f"Location: http://{following[host]}/from-{host}"
        return reply(b"", "302 Found", target) if moved else reply(b"x")

    with serve(answer) as server:
        assert nutbeam("inject", table, *(f"http://{host}/{host}" for host in hosts)) == 0
        assert nutbeam("generate", table, "--num_fetchers", "3") == 0
        (batch,) = manifest_of(table).batches
        lists = files_of(table, f"batches/{batch}/fetchlist")
        where = {
            key.partition(":")[0].split(".")[-1]: number
            for number, file in enumerate(lists)
            for key in pl.read_parquet(read_bytes(file))["key"]
        }
        more = ("--redirect_max", "3", "--server_delay", "0")
        assert nutbeam("fetch", table, *reach(server), *more) == 0
    followed = {path.removeprefix("/from-") for path in server.paths if path.startswith("/from-")}
    near = {
        host for host, target in following.items()
        if where[host.partition(".")[0]] == where[target.partition(".")[0]]
    }  # fmt: skip
    assert followed == near
    counts = manifest_of(table).counts
    assert counts.get("redirects/followed", 0) == len(near)
    assert counts.get("redirects/elsewhere", 0) == len(hosts) - len(near)


def test_followed_redirects_are_not_requested_again_by_the_next_attempt(tmp_path, monkeypatch):
    table = str(tmp_path / "table")
    more = ("--redirect_max", "2", "--server_delay", "0", "--flush_seconds", "0")
    with serve(lambda path, _: answer(path, _head_of(server, path))) as server:
        assert nutbeam("inject", table, *SEEDS) == 0
        assert nutbeam("generate", table) == 0
        with monkeypatch.context() as broken:
            broken.setattr("nutbeam.pipelines.fetching.host_findings.HostFindings.write", _fail)
            assert nutbeam("fetch", table, *reach(server), *more) != 0
        before = set(asked(server))
        assert before > FOLLOWED
        assert nutbeam("fetch", table, *reach(server), *more) == 0
    again = [url for url, times in Counter(asked(server)).items() if times > 1]
    assert set(again) <= {f"{A}/robots.txt", f"{B}/robots.txt"}
    assert manifest_of(table).counts["pages"] == len(SEEDS) + len(FOLLOWED) + 1


def _fail(*_):
    raise RuntimeError("the worker is lost")


def wall(path, head):
    """Answers as sites that show no page before their cookie has come back."""
    host, cookies = head.split("Host: ")[1].split(".")[0], head.partition("Cookie: ")[2]
    target, cookie = f"/;jsessionid=0123456789ABCDE{len(cookies) % 10}", ""
    if path == "/robots.txt" or ("c=1" in cookies and path != "/set"):
        return reply(f"<title>x</title>It is {host}.".encode(), "200 OK", "Content-Type: text/html")
    if host == "itself":
        target, cookie = "/", "c=1"
    elif host == "over":
        target, cookie = ("/", "c=1; Path=/") if path == "/set" else ("/set", "")
    elif host == "first":
        target, cookie = ("/", "") if path == "/set" else ("/set", "c=1; Path=/")
    elif host == "long":
        target = {"/": "/a", "/a": "/b", "/b": "/"}[path]
        cookie = "c=1; Path=/" if path == "/b" else ""
    elif host == "endless":
        cookie = f"d={len(cookies)}{path[-5:]}"
    return reply(b"", "302 Found", f"Location: {target}", *[f"Set-Cookie: {cookie}"] * bool(cookie))


@pytest.fixture
def walls():
    with serve(lambda path, _: wall(path, _head_of(server, path))) as server:
        yield server


WALLS = ("itself", "over", "first", "long", "endless", "session")
SEEDED = tuple(f"http://{name}.example.com/" for name in WALLS)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("client", ["threads", "asyncio"])
@pytest.mark.parametrize("redirect_max", [0, 5])
def test_pages_that_only_cookies_show_are_fetched(walls, tmp_path, client, redirect_max):
    table = str(tmp_path / "table")
    more = ("--redirect_max", str(redirect_max), "--http_client", client, "--server_delay", "0.01")
    words = (*reach(walls), "--http_cookies", "--threads", "1", *more)
    nutbeam("crawl", table, *SEEDED, *words, "--rounds", "4")
    statuses = statuses_of(table)
    fetched = [name for name in WALLS if statuses[f"http://{name}.example.com/"] == "db_fetched"]
    assert fetched == ["itself", "over", "first", "long"]
    requests = Counter(url.split("/")[2].split(".")[0] for url in asked(walls))
    # robots.txt, the page, and the page once or twice again.
    assert (requests["session"], requests["endless"]) == (3, 4)
    assert Counter(asked(walls))["http://over.example.com/"] == 2


@pytest.mark.long
@pytest.mark.parametrize("with_b", [True, False])
def test_a_cookie_from_another_host_needs_a_page_of_it_in_the_partition(tmp_path, with_b):
    a, b = "http://a.example.com/", "http://b.example.com/"

    def answer(path, _):
        head = _head_of(server, path)
        if path == "/set":
            cookie = "Set-Cookie: c=1; Domain=example.com; Path=/"
            return reply(b"", "302 Found", f"Location: {a}", cookie)
        if path != "/robots.txt" and "Host: a." in head and "c=1" not in head:
            return reply(b"", "302 Found", f"Location: {b}set", "Set-Cookie: x=1")
        return reply(b"page")

    with serve(answer) as server:
        words = (*reach(server), "--http_cookies", "--server_delay", "0", "--rounds", "1")
        nutbeam("crawl", str(tmp_path / "table"), a, *[b] * with_b, *words)
    assert statuses_of(str(tmp_path / "table"))[a] == ("db_fetched" if with_b else "db_redir_temp")


@pytest.mark.long
def test_cookies_last_for_the_crawl_and_end_with_the_host(walls, tmp_path):
    table = str(tmp_path / "table")
    words = (*reach(walls), "--server_delay", "0.01")
    nutbeam("crawl", table, SEEDED[0], *words, "--http_cookies", "--rounds", "1")
    hosts = read_hosts(table)
    assert hosts["com.example.itself"].startswith("c=1; Path=/; Expires=")
    nutbeam("inject", table, "http://itself.example.com/b", "http://c.itself.example.com/")
    nutbeam("crawl", table, *words, "--rounds", "1", "--http_cookies")
    sent = {
        (head.split("Host: ")[1].split()[0], path): "c=1" in head
        for path, head, _ in walls.requests
    }
    assert sent["itself.example.com", "/b"]
    assert not sent["c.itself.example.com", "/"]
    nutbeam("inject", table, "http://itself.example.com/d")
    nutbeam("crawl", table, *words, "--rounds", "1")
    assert "c=1" not in _head_of(walls, "/d")
    assert read_hosts(table)["com.example.itself"].startswith("c=1")  # for a later fetch
    nutbeam("purge", table, "--host", "itself.example.com")
    assert "com.example.itself" not in read_hosts(table)


def read_hosts(table):
    """Returns the cookies of each host of a table."""
    return dict(rows_of(table, "hosts").select("key", "cookies").iter_rows())
