"""import_nutch takes over a crawl of Nutch: rows, links, hosts and batches are what they were."""

import json

import polars as pl
import pytest
from command_output import printed
from crawling import manifest_of, nutbeam, rows_of, state_of
from nutch_crawls import DAY_MS, NOW, datum, page

from nutbeam import read as nutbeam_read
from nutbeam.io.batches.batches import batch_component
from nutbeam.policy.components.schema import STATUS_NAMES

FETCHED = NOW - 10 * DAY_MS
DUE = FETCHED + 30 * DAY_MS
HOME, LINKED, GONE, MOVED = "http://a.com/", "http://a.com/b", "http://c.org/gone", "http://a.com/r"
SUCCESS = {"_pst_": "success(1), lastModified=0", "nutch.protocol.code": 200, "_rs_": 120}


def fill(crawl):
    """Writes a crawl with one segment that was applied, and one whose URLs are not fetched yet."""
    crawl.crawldb(
        datum(HOME, 2, DUE, signature=b"s" * 16, metadata=SUCCESS),
        datum(LINKED, 1, NOW - 5, score=0.5),
        datum(GONE, 3, FETCHED + 45 * DAY_MS, interval=45 * 86_400),
        datum(MOVED, 4, DUE),
    )
    crawl.linkdb({LINKED: [(HOME, "to b"), ("http://x.org/", "B!")]})
    crawl.hostdb(a__com={"score": 2.0, "last_check": NOW, "homepage": HOME, "dns_failures": 1})
    crawl.segment(
        "20261022000000",
        listed=[datum(HOME, 1, FETCHED - 1), datum(GONE), datum(MOVED)],
        fetched=[
            datum(HOME, 33, FETCHED, metadata=SUCCESS),
            datum(GONE, 37, FETCHED, metadata={"_pst_": f"notfound(14), lastModified=0: {GONE}"}),
            datum(
                MOVED, 35, FETCHED, metadata={"_pst_": f"temp_moved(13), lastModified=0: {LINKED}"}
            ),
            datum("http://a.com/target", 67, FETCHED),
        ],
        contents={
            HOME: page(
                b"<title>A</title><p>some text <a href=c>to c</a>", {"ETag": '"e"', "Server": "x"}
            ),
            MOVED: page(b"moved", {"Location": LINKED}),
        },
        parsed=True,
    )
    crawl.segment("20261101000000", listed=[datum(LINKED, 1, NOW)])
    return crawl.folder


def test_each_status_and_each_value_stays(crawl, table, capsys):
    rows = [
        datum(
            f"http://s{code}.com/", code, NOW + code, retries=code % 3, interval=1000 * code,
            score=code / 2, modified_time=code, signature=bytes([code]) * 16,
            metadata={"userType": f"a {code}"},
        )
        for code in STATUS_NAMES
    ]  # fmt: skip
    folder = crawl.crawldb(*rows)
    assert nutbeam("import_nutch", table, folder) == 0
    state = state_of(table).sort("status")
    assert state["status"].to_list() == list(STATUS_NAMES)
    for row, given in zip(state.to_dicts(), rows, strict=True):
        for name in ("url", "fetch_time", "retries", "score", "modified_time", "signature"):
            assert row[name] == given[name], name
        assert row["fetch_interval"] == given["interval"]
        assert dict(row["metadata"]) == {"userType": f"a {given['status']}"}
        tried = given["status"] > 1 or given["retries"]
        wait = given["interval"] * 1000 if given["status"] > 1 else DAY_MS
        assert row["last_fetch_time"] == (given["fetch_time"] - wait if tried else None)
    assert nutbeam("fsck", table) == 0


