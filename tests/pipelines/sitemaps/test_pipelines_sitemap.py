"""The job sitemap: real servers, tables of each back end, politeness, private addresses."""

import datetime
import json
import time

import pytest
from crawling import crawl, latest_snapshot, manifests_of, nutbeam, reach, state_of
from odd_sitemaps import EXTENSIONS, of
from simulated_web import SimWeb
from web_servers import connect_to, reply, serve

from nutbeam.io.batches.leases import SITEMAP_LEASES, acquire
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.sitemaps import sitemap
from nutbeam.pipelines.views.reader import read
from nutbeam.web.simweb.site import lone_pages, lone_path
from nutbeam.web.urls.row_keys import from_key

HOME = "http://a.example.com"


def lone_urls(site):
    plan = site.plan
    return {plan.url_at(h, lone_path(n)) for h in range(site.hosts) for n in lone_pages(plan, h)}


def urls(*paths, inside=""):
    return of(*(f"<url><loc>{HOME}{path}</loc>{inside}</url>" for path in paths))


def index(*locs):
    found = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs)
    return f"<sitemapindex>{found}</sitemapindex>"


class Site:
    """Hosts of example.com that answer with what is written down, else with 404."""

    def __init__(self, pages):
        self.pages, self.seen = pages, []

    def answer(self, path, connection):
        self.seen.append(path)
        page = self.pages.get(path)
        if page is None:
            return reply(b"none", "404 Not Found")
        if page.startswith("http://"):
            return reply(b"", "301 Moved", f"Location: {page}")
        return reply(page.encode(), "200 OK", "Content-Type: application/xml")


def run(server, table, *words, code=0):
    reached = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
    assert nutbeam("sitemap", table, *words, *reached, "--server_delay", 0) == code


def counts_of(table):
    return dict(manifests_of(table)[-1].counts)


def known(table):
    return {from_key(key) for key in state_of(table).get_column("key")}


@pytest.mark.long
def test_a_crawl_finds_pages_that_no_link_leads_to(tmp_path):
    with SimWeb(hosts=2, pages=3, seed=7, crawl_delay=0, sitemaps=True) as web:
        lone, linked = lone_urls(web.site), web.site.urls()
        assert len(lone) == 2
        assert not lone & linked
        table = tmp_path / "table"
        # Round 1 knows the host of the seed, and links lead to the other one.
        assert crawl(table, web, *web.seeds, "--sitemaps", "always") == 0
        state = state_of(table)
        fetched = {from_key(key) for key in state.filter(state["status"] == 2)["key"]}
        assert lone <= fetched
        assert web.site.urls("page") - fetched <= {
            u for some in web.site.duplicates() for u in some
        }


@pytest.mark.long
def test_once_reads_the_sitemaps_of_the_seeds(tmp_path):
    with SimWeb(hosts=2, pages=2, seed=7, crawl_delay=0, sitemaps=True) as web:
        words = (*web.seeds, "--sitemaps", "once", "--rounds", 1)
        assert nutbeam("crawl", tmp_path / "once", *words, *reach(web)) == 0
        of_first = {url for url in lone_urls(web.site) if "//h0." in url}
        assert known(tmp_path / "once") & lone_urls(web.site) == of_first
        jobs = [one.job for one in manifests_of(tmp_path / "once")]
        assert jobs.count("sitemap") == 1
        before = len(web.requests())
        # robots.txt as the fetch has recorded it, without a request for it.
        assert nutbeam("sitemap", tmp_path / "once", *reach(web)) == 0
        asked = [(one.host, one.path) for one in web.requests()[before:]]
        assert ("h0.example.com", "/sitemap.xml") in asked
        assert not [path for _, path in asked if path == "/robots.txt"]
        assert {host for host, _ in asked} == {"h0.example.com"}


@pytest.mark.long
def test_sitemaps_as_sites_have_them(tmp_path):
    pages = {
        "/robots.txt": "Sitemap: /%7Euser/sitemap.xml\nSitemap: feed.php\n",
        "/~user/sitemap.xml": "<!-- 3 ms -->\n" + urls("/%7Euser/1", "/~user/2?a=1&b=2"),
        "/feed.php": "<b>Warning</b>: x in <b>/x.php</b><br />\n<?xml version='1.0'?><rss><channel>"
        "<item><title>R&D &#55356;&#57205;</title><link>/3?a=1&b=2</link></item></channel></rss>",
    }
    site = Site(pages)
    with serve(site.answer) as server:
        (tmp_path / "hosts").write_text("a.example.com\n")
        run(server, tmp_path / "table", tmp_path / "hosts")
    paths = ("/~user/1", "/~user/2?a=1&b=2", "/3?a=1&b=2")
    assert known(tmp_path / "table") == {HOME + path for path in paths}
    assert "/sitemap.xml" not in site.seen


