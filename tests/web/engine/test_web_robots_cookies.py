"""A robots.txt that only a cookie shows."""

from collections import Counter

import pytest
from robots_sites import VICTIM, engine_of, host_of
from web_servers import reply

from nutbeam.web.engine.engine import Task

pytestmark = pytest.mark.usefixtures("each_client")

HOST = "h0.example.com"
ALLOWED, DENIED = 1, 18
PATHS = ("/yes", "/no")


def redirect(target, *headers):
    return reply(b"", "302 Found", f"Location: {target}", *headers)


def crawl(answer, hosts=(HOST,), cookies=True, **options):
    """Crawls two pages of each host.

    Args:
        answer: Function of the host, the path and the cookies of a request.
        hosts: The hosts.
        cookies: Whether the crawler keeps cookies.

    Returns:
        (numbers by protocol status, dropped pages by reason, "HOST/PATH" of each request).
    """

    def at(host, path):
        head = site.server.current.head
        return answer(host, path, head.partition("\r\nCookie: ")[2].partition("\r\n")[0])

    urls = [f"http://{host}{path}" for host in hosts for path in PATHS]
    http = {"http_cookies": cookies}
    with engine_of(at, http=http, server_delay=0.0, **options) as (engine, site):
        results = Counter(r.protocol_status for r in engine.run(map(Task, urls)))
    paths = [f"{host_of(head)}{path}" for path, head, _ in site.server.requests]
    return results, engine.drop_counts, [path.removeprefix(HOST) for path in paths]


def page_or_rules(path):
    return reply(b"User-agent: *\nDisallow: /no" if path == "/robots.txt" else b"page")


def itself(host, path, sent):
    """Redirects each page to itself, until there is a cookie."""
    return page_or_rules(path) if "s=1" in sent else redirect(path, "Set-Cookie: s=1")


def over_another(host, path, sent):
    """Redirects each page over one that sets the cookie."""
    if path == "/set":
        return redirect("/robots.txt", "Set-Cookie: s=1; Path=/")
    return page_or_rules(path) if "s=1" in sent else redirect("/set")


def step_by_step(host, path, sent):
    """Wants a second cookie after the first."""
    if "s=1" not in sent or "t=1" not in sent:
        cookie = "t=1" if "s=1" in sent else "s=1"
        return redirect(path, f"Set-Cookie: {cookie}; Path=/")
    return page_or_rules(path)


def over_a_host(host, path, sent):
    """Redirects over another host of the domain, whose cookie is for the whole domain."""
    if host == "set.example.com":
        return redirect(f"http://{HOST}/robots.txt", "Set-Cookie: s=1; Domain=example.com; Path=/")
    return page_or_rules(path) if "s=1" in sent else redirect("http://set.example.com/in")


def with_status(status, body):
    """Gives an answer without rules, until there is a cookie."""

    def answer(host, path, sent):
        return page_or_rules(path) if "s=1" in sent else reply(body, status, "Set-Cookie: s=1")

    return answer


WALLS = [
    *((itself, ["/robots.txt"] * 2), (step_by_step, ["/robots.txt"] * 3)),
    (over_another, ["/robots.txt", "/set", "/robots.txt"]),
    (over_a_host, ["/robots.txt", "set.example.com/in", "/robots.txt"]),
    *((with_status("200 OK", b""), ["/robots.txt"] * 2), (with_status("204 No", b""), ["/robots.txt"] * 2)),
    (with_status("200 OK", b"<html><meta http-equiv=refresh content=0>"), ["/robots.txt"] * 2),
    *((with_status("403 No", b""), ["/robots.txt"] * 2), (with_status("401 No", b""), ["/robots.txt"] * 2)),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "paths"), WALLS)
def test_a_robots_txt_that_needs_a_cookie_is_read_with_it(answer, paths):
    results, dropped, requested = crawl(answer)
    assert (results, dropped) == ({ALLOWED: 1, DENIED: 1}, {})
    assert requested == [*paths, "/yes"]


@pytest.mark.parametrize("answer", [itself, over_another, step_by_step, over_a_host])
def test_without_cookies_redirects_back_to_robots_txt_defer_all_pages(answer):
    results, dropped, requested = crawl(answer, cookies=False)
    assert (results, dropped) == ({}, {"robots_deferred": 2})
    assert "/no" not in requested


@pytest.mark.parametrize(
    "cookie", ["s=1; Path=/other", "s=1; Domain=example.net", "s=1; Secure", "s=1; Max-Age=0", "s"]
)
def test_a_wall_whose_cookie_does_not_come_back_defers_all_pages(cookie):
    def answer(host, path, sent):
        return redirect(path, f"Set-Cookie: {cookie}")

    results, dropped, requested = crawl(answer)
    assert (results, dropped) == ({}, {"robots_deferred": 2})
    assert len(requested) <= 2


def test_a_new_cookie_with_each_redirect_ends_after_five():
    numbers = iter(range(100))
    results, dropped, requested = crawl(
        lambda host, path, sent: redirect(path, f"Set-Cookie: s={next(numbers)}")
    )
    assert (results, dropped) == ({}, {"robots_deferred": 2})
    assert requested == ["/robots.txt"] * 6


@pytest.mark.parametrize("status", ["404 No", "403 No", "200 OK"])
def test_a_session_with_each_answer_costs_at_most_one_request_more(status):
    numbers = iter(range(100))

    def answer(host, path, sent):
        status_of = status if path == "/robots.txt" else "200 OK"
        return reply(b"page", status_of, f"Set-Cookie: s={next(numbers)}; Path=/")

    results, _, requested = crawl(answer)
    assert results == {ALLOWED: 2}
    assert requested == ["/robots.txt"] * (1 if status == "404 No" else 2) + list(PATHS)


def test_one_answer_of_another_host_counts_for_all_although_it_sets_a_cookie():
    def answer(host, path, sent):
        if host == VICTIM:
            return reply(b"User-agent: *\nDisallow: /no", "200 OK", "Set-Cookie: s=1")
        return redirect(f"http://{VICTIM}/") if path == "/robots.txt" else reply(b"page")

    hosts = [f"h{number}.example.com" for number in range(3)]
    results, _, requested = crawl(answer, hosts, robots_redirect_targets=9)
    assert results == {ALLOWED: 3, DENIED: 3}
    assert requested.count(f"{VICTIM}/") == 1
