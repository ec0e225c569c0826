"""``nutbeam import_warc``: archives of our own and of others become batches, as if they had been fetched."""

import gzip
import json
import re

import polars as pl
import pytest
from crawling import manifest_of, nutbeam, reach, state_of
from simulated_web import served_web
from stores_here import in_stores
from warcio.statusandheaders import StatusAndHeaders
from written_archives import HTML, Archive, import_, pages_of

from nutbeam.io.storage.place_addresses import place_of
from nutbeam.policy.components.schema import ParseStatus
from nutbeam.web.exchange.status import FETCH_GONE, FETCH_REDIR_PERM

web = served_web(hosts=3, pages=6, scope="module")


def test_the_newest_capture_counts_and_answers_become_pages_of_a_fetch(tmp_path, out, capsys):
    one, two = Archive(), Archive(gzipped=False)
    one.add("http://a.com/", b"new", "2021-01-01T00:00:00Z")
    one.add("http://a.com/gone", b"no", status="404 Not Found")
    one.add("http://a.com/moved", status="301 Moved", headers=[("Location", "/new")])
    one.add("HTTP://A.com:80/x/../coded#part", gzip.compress(b"coded"),
            headers=[*HTML, ("Content-Encoding", "gzip")])  # fmt: skip
    one.add("http://a.com/undone", b"plain", headers=[*HTML, ("Content-Encoding", "br"),
            ("Transfer-Encoding", "chunked"), ("Content-Length", "9")])  # fmt: skip
    one.add("http://a.com/h2", b"two", protocol="HTTP/2", status="200")
    one.add("http://a.com/robots.txt", b"User-agent: *")
    one.add("http://a.com/file", b"resource", kind="resource", status="")
    one.add("dns:a.com", b"a.com. IN A 1.2.3.4", kind="resource", status="")
    two.add("http://a.com/", b"old", "2020-01-01T00:00:00Z")
    two.add(
        "http://a.com/chunks",
        b"3\r\nabc\r\n0\r\n\r\n",
        headers=[*HTML, ("Transfer-Encoding", "chunked")],
    )
    two.add("http://a.com/a", b"text", kind="conversion", status="")
    files = one.save(tmp_path / "1.warc.gz"), two.save(tmp_path / "2.warc")
    counts = import_(capsys, out, *files)
    pages = pages_of(out)
    assert {url: page["body"] for url, page in pages.items()} == {
        "http://a.com/": b"new", "http://a.com/gone": None, "http://a.com/moved": b"<p>",
        "http://a.com/coded": b"coded", "http://a.com/undone": b"plain", "http://a.com/h2": b"two",
        "http://a.com/file": b"resource", "http://a.com/chunks": b"abc",
    }  # fmt: skip
    assert pages["http://a.com/gone"]["fetch_status"] == FETCH_GONE
    assert pages["http://a.com/moved"]["fetch_status"] == FETCH_REDIR_PERM
    assert pages["http://a.com/moved"]["redirect"] == "http://a.com/new"
    assert pages["http://a.com/"]["fetch_time"] == 1_609_459_200_000
    wanted = {"records": 12, "pages": 8, "dropped/older_capture": 1, "skipped/robots": 1,
              "skipped/dns": 1, "skipped/conversion": 1}  # fmt: skip
    assert {name: counts.get(name) for name in wanted} == wanted
    assert nutbeam("parse", out) == nutbeam("updatedb", out) == 0
    state = state_of(out)
    assert state.filter(url="http://a.com/")["last_fetch_time"].to_list() == [1_609_459_200_000]
    assert state.filter(url="http://a.com/h2")["parse_status"].to_list() == [ParseStatus.SUCCESS]


def test_a_newer_page_that_nobody_has_the_body_of_does_not_replace_an_older_one(
    tmp_path, out, capsys
):
    archive = Archive()
    archive.add("http://a.com/", b"old", "2020-01-01T00:00:00Z")
    archive.add("http://a.com/", b"", "2021-01-01T00:00:00Z", "revisit",
                WARC_Payload_Digest="sha1:" + "A" * 32)  # fmt: skip
    import_(capsys, out, archive.save(tmp_path / "a.warc.gz"))
    assert pages_of(out)["http://a.com/"]["body"] == b"old"


