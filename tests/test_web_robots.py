import time

import pytest
from web_servers import doors, reply, serve

from nutbeam.web.http import Client, HttpOptions
from nutbeam.web.robots import MAX_BYTES, RobotsRecord, RobotsRules, decode_robots, fetch_robots

ORIGIN = "http://a.example.com"
DENY_ALL = b"User-agent: *\nDisallow: /\n"


def fetch(answer, origin=ORIGIN, **options):
    with serve(lambda path, connection: answer(path)) as server:
        options = {"agent_name": "nutbot", "connect_to": doors(server.port)} | options
        return fetch_robots(Client(HttpOptions(**options)), origin), server


def rules_of(text, token="nutbot"):
    return RobotsRules(RobotsRecord(200, text, 0), token)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((200, "rules"), (203, "rules"), (204, "rules")),
        *((400, "allow"), (401, "allow"), (403, "allow"), (404, "allow"), (410, "allow")),
        *((429, "defer"), (500, "defer"), (502, "defer"), (503, "defer"), (599, "defer")),
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
        (b"nonsense\r\n\r\n", "protocol_error"),
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
    assert len(decode_robots(body)) == MAX_BYTES // 100 * 100 + len(DENY_ALL) + 1 - 100
    assert len(decode_robots(b"x" * 10**6)) == MAX_BYTES


def test_a_hostile_pattern_takes_no_time():
    text = "User-agent: *\n" + f"Disallow: /{'*a' * 200}$\n" * 200
    rules = rules_of(text)
    began = time.monotonic()
    assert rules.allowed(f"{ORIGIN}/{'a' * 190}{'b' * 3000}")
    assert time.monotonic() - began < 1


def test_what_was_learnt_survives():
    record = RobotsRecord(200, DENY_ALL.decode(), 123)
    assert RobotsRules(record, "nutbot").record == record
    assert not RobotsRules(record, "nutbot").allowed(f"{ORIGIN}/x")
    record = RobotsRecord(404, "", 5)
    assert RobotsRules(record, "nutbot").record == record


def test_rules_that_left_the_shelf_are_parsed_again(monkeypatch):
    monkeypatch.setattr("nutbeam.web.robots._SHELF_CHARS", 100)
    both = [rules_of(f"User-agent: *\nDisallow: /{name}\n" + "#" * 90) for name in "ab"]
    for _ in range(3):
        assert [rules.allowed(f"{ORIGIN}/a") for rules in both] == [False, True]
