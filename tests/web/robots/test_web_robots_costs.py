"""What a robots.txt may cost: reading it, each URL, and its neighbours; counted, never timed."""

import tracemalloc
from functools import partial

import pytest
from counting import calls
from robots_texts import ATTACKS, MOST, filled, honest, honest_urls
from short_form import first
from web_servers import connect_to, reply, serve

from nutbeam.web.base.mappings import SizeCache
from nutbeam.web.clients.http_client import Client
from nutbeam.web.engine.engine import Engine, FetchOptions, Task
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.robots import robots as robots_module
from nutbeam.web.robots.match import MAX_STEPS, Matcher
from nutbeam.web.robots.robots import RobotsRecord, RobotsRules
from nutbeam.web.robots.robots_text import MAX_ROBOTS_BYTES, decode_robots
from nutbeam.web.robots.rules import read_robots_rules

NAMES = list(ATTACKS)
SITE = "http://a.example.com"
# Of these, what a rule says of some URL is not found out.
COSTLY = {"more and more pieces", "the same long piece", "permutations", "what nearly matches"}


def rules_of(text):
    return RobotsRules(RobotsRecord(200, decode_robots(text.encode()), 0), "nutbot")


@pytest.mark.parametrize("name", NAMES)
def test_reading_is_linear(name):
    make, _ = ATTACKS[name]
    half, whole = (calls(rules_of, make(most))[0] for most in (MOST // 20, MOST // 10))
    assert whole <= 2.3 * half + 2000
    assert whole <= MOST // 10  # not as many as bytes


@pytest.mark.parametrize("name", first(6, NAMES))
def test_500_kib_are_read_and_a_url_costs_little(name):
    make, path = ATTACKS[name]
    text = make(MOST)
    assert MAX_ROBOTS_BYTES * 4 // 5 < len(text.encode()) <= MAX_ROBOTS_BYTES or name == "one rule"
    rules = rules_of(text)
    number, verdict = calls(rules.verdict, SITE + path)
    assert number <= 40_000
    assert (verdict == "too_costly") == (name in COSTLY)
    number, verdict = calls(rules.verdict, f"{SITE}/honest/page.html")
    assert number <= 1000 or name in COSTLY


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_last_rule_of_500_kib_is_obeyed(name):
    text = f"{ATTACKS[name][0](MOST - 60)}\nUser-agent: *\nDisallow: /zz$\n"
    rules = rules_of(text)
    assert rules.verdict(f"{SITE}/zz") == "denied"


def test_steps_of_a_url_do_not_grow_with_the_rules():
    def steps(line, path, most):
        return rules_of(filled(line, most)).decide(SITE + path).steps

    for line, path in ((lambda n: f"Disallow: /*a{n}*b", "/xa7x" * 50),
                       (lambda n: f"Allow: /*a${n}$", "/a$7"),
                       (lambda n: f"Disallow: /dir/{n}/", "/dir/700/x")):  # fmt: skip
        assert steps(line, path, MOST // 4) <= 2 * steps(line, path, MOST // 40) + 500


def test_honest_files_are_far_from_too_costly():
    most = 0
    for number in range(12):
        rules = rules_of(honest(number))
        for url in honest_urls(number):
            most = max(most, rules.decide(url).steps, rules.decide(url + "/x?y=z" * 600).steps)
    large = rules_of(filled(lambda n: f"Disallow: /shop/*/filter-{n}?*sort=", MOST // 5))
    most = max(most, large.decide(f"{SITE}/shop/x/filter-700?a=b&sort=up{'&x=y' * 900}").steps)
    assert 1000 < most < MAX_STEPS / 2


def test_eight_such_hosts_beside_an_honest_one_cost_it_no_more():
    urls = [f"{SITE}{path}" for path in ("/a", "/b/c.pdf", "/private/x", "/?q=1")]
    alone = rules_of(filled(lambda n: f"Disallow: /private/{n}/*.pdf$", 100_000))
    texts = [ATTACKS[name][0](MOST - 10) for name in ("numbered ends", "numbered pieces")]
    hosts = [rules_of(f"{text}\n# {n}") for n in range(4) for text in texts]
    _, expected = (list(map(partial(calls, alone.allows), urls)) for _ in range(2))
    for _ in range(2):
        for host in hosts:
            number, _ = calls(host.allows, urls[0])
            assert number < 1000  # not read again
        assert list(map(partial(calls, alone.allows), urls)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_memory_of_rules_is_about_that_of_the_text(name):
    rules = read_robots_rules(ATTACKS[name][0](MOST // 10), ("nutbot",)).rules
    Matcher(rules)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        matcher = Matcher(rules)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken <= matcher.size * 1.1 + 2000
    assert matcher.size <= 5 * MOST // 10


def cache(most):
    return SizeCache(most, lambda matcher: matcher.size)


def test_small_rules_stay_beside_many_large_ones(monkeypatch):
    for name in ("_LARGE", "_OTHERS"):
        monkeypatch.setattr(robots_module, name, cache(200_000))
    small = rules_of("User-agent: *\nDisallow: /x\n" * 20)
    small.allows(f"{SITE}/x")
    expected = calls(small.allows, f"{SITE}/x")
    large = [rules_of(filled(lambda n: f"Disallow: /{n}/{'x' * 20}", 80_000)) for _ in range(4)]
    assert calls(large[0].allows, f"{SITE}/x")[0] > 5000  # it had to go
    assert calls(small.allows, f"{SITE}/x") == expected


def test_rules_that_left_the_shelf_are_read_again(monkeypatch):
    monkeypatch.setattr(robots_module, "_OTHERS", cache(0))
    both = [rules_of(f"User-agent: *\nDisallow: /{name}\n" * 50) for name in "ab"]
    for _ in range(3):
        found = [calls(rules.allows, f"{SITE}/a") for rules in both]
        assert [allowed for _, allowed in found] == [False, True]
        assert min(number for number, _ in found) > 500


def test_urls_that_are_too_costly_are_dropped_and_counted():
    make, path = ATTACKS["permutations"]
    robots = make(MOST).encode()

    def answer(asked, connection):
        return reply(robots if asked == "/robots.txt" else b"page")

    with serve(answer) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        dropped = []
        engine = Engine(
            FetchOptions(server_delay=0.0), client,
            on_drop=lambda task, reason: dropped.append((task.url, reason)),
        )  # fmt: skip
        urls = [f"{SITE}/%21", f"{SITE}{path}", f"{SITE}/%22"]
        results = list(engine.run(Task(url) for url in urls))
        client.close()
    assert sorted(result.task.url for result in results) == [urls[0], urls[2]]
    assert dropped == [(urls[1], "robots_too_costly")]
    assert engine.drop_counts == {"robots_too_costly": 1}
    assert server.paths == ["/robots.txt", "/%21", "/%22"]
