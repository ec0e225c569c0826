"""How a crawl ends: its exit code, and one line that says why nothing was fetched and what helps."""

import json
import re

import pytest
from crawling import json_lines, manifests_of, nutbeam
from free_ports import free_port
from waiting import PATIENCE
from web_servers import connect_to, reply, serve

from nutbeam.io.snapshots.manifest import Manifest
from nutbeam.pipelines.base.command import Invocation
from nutbeam.pipelines.checkers.reasons import (
    NOT_FETCHED,
    NOT_FOLLOWED,
    NOT_INJECTED,
    explain_reasons,
)
from nutbeam.pipelines.crawl import Options
from nutbeam.pipelines.views.endings import (
    CrawlStop,
    Work,
    crawl_warnings,
    ending_of,
    unfetched_of,
    work_of,
)
from nutbeam.pipelines.views.next_due import NextUrl
from nutbeam.pipelines.views.reader import read
from nutbeam.pipelines.views.summary import print_summary
from nutbeam.policy.components.reasons import counted_reasons
from nutbeam.web.base import json_logs

OPTIONS = Options()
URL = "http://a.example.com/"
DUE = NextUrl(URL, 86_400_000, 1, "", (("not_due", "due at …"),))
NOW = NextUrl(URL, 0, 0, "", ())
ROBOTS = reply(b"", "404 Not Found")


def test_the_advice_of_each_reason_has_the_values_of_a_crawls_options():
    for counted in (NOT_FETCHED, NOT_INJECTED, NOT_FOLLOWED):
        for name, reason in counted_reasons(*counted).items():
            text = explain_reasons({name: 1}, counted, {name: URL}, OPTIONS)
            assert text.startswith(f"{name} 1 ({URL}: {reason.meaning}")
            assert len(re.findall(r"\d", text)) >= reason.advice.count(" than {"), text


@pytest.mark.parametrize(
    ("url", "reason", "cure"),
    [
        (
            "http://localhost:8000/",
            "address_denied",
            "--allow_addresses 127.0.0.0/8,::1/128 allows",
        ),
        ("http://10.1.2.3/", "address_denied", "--allow_addresses 10.1.2.3/32 allows it"),
        ("http://[fd00::1]/", "address_denied", "--allow_addresses fd00::1/128 allows it"),
        ("http://wiki/", "address_denied", "--allow_addresses CIDR allows it"),
        ("http://a.com:9090/", "port_denied", "--allowed_ports 80,443,8000-8999,9090 allows it"),
        (URL, "robots_denied", "--robots_allowlist a.example.com is for your own hosts"),
        (
            URL,
            "agent_missing",
            "add --agent_name NAME and --agent_url URL or --agent_email ADDRESS",
        ),
        (URL, "tls_name", "--insecure_host a.example.com skips the check"),
        (URL, "timeout", "--timeout allows more than 10 s"),
        (
            URL,
            "http_502",
            "the server failed; the same URL is tried again in a day, or when its server wants it",
        ),
        (
            URL,
            "http_408",
            "the server waited too long; the same URL is tried again in a day, or when its server wants it",
        ),
        (URL, "http_418", "the server refuses it"),
        ("http://a.com:x/", "odd_reason", "(http://a.com:x/)"),
    ],
)
def test_explanations_name_the_option_that_the_url_needs(url, reason, cure):
    assert cure in explain_reasons({reason: 1}, NOT_FETCHED, {reason: url}, OPTIONS)


def test_a_seed_that_is_excluded_names_the_option():
    text = explain_reasons({"excluded": 1}, NOT_INJECTED, {"excluded": URL}, OPTIONS)
    assert (
        text
        == f"excluded 1 ({URL}: a pattern of --exclude is in it; without that pattern it is taken)"
    )


@pytest.mark.parametrize(
    "more", [{}, {"targets": {"own_url": 2}}, {"stayed_due": {"robots_deferred": 1}}]
)
def test_cookies_are_not_advised_where_they_are_on(more):
    work = Work(rounds=2, tried=True, failed={"moved": 2}, **more)
    with_cookies, without_cookies = (
        ending_of(work, Options(http_cookies=on), CrawlStop(), DUE, {}).text for on in (True, False)
    )
    assert "--http_cookies" in without_cookies
    assert "cookies" not in with_cookies


