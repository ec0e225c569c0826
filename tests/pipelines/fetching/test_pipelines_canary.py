"""No spelling leads to a private address: not as a seed, link, redirect, or redirect of robots.txt.

Everything is real but the name server, which rebinds: the command, its sockets, the canary.
"""

import html

import private_spellings
import pytest
from canary import HOSTS, LEADING, Canary, lookup, spellings
from crawling import manifests_of, nutbeam
from web_servers import Server, connect_to, reply

from nutbeam.pipelines import fetch
from nutbeam.web.base.options import options_of
from nutbeam.web.clients import http_client
from nutbeam.web.network import guard

CLIENTS = [o.choices for o in options_of(fetch.Options) if o.name == "http_client"] or [("",)]
WAYS = ("seed", "link", "redirect", "robots")
LISTS = {
    "sitemap": ("<urlset>", "<url><loc>{}</loc></url>", "</urlset>"),
    "feed": ("<rss><channel>", "<item><title>x</title><link>{}</link></item>", "</channel></rss>"),
}
TAGS = {
    "refresh": '<meta http-equiv="refresh" content="0; url={}">x',
    "canonical": '<link rel="canonical" href="{}">x',
    "frame": '<iframe src="{}"></iframe>x',
    "base": '<base href="{}"><a href="x">x</a>',
}
MORE = (*LISTS, *TAGS, "header")
FOLLOWED = (*WAYS, *LISTS, *TAGS)  # headers are kept, and not followed


class Lures(Server):
    """Hosts of example.com whose pages, redirects and robots.txt lead to the canary."""

    def __init__(self, urls):
        self.urls = urls
        super().__init__(self.lure)

    def _answer(self, head, connection):
        host = next(line for line in head.split("\r\n") if line.lower().startswith("host:"))
        answer = self.lure(head.split(" ")[1], host.partition(":")[2].strip())
        connection.sendall(answer)
        return answer

    def lure(self, path, host):
        number = int("".join(filter(str.isdigit, host)) or 0)
        if path == "/robots.txt":
            if host.startswith("robots"):
                return self.redirect(f"{self.urls[number]}/robots/{number}")
            return reply(b"", "404 Not Found")
        way = host.partition(".")[0].rstrip("0123456789")
        if way == "redirect":
            return self.redirect(f"{self.urls[number]}/redirect/{number}")
        if way in MORE:
            return self.more(way, number)
        links = [html.escape(f"{url}/link/{at}") for at, url in enumerate(self.urls)]
        page = "".join(f'<a href="{link}">x</a>' for link in links) if host[0] == "l" else "page"
        return reply(page.encode(), "200 OK", "Content-Type: text/html; charset=utf-8")

    def more(self, way, number):
        """Returns what leads on in one of ``MORE``."""
        at = html.escape(f"{self.urls[number]}/{way}/{number}")
        if way == "header":
            shown = at.encode().decode("latin-1").replace("\n", " ").replace("\r", " ")
            return reply(
                b"page", "200 OK", f"Refresh: 0; url={shown}", f"Link: <{shown}>; rel=next"
            )
        if way in ("sitemap", "feed"):
            before, one, after = LISTS[way]
            text = before + one.format(at) + after
            return reply(text.encode(), "200 OK", "Content-Type: application/xml; charset=utf-8")
        return reply(
            TAGS[way].format(at).encode(), "200 OK", "Content-Type: text/html; charset=utf-8"
        )

    @staticmethod
    def redirect(url):
        location = url.encode().decode("latin-1")  # as UTF-8 bytes
        return reply(b"", "302 Found", f"Location: {location}")