@pytest.mark.long
@pytest.mark.parametrize("named", [True, False])
def test_a_given_sitemap_names_all_urls_of_its_host_only_if_robots_txt_names_it(tmp_path, named):
    pages = {
        "/robots.txt": 'Sitemap: "/news/index.xml"\n' if named else "User-agent: *\n",
        "/news/index.xml": index("/news/s.xml"),
        "/news/s.xml": urls("/news/1", "/2"),
    }
    with serve(Site(pages).answer) as server:
        run(server, tmp_path / "table", f"{HOME}/news/index.xml")
    assert known(tmp_path / "table") == {f"{HOME}/news/1", *([f"{HOME}/2"] if named else [])}


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["folder", pytest.param("bigtable", marks=pytest.mark.bigtable)])
def test_sitemaps_of_every_kind(tmp_path, kind, request):
    pages = {
        "/robots.txt": "User-agent: *\nDisallow: /private/\n",
        "/index.xml": index(f"{HOME}/one.xml", "/two.xml", "/index.xml", "/private/s.xml",
                            "/moved.xml", "/gone.xml", "/page.xml", "http://b.net/s.xml"),
        "/one.xml": urls("/1", "/2", "/1", inside="<changefreq>daily</changefreq>"),
        "/two.xml": index("/three.xml"),
        "/three.xml": urls("/3", "/4.png"),
        "/moved.xml": f"{HOME}/there.xml",
        "/there.xml": f"{HOME}/moved.xml",
        "/page.xml": "<html><a href='/5'>x</a></html>",
        "/private/s.xml": urls("/6"),
    }  # fmt: skip
    table = (
        request.getfixturevalue("bigtable").make(tmp_path / "files")
        if kind == "bigtable"
        else tmp_path / "t"
    )
    site = Site(pages)
    with serve(site.answer) as server:
        words = ("--operation", "same", f"{HOME}/index.xml")
        run(server, table, *words)
        asked = len(server.requests)
        snapshot = latest_snapshot(table)
        run(server, table, *words)
        assert (len(server.requests), latest_snapshot(table)) == (asked, snapshot)
        assert known(table) == {f"{HOME}/{number}" for number in (1, 2, 3)}
        assert counts_of(table) == {
            "added": 3, "dropped/filtered": 1, "entries": 5, "not_read/foreign": 1,
            "not_read/http_404": 1, "not_read/not_a_sitemap": 1, "not_read/robots_denied": 1,
            "redirects": 2, "requests": 9, "sitemaps": 4,
        }  # fmt: skip
        assert "/private/s.xml" not in site.seen
        rows = {from_key(row["key"]): row for row in state_of(table).to_dicts()}
        assert rows[f"{HOME}/1"]["fetch_interval"] == 86_400
        assert rows[f"{HOME}/3"]["score"] == 0.5
        # A second run finds nothing new, and changes nothing.
        run(server, table, f"{HOME}/index.xml")
        assert counts_of(table)["known"] == 3
        assert {from_key(row["key"]): row for row in state_of(table).to_dicts()} == rows
        # What was found about the host is kept, and the host of a given sitemap is that of a seed.
        (host,) = read(str(table), "hosts").to_dicts()
        assert (host["seed"], host["robots_status"]) == (True, 200)


@pytest.mark.long
def test_the_first_request_for_a_page_has_no_condition(tmp_path):
    pages = {"/s.xml": urls("/1", inside="<lastmod>2024-01-02</lastmod>")}
    with serve(Site(pages).answer) as server:
        run(server, tmp_path / "t", f"{HOME}/s.xml")
        assert state_of(tmp_path / "t")["modified_time"].to_list() == [1_704_153_600_000]
        reached = [
            word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)
        ]
        assert nutbeam("generate", tmp_path / "t") == 0
        assert nutbeam("fetch", tmp_path / "t", *reached, "--server_delay", 0) == 0
        (head,) = [head for path, head, _ in server.requests if path == "/1"]
        assert "If-Modified-Since" not in head


@pytest.mark.long
def test_images_videos_and_other_languages_are_urls_too(tmp_path):
    inside = EXTENSIONS.replace("http://cdn.net", HOME).replace("http://example.com", HOME)
    with serve(Site({"/s.xml": urls("/1", inside=inside)}).answer) as server:
        run(server, tmp_path / "usual", f"{HOME}/s.xml")
        assert known(tmp_path / "usual") == {f"{HOME}/1", f"{HOME}/de"}
        words = ("--sitemap_links", "alternate,image,video", "--sitemap_url_filter", "false")
        run(server, tmp_path / "all", f"{HOME}/s.xml", *words)
        more = {f"{HOME}/i.png", f"{HOME}/v.mp4"}
        assert known(tmp_path / "all") == {f"{HOME}/1", f"{HOME}/de"} | more