def test_the_most_frequent_reasons_come_first():
    reasons = {"dns": 1, "http_404": 3, "tls": 2, "reset": 1, "timeout": 1}
    text = explain_reasons(reasons, NOT_FETCHED, {}, OPTIONS)
    assert re.match(r"http_404 3 \(.*\), tls 2 \(.*\), dns 1 \(.*\), 2 more reasons$", text)
    del reasons["timeout"]
    assert explain_reasons(reasons, NOT_FETCHED, {}, OPTIONS).endswith(", 1 more reason")


@pytest.mark.parametrize(
    ("work", "waiting", "code", "reason", "text"),
    [
        (Work(rounds=2, tried=True, fetched=1, failed={"dns": 1}), DUE, 0, "done", ""),
        (Work(rounds=1), DUE, 0, "done", ""),  # an open batch, fetched before
        (Work(rounds=1, tried=True, failed={"dns": 2}), DUE, 4, "nothing_fetched",
         ("no page was fetched: dns 2 (no name server knows the host; check its name); the next URL, "
         f"{URL}, is due at 1970-01-02T00:00:00.000Z: --add_days 1 fetches it now")),
        (Work(rounds=1, tried=True, stayed_due={"backoff": 1}), NOW, 4, "nothing_fetched",
         ("no page was fetched: backoff 1 (the host asks for a longer pause than --max_backoff; "
         "--max_backoff waits for more than 120 s)")),
        (Work(rounds=1, tried=True, failed={"moved": 2}, targets={"filtered": 1}), NOW, 4,
         "nothing_fetched", ("no page was fetched: moved 2 (it redirects; a later round fetches the target, "
         "if the rules take it); targets that are left out: filtered 1 (a URL filter refuses it; "
         "`nutbeam filterchecker URL` shows the rule)")),
        (Work(rounds=1, tried=True, failed={"moved": 1}, targets={"out_of_scope": 1}), NOW, 4,
         "nothing_fetched", ("no page was fetched: moved 1 (it redirects); targets that are left out: out_of_scope 1 (it is on another site than "
         "the seeds; give it as a seed, or --scope any)")),
        (Work(rounds=2, tried=True, failed={"temp_moved": 2}), DUE, 4, "nothing_fetched",
         ("no page was fetched: temp_moved 2 (it redirects; its target redirects, too; --http_cookies sends "
         f"back the cookies that some sites want); the next URL, {URL}, is due at "
         "1970-01-02T00:00:00.000Z: --add_days 1 fetches it now")),
        (Work(rounds=2, tried=True, failed={"http_404": 1, "moved": 1}), DUE, 4, "nothing_fetched",
         ("no page was fetched: http_404 1 (there is no such page; check the URL), moved 1 (it redirects; its "
         f"target has no page, either); the next URL, {URL}, is due at "
         "1970-01-02T00:00:00.000Z: --add_days 1 fetches it now")),
        (Work(refused={"malformed": 2}), None, 4, "seeds_refused", ("every seed was refused: "
         "malformed 2 (it is no URL, or its host is one that no resolver accepts; a URL begins with "
         "http:// or https://)")),
        (Work(refused={"malformed": 2}, seeds=1), DUE, 1, "nothing_due", ("nothing is due; the next "
         f"URL, {URL}, is due at 1970-01-02T00:00:00.000Z: --add_days 1 fetches it now")),
        (Work(others=2), DUE, 1, "nothing_due", ("nothing is due; the next "
         f"URL, {URL}, is due at 1970-01-02T00:00:00.000Z: --add_days 1 fetches it now; "
         "another run has fetched 2 pages meanwhile")),
        (Work(rounds=1, others=1), NOW, 0, "done", "another run has fetched 1 page meanwhile"),
        (Work(rounds=1, tried=True, fetched=3, others=1), NOW, 0, "done", ""),
        (Work(), None, 1, "nothing_due", "the table has no URL: give seeds"),
        (Work(), NextUrl(URL, 0, 0, "", (("backoff", "its host is left alone until …"),)), 1,
         "nothing_due",
         f"no URL can be fetched now: {URL}: backoff: its host is left alone until …"),
        (Work(unchosen={"due": 2, "left_out/host_blocked": 2}), DUE, 1, "none_chosen",
         ("2 URLs are due, and none was chosen: 2 host_blocked (a setting of its host blocks it; "
         f"hostinject with blocked=false allows it); the next URL, {URL}, is due at 1970-01-02T00:00:00.000Z: --add_days 1 fetches it now")),
    ],
)  # fmt: skip
def test_endings(work, waiting, code, reason, text):
    found = ending_of(work, OPTIONS, CrawlStop(), waiting, {})
    assert (found.code, found.reason, found.text) == (code, reason, text)


