import time

import pytest
from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.robots.robots import (
    MAX_ROBOTS_BYTES,
    RobotsRecord,
    RobotsRules,
    decode_robots,
    fetch_robots,
)

pytestmark = pytest.mark.usefixtures("each_client")
ORIGIN = "http://a.example.com"
DENY_ALL = b"User-agent: *\nDisallow: /\n"


def fetch(answer, origin=ORIGIN, **options):
    with serve(lambda path, connection: answer(path)) as server:
        options = {"agent_name": "nutbot", "connect_to": connect_to(server.port)} | options
        return fetch_robots(Client(HttpOptions(**options)), origin), server


def rules_of(text, token="nutbot"):
    return RobotsRules(RobotsRecord(200, text, 0), token)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((200, "rules"), (203, "rules"), (204, "rules")),
        *((400, "allow"), (401, "allow"), (403, "allow"), (404, "allow"), (410, "allow")),
        *(
            (425, "defer"),
            (429, "defer"),
            (500, "defer"),
            (502, "defer"),
            (503, "defer"),
            (599, "defer"),
        ),
        *((304, "allow"), (301, "allow"), (999, "defer")),
    ],
)
def test_each_status(status, state):
    body = b"" if status in (204, 304) else DENY_ALL
    rules, _ = fetch(lambda _: reply(body, f"{status} Why"))
    assert (rules.status, rules.state) == (status, state)
    denied = state == "defer" or (state == "rules" and body)
    assert rules.allowed(f"{ORIGIN}/x") == (not denied)
    assert abs(rules.fetched_at / 1000 - time.time()) < 5


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (b"\0nonsense\r\n\r\n", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\nUser", None),
    ],
)
def test_no_whole_answer_defers(wire, error):
    rules, _ = fetch(lambda _: wire, timeout=0.3)
    assert (rules.status, rules.state) == (0, "defer")
    assert rules.error == (error or "timeout")
    assert not rules.allowed(f"{ORIGIN}/x")


def test_a_host_that_does_not_resolve_defers():
    client = Client(HttpOptions(agent_name="bot", agent_email="a@b"))
    rules = fetch_robots(client, "http://no-such-host.invalid")
    assert (rules.state, rules.error) == ("defer", "dns")


def test_five_redirects_are_followed():
    def answer(path):
        number = 0 if path == "/robots.txt" else int(path[1:])
        if number == 5:
            return reply(DENY_ALL)
        return reply(b"", "302 Found", f"Location: http://b.example.com/{number + 1}")

    rules, server = fetch(answer)
    assert server.paths == ["/robots.txt", "/1", "/2", "/3", "/4", "/5"]
    assert (rules.status, rules.allowed(f"{ORIGIN}/")) == (200, False)


def test_a_sixth_redirect_allows_all():
    rules, server = fetch(lambda _: reply(b"", "301 Moved", "Location: /again"))
    assert len(server.paths) == 6
    assert (rules.status, rules.state) == (301, "allow")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://127.0.0.1/"])
def test_redirects_to_other_schemes_are_not_followed(target):
    rules, _ = fetch(lambda _: reply(b"", "301 Moved", f"Location: {target}"))
    assert rules.state == "allow"


def test_redirects_pass_the_guard():
    with serve(lambda path, connection: reply(DENY_ALL)) as canary:
        target = f"http://127.0.0.1:{canary.port}/"
        rules, _ = fetch(
            lambda _: reply(b"", "301 Moved", f"Location: {target}"),
            allowed_ports=("1-65535",),
            agent_email="a@b",
        )
        assert canary.connections == 0
    assert (rules.state, rules.error) == ("defer", "address_denied")


def test_the_agents_own_group_counts():
    text = "User-agent: *\nDisallow: /\n\nUser-agent: NutBot\nDisallow: /x\nCrawl-delay: 2.5\n"
    assert rules_of(text).allowed(f"{ORIGIN}/y")
    assert not rules_of(text).allowed(f"{ORIGIN}/x")
    assert rules_of(text).crawl_delay == 2.5
    assert not rules_of(text, "other").allowed(f"{ORIGIN}/y")
    assert rules_of(text, "other").crawl_delay is None