@pytest.mark.folder_first
def test_only_the_records_of_an_index_are_read(tmp_path, out, capsys):
    archive, offsets = Archive(), []
    for number in range(30):
        offsets.append(archive.file.tell())
        archive.add(f"http://a.com/{number}", b"<p>%d" % number)
    (tmp_path / "crawl").mkdir()
    archive.save(tmp_path / "crawl" / "a.warc.gz")
    ends = [*offsets[1:], archive.file.tell()]
    rows = [
        {
            "filename": "crawl/a.warc.gz",
            "offset": str(offsets[n]),
            "length": str(ends[n] - offsets[n]),
        }
        for n in (3, 17)
    ]
    rows.append({"filename": "../a.warc.gz", "offset": "0", "length": "9"})
    rows.append({"filename": "crawl/a.warc.gz", "offset": "5", "length": "9"})
    lines = [f"com,a)/{n} 20200102030405 {json.dumps(row)}\n" for n, row in enumerate(rows)]
    (tmp_path / "a.cdxj").write_text("".join(lines))
    counts = import_(capsys, out, tmp_path, "--index", tmp_path / "a.cdxj")
    assert sorted(pages_of(out)) == ["http://a.com/17", "http://a.com/3"]
    assert counts["damaged/not_at_offset"] == counts["damaged/bad_index_line"] == 1
    columns = {"warc_filename": ["crawl/a.warc.gz"], "warc_record_offset": [offsets[5]],
               "warc_record_length": [ends[5] - offsets[5]]}  # fmt: skip
    pl.DataFrame(columns).write_parquet(tmp_path / "i.parquet")
    table = tmp_path / "table"
    import_(capsys, table, tmp_path, "--index", tmp_path / "i.parquet")
    assert list(pages_of(table)) == ["http://a.com/5"]


@pytest.mark.folder_first
def test_plain_cdx_is_an_index_too(tmp_path, out, capsys):
    archive, offsets = Archive(), []
    for number in range(5):
        offsets.append(archive.file.tell())
        archive.add(f"http://a.com/{number}", b"<p>%d" % number)
    archive.save(tmp_path / "a.warc.gz")
    start = "com,a)/ 20200102030405 http://a.com/ text/html 200 AAAA -"
    lines = [
        " CDX N b a m s k r V g",
        f"{start} {offsets[1]} a.warc.gz",
        f"{start} {offsets[1]} ../a.warc.gz",
        f"{start} - a.warc.gz",
    ]
    (tmp_path / "9.cdx.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert (
        import_(capsys, out, tmp_path, "--index", tmp_path / "9.cdx.gz")["damaged/bad_index_line"]
        == 2
    )
    assert list(pages_of(out)) == ["http://a.com/1"]
    table, size = tmp_path / "table", offsets[3] - offsets[2]
    (tmp_path / "11.cdx").write_text(f"{start} - {size} {offsets[2]} a.warc.gz\n")
    import_(capsys, table, tmp_path, "--index", tmp_path / "11.cdx")
    assert list(pages_of(table)) == ["http://a.com/2"]


def test_damage_and_limits_are_counted_and_the_rest_is_imported(tmp_path, out, capsys):
    archive, offsets = Archive(), []
    for number in range(9):
        offsets.append(archive.file.tell())
        archive.add(f"http://a.com/{number}", b"x" * 1000)
    data = bytearray(archive.file.getvalue())
    data[offsets[4] + 60] ^= 0xFF
    (tmp_path / "a.warc.gz").write_bytes(bytes(data[:-5]))
    counts = import_(capsys, out, tmp_path / "a.warc.gz", "--content_limit", "100", "--exclude", "/2$",
                     "--filter_urls", "--part_size", "65536")  # fmt: skip
    pages = pages_of(out)
    assert sorted(pages) == [f"http://a.com/{n}" for n in (0, 1, 3, 5, 6, 7)]
    assert {(page["body"], page["truncated"]) for page in pages.values()} == {
        (b"x" * 100, "length")
    }
    wanted = {"damaged/broken_compression": 1, "damaged/truncated_file": 1, "dropped/excluded": 1,
              "truncated/content_limit": 6}  # fmt: skip
    assert {name: counts.get(name) for name in wanted} == wanted


