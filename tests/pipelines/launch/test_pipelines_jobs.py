"""Each job by hand makes the table that a crawl makes; what readdb and pages say is in it."""

import csv
import json

import duckdb
import polars as pl
import pytest
from crawling import (
    asked,
    assert_same,
    assert_whole,
    contents,
    crawl,
    files_of,
    json_lines,
    manifest_of,
    manifests_of,
    nutbeam,
    place_in,
    reach,
    state_of,
    statuses_of,
    tree,
)
from simulated_web import SimWeb, served_web

from nutbeam.policy.components.schema import STATUS_NAMES

HOSTS = 4


web = served_web(hosts=HOSTS, pages=5, seed=5, scope="module")  # 4 rounds


@pytest.fixture(scope="module")
def table(web, tables, tmp_path_factory):
    """A table with a whole crawl; tests only read it."""
    folder = tables(tmp_path_factory.mktemp("jobs") / "table")
    assert crawl(folder, web, *web.seeds) == 0
    return folder


@pytest.fixture
def say(capsys):
    """Runs a command that must succeed, and returns what it says on standard output."""

    def run(*words, code=0):
        capsys.readouterr()
        assert nutbeam(*words) == code
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


def by_hand(folder, web, say):
    """Does what ``crawl`` does, job by job; yields what each says."""
    yield json.loads(say("inject", folder, *web.seeds, "--format", "json"))
    while True:
        generated = json.loads(say_any(say, "generate", folder, "--format", "json"))
        yield generated
        if "batch" not in generated:
            return
        for job in ("fetch", "parse", "updatedb"):
            options = reach(web) if job == "fetch" else []
            yield json.loads(say(job, folder, *options, "--format", "json"))
        yield json.loads(say("dedup", folder, "--batch", generated["batch"], "--format", "json"))


def say_any(say, *words):
    """As ``say``, for a command that may find nothing to do."""
    try:
        return say(*words)
    except AssertionError:
        return say(*words, code=1)


@pytest.mark.long
def test_each_job_by_hand_gives_the_table_of_a_crawl(web, table, tables, tmp_path, say):
    folder = tables(tmp_path / "table")
    before = len(asked(web))
    said = list(by_hand(folder, web, say))
    rounds = sum("batch" in record and record["job"] == "generate" for record in said)
    assert [r["job"] for r in said] == [
        "inject", *["generate", "fetch", "parse", "update", "dedup"] * rounds, "generate",
    ]  # fmt: skip
    assert_same(contents(folder), contents(table))
    assert_whole(folder, web.site)
    wanted = [url for url, kind in web.site.reachable().items() if kind != "denied"]
    assert sorted(asked(web)[before:]) == sorted(wanted)
    # Each says what it did; the sums are those of the table.
    total = {}
    for record in said:
        for name, number in record["counts"].items():
            total[name] = total.get(name, 0) + number
    found = statuses_of(folder)
    assert total["injected"] == 1
    assert total["chosen"] == total["pages"] == len(found)
    assert total["added"] == len(found)
    assert total["parsed"] == len(web.site.urls("page"))
    assert total["duplicates"] == list(found.values()).count("db_duplicate")
    # The phases of a batch are the marks of Nutch 2.
    phases = [r["phase"] for r in said if "phase" in r]
    assert phases == ["generated", "fetched", "parsed", "updated", "updated"] * rounds


@pytest.mark.long
def test_next_does_each_job_in_its_turn(web, table, tables, tmp_path, say):
    folder = tables(tmp_path / "table")
    say("inject", folder, *web.seeds)
    done = []
    while True:
        words = ("next", folder, *reach(web), "--format", "json")
        record = json.loads(say_any(say, *words))
        done.append(record["job"])
        if record["job"] == "generate" and "batch" not in record:
            break
    rounds = (len(done) - 1) // 5
    assert done == ["generate", "fetch", "parse", "update", "dedup"] * rounds + ["generate"]
    assert_same(contents(folder), contents(table))
    # Asked again, as cron does, it leaves no trace.
    files = tree(folder)
    assert nutbeam("next", folder, *reach(web)) == 1
    assert tree(folder) == files


def test_next_needs_an_agent_only_for_fetch(tables, tmp_path, say, capsys):
    folder = tables(tmp_path / "table")
    say("inject", folder, "http://www.example.com/")
    say("next", folder)  # generate
    assert nutbeam("next", folder) == 2
    assert "--agent_name" in capsys.readouterr().err