def test_metadata_with_a_column_here_gets_there(crawl, table):
    metadata = {
        "_pst_": "moved(12), lastModified=0: http://b.com/", "_repr_": "http://r.com/", "_rs_": 7,
        "nutch.protocol.code": "301", "Content-Type": "text/html; charset=x", "fixedInterval": "600.0",
        "_depth_": 3, "_maxdepth_": 9, "_orphan_": 86_400 * 20_000 + 5, "_ngt_": NOW, "mine": "x=y",
    }  # fmt: skip
    assert nutbeam("import_nutch", table, crawl.crawldb(datum(HOME, 5, metadata=metadata))) == 0
    row = state_of(table).row(0, named=True)
    expected = {
        "protocol_status": 12, "protocol_message": "http://b.com/", "repr_url": "http://r.com/",
        "response_ms": 7, "http_code": 301, "content_type": "text/html; charset=x",
        "fixed_interval": 600, "distance": 2, "max_depth": 9, "last_inlink_day": 20_000,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert dict(row["metadata"]) == {"mine": "x=y"}


@pytest.mark.long
def test_a_whole_crawl_comes_over_and_applied_segments_are_not_applied_again(
    crawl, backend, out, capsys
):
    record = json.loads(printed(capsys, "import_nutch", out, fill(crawl), "--format", "json"))
    assert record["counts"]["segments"] == 2
    batches = manifest_of(out).batches
    first, second = sorted(batches)
    assert record["segments"] == {"20261022000000": first, "20261101000000": second}
    assert [(batches[name].segment, batches[name].phase) for name in (first, second)] == [
        ("20261022000000", "updated"),
        ("20261101000000", "generated"),
    ]
    pages = rows_of(out, batch_component(first, "pages")).sort("key")
    assert pages["key"].to_list() == ["com.a:http/", "com.a:http/r", "org.c:http/gone"]
    assert pages["fetch_status"].to_list() == [33, 35, 37]
    assert pages["fetch_time"].to_list() == 3 * [FETCHED]
    assert pages["redirect"].to_list() == [None, LINKED, None]
    assert pages["etag"].to_list() == ['"e"', None, None]
    assert [header["name"] for header in pages["headers"][0]] == ["Content-Type", "ETag", "Server"]
    assert pages["body"][0].startswith(b"<title>A")
    home = state_of(out).filter(url=HOME).row(0, named=True)
    assert (home["batch_id"], home["etag"], home["signature"]) == (first, '"e"', b"s" * 16)
    before = state_of(out).drop("document", "parse_status", "signature")
    assert nutbeam("updatedb", out) == 1  # nothing waits for it
    assert nutbeam("parse", out, "--reparse", "--batch", first) == 0
    assert nutbeam("updatedb", out) == 1
    assert state_of(out).drop("document", "parse_status", "signature").equals(before)
    assert nutbeam("fsck", out) == 0


def test_imported_bodies_are_parsed_inverted_and_indexed(crawl, table, tmp_path, capsys):
    assert nutbeam("import_nutch", table, fill(crawl)) == 0
    first = min(manifest_of(table).batches)
    assert nutbeam("parse", table, "--reparse", "--batch", first, "--signature", "md5") == 0
    assert nutbeam("invertlinks", table) == 0
    assert " fromUrl: http://a.com/ anchor: to c\n" in printed(
        capsys, "readlinkdb", table, f"{HOME}c"
    )
    assert " fromUrl: http://x.org/ anchor: B!\n" in printed(capsys, "readlinkdb", table, LINKED)
    record = nutbeam_read(table, "pages").select("url", "title", "text").row(0)
    assert record == (HOME, "A", "some text to c")
    assert nutbeam("index", table, "--writer", "tantivy") == 0
    assert HOME in printed(capsys, "search", table, "some text")


def test_a_segment_that_was_not_applied_waits_for_updatedb(crawl, table):
    crawl.crawldb(datum(HOME, 1, FETCHED - 1000))
    crawl.segment(
        "20261022000000",
        fetched=[datum(HOME, 33, FETCHED, metadata=SUCCESS)],
        contents={HOME: page(b"<a href=/b>b</a>")},
        parsed=True,
    )
    assert nutbeam("import_nutch", table, crawl.folder) == 0
    (batch,) = manifest_of(table).batches.values()
    assert batch.phase == "fetched"
    assert state_of(table)["page"].to_list() == [None]
    assert nutbeam("parse", table) == 0
    assert nutbeam("updatedb", table, "--scope", "any") == 0
    state = state_of(table)
    assert state["url"].to_list() == [HOME, LINKED]
    assert state["status"].to_list() == [2, 1]
    assert state["last_fetch_time"].to_list() == [FETCHED, None]


def test_hosts_get_scores_and_lookups_of_a_hostdb(crawl, table):
    assert nutbeam("import_nutch", table, fill(crawl)) == 0
    host = rows_of(table, "hosts").filter(key="com.a").row(0, named=True)
    assert (host["score"], host["dns_failures"], host["dns_time"]) == (2.0, 1, NOW)
    assert host["homepage"] == "com.a:http/"


def test_the_newer_row_wins_over_one_of_the_table_and_the_same_import_twice_changes_nothing(
    crawl, out, capsys
):
    assert nutbeam("inject", out, HOME, LINKED, "http://own.com/") == 0
    folder = crawl.crawldb(datum(HOME, 2, DUE), datum(LINKED, 1, NOW - 90 * DAY_MS, score=7.0))
    assert nutbeam("import_nutch", out, folder) == 0
    state = state_of(out)
    assert dict(state.select("url", "status").iter_rows()) == {
        HOME: 2, LINKED: 1, "http://own.com/": 1,
    }  # fmt: skip
    # Both were never fetched: the one that is due later counts.
    assert state.filter(url=LINKED)["score"].to_list() == [1.0]
    assert state.filter(url=HOME)["distance"].to_list() == [0]
    assert printed(capsys, "import_nutch", out, folder).endswith("nothing changed\n")


def test_urls_that_a_table_cannot_have_are_counted_and_spellings_of_one_key_become_one(
    crawl, table, capsys
):
    folder = crawl.crawldb(
        datum("http://A.com/x", 1, NOW, score=1.0), datum("http://a.com/x", 2, DUE, score=2.0),
        datum("gopher://a.com/", 1), datum("no url", 1), datum("http://l.com/", 67),
    )  # fmt: skip
    line = printed(capsys, "import_nutch", table, folder)
    for count in ("dropped/scheme_not_allowed 1", "dropped/malformed 1", "dropped/bad_status 1"):
        assert count in line
    assert state_of(table).select("url", "score").rows() == [("http://a.com/x", 2.0)]


def test_generate_after_an_import_chooses_the_urls_of_nutchs_rules(crawl, table, tmp_path):
    most_s = 7_776_000
    import random

    chance = random.Random(5)
    rows = []
    from nutbeam.web.base.clock import now_ms

    now = now_ms()
    for number in range(300):
        far = chance.random() < 0.1
        rows.append(
            datum(
                f"http://h{number % 7}.com/{number}", 1 + number % 9,
                now + (most_s * 1000 + 3_600_000 if far else chance.randrange(-DAY_MS, DAY_MS)),
                score=round(chance.random() * 4 - 0.3, 3), retries=number % 2,
            )
        )  # fmt: skip
    assert nutbeam("import_nutch", table, crawl.crawldb(*rows)) == 0
    assert nutbeam("generate", table, "--top_n", "40", "--max_count", "9") == 0
    # Nutch: due, or due later than the longest interval allows; no negative score; the best first.
    eligible = [
        row
        for row in rows
        if (row["fetch_time"] <= now or row["fetch_time"] - now > most_s * 1000)
        and row["score"] >= 0
    ]
    chosen, by_host = [], {}
    for row in sorted(eligible, key=lambda row: -row["score"]):
        host = row["url"].split("/")[2]
        by_host[host] = by_host.get(host, 0) + 1
        if by_host[host] <= 9 and len(chosen) < 40:
            chosen.append((row["url"], row["score"]))
    (batch,) = manifest_of(table).batches
    listed = rows_of(table, batch_component(batch, "fetchlist")).sort("score", descending=True)
    from nutbeam.web.urls.row_keys import from_key

    found = [
        (from_key(key), round(score, 3)) for key, score in listed.select("key", "score").rows()
    ]
    assert sorted(found) == sorted(chosen)
    assert [score for _, score in found] == [score for _, score in chosen]


def test_parts_that_workers_share_have_each_record_once(crawl, table, capsys):
    count = 3_000
    crawl.crawldb(*(datum(f"http://h.com/{number:05d}") for number in range(count)))
    urls = [f"http://h.com/{number:05d}" for number in range(400)]
    crawl.segment(
        "20261022000000",
        fetched=[
            datum(url, 33 if n % 3 else 37, FETCHED, metadata=SUCCESS) for n, url in enumerate(urls)
        ],
        contents={url: page(url.encode() * 50) for n, url in enumerate(urls) if n % 3},
    )
    line = printed(capsys, "import_nutch", table, crawl.folder, "--part_size", "65536")
    assert f"crawldb/records {count:,}" in line
    assert state_of(table).height == count
    (batch,) = manifest_of(table).batches
    pages = rows_of(table, batch_component(batch, "pages"))
    assert pages["key"].n_unique() == pages.height == 400
    assert pages.filter(pl.col("body").is_not_null()).height == len(
        [n for n in range(400) if n % 3]
    )
    assert nutbeam("fsck", table) == 0