def test_a_page_becomes_due_when_its_sitemap_is_newer(tmp_path):
    table, pages = tmp_path / "t", {"/s.xml": urls("/1", "/2"), "/1": "<p>1", "/2": "<p>2"}
    with serve(Site(pages).answer) as server:
        run(server, table, f"{HOME}/s.xml")
        reached = [word for door in connect_to(server.port) for word in ("--connect_to", door)]
        assert nutbeam("round", table, *reached, "--server_delay", 0) == 0
        fetched = state_of(table)
        assert fetched["last_fetch_time"].null_count() == 0
        today = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1)
        dates = {"/1": "2020-01-01", "/2": today.isoformat()}
        pages["/s.xml"] = of(*(f"<url><loc>{HOME}{path}</loc><lastmod>{date}</lastmod></url>"
                               for path, date in dates.items()))  # fmt: skip
        time.sleep(1.1)
        run(server, table, f"{HOME}/s.xml")
        assert state_of(table)["fetch_time"].equals(fetched["fetch_time"])
        run(server, table, f"{HOME}/s.xml", "--sitemap_refetch", "true")
        assert counts_of(table)["made_due"] == 1
        assert nutbeam("generate", table) == 0
        assert manifests_of(table)[-1].counts["chosen"] == 1


def test_hosts_and_files_of_hosts(tmp_path):
    listed = tmp_path / "hosts.txt"
    listed.write_text(f"# hosts\nb.example.com\n{HOME}/s.xml\n")
    pages = {
        "/s.xml": urls("/1"),
        "/sitemap.xml": "# list\nhttp://b.example.com/2\n",
        "/robots.txt": "",
    }
    with serve(Site(pages).answer) as server:
        run(server, tmp_path / "t", listed)
        assert known(tmp_path / "t") == {f"{HOME}/1", "http://b.example.com/2"}
        words = ("--sitemap_hosts", "c.example.com", "--sitemap_url_default_sitemap_xml", "false")
        run(server, tmp_path / "t", *words)
        assert counts_of(tmp_path / "t") == {"without_sitemap": 1}


def hosts_asked(server):
    lines = [line for _, head, _ in server.requests for line in head.split("\r\n")]
    return {line.split(":", 1)[1].strip() for line in lines if line[:5].lower() == "host:"}


@pytest.mark.long
def test_all_hosts_are_those_with_urls_and_settings_are_obeyed(tmp_path):
    table, settings = tmp_path / "t", tmp_path / "settings"
    settings.write_text("a.example.com delay=0.3\nblocked.example.com blocked=true\n"
                        "never.example.org threads=2\n")  # fmt: skip
    seeds = [f"http://{name}.example.com/" for name in ("a", "b", "blocked")]
    assert nutbeam("inject", table, *seeds) == 0
    assert nutbeam("updatehostdb", table) == 0  # also makes a row for example.com
    assert nutbeam("hostinject", table, settings) == 0
    pages = {"/sitemap.xml": index("/1.xml", "http://blocked.example.com/2.xml"),
             "/1.xml": urls("/1")}  # fmt: skip
    with serve(Site(pages).answer) as server:
        words = ("--sitemap_hosts", "all", "--sitemap_strict_parsing", "false")
        run(server, table, *words)
        assert hosts_asked(server) == {"a.example.com", "b.example.com"}
        came = [time for path, head, time in server.requests
                if "host: a." in head.lower() and path.endswith(".xml")]  # fmt: skip
        assert len(came) == 2
        assert came[1] - came[0] >= 0.3
    assert counts_of(table)["not_read/host_blocked"] == 2


@pytest.mark.long
def test_many_hosts_are_read_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(sitemap, "HOSTS_AT_ONCE", 2)
    names = [f"h{n}.example.com" for n in range(5)]
    pages = {"/robots.txt": "Sitemap: http://h4.example.com/s.xml\n", "/s.xml": urls("/1")}
    with serve(Site(pages).answer) as server:
        words = (
            "--sitemap_hosts",
            ",".join(names),
            "--sitemap_strict_parsing",
            "false",
            "--scope",
            "any",
        )
        assert nutbeam("inject", tmp_path / "t", "http://other.example.org/") == 0
        run(server, tmp_path / "t", *words)
        # Each list of hosts reads it, and the pause of its host holds between them.
        assert [path for path, _, _ in server.requests].count("/s.xml") == 3
        assert hosts_asked(server) == set(names)
    counts = counts_of(tmp_path / "t")
    assert (counts["sitemaps"], counts["added"]) == (3, 1)


def test_odd_lines_of_files_are_counted(tmp_path):
    listed = tmp_path / "hosts.txt"
    listed.write_text("example.com/sitemap.xml\nall\na b\n[::1\n")
    assert nutbeam("inject", tmp_path / "t", f"{HOME}/") == 0
    with serve(Site({}).answer) as server:
        run(server, tmp_path / "t", listed)
        assert hosts_asked(server) <= {"all"}  # a name like others, not the whole table
    assert counts_of(tmp_path / "t")["not_read/malformed"] == 3