@pytest.mark.long
def test_the_same_operation_again_changes_nothing(web, tables, tmp_path, say):
    folder = tables(tmp_path / "table")
    with SimWeb(hosts=1, pages=2, seed=3, crawl_delay=0) as small:
        for job in ("inject", "generate", "fetch", "parse", "updatedb", "dedup"):
            words = [job, folder, "--operation", f"my-{job}", "--format", "json"]
            words += small.seeds if job == "inject" else reach(small) if job == "fetch" else []
            first = say(*words)
            files, requests = tree(folder, ignore=()), len(small.requests())
            assert say(*words) == first
            assert tree(folder, ignore=()) == files
            assert len(small.requests()) == requests
    assert len(manifests_of(folder)) == 6


def test_one_id_is_one_operation(tables, tmp_path, say, capsys):
    folder = tables(tmp_path / "table")
    say("inject", folder, "http://www.example.com/")
    say("generate", folder, "--operation", "x")
    (batch,) = manifest_of(folder).batches
    say("dedup", folder, "--operation", "x")  # another job: another id
    assert nutbeam("dedup", folder, "--operation", "x", "--batch", batch) == 3
    assert "choose another id" in capsys.readouterr().err


@pytest.mark.long
def test_a_job_that_has_nothing_to_do_is_exit_1(table, capsys):
    files = tree(table)
    for job in ("fetch", "parse", "updatedb"):
        options = ["--agent_name", "a", "--agent_email", "a@example.com"]
        assert nutbeam(job, table, *(options if job == "fetch" else [])) == 1
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert "nothing to" in captured.err
    assert tree(table) == files


@pytest.mark.long
def test_dedup_without_a_batch_compares_everything(web, tables, tmp_path, say):
    folder = tables(tmp_path / "table")
    copies = [url for urls in web.site.duplicates() for url in urls]
    say("inject", folder, *copies)
    say("generate", folder)
    say("fetch", folder, *reach(web))
    say("parse", folder)
    say("updatedb", folder)
    assert {statuses_of(folder)[url] for url in copies} == {"db_fetched"}
    say("dedup", folder)
    found = statuses_of(folder)
    for urls in web.site.duplicates():
        assert sorted(found[url] for url in urls) == ["db_duplicate", "db_fetched"]
    # Equal scores and times of a second: the shorter URL stays, as said.
    say("dedup", folder)
    assert statuses_of(folder) == found


def test_readdb_stats(table, say):
    found = list(statuses_of(table).values())
    record = json.loads(say("readdb", table, "--stats", "--format", "json"))
    assert record["total_urls"] == len(found)
    assert record["status"] == {name: found.count(name) for name in record["status"]}
    assert set(record["status"]) == set(found)
    assert {batch["phase"] for batch in record["batches"].values()} == {"updated"}
    assert sum(batch["urls"] for batch in record["batches"].values()) == len(found)
    assert record["snapshot"] == manifest_of(table).snapshot
    score = state_of(table)["score"]
    assert record["score"]["min"] == score.min()
    assert record["score"]["max"] == score.max()
    assert record["score"]["avg"] == pytest.approx(score.cast(pl.Float64).mean())
    median = score.quantile(0.5, "lower")
    assert record["score"]["quantiles"]["0.5"] == pytest.approx(median, rel=0.01)


def test_readdb_stats_for_people_and_without_options(table, say):
    lines = say("readdb", table, "--stats").splitlines()
    assert lines[0] == f"TOTAL urls: {len(state_of(table))}"
    fetched = list(statuses_of(table).values()).count("db_fetched")
    assert f"status 2 (db_fetched): {fetched}" in lines
    assert say("readdb", table).splitlines() == lines


def test_readdb_url(web, table, say):
    (seed,) = web.seeds
    record = json.loads(say("readdb", table, "--url", seed, "--format", "json"))
    row = state_of(table).filter(pl.col("url") == seed).row(0, named=True)
    assert record["url"] == seed
    assert record["status"] == "db_fetched"
    assert record["score"] == row["score"]
    assert record["signature"] == row["signature"].hex()
    assert record["fetch_time"].endswith("Z")
    # It is normalized as seeds are.
    other = "HTTP://H0.example.com:80/x/../#top"
    assert json.loads(say("readdb", table, "--url", other, "--format", "json")) == record
    text = say("readdb", table, seed)
    assert text == say("readdb", table, "--url", seed)
    for line in ("status: db_fetched (2)", "protocol_status: success (1)", "parse_minor: ok (0)",
                 "fetch_interval: 2592000 s"):  # fmt: skip
        assert f" {line}\n" in text