def test_a_capture_from_the_future_is_not_the_newest(tmp_path, out, capsys):
    archive = Archive()
    archive.add("http://a.com/", b"right", "2021-01-01T00:00:00Z")
    archive.add("http://a.com/", b"wrong", "2100-01-01T00:00:00Z")
    counts = import_(capsys, out, archive.save(tmp_path / "a.warc.gz"))
    assert (counts["pages"], counts["skipped/future_date"]) == (1, 1)
    assert pages_of(out)["http://a.com/"]["body"] == b"right"


def test_answers_that_broke_off_are_marked_and_counted(tmp_path, out, capsys):
    archive = Archive()
    archive.add(
        "http://a.com/chunks", b"3\r\n<p>\r\n", headers=[*HTML, ("Transfer-Encoding", "chunked")]
    )
    archive.add("http://a.com/short", b"<p>", headers=[*HTML, ("Content-Length", "9000")])
    archive.add("http://a.com/whole", b"<html></html>", headers=[*HTML, ("Content-Length", "9000")])
    counts = import_(capsys, out, archive.save(tmp_path / "a.warc.gz"))
    assert {url[13:]: page["truncated"] for url, page in pages_of(out).items()} == {
        "chunks": "disconnect", "short": "disconnect", "whole": "frame",
    }  # fmt: skip
    assert counts["truncated/incomplete"] == 2


def test_files_with_damage_at_their_beginning_or_wrong_lengths_are_imported(tmp_path, out, capsys):
    archive = Archive()
    for number in range(9):
        archive.add(f"http://a.com/{number}", b"<p>%d" % number)
    (tmp_path / "a.warc.gz").write_bytes(b"\xff" + archive.file.getvalue()[1:])
    whole, first = Archive(gzipped=False), b"a page" + b" of words" * 99
    whole.add("http://b.com/", first)
    short = len(whole.file.getvalue())
    whole.add("http://b.com/long")
    whole.add("http://b.com/last")
    data = whole.file.getvalue()
    long = data.index(b"Content-Length: ", short) + len(b"Content-Length: ")
    data = data[:long] + b"9" + data[long:]
    at = data.index(b"Content-Length: ") + len(b"Content-Length: ")
    data = data[:at] + b"100" + data[at + 3 :]
    data = re.sub(rb"WARC-(Block|Payload)-Digest: [^\r]+\r\n", b"", data)
    (tmp_path / "b.warc.gz").write_bytes(gzip.compress(data))
    counts = import_(capsys, out, tmp_path)
    pages = pages_of(out)
    assert sorted(pages) == [f"http://a.com/{n}" for n in range(1, 9)] + [
        "http://b.com/", "http://b.com/last"
    ]  # fmt: skip
    cut = pages["http://b.com/"]
    assert (cut["truncated"], first.startswith(cut["body"])) == ("disconnect", True)
    wanted = {
        "damaged/broken_compression": 1,
        "damaged/wrong_length": 1,
        "damaged/doubtful_record": 1,
        "truncated/incomplete": 1,
    }
    assert {name: counts.get(name) for name in wanted} == wanted


def test_with_store_wire_the_answers_are_kept_as_they_came(tmp_path, out, capsys):
    archive, packed = Archive(), gzip.compress(b"coded", mtime=0)
    archive.add("http://a.com/", packed, headers=[*HTML, ("Content-Encoding", "gzip")])
    archive.save(tmp_path / "a.warc.gz")
    import_(capsys, out, tmp_path / "a.warc.gz", "--store_wire")
    page = pages_of(out)["http://a.com/"]
    assert (page["body"], page["wire"]) == (b"coded", packed)


def test_requests_are_stored_with_their_answers_before_or_after_them(tmp_path, out, capsys):
    archive = Archive()
    for number, first in enumerate(("request", "response")):
        url, head = f"http://a.com/{number}", {"WARC-Record-ID": f"<urn:uuid:{number}>"}
        for kind in sorted(("request", "response"), reverse=first == "response"):
            if kind == "response":
                archive.add(url, **head)
            else:
                http = StatusAndHeaders(
                    f"GET /{number} HTTP/1.1", [("Host", "a.com")], is_http_request=True
                )
                record = archive._writer.create_warc_record(
                    url, "request", http_headers=http,
                    warc_headers_dict={"WARC-Concurrent-To": f"<urn:uuid:{number}>"},
                )  # fmt: skip
                archive._writer.write_record(record)
    import_(capsys, out, archive.save(tmp_path / "a.warc.gz"))
    assert [page["request"] for page in pages_of(out).values()] == [
        f"GET /{number} HTTP/1.1\r\nHost: a.com\r\n\r\n" for number in (0, 1)
    ]


