"""explain: each reason for which a URL is dropped, not chosen, or not fetched, on a table that was crawled."""

import json
import shutil

import pytest
from crawling import crawl, manifest_of, nutbeam, state_of
from robots_texts import ATTACKS, MOST
from simulated_web import SimWeb
from slow_patterns import SLOW, STALLS
from web_servers import connect_to, reply, serve

from nutbeam.pipelines.views.explain import verdict
from nutbeam.pipelines.views.explain_row import ShownRobotsOptions, robots_of
from nutbeam.web.robots.robots import deciding_line
from nutbeam.web.urls.row_keys import to_key

SITE = "http://site.example.com"
PAGE = "".join(f"<a href={href}>x</a>" for href in ("/a", "/b", "/private/x", "/gone"))
ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/but\n\nUser-agent: bot\nDisallow: /\n"


def answer(path, head):
    name = head.partition("Host: ")[2].partition(".")[0]
    if path == "/robots.txt":
        return reply(b"", "503 Down") if name == "down" else reply(ROBOTS.encode())
    if name == "busy":
        return reply(b"", "429 Busy", "Retry-After: 3600")
    return reply(PAGE.encode(), "200 OK", "Content-Type: text/html")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table after a round of a site, a host that rests, and one whose robots.txt is not to be had."""
    table = tmp_path_factory.mktemp("explain") / "table"
    seeds = [f"http://{name}.example.com/" for name in ("site", "busy", "down")]
    with serve(lambda path, _: answer(path, server.requests[-1][1])) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        assert nutbeam("inject", table, *seeds) == 0
        assert nutbeam("generate", table) == 0
        assert nutbeam("fetch", table, *reach, "--server_delay", "0", "--threads", "1") == 0
    for job in ("parse", "updatedb"):
        assert nutbeam(job, table) == 0
    assert nutbeam("purge", table, "--url", f"{SITE}/gone") == 0
    return table


@pytest.fixture
def explained(capsys):
    """Runs explain; returns its records."""

    def run(*words):
        capsys.readouterr()
        assert nutbeam("explain", *words, "--format", "json") == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


SOURCE = ("--source", f"{SITE}/")
# What a URL is dropped for when it is met: options, URL, reason.
DROPPED = [
    ((), "http://[::1/", "malformed"),
    ((), "mailto:a@b.org", "scheme_not_allowed"),
    ((), "ftp://site.example.com/", "scheme_not_allowed"),
    (("--schemes", "http,file"), "file://elsewhere/x", "file_elsewhere"),
    (("--schemes", "http,file", *SOURCE), "file:///etc/passwd", "file_from_elsewhere"),
    (("--max_url_length", "30"), f"{SITE}/a-path-of-some-length", "url_too_long"),
    (("--max_url_length", "-1"), f"{SITE}/{'x' * 5000}", "key_too_long"),
    ((), f"{SITE}/photo.JPG", "filtered"),
    (("--include", "/docs/"), f"{SITE}/blog", "not_included"),
    (("--include", "new", "--exclude", "w$"), f"{SITE}/new", "excluded"),
    (("--exclude", "w$", "--found_as", "inject"), f"{SITE}/new", "excluded"),
    (("--include", "/docs/", "--found_as", "fetcher"), f"{SITE}/blog", "not_included"),
    (("--url_filter_file", "slow.txt"), SLOW.replace("http://foo.com", SITE), "filter_timeout"),
    (("--url_normalizer_file", "loop.xml"), f"{SITE}/a", "normalizer_loop"),
    ((), f"{SITE}/x/x/x/x", "repeated_segments"),
    (("--max_parameters", "1"), f"{SITE}/?a=1&b=2", "too_many_parameters"),
    (("--max_parameter_length", "3"), f"{SITE}/?a=1234", "parameter_too_long"),
    (SOURCE, f"{SITE}/#top", "own_url"),
    ((), "http://other.org/", "out_of_scope"),
    (("--scope", "host", *SOURCE), "http://www.example.com/", "out_of_scope"),
    (("--skip_internal_links", *SOURCE), f"{SITE}/new", "internal_link"),
    ((), f"{SITE}/gone", "purged"),
    (("--found_as", "inject"), f"{SITE}/gone", "purged"),
    (("--depth", "0", *SOURCE), f"{SITE}/new", "too_deep"),
    (("--additions_allowed", "false"), f"{SITE}/new", "additions_not_allowed"),
]  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize(("words", "url", "reason"), DROPPED, ids=[case[2] for case in DROPPED])
def test_explain_gives_the_reason_for_each_url_that_is_not_admitted(
    table, explained, tmp_path, monkeypatch, words, url, reason
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.txt").write_text(f"-{STALLS}\n")
    (tmp_path / "loop.xml").write_text(
        "<regex-normalize><regex><pattern>/a+$</pattern><substitution>$0a</substitution></regex>"
        "</regex-normalize>"
    )
    (record,) = explained(table, url, *words)
    assert record["reason"] == reason
    assert record.get("row") is None or reason == "own_url"


@pytest.mark.parametrize("words", [("inject",), ("fetcher", *SOURCE)])
def test_seeds_and_their_redirects_need_no_match(table, explained, words):
    for found, reason in ((words, None), (("outlink", *SOURCE), "not_included")):
        (record,) = explained(table, f"{SITE}/new", "--include", "/docs/", "--found_as", *found)
        assert record["reason"] == reason
        assert (record["filters"][-1]["by"] == "--include") is (reason is not None)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "file:/etc/passwd"])
def test_steps_that_undo_each_other_are_not_shown(explained, url):
    (record,) = explained("-", url, "--schemes", "file")
    wanted = [] if url == "file:///etc/passwd" else ["basic normalizer"]
    assert [step["by"] for step in record["steps"]] == wanted
    assert record["normalized"] == "file:///etc/passwd"


def test_a_host_that_is_full(tmp_path, explained):
    assert nutbeam("inject", tmp_path / "table", "http://a.org/1", "http://a.org/2") == 0
    words = (tmp_path / "table", "http://a.org/3", "--max_per_host", "2")
    assert explained(*words)[0]["reason"] == "host_total"
    assert explained(*words, "--found_as", "inject")[0]["reason"] is None


# Why generate leaves a row out: options, URL, reasons.
NOT_CHOSEN = [
    ((), f"{SITE}/", ["not_due"]),
    (("--add_days", "40"), f"{SITE}/", []),
    ((), f"{SITE}/a", []),
    ((), "http://busy.example.com/", ["not_due", "backoff"]),
    (("--restrict_status", "db_fetched"), f"{SITE}/a", ["status"]),
    (("--max_distance", "0"), f"{SITE}/a", ["too_far"]),
    (("--min_score", "5"), f"{SITE}/a", ["low_score"]),
    (("--max_count", "3"), f"{SITE}/a", []),
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize(("words", "url", "reasons"), NOT_CHOSEN)
def test_explain_gives_the_reasons_for_a_url_that_is_not_chosen(
    table, explained, words, url, reasons
):
    (record,) = explained(table, url, *words)
    assert record["row"]["url"] == url
    assert [why["reason"] for why in record["generate"]] == reasons


@pytest.mark.long
def test_explain_reports_urls_over_the_limit_of_their_host_or_domain(table, explained):
    keys = sorted(to_key(f"{SITE}/{name}") for name in ("a", "b", "private/x"))
    words = [f"{SITE}/{key.partition('/')[2]}" for key in keys]
    for mode in ("host", "domain"):
        limit = ("--max_count", "1", "--count_mode", mode)
        found = [record["generate"] for record in explained(table, *words, *limit)]
        # Of three alike just one is the best; of the domain it is a URL with the score of a seed.
        assert [len(reasons) for reasons in found].count(0) == (mode == "host"), mode
        assert {why["reason"] for reasons in found for why in reasons} == {"max_count"}


@pytest.mark.long
def test_explain_names_the_open_batch_of_a_url(table, explained, tmp_path):
    copy = shutil.copytree(table, tmp_path / "table")
    assert nutbeam("generate", copy) == 0
    (batch,) = manifest_of(copy).open_batches(0)
    (why,) = explained(copy, f"{SITE}/a")[0]["generate"]
    assert why["reason"] == "in_batch"
    assert why["detail"].startswith(
        f"in batch {batch}, which is generated: another crawl may be at "
    )


@pytest.mark.long
def test_explain_shows_the_verdict_of_robots_txt(table, explained):
    urls = [f"{SITE}/private/x", f"{SITE}/private/but", f"{SITE}/b", "http://down.example.com/",
            "http://new.example.com/", "https://site.example.com/"]  # fmt: skip
    found = [record["robots"] for record in explained(table, *urls)]
    assert [said["verdict"] for said in found] == [
        "denied", "allowed", "allowed", "deferred", "unknown", "unknown"
    ]  # fmt: skip
    assert [(said["line"], said["rule"]) for said in found] == [
        (2, "Disallow: /private"), (3, "Allow: /private/but"), *[(None, None)] * 4
    ]  # fmt: skip
    assert found[0]["read"] is not None
    (own,) = explained(table, f"{SITE}/b", "--agent_name", "bot")
    assert (own["robots"]["verdict"], own["robots"]["line"]) == ("denied", 6)
    (exempt,) = explained(table, f"{SITE}/private/x", "--robots_allowlist", "example.com")
    assert exempt["robots"]["verdict"] == "exempt"


@pytest.mark.parametrize(
    ("text", "url", "line"),
    [
        ("", "/x", None),
        ("User-agent: *\nDisallow:", "/x", None),
        ("User-agent: *\nDisallow: /\nDisallow: /x\nDisallow: /x # again", "/x/y", 3),
        ("User-agent: other\nDisallow: /x\n\nUser-agent: *\nDisallow: /x", "/x", 5),
        ("User-agent: *\nDisallow: /*?\nAllow: /a?$", "/a?b", 2),
        ("User-agent: *\r\nDisallow: /%7Ea", "/~a", 2),
        ("Disallow: /x\nUser-agent: bot\nUser-agent: *\nDisallow: /x", "/x", 4),
    ],
)
def test_which_line_of_robots_txt_decides(text, url, line):
    found = deciding_line(text, f"http://a.com{url}", ("bot",))
    assert (found.number if found else None) == line


@pytest.mark.long
def test_a_robots_txt_that_is_too_costly():
    make, path = ATTACKS["permutations"]
    host = {"robots_status": 200, "robots_origin": SITE, "robots_text": make(MOST),
            "robots_time": 0, "robots_failing_since": None}  # fmt: skip
    found = robots_of(f"{SITE}{path}", host, ShownRobotsOptions())
    assert (found["verdict"], found["line"]) == ("too_costly", None)
    record = {"row": {}, "reason": None, "generate": [], "robots": found}
    assert verdict(record).endswith("would be chosen and not fetched: robots_too_costly")
    host["robots_text"] = "User-agent: *\nCrawl-delay: 1/2"
    found = robots_of(f"{SITE}{path}", host, ShownRobotsOptions())
    assert (found["crawl_delay"], found["odd_delay"]) == (None, "1/2")


@pytest.mark.long
def test_as_people_read_it(table, capsys):
    capsys.readouterr()
    assert nutbeam("explain", table, f"{SITE}/private/x", f"{SITE}/a.png", "HTTP://Site.example.com",
                   "--depth", "0") == 0  # fmt: skip
    denied, refused, seed = capsys.readouterr().out.split("\n\n")[:3]
    assert "row: status db_unfetched, " in denied
    assert "robots.txt: denied by line 2: Disallow: /private, read 2" in denied
    assert denied.endswith("would be chosen and not fetched: robots_denied")
    assert "filter: regex-urlfilter.txt:20 refuses it: -(?i)" in refused
    assert refused.endswith(
        "verdict: dropped: filtered (a URL filter refuses it; "
        f"`nutbeam filterchecker {SITE}/a.png` shows the rule)"
    )
    assert "parsed: http://site.example.com/\nbasic normalizer: http://site.example.com/\n" in seed
    assert "its links: dropped: too_deep" in seed
    assert "verdict: in the table, not chosen now: not_due" in seed


def test_without_a_table(explained, capsys):
    (record,) = explained("-", "http://foo.com/?b=2&a=1", "--url_normalizers", "basic,querystring")
    assert record == {
        "url": "http://foo.com/?b=2&a=1", "parsed": "http://foo.com/?b=2&a=1",
        "steps": [{"by": "querystring normalizer", "url": "http://foo.com/?a=1&b=2"}],
        "normalized": "http://foo.com/?a=1&b=2", "key": "com.foo:http/?a=1&b=2", "key_bytes": 21,
        "filters": [{"by": "regex-urlfilter.txt:27", "rule": "+.", "accepted": True, "slow": False,
                     "file": "built-in regex-urlfilter.txt"}],
        "scope": "not known without a table or --source", "reason": None,
    }  # fmt: skip
    away = ("--source", "http://bar.org/")
    assert explained("-", "http://foo.com/", *away)[0]["reason"] == "out_of_scope"
    assert explained("-", "http://foo.com/", *away, "--scope", "any")[0]["reason"] is None
    assert nutbeam("explain", "-", "x", "--source", "foo") == 2
    assert "--source is no URL that can be crawled (malformed): 'foo'" in capsys.readouterr().err
    assert nutbeam("explain", "/no/table", "x") == 2


EXEMPT = ("--source", f"{SITE}/", "--url_filters", "regex,ignoreexempt", "--url_rules_dir", "rules")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("url", "reason", "scope", "exemption"),
    [
        ("http://cdn.other.org/x", None, "outside domain", (True, 2, "+^http://cdn[.]")),
        ("http://cdn.other.org/b.gif", "filtered", "domain", None),
        ("http://cdn.other.org/no", "out_of_scope", "outside domain", (False, 1, "-/no$")),
        ("http://other.org/", "out_of_scope", "outside domain", (False, 0, "no rule accepts it")),
        (f"{SITE}/x", None, "domain", None),
    ],
)
def test_links_that_are_exempt_from_the_scope(
    explained, capsys, tmp_path, monkeypatch, url, reason, scope, exemption
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    name = "db-ignore-external-exemptions.txt"
    (tmp_path / "rules" / name).write_text("-/no$\n+^http://cdn[.]\n")
    (record,) = explained("-", url, *EXEMPT)
    assert (record["reason"], record["scope"]) == (reason, scope)
    said = record.get("exemption")
    assert (said is not None) is (exemption is not None)
    if exemption:
        accepted, line, rule = exemption
        assert said == {
            "by": f"{name}:{line}" if line else name, "rule": rule, "accepted": accepted,
            "slow": False, "file": f"rules/{name}",
        }  # fmt: skip
    assert nutbeam("explain", "-", url, *EXEMPT) == 0
    printed = capsys.readouterr()
    if said:
        word = "takes it" if accepted else "refuses it"
        assert f"\nexemption: {said['by']} {word}: {rule}\n" in printed.out
    files = "rule files: built-in regex-urlfilter.txt, rules/db-ignore-external-exemptions.txt, "
    assert printed.err == f"{files}built-in regex-normalize.xml\n"


@pytest.mark.long
def test_explain_and_generate_agree_on_each_row(table, explained, tmp_path):
    """What generate chooses is what explain says it would."""
    rows = state_of(table)
    found = explained(table, *rows["url"])
    free = {record["row"]["url"] for record in found if not record["generate"]}
    copy = shutil.copytree(table, tmp_path / "table")
    assert nutbeam("generate", copy) == 0
    chosen = explained(copy, *rows["url"])
    assert free == {
        record["row"]["url"]
        for record in chosen
        if "in_batch" in [why["reason"] for why in record["generate"]]
    }
    assert free


@pytest.mark.long
@pytest.mark.bigtable
@pytest.mark.parametrize("tables", ["bigtable"], indirect=True)
def test_a_row_of_a_table_in_bigtable(tables, tmp_path, capsys):
    table = tables(tmp_path / "table")
    with SimWeb(hosts=1, pages=3, seed=7, crawl_delay=0) as web:
        assert crawl(table, web, *web.seeds) == 0
    capsys.readouterr()
    assert nutbeam("explain", table, web.seeds[0]) == 0
    said = capsys.readouterr().out
    assert "row: status db_fetched" in said
    assert "robots.txt: allowed" in said
    assert "verdict: in the table, not chosen now: not_due" in said


@pytest.mark.long
def test_a_link_between_local_files_is_in_the_scope(explained, tmp_path):
    site, table = tmp_path / "site", tmp_path / "table"
    site.mkdir()
    (site / "index.html").write_text("<a href=other.html>other</a>")
    (site / "other.html").write_text("<p>x")
    urls = [f"file://{site}/{name}.html" for name in ("index", "other", "new")]
    words = ("--schemes", "http,file", "--file_roots", site)
    assert nutbeam("crawl", table, urls[0], *words) == 0
    (record,) = explained(table, urls[1], *words)
    assert (record["scope"], record["reason"]) == ("domain", None)
    assert record["row"]["status"] == "db_fetched"
    (record,) = explained(table, urls[2], *words)
    assert record["reason"] is None
    (record,) = explained(table, urls[2], *words, "--source", "http://a.example.com/")
    assert record["reason"] == "file_from_elsewhere"


def test_a_schedule_that_does_not_exist_is_refused(table, capsys):
    capsys.readouterr()
    assert nutbeam("explain", table, f"{SITE}/", "--schedule", "bogus") == 2
    assert "no schedule 'bogus' is installed: there are default, " in capsys.readouterr().err


def test_the_rule_of_a_date_is_shown_in_words(table, capsys):
    capsys.readouterr()
    assert nutbeam("explain", table, f"{SITE}/") == 0
    said = capsys.readouterr().out
    assert "\ndue: interval: 30 days, its interval, after its last fetch\n" in said
    assert "\nnot chosen: not_due: due at " in said
    (table / "hosts.txt").write_text("site.example.com 2592000 86400000\n")
    bad = ("--schedule", "adaptive", "--host_intervals", table / "hosts.txt")
    assert nutbeam("explain", table, f"{SITE}/", *bad) == 2
    assert "hosts.txt:1: expected a host, its shortest" in capsys.readouterr().err
    (table / "hosts.txt").write_text("site.example.com 2592000 0\n")
    assert nutbeam("explain", table, f"{SITE}/", *bad) == 0
    said = capsys.readouterr().out
    assert f"fetch; that is the shortest interval of its host in {table / 'hosts.txt'}\n" in said