def test_stopped_and_no_rounds():
    assert ending_of(Work(), OPTIONS, CrawlStop("t/.STOP"), DUE, {}).text == (
        "stopped by t/.STOP: remove it to go on"
    )
    found = ending_of(Work(seeds=1), Options(rounds=0), CrawlStop(), NOW, {})
    assert (found.code, found.reason) == (1, "no_rounds")
    assert "--rounds is 0" in found.text


def test_a_crawl_whose_time_is_over_says_how_to_go_on():
    work, options = Work(rounds=1, tried=True, fetched=3), Options(time_limit=90.0)
    found = ending_of(work, options, CrawlStop(time_up=True), NOW, {})
    assert (found.code, found.reason) == (0, "time_limit")
    assert found.text == (
        "--time_limit, 90 s, is over: what was fetched is kept, and the same command goes on"
    )
    # Then nothing is left to do.
    assert ending_of(work, options, CrawlStop(time_up=True), None, {}).reason == "done"


def test_a_crawl_reports_urls_that_are_left_for_the_next_one():
    work = Work(rounds=3, tried=True, fetched=9)
    assert unfetched_of(1, work, OPTIONS, NOW) == (
        "1 URL is not fetched yet after --rounds 3: the same command goes on"
    )
    assert unfetched_of(2, work, OPTIONS, NOW).startswith("2 URLs are not fetched yet")
    assert unfetched_of(2, work, Options(rounds=-1), NOW) == (
        "2 URLs are not fetched yet: the same command goes on"
    )
    assert unfetched_of(0, work, OPTIONS, NOW).startswith("URLs are due after --rounds 3")
    assert unfetched_of(2, work, OPTIONS, DUE) == unfetched_of(0, Work(), OPTIONS, NOW) == ""


def test_the_work_of_each_job_is_counted_for_itself():
    made = [
        Manifest(job="inject", counts={"lines": 3, "dropped/filtered": 2, "injected": 1}),
        Manifest(job="generate", counts={"chosen": 4}),
        Manifest(job="fetch", counts={
            "pages": 4, "requests": 3, "protocol/success": 1, "protocol/notmodified": 1,
            "protocol/robots_denied": 1, "protocol/temp_moved": 1, "not_fetched/robots_denied": 1,
            "dropped/filtered": 7, "dropped/time_limit": 5}),
        Manifest(job="update", counts={"dropped/redirect_filtered": 1, "dropped/filtered": 9}),
        Manifest(job="dedup", counts={}),
        Manifest(job="index", counts={"refused": 1}),
    ]  # fmt: skip
    assert work_of(made) == Work(
        rounds=1, seeds=1, refused={"filtered": 2}, tried=True, requests=3, fetched=2,
        failed={"robots_denied": 1, "temp_moved": 1}, stayed_due={"time_limit": 5},
        targets={"filtered": 1}, index={"refused": 1},
    )  # fmt: skip


def test_warnings_name_number_and_option():
    work = Work(stayed_due={"time_limit": 1})
    counts = {"dropped/max_outlinks": 1, "truncated/content_limit": 2_000,
              "truncated/document_limit": 1}  # fmt: skip
    options = Options(content_limit=9_000_000, time_limit=60.0)
    assert [warning["message"] for warning in crawl_warnings(work, counts, options)] == [
        "1 link was left out of pages with more than 10,000 links (--max_outlinks)",
        "2,000 pages were cut at 9,000,000 bytes, and not parsed (--content_limit)",
        "1 document was cut at 9,000,000 bytes, and not parsed (--document_limit)",
        (
            "1 URL stayed due: time_limit (the fetch had no time left; --time_limit allows more than "
            "60 s)"
        ),
    ]
    found = crawl_warnings(Work(), counts, Options(skip_truncated=False, max_outlinks=5))
    assert [(w["count"], w.get("option")) for w in found] == [
        (1, "--max_outlinks"), (2_000, "--content_limit"), (1, "--document_limit"),
    ]  # fmt: skip
    assert "more than 5 links" in found[0]["message"]
    assert "not parsed" not in found[1]["message"]
    assert crawl_warnings(Work(), {}, OPTIONS) == []