def test_readdb_url_that_is_not_there_is_exit_1(table, say):
    url = "http://h0.example.com/not-there"
    assert say("readdb", table, "--url", url, code=1) == f"{url}: not found\n"
    assert say("readdb", table, "--url", url, "--format", "json", code=1) == "null\n"


@pytest.mark.few(1)
def test_readdb_top(table, say):
    rows = state_of(table).sort("score", "key", descending=[True, False])
    best = json_lines(say("readdb", table, "--top", "7", "--format", "json"))
    assert [row["score"] for row in best] == rows["score"].head(7).to_list()
    assert [row["url"] for row in best] == rows["url"].head(7).to_list()
    least = float(rows["score"][3])
    words = ("readdb", table, "--top", "7", "--min_score", repr(least))
    lines = say(*words).splitlines()
    assert [line.split("\t")[1] for line in lines] == [
        row["url"] for row in best if row["score"] >= least
    ]


@pytest.mark.long
def test_readdb_dump(table, say, tmp_path):
    rows = state_of(table)
    assert say("readdb", table, "--dump", tmp_path / "dump.jsonl") == ""
    assert say("readdb", table, "--dump", tmp_path / "dump.csv") == ""
    text = (tmp_path / "dump.jsonl").read_text()
    records = json_lines(text)
    assert [r["url"] for r in records] == rows["url"].to_list()
    assert [r["status"] for r in records] == [STATUS_NAMES[s] for s in rows["status"]]
    assert say("readdb", table, "--dump", "-") == text
    with (tmp_path / "dump.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line.keys() for line in lines] == [r.keys() for r in records]
    assert [line["url"] for line in lines] == rows["url"].to_list()
    assert [float(line["score"]) for line in lines] == rows["score"].to_list()
    assert [line["signature"] or None for line in lines] == [r["signature"] for r in records]


@pytest.mark.long
def test_readdb_dump_of_some(table, say):
    found = statuses_of(table)
    words = ("readdb", table, "--dump", "-")
    gone = json_lines(say(*words, "--status", "db_gone"))
    assert {r["url"] for r in gone} == {u for u, s in found.items() if s == "db_gone"}
    assert json_lines(say(*words, "--status", "gone")) == gone
    fetched = json_lines(say(*words, "--status", "fetched"))
    names = ("db_fetched", "db_notmodified")
    assert {r["url"] for r in fetched} == {u for u, s in found.items() if s in names}
    h1 = json_lines(say(*words, "--regex", r"http://h1\..*"))
    assert {r["url"] for r in h1} == {u for u in found if u.startswith("http://h1.")}
    assert say(*words, "--regex", "h1") == ""  # as a whole
    assert say(*words, "--retry", "1") == ""


@pytest.mark.long
def test_a_spreadsheet_takes_nothing_for_a_formula(tables, tmp_path, say):
    folder, out = tables(tmp_path / "table"), tmp_path / "dump.csv"
    evil = ["=1+2", "+1", "-1", "@SUM(A1)", 'say "no", twice']
    with SimWeb(hosts=1, pages=1) as server:
        # Metadata of seeds is the one text that is whatever somebody wrote.
        line = "\t".join([server.seeds[0], *(f"k{at}={text}" for at, text in enumerate(evil))])
        (tmp_path / "seeds.txt").write_text(f"{line}\n")
        say("inject", folder, tmp_path / "seeds.txt")
    say("readdb", folder, "--dump", out)
    with out.open(newline="") as file:
        (record,) = csv.DictReader(file)
    assert list(json.loads(record["metadata"]).values()) == evil
    assert not any(value[:1] in "=+-@" for value in record.values() if value)


ALL_PAGES = ("--status", "fetched,duplicate")


def check_pages(web, rows):
    """Asserts that PAGE records, as dicts, are the pages of the web, with duplicates."""
    pages = web.site.urls("page")
    assert sorted(row["url"] for row in rows) == sorted(pages)
    for row in rows:
        assert row["status"] in ("db_fetched", "db_duplicate")
        assert row["http_code"] == 200
        # Of a page that says noindex, only the links are taken.
        assert bool(row["text"]) == (row["url"] not in web.site.noindex())
        assert bool(row["title"]) == bool(row["text"])
        assert row["last_fetch_time"]
    linked = {link["url"] for row in rows for link in row["links"]}
    seen = set(web.site.reachable()) - set(web.seeds)
    behind = {url for url in seen if url not in linked}  # what only redirects lead to
    assert linked <= seen | set(web.seeds)
    assert len(behind) < len(linked)


@pytest.mark.long
def test_pages_as_json_lines(web, table, say, tmp_path):
    out = tmp_path / "pages.jsonl"
    number = len(web.site.urls("page"))
    assert say("pages", table, "-o", out, *ALL_PAGES) == f"{number} pages in {out}\n"
    text = out.read_text()
    check_pages(web, json_lines(text))
    assert say("pages", table, *ALL_PAGES) == text


def test_pages_leaves_duplicates_out(web, table, say):
    pages, found = web.site.urls("page"), statuses_of(table)
    copies = {url for url in pages if found[url] == "db_duplicate"}
    assert copies
    urls = [row["url"] for row in json_lines(say("pages", table))]
    assert sorted(urls) == sorted(pages - copies)


@pytest.mark.few(1)
def test_pages_as_parquet(web, table, say, tmp_path):
    out = tmp_path / "pages.parquet"
    say("pages", table, "-o", out, *ALL_PAGES)
    frame = pl.read_parquet(out)
    check_pages(web, frame.to_dicts())
    assert frame.schema["last_fetch_time"] == pl.Datetime("ms", "UTC")
    found = duckdb.sql(
        f"select url, title, len(links) as links, last_fetch_time from '{out}' order by url"
    ).fetchall()
    ours = frame.sort("url").select("url", "title", pl.col("links").list.len())
    assert [row[:3] for row in found] == ours.rows()
    assert len(tree(place_in(table, "exports"), ignore=())) == 0  # parts do not stay


@pytest.mark.files
def test_duckdb_and_polars_read_the_state_as_it_lies(web, table):
    # The guide's query: of several rows of a key the newest run's counts.
    listed = table / manifest_of(table).components["state"].list
    live = duckdb.read_parquet(str(listed)).project(
        f"'{table}/' || path AS filename, CASE WHEN base IS NULL THEN 0 ELSE \"order\" END AS age"
    )
    paths = [path for path, _ in live.fetchall()]
    rows = duckdb.read_parquet(paths, union_by_name=True, filename=True)
    state = duckdb.sql("""
        SELECT * FROM rows JOIN live USING (filename)
        QUALIFY row_number() OVER (PARTITION BY key ORDER BY age DESC) = 1
    """)
    assert len(rows) >= len(state)  # and so they are used
    found = duckdb.sql("SELECT key, status, score, fetch_time, signature FROM state ORDER BY key")
    assert len(state) == len(web.site.reachable())
    wanted = state_of(table).select("key", "status", "score", "fetch_time", "signature").rows()
    assert found.fetchall() == wanted
    by_host = duckdb.sql(
        "select split_part(key, ':', 1) as host, status, count(*) from state group by all"
    ).fetchall()
    assert sum(row[2] for row in by_host) == len(wanted)
    assert {row[0] for row in by_host} == {f"com.example.h{n}" for n in range(HOSTS)}


def test_duckdb_joins_pages_and_documents_of_a_batch(table):
    batches = [name.split("/")[1] for name in manifest_of(table).components if "/pages" in name]
    pages = [str(p) for b in batches for p in files_of(table, f"batches/{b}/pages")]
    documents = [str(p) for b in batches for p in files_of(table, f"batches/{b}/documents")]
    rows = duckdb.execute(
        "select p.key, octet_length(p.body), d.title, len(d.outlinks) from read_parquet(?) p "
        "join read_parquet(?) d using (key) where d.parse_status = 1", [pages, documents],
    ).fetchall()  # fmt: skip
    assert len(rows) == state_of(table).filter(pl.col("status").is_in([2, 7])).height
    assert all(size for _, size, _, _ in rows)
