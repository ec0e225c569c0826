"""``nutbeam import_warc`` on each runner: parts of files on workers, and what they find out together."""

import random

import polars as pl
import pytest
from crawling import crawl, manifest_of, nutbeam, rows_of, state_of
from simulated_web import served_web
from warcio.statusandheaders import StatusAndHeaders
from written_archives import Archive, import_, pages_of

from nutbeam.web.exchange.status import FETCH_NOTMODIFIED

web = served_web(hosts=2, pages=4, scope="module")


@pytest.mark.long
@pytest.mark.few(1)
def test_a_crawl_written_to_warc_and_imported_parses_to_the_same(web, tmp_path, out, capsys):
    crawled, archive = tmp_path / "crawled", tmp_path / "archive"
    assert crawl(crawled, web, *web.seeds, "--links") == 0
    assert nutbeam("warc", crawled, archive, "--warc_size", "3000") == 0
    counts = import_(capsys, out, archive)
    for job in ("parse", "updatedb", "invertlinks", "dedup"):
        assert nutbeam(job, out) == 0
    before, after = state_of(crawled), state_of(out)
    fetched = before.filter(pl.col("http_code").is_not_null())
    columns = ["url", "status", "http_code", "signature", "parse_status", "protocol_status",
               "content_type", "etag", "last_modified", "last_fetch_time"]  # fmt: skip
    same = after.filter(pl.col("url").is_in(fetched["url"].implode()))
    assert same.select(columns).rows() == fetched.select(columns).rows()
    assert counts["pages"] == len(fetched)
    assert set(before["url"]) == set(after["url"])
    links = ["key", "source", "anchor", "rel"]
    expected_links, imported_links = (
        rows_of(t, "links").select(links).sort(links).rows() for t in (crawled, out)
    )
    assert imported_links == expected_links != []
    documents = [
        pl.concat(rows_of(t, f"batches/{b}/documents").select("key", "title", "text", "language", "outlinks")
                  for b in manifest_of(t).batches).sort("key").rows()
        for t in (crawled, out)
    ]  # fmt: skip
    assert documents[0] == documents[1]


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("gzipped", [True, False])
def test_revisits_get_their_bodies_from_the_import_or_the_table(tmp_path, out, capsys, gzipped):
    first, second = Archive(), Archive(gzipped)
    profile = "http://netpreserve.org/warc/1.1/revisit/"
    same, unchanged = profile + "identical-payload-digest", profile + "server-not-modified"
    kept = first.add("http://b.com/kept", b"kept body", "2020-01-01T00:00:00Z")
    first.save(tmp_path / "1.warc.gz")
    assert nutbeam("import_warc", out, tmp_path / "1.warc.gz") == 0
    assert nutbeam("parse", out) == nutbeam("updatedb", out) == 0
    digest = second.add("http://a.com/", b"one", "2020-01-01T00:00:00Z")
    second.add("http://a.com/", b"two", "2020-02-01T00:00:00Z")

    def revisit(url, **fields):
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        second.add(url, b"", "2021-01-01T00:00:00Z", "revisit", **fields)

    revisit("http://a.com/", WARC_Profile=same, WARC_Payload_Digest=digest)
    revisit("http://a.com/copy", WARC_Profile=same, WARC_Payload_Digest=digest)
    revisit("http://a.com/named", WARC_Profile=same, WARC_Refers_To_Target_URI="http://a.com/",
            WARC_Refers_To_Date="2020-02-01T00:00:00Z")  # fmt: skip
    revisit("http://b.com/again", WARC_Profile=same, WARC_Payload_Digest=kept,
            WARC_Refers_To_Target_URI="http://b.com/kept", WARC_Refers_To_Date="2020-01-01T00:00:00Z")  # fmt: skip
    second.add(
        "http://b.com/kept",
        b"",
        "2021-01-01T00:00:00Z",
        "revisit",
        "304 Not Modified",
        WARC_Profile=unchanged,
    )
    revisit("http://c.com/", WARC_Profile=same, WARC_Payload_Digest="sha1:" + "A" * 32)
    path = second.save(tmp_path / f"2.warc{'.gz' * gzipped}")
    counts = import_(capsys, out, path)
    batch = max(manifest_of(out).batches, key=lambda name: manifest_of(out).batches[name].created)
    rows = rows_of(out, f"batches/{batch}/pages")
    bodies = {row["key"]: row["body"] for row in rows.iter_rows(named=True)}
    assert bodies == {
        "com.a:http/": b"one", "com.a:http/copy": b"one", "com.a:http/named": b"two",
        "com.b:http/again": b"kept body", "com.b:http/kept": None,
    }  # fmt: skip
    assert set(rows["fetch_time"]) == {1_609_459_200_000}
    wanted = {"revisits/in_archives": 3, "revisits/in_table": 1, "revisits/unchanged": 1,
              "dropped/unresolved_revisit": 1, "dropped/older_capture": 1}  # fmt: skip
    assert {name: counts.get(name) for name in wanted} == wanted
    assert rows.filter(key="com.b:http/kept")["fetch_status"].to_list() == [FETCH_NOTMODIFIED]
    assert (
        nutbeam("parse", out, "--batch", batch) == nutbeam("updatedb", out, "--batch", batch) == 0
    )
    state = state_of(out).filter(url="http://b.com/kept")
    assert state["last_fetch_time"].to_list() == [1_609_459_200_000]
    assert state["signature"].to_list() != [None]


@pytest.mark.few(2)
@pytest.mark.parametrize("first", ["request", "response"])
def test_requests_are_stored_also_if_their_answers_are_in_the_next_part(
    tmp_path, out, capsys, first
):
    archive, dice = Archive(), random.Random(1)
    for number in range(60):
        url = f"http://a.com/{number}"
        head = StatusAndHeaders(
            f"GET /{number} HTTP/1.1", [("X", dice.randbytes(9000).hex())], is_http_request=True
        )
        writer = archive._writer
        if first == "response":
            archive.add(url, dice.randbytes(10_000))
        writer.write_record(writer.create_warc_record(url, "request", http_headers=head))
        if first == "request":
            archive.add(url, dice.randbytes(10_000))
    file = archive.save(tmp_path / "a.warc.gz")
    counts = import_(capsys, out, file, "--part_size", "65536")
    assert (counts["records"], counts["pages"]) == (120, 60)
    assert [
        url
        for url, page in pages_of(out).items()
        if f"GET /{url[13:]} " not in (page["request"] or "")
    ] == []