def test_a_warning_names_a_crawl_delay_that_is_no_time():
    text = "a crawl delay that is no time, so it is not obeyed"
    for number, odd, message in (
        (
            1,
            ("http://a.example", "soon"),
            f"1 host has {text}: 'soon' in http://a.example/robots.txt",
        ),
        (2_000, ("", ""), f"2,000 hosts have {text}"),
    ):
        (found,) = crawl_warnings(Work(), {"odd_crawl_delay": number}, OPTIONS, odd)
        assert found == {"count": number, "reason": "odd_crawl_delay", "message": message}


def test_a_warning_counts_documents_that_index_writers_refused():
    def refused(**counts):
        return [(w["count"], w["message"]) for w in crawl_warnings(Work(index=counts), {}, OPTIONS)]

    ((number, line),) = refused(indexed=1, refused=2)
    assert (number, line.startswith("the index writer refused 2 documents: ")) == (2, True)
    assert line.endswith("mend the cause, then run index --retry_refused with the same writer")
    ((_, line),) = refused(**{"indexed": 1, "a/added": 1, "b/refused": 2})
    assert line.startswith("index writer 'b' refused all 2 documents: ")
    assert refused(indexed=1) == []


@pytest.mark.parametrize(("code", "lines"), [(4, ["cut", "why"]), (0, ["cut"])])
def test_a_log_for_scripts_has_the_warnings(monkeypatch, caplog, capsys, code, lines):
    monkeypatch.setattr(json_logs, "is_installed", lambda: True)
    caplog.set_level("INFO", logger="nutbeam")
    record = {"warnings": [{"message": "cut"}], "message": "why", "exit_code": code}
    record |= {"ending": "done", "rounds": 1}
    print_summary(Invocation("crawl", {}, OPTIONS, [], "json"), record)
    *warned, last = caplog.records
    assert [(r.levelname, r.message) for r in warned] == [("WARNING", t) for t in lines]
    assert (last.levelname, last.message) == ("INFO", "crawl ends: done")
    fields = last.nutbeam_fields
    assert (fields["event"], fields["exit_code"], fields["rounds"]) == ("end", code, 1)
    assert json.loads(capsys.readouterr().out) == record


# Whole crawls.


def crawled(capsys, *words, code):
    """Crawls; returns the record of the summary."""
    capsys.readouterr()
    assert nutbeam("crawl", *words, "--format", "json", "--server_delay", "0") == code
    record = json.loads(capsys.readouterr().out)
    assert record["exit_code"] == code
    return record


@pytest.mark.long
def test_a_refusal_of_localhost_names_the_option_and_nothing_is_due_then(tmp_path, capsys):
    table, agent = tmp_path / "table", ("--agent_name", "bot", "--agent_email", "a@example.com")
    seed = "http://localhost:8000/"
    assert nutbeam("inject", table, seed) == 0
    record = crawled(capsys, table, *agent, code=4)
    assert (record["ending"], record["requests"], record["rounds"]) == ("nothing_fetched", 0, 1)
    assert record["message"].startswith(
        f"no page was fetched: address_denied 1 ({seed}: the address is private or special; "
        "--allow_addresses 127.0.0.0/8,::1/128 allows it); it is due at "
    )
    # The option alone does not help: the URL is not due.
    allowed = ("--allow_addresses", "127.0.0.0/8,::1/128")
    record = crawled(capsys, table, *allowed, code=1)
    assert record["message"].startswith(
        f"nothing is due; the next URL, {seed} (its last try failed: address_denied), is due at "
    )
    assert record["message"].endswith("--add_days 1 fetches it now")
    assert record["next"]["url"] == seed
    # The cures work.
    port = free_port()
    mapping = ("--connect_to", f"localhost:8000:127.0.0.1:{port}", "--timeout", PATIENCE)
    with serve(lambda path, _: ROBOTS if "robots" in path else page(), port=port):
        assert (
            crawled(capsys, table, *mapping, "--add_days", 1, "--rounds", 1, code=0)["fetched"] == 1
        )
    # Times are those of the table: the page is due in thirty days.
    capsys.readouterr()
    assert nutbeam("crawl", table, *mapping) == 1
    *_, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        rf"nothing is due; the next URL, {seed}, is due at \S+Z: --add_days 30 fetches it now", last
    )


def page(*links):
    body = "".join(f"<a href='{link}'>x</a>" for link in links).encode()
    return reply(body, "200 OK", "Content-Type: text/html")