def test_a_file_that_is_named_twice_is_read_once(tmp_path, out, capsys):
    archive = Archive()
    archive.add("http://a.com/")
    file = archive.save(tmp_path / "a.warc.gz")
    counts = import_(capsys, out, file, tmp_path, f"{tmp_path}/./a.warc.gz")
    assert (counts["records"], counts["pages"]) == (1, 1)


@pytest.mark.folder_first
def test_the_same_operation_again_changes_nothing(tmp_path, out):
    archive = Archive()
    archive.add("http://a.com/")
    words = ("import_warc", out, archive.save(tmp_path / "a.warc.gz"), "--operation", "mine")
    assert nutbeam(*words) == nutbeam(*words) == 0
    assert len(manifest_of(out).batches) == 1


@pytest.mark.folder_first
def test_a_purged_url_does_not_come_back(tmp_path, out, capsys):
    archive = Archive()
    archive.add("http://a.com/")
    archive.add("http://b.com/")
    file = archive.save(tmp_path / "a.warc.gz")
    assert nutbeam("inject", out, "http://b.com/") == nutbeam("purge", out, "--host", "b.com") == 0
    assert import_(capsys, out, file)["dropped/purged"] == 1
    assert list(pages_of(out)) == ["http://a.com/"]


def test_an_archive_whose_urls_are_all_dropped_leaves_counts(tmp_path, out, capsys):
    archive = Archive()
    archive.add("http://a.com/logo.gif")
    file = archive.save(tmp_path / "a.warc.gz")
    assert nutbeam("import_warc", out, file, "--filter_urls") == 1  # nothing has changed
    assert "dropped/filtered 1, records 1" in capsys.readouterr().out


def test_a_file_that_is_no_archive_is_refused_before_anything_is_written(tmp_path, refuse):
    (tmp_path / "a.arc").write_bytes(b"filedesc://a.arc 0.0.0.0 20080101000000 text/plain 69\n")
    (tmp_path / "a.html").write_bytes(b"<html>")
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.cdxj").write_text("nothing\n")
    (tmp_path / "b.warc.gz").write_bytes(b"<html>")
    for words, message in (
        (["b.warc.gz"], "b.warc.gz' is no WARC file, it begins with b'<html>'"), (["a.arc"], "is an ARC file"), (["a.html"], "is no WARC file"), (["gone.warc"], "cannot read"),
        (["empty"], "no file in"), (["empty", "--index", "a.cdxj"], "names no record"),
    ):  # fmt: skip
        words = [str(tmp_path / word) if "." in word or word == "empty" else word for word in words]
        code = 3 if message == "cannot read" else 2
        assert message in refuse("import_warc", tmp_path / "table", *words, code=code)
    assert not (tmp_path / "table").exists()


@pytest.mark.few(1)
@in_stores
def test_archives_in_a_store_are_read_by_ranges(address, capsys):
    archive = Archive()
    for number in range(20):
        archive.add(f"http://a.com/{number}", b"<p>%d" % number)
    folder = place_of(address).parent / "archive"
    archive.save(folder / "a.warc.gz")
    assert import_(capsys, address, folder)["pages"] == 20


@pytest.mark.long
@pytest.mark.folder_first
def test_the_import_of_a_crawl_again_is_crawled_on(web, tmp_path, out):
    crawled, archive = tmp_path / "crawled", tmp_path / "archive"
    assert nutbeam("crawl", crawled, *web.seeds, "--rounds", "1", *reach(web)) == 0
    assert nutbeam("warc", crawled, archive) == nutbeam("import_warc", out, archive) == 0
    assert nutbeam("crawl", out, "--rounds", "2", *reach(web)) == 0
    assert state_of(out)["last_fetch_time"].drop_nulls().len() > len(web.seeds)