def test_the_longest_match_wins():
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b$\nDisallow: /*.pdf$\n"
    allowed = {path: rules_of(text).allowed(ORIGIN + path) for path in ("/a", "/a/b", "/c.pdf")}
    assert allowed == {"/a": False, "/a/b": True, "/c.pdf": False}


@pytest.mark.parametrize("delay", ["-1", "nan", "inf", "soon", ""])
def test_a_senseless_crawl_delay_is_none(delay):
    assert rules_of(f"User-agent: *\nCrawl-delay: {delay}\nDisallow: /x").crawl_delay is None


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + DENY_ALL,
        DENY_ALL.replace(b"\n", b"\r\n"),
        DENY_ALL.replace(b"\n", b"\r"),
        b"\xff\xfe\x00 bad bytes\n" + DENY_ALL,
        b"# \xe4\n" + DENY_ALL,
    ],
)
def test_odd_bytes(body):
    rules, _ = fetch(lambda _: reply(body))
    assert not rules.allowed(f"{ORIGIN}/x")


def test_what_is_over_500_kib_is_not_read():
    filler = b"# " + b"x" * 97 + b"\n"
    body = DENY_ALL.replace(b"/", b"/x") + filler * 7000 + b"Disallow: /y\n"
    rules, _ = fetch(lambda _: reply(body), content_limit=1000)
    assert not rules.allowed(f"{ORIGIN}/x")
    assert rules.allowed(f"{ORIGIN}/y")
    assert len(decode_robots(body)) == MAX_ROBOTS_BYTES // 100 * 100 + len(DENY_ALL) + 1 - 100
    assert len(decode_robots(b"x" * 10**6)) == MAX_ROBOTS_BYTES


def test_what_was_learnt_survives():
    record = RobotsRecord(200, DENY_ALL.decode(), 123)
    assert RobotsRules(record, "nutbot").record == record
    assert not RobotsRules(record, "nutbot").allowed(f"{ORIGIN}/x")
    record = RobotsRecord(404, "", 5)
    assert RobotsRules(record, "nutbot").record == record


def test_agents_of_robots_agents_are_obeyed_together():
    text = (
        "User-agent: nutbot\nDisallow: /a\n\nUser-agent: Other/1.0 # old\nDisallow: /b\n"
        "\nUser-agent: third\nDisallow: /c\n\nUser-agent: *\nDisallow: /\n"
    )
    rules = RobotsRules(RobotsRecord(200, text, 0), ("nutbot", "other"))
    allowed = {path: rules.allowed(f"{ORIGIN}/{path}") for path in "abcd"}
    assert allowed == {"a": False, "b": False, "c": True, "d": True}
    assert rules.record.text == text
    # Without a group of theirs, the one for all counts.
    assert not RobotsRules(RobotsRecord(200, text, 0), ("x", "y")).allowed(f"{ORIGIN}/d")


def test_sitemaps_are_kept_within_bounds():
    good = [f"https://a.example.com/{n}.xml" for n in range(120)]
    lines = ["Sitemap: /relative.xml", "Sitemap: ftp://a/b", "Sitemap: http://a/" + "x" * 2048]
    text = "\n".join([*lines, *(f"sitemap: {url}" for url in [good[0], *good])])
    assert rules_of(text).sitemaps == tuple(good[:100])


DAY = 86_400_000


@pytest.mark.parametrize(
    ("status", "days", "text", "state"),
    [
        *((503, 29, "", "defer"), (503, 31, "", "allow"), (0, 31, "", "allow")),
        *((0, 29, DENY_ALL.decode(), "defer"), (503, 31, DENY_ALL.decode(), "rules")),
        (429, 31, "", "defer"),
    ],
)
def test_thirty_days_of_failures_are_as_if_there_were_none(status, days, text, state):
    now = int(time.time() * 1000)
    earlier = RobotsRecord(500, text, now - DAY, now - days * DAY)
    with serve(
        lambda *_: reply(b"", f"{status} No") if status else b"\0nonsense\r\n\r\n"
    ) as server:
        client = Client(HttpOptions(agent_name="nutbot", connect_to=connect_to(server.port)))
        rules = fetch_robots(client, ORIGIN, earlier=earlier)
    assert (rules.status, rules.state) == (status, state)
    assert rules.record.text == ("" if state == "allow" else text)  # the last copy is kept
    assert rules.failing_since == (0 if status == 429 else earlier.failing_since)
    assert rules.allowed(f"{ORIGIN}/x") == (state == "allow")


def test_failures_count_from_the_first_and_end_with_an_answer():
    rules, _ = fetch(lambda _: reply(b"", "500 No"))
    assert rules.failing_since == rules.fetched_at
    rules, _ = fetch(lambda _: reply(b"", "404 No"))
    assert rules.failing_since == 0


@pytest.mark.parametrize(("value", "seconds"), [("120", 120.0), ("-5", None), ("soon", None)])
def test_retry_after_of_robots_txt(value, seconds):
    rules, _ = fetch(lambda _: reply(b"", "503 No", f"Retry-After: {value}"))
    assert (rules.state, rules.retry_after) == ("defer", seconds)


def test_an_informational_status_is_no_answer_yet():
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    rules, _ = fetch(lambda _: early + reply(DENY_ALL))
    assert (rules.status, rules.allowed(f"{ORIGIN}/x")) == (200, False)


def test_redirects_lead_over_hosts_and_their_rules_are_the_first_hosts():
    def answer(path):
        if path == "/robots.txt":
            return reply(b"", "301 Moved", "Location: http://b.example.com/elsewhere.txt")
        return reply(b"User-agent: *\nDisallow: /x\n")

    rules, server = fetch(answer)
    hosts = [head.split("Host: ")[1].split()[0] for _, head, _ in server.requests]
    assert hosts == ["a.example.com", "b.example.com"]
    assert not rules.allowed(f"{ORIGIN}/x")


def test_a_robots_txt_of_10_mb_is_cut():
    body = DENY_ALL.replace(b"/", b"/x") + b"# filler\n" * (10_000_000 // 9) + b"Disallow: /y\n"
    rules, _ = fetch(lambda _: reply(body))
    assert not rules.allowed(f"{ORIGIN}/x")
    assert rules.allowed(f"{ORIGIN}/y")
    assert len(rules.record.text) <= MAX_ROBOTS_BYTES