ANSWERS = {
    "/": page("/gone", "/denied/1", "/denied/2"),
    "/robots.txt": reply(b"User-agent: *\nDisallow: /denied\n"),
    "/gone": reply(b"", "404 Not Found"),
    "/away": reply(b"", "302 Found", "Location: http://example.org/"),
    "/links": page("/gone", *(f"/{number}.html" for number in range(5))),
    "/long": reply(b"x" * 3_000, "200 OK", "Content-Type: text/plain"),
    "/pdf": reply(b"%PDF-1.5" + b"x" * 5_000, "200 OK", "Content-Type: application/pdf"),
}


@pytest.fixture(scope="module")
def site():
    with serve(lambda path, _: ANSWERS.get(path, ANSWERS["/gone"])) as server:
        yield [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]


@pytest.mark.long
def test_robots_denied_is_no_request(site, tmp_path, capsys):
    record = crawled(capsys, tmp_path / "a", "http://a.example.com/denied/1", *site, code=4)
    assert (record["requests"], record["fetched"]) == (0, 0)
    assert "robots_denied 1 (http://a.example.com/denied/1: robots.txt" in record["message"]
    record = crawled(capsys, tmp_path / "b", "http://a.example.com/", *site, code=0)
    assert (record["requests"], record["fetched"]) == (2, 1)
    assert record["not_fetched"] == {"robots_denied": 2, "http_404": 1}
    assert record["message"] == ""  # all is done
    fetches = [m.counts for m in manifests_of(tmp_path / "b") if m.job == "fetch"]
    assert [counts.get("requests") for counts in fetches] == [1, 1]


@pytest.mark.long
def test_a_crawl_that_fetched_pages_in_an_earlier_round_is_done(site, tmp_path, capsys):
    record = crawled(capsys, tmp_path / "a", "http://a.example.com/", "--rounds", 1, *site, code=0)
    assert (
        record["message"] == "3 URLs are not fetched yet after --rounds 1: the same command goes on"
    )
    assert crawled(capsys, tmp_path / "a", *site, code=4)["ending"] == "nothing_fetched"


@pytest.mark.long
def test_a_redirect_out_of_scope_says_so(site, tmp_path, capsys):
    record = crawled(capsys, tmp_path / "a", "http://a.example.com/away", *site, code=4)
    assert "temp_moved 1 (http://a.example.com/away: it redirects" in record["message"]
    assert "targets that are left out: out_of_scope 1 (it is on another site" in record["message"]


def test_refused_seeds(site, tmp_path, capsys):
    seed = "http://a.example.com/a.jpg"
    record = crawled(capsys, tmp_path / "a", seed, *site, code=4)
    assert (record["rounds"], record["ending"]) == (0, "seeds_refused")
    assert record["message"] == (
        f"every seed was refused: filtered 1 ({seed}: a URL filter refuses it; "
        f"`nutbeam filterchecker {seed}` shows the rule)"
    )
    (tmp_path / "seeds.txt").write_text(f"{seed}\nno URL\n")
    record = crawled(capsys, tmp_path / "b", tmp_path / "seeds.txt", *site, code=4)
    assert record["message"].startswith("every seed was refused: filtered 1 (a URL filter")
    assert ", malformed 1 (it is no URL, " in record["message"]


@pytest.mark.long
def test_nothing_is_cut_off_in_silence(site, tmp_path, capsys):
    seeds = [f"http://a.example.com/{name}" for name in ("links", "long", "pdf")]
    words = ("--max_outlinks", 2, "--content_limit", 2_000, "--document_limit", 4_000)
    record = crawled(capsys, tmp_path / "a", *seeds, *words, "--rounds", 1, *site, code=0)
    assert {w["reason"]: w["count"] for w in record["warnings"]} == {
        "dropped/max_outlinks": 4, "truncated/content_limit": 1, "truncated/document_limit": 1,
    }  # fmt: skip
    # People see them above the last lines, and numbers agree with their nouns.
    capsys.readouterr()
    assert nutbeam("crawl", tmp_path / "b", seeds[1], *words, "--rounds", 1, *site) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "warning: 1 page was cut at 2,000 bytes, and not parsed (--content_limit)",
        f"1 request in 1 round, 1 page fetched; the table is in {tmp_path / 'b'}",
    ]
    # They are pages all the same, without text.
    assert nutbeam("pages", tmp_path / "b", "--columns", "url,parse_message,text") == 0
    (page,) = json_lines(capsys.readouterr().out)
    assert page == {"url": seeds[1], "parse_message": "truncated: length", "text": None}
    frame = read(tmp_path / "a", "pages", columns=["url", "parse_status"])
    assert dict(frame.rows())[seeds[1]] == "notparsed"