def lead(monkeypatch, tmp_path, canary, client, *more, urls=None, ways=WAYS[2:]):
    """Crawls all that leads to the canary, three rounds; returns the counts of its jobs."""
    find = lookup()
    monkeypatch.setattr(
        http_client,
        "guard_of",
        lambda o: guard.Guard(o.allow_addresses, o.connect_to, o.allowed_ports, find),
    )
    monkeypatch.setattr(guard, "_DNS_TTL_S", 0.0)  # every look is a new one
    urls = urls or spellings(canary.port)
    lures = Lures(urls)
    seeds = tmp_path / "seeds.txt"
    lines = [f"{url}/seed/{at}" for at, url in enumerate(urls)]
    lines += [f"http://{way}{at}.example.com/" for way in ways for at in range(len(urls))]
    lines = [line.replace("\n", "\t").replace("\r", "\t") for line in lines]
    seeds.write_text("\n".join(["http://links.example.com/", *lines]), "utf-8")
    try:
        nutbeam(
            *("crawl", tmp_path / "table", seeds, "--rounds", "2", "--scope", "any"),
            *(
                "--connect_to",
                connect_to(lures.port)[0],
                "--allowed_ports",
                f"80,443,{canary.port}",
            ),
            *(
                "--server_delay",
                "0",
                "--timeout",
                "2",
                "--max_outlinks",
                "-1",
                "--max_same_pages",
                "-1",
            ),
            *("--robots_redirect_targets", "100000"),
            *("--max_exceptions_per_host", "-1", "--agent_name", "bot", "--agent_email", "a@b"),
            *(("--http_client", client) if client else ()),
            *more,
        )
    finally:
        lures.close()
    counts = {}
    for manifest in manifests_of(tmp_path / "table"):
        for name, number in manifest.counts.items():
            counts[name] = counts.get(name, 0) + number
    return counts


@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS[0])
def test_no_spelling_leads_to_a_private_address_on_any_way(monkeypatch, tmp_path, capsys, client):
    assert len(HOSTS) > 60
    with Canary() as canary:
        counts = lead(monkeypatch, tmp_path, canary, client)
        assert canary.connections == 0, canary.paths
    # They were tried: seeds, links and redirects once for each spelling, robots.txt too.
    assert counts["not_fetched/address_denied"] > 2 * len(LEADING), counts
    assert counts["not_fetched/port_denied"] >= 2, counts
    with Canary() as canary:  # where it is allowed, the same crawl does get there
        (tmp_path / "open").mkdir()
        lead(monkeypatch, tmp_path / "open", canary, client, "--allow_addresses", "127.0.0.0/8,::1")
        reached = set(canary.paths)
    missing = [
        f"/{way}/{at}"
        for way in WAYS
        for at in range(len(LEADING))
        if f"/{way}/{at}" not in reached
    ]
    assert not missing, [(name, HOSTS[int(name.rpartition("/")[2])]) for name in missing]


def test_there_are_enough_spellings_and_all_ways_are_tried():
    assert len(set(private_spellings.spellings(80))) >= 400 + len(private_spellings.NAMES)
    tried = {*WAYS, *MORE, "proxy"}  # a proxy: tests/web/network/test_web_proxy.py
    assert set(private_spellings.WAYS) == tried


@pytest.mark.few(1)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 40])
@pytest.mark.parametrize("client", CLIENTS[0])
def test_no_way_in_leads_to_a_private_address(monkeypatch, tmp_path, client, step):
    """Each spelling in each way; the short form takes every fortieth."""
    with Canary() as canary:
        urls = private_spellings.spellings(canary.port)[::step]
        ways = (*WAYS[2:], *MORE)
        counts = lead(monkeypatch, tmp_path, canary, client, urls=urls, ways=ways)
        assert canary.connections == 0, canary.paths
    assert counts["not_fetched/address_denied"] > len(urls), counts
    with Canary() as canary:  # where it is allowed, each way that is followed does lead there
        (tmp_path / "open").mkdir()
        urls = [f"http://127.0.0.1:{canary.port}"]
        allowed = ("--allow_addresses", "::ffff:7f00:0/104")
        lead(monkeypatch, tmp_path / "open", canary, client, *allowed, urls=urls, ways=ways)
        assert {path.split("/")[1] for path in canary.paths} - {"robots.txt"} == set(FOLLOWED)