def test_a_back_off_holds_for_hosts_that_are_met_later(tmp_path):
    table, later = tmp_path / "t", "http://b.example.com/s.xml"
    busy = reply(b"", "503 Busy", "Retry-After: 3000")

    def answer(path, _):
        if path == "/robots.txt":
            return reply(f"User-agent: *\nSitemap: {later}\n".encode())
        return busy

    with serve(answer) as server:
        run(server, table, later)
        first = [path for path, _, _ in server.requests].count("/s.xml")
        assert first == 1
        run(server, table, "--sitemap_hosts", "a.example.com")
        assert [path for path, _, _ in server.requests].count("/s.xml") == first


def test_a_host_gets_its_pause(tmp_path):
    pages = {"/s.xml": index("/1.xml", "/2.xml"), "/1.xml": urls("/1"), "/2.xml": urls("/2")}
    with serve(Site(pages).answer) as server:
        reached = [
            word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)
        ]
        words = ("--server_delay", 0.3, *reached)
        assert nutbeam("sitemap", tmp_path / "t", f"{HOME}/s.xml", *words) == 0
        came = [time for path, _, time in server.requests if path != "/robots.txt"]
        assert len(came) == 3
        assert all(
            after - end >= 0.3 for end, after in zip(server.ends[1:], came[1:], strict=False)
        )


def test_no_sitemap_leads_to_a_private_address(tmp_path):
    with serve(lambda path, connection: reply(b"private")) as canary:
        inside = f"http://127.0.0.1:{canary.port}"
        pages = {
            "/robots.txt": f"Sitemap: {inside}/1.xml\nSitemap: {HOME}/s.xml\n",
            "/s.xml": index(f"{inside}/2.xml", "/3.xml", "/4.xml"),
            "/3.xml": f"{inside}/3.xml",
            "/4.xml": urls("/4") + f"<!DOCTYPE x SYSTEM '{inside}/5'>",
        }
        with serve(Site(pages).answer) as server:
            words = ("--sitemap_strict_parsing", "false", "--scope", "any")
            agent = (
                "--agent_name",
                "bot",
                "--agent_email",
                "bot@example.com",
                "--allowed_ports",
                f"80,{canary.port}",
            )
            run(
                server,
                tmp_path / "t",
                "--sitemap_hosts",
                "a.example.com",
                f"{inside}/6.xml",
                *words,
                *agent,
            )
        assert canary.connections == 0
        assert known(tmp_path / "t") == {f"{HOME}/4"}
        assert counts_of(tmp_path / "t")["not_read/address_denied"] >= 3


@pytest.mark.long
def test_fetches_and_sitemaps_wait_for_one_another(tmp_path, capsys):
    table = tmp_path / "t"
    with serve(Site({"/s.xml": urls("/1")}).answer) as server:
        run(server, table, f"{HOME}/s.xml")
        assert nutbeam("generate", table) == 0
        reached = [
            word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)
        ]
        capsys.readouterr()
        with acquire(open_table(str(table)), SITEMAP_LEASES, 0):
            words = (*reached, "--max_lease_wait", 0)
            assert nutbeam("fetch", table, *words) == 3
            assert nutbeam("sitemap", table, f"{HOME}/s.xml", *words) == 3
        errors = capsys.readouterr().err
        assert errors.count("has waited 0 s (max_lease_wait)") == 2
        assert nutbeam("fetch", table, *reached, "--server_delay", 0) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--sitemap_hosts", "http://a.com/"),
            "--sitemap_hosts must be names of hosts, or all, seeds, recorded",
        ),
        (("missing.txt",), "cannot read seeds 'missing.txt': No such file"),
        (("http://a.com/s.xml", "--sitemap_size_max", "51MiB"), "sitemap_size_max must be at most"),
        (("http://a.com/s.xml", "--sitemap_links", "news"), "sitemap_links must be"),
        ((), "no web table at"),
        (("--sitemap_hosts", "a.com"), "hosts are those of a table: inject or crawl first"),
        (("http://a.com/s.xml",), "agent"),
    ],
)
def test_mistakes_are_one_line(tmp_path, refuse, words, message):
    assert message in refuse("sitemap", tmp_path / "t", *words)


def test_a_report_for_scripts(tmp_path, capsys):
    with serve(Site({"/s.xml": urls("/1")}).answer) as server:
        capsys.readouterr()
        run(server, tmp_path / "t", f"{HOME}/s.xml", "--format", "json")
        record = json.loads(capsys.readouterr().out)
        assert record["counts"] == {"added": 1, "entries": 1, "requests": 1, "sitemaps": 1}
