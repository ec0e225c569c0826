"""``nutbeam warc`` after real crawls: what is in the files, again and after kills, and what is refused."""

import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

import duckdb
import pytest
from command_output import printed
from crawling import nutbeam
from simulated_web import SimWeb
from stores_here import in_stores
from waiting import wait_until
from warcio.archiveiterator import ArchiveIterator
from warcio.cli import main as warcio
from web_servers import reply, serve

from nutbeam.io.storage.files import names, read_bytes
from nutbeam.io.storage.place_addresses import place_of

PAGES = {
    "/": b"".join(
        b"<a href=%s>x</a>" % path for path in (b"/coded", b"/same", b"/gone", b"/moved")
    ),
    "/coded": b"<title>Coded</title>" + b"pear " * 99,
    "/same": b"<title>Same</title>",
    "/copy": b"<title>Same</title>",
    "/robots.txt": b"User-agent: *\nAllow: /\n",
}
HOST = "http://site.example.com"


@pytest.fixture(scope="module")
def site():
    def answer(path, connection):
        if path == "/moved":
            return reply(b"moved", "301 Moved", "Location: /copy", "Content-Type: text/html")
        if path not in PAGES:
            return reply(b"not here", "404 Not Found")
        if "If-None-Match" in server.current.head:
            return reply(b"", "304 Not Modified", 'ETag: "e"')
        coded, body = path == "/coded", PAGES[path]
        more = ["Content-Encoding: gzip"] if coded else []
        more += ['ETag: "e"'] if path == "/" else []
        return reply(
            gzip.compress(body) if coded else body, "200 OK", "Content-Type: text/html", *more
        )

    with serve(answer) as server:
        yield server


def crawl(table, site, *words, rounds=3):
    reach = ["--connect_to", f"*.example.com:80:127.0.0.1:{site.port}", "--server_delay", "0"]
    return nutbeam("crawl", table, f"{HOST}/", "--rounds", rounds, *reach, *words)


@pytest.fixture(scope="module")
def crawled(site, tmp_path_factory):
    """A table whose pages were fetched; no test changes it."""
    table = tmp_path_factory.mktemp("crawled") / "table"
    assert crawl(table, site) == 0
    return table


@pytest.fixture
def table(crawled, tmp_path):
    """A copy of that table."""
    return shutil.copytree(crawled, tmp_path / "table")


def files_of(folder, ending="*.warc.gz"):
    return sorted(Path(folder).glob(ending))


def records_of(folder, ending="*.warc.gz"):
    """Returns (type, URL, WARC headers, HTTP head, content) of each record that is no warcinfo."""
    found = []
    for path in files_of(folder, ending):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                fields, url = record.rec_headers, record.rec_headers["WARC-Target-URI"]
                if record.rec_type != "warcinfo":
                    found.append(
                        (
                            record.rec_type,
                            url,
                            fields,
                            record.http_headers,
                            record.raw_stream.read(),
                        )
                    )
    return found


def check(folder):
    """Asserts that warcio finds all digests right and that no record is there twice."""
    with pytest.raises(SystemExit) as end:
        warcio(["check", *map(str, files_of(folder))])
    assert end.value.code == 0
    ids = [fields["WARC-Record-ID"] for _, _, fields, _, _ in records_of(folder)]
    assert len(ids) == len(set(ids))


def test_a_crawl_becomes_files_that_warcio_accepts(table, site, tmp_path, capsys):
    out = printed(capsys, "warc", table, tmp_path / "archive", "--format", "json")
    done, records = json.loads(out), records_of(tmp_path / "archive")
    assert done["files"] == [path.name for path in files_of(tmp_path / "archive")]
    check(tmp_path / "archive")
    kinds = Counter(kind for kind, *_ in records)
    assert kinds == {"request": 6, "response": 5, "revisit": 1, "resource": 1}
    assert {name: number for name, number in done["counts"].items() if name in kinds} | {
        "resource": 1
    } == kinds
    answers = {
        url: (head, content) for kind, url, _, head, content in records if kind == "response"
    }
    head, content = answers[f"{HOST}/coded"]
    assert content == PAGES["/coded"]
    assert head["X-Crawl-Content-Encoding"] == "gzip"
    assert head["Content-Length"] == str(len(content))
    assert answers[f"{HOST}/moved"][0]["Location"] == "/copy"
    robots = [record for record in records if record[0] == "resource"]
    assert [(url, content) for _, url, _, _, content in robots] == [
        (f"{HOST}/robots.txt", PAGES["/robots.txt"])
    ]
    (revisit,) = (record for record in records if record[0] == "revisit")
    assert {revisit[1], revisit[2]["WARC-Refers-To-Target-URI"]} == {f"{HOST}/same", f"{HOST}/copy"}


@pytest.mark.long
@pytest.mark.parametrize("revisits", ["true", "false"])
@pytest.mark.few(1)
def test_a_second_run_adds_new_batches_and_a_304_names_the_response_before(
    table, site, tmp_path, capsys, revisits
):
    archive, words = tmp_path / "archive", ["--warc_revisits", revisits]
    assert nutbeam("warc", table, archive, *words) == 0
    before = {path: path.read_bytes() for path in files_of(archive)}
    assert "nothing to write" in printed(capsys, "warc", table, archive, *words, code=1)
    assert crawl(table, site, "--add_days", "40", rounds=1) == 0
    assert nutbeam("warc", table, archive, *words) == 0
    assert {path: path.read_bytes() for path in before} == before
    check(archive)
    (unchanged,) = (
        record for record in records_of(archive)
        if record[0] == "revisit" and record[3].get_statuscode() == "304"
    )  # fmt: skip
    named = unchanged[2]["WARC-Refers-To"]
    (original,) = (r for r in records_of(archive) if r[2]["WARC-Record-ID"] == named)
    assert (original[0], original[1], original[4]) == ("response", f"{HOST}/", PAGES["/"])
    # Written in one run, both are the same records.
    assert nutbeam("warc", table, tmp_path / "other", *words) == 0
    assert {r[2]["WARC-Record-ID"] for r in records_of(tmp_path / "other")} == {
        r[2]["WARC-Record-ID"] for r in records_of(archive)
    }


@pytest.mark.long
def test_options_choose_pages_records_and_form(table, tmp_path):
    archive = tmp_path / "archive"
    words = ["--only_successful_responses", "--expr", "not url.endswith('/same')", "--warc_robots", "false",
             "--warc_requests", "false", "--include_parse_text", "--include_parse_data", "--warc_dns",
             "--warc_version", "1.0", "--warc_prefix", "mine", "--warc_operator", "Ada"]  # fmt: skip
    assert nutbeam("warc", table, archive, *words) == 0
    check(archive)
    records = records_of(archive)
    assert {url for kind, url, *_ in records if kind == "response"} == {
        f"{HOST}/{path}" for path in ("", "coded", "copy")
    }
    assert {fields.protocol for _, _, fields, _, _ in records} == {"WARC/1.0"}
    kinds = Counter(kind for kind, *_ in records)
    assert "request" not in kinds
    assert kinds["metadata"] == 3
    texts = {url: content for kind, url, *_, content in records if kind == "conversion"}
    assert texts[f"{HOST}/coded"] == b" ".join([b"pear"] * 99)
    assert b"site.example.com. IN A 127.0.0.1\n" in [
        content.partition(b"\n")[2] for _, url, _, _, content in records if url.startswith("dns:")
    ]
    lines = [
        line for path in files_of(archive, "indexes/*") for line in path.read_text().splitlines()
    ]
    assert any(line.startswith("dns:site.example.com ") for line in lines)
    assert all(path.name.startswith("mine-") for path in files_of(archive))
    assert b"operator: Ada\r\n" in gzip.decompress(files_of(archive)[0].read_bytes())


@pytest.mark.long
def test_files_end_at_a_size_and_zstd_has_the_same_records(table, tmp_path):
    import zstandard

    small, packed = tmp_path / "small", tmp_path / "packed"
    assert nutbeam("warc", table, small, "--warc_size", "1500") == 0
    check(small)
    names = [path.name for path in files_of(small)]
    assert len(names) > 3
    assert len({name.split("-")[2] for name in names}) > 1  # serials
    assert all(path.stat().st_size <= 1500 for path in files_of(small))
    assert nutbeam("warc", table, packed, "--warc_compression", "zstd") == 0
    text = b"".join(
        zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True).read()
        for path in files_of(packed, "*.warc.zst")
    )
    ids = [line for line in text.split(b"\r\n") if line.startswith(b"WARC-Record-ID")]
    assert len(ids) == len(set(ids)) == len(records_of(small)) + len(files_of(packed, "*.warc.zst"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch", "17-a"], "--batch '17-a' has no pages: there is no such batch"),
        (["--expr", "scor > 1"], "--expr: unknown name 'scor'"),
        (["--warc_prefix", "a/b"], "a/b"),
        (["--warc_prefix", ".."], "'..'"),
        (["--warc_indexes", "cdx"], "'cdx'"),
        (["--wacz", "--warc_compression", "zstd"], "wacz needs warc_compression gzip, got 'zstd'"),
        (["--warc_indexes", "columnar", "--warc_size", "3000000000"], "3000000000"),
        (["--warc_version", "2"], "'2'"),
        (["--warc_size", "10"], "10"),
    ],
)
def test_a_wrong_option_is_quoted_before_anything_is_written(
    table, tmp_path, capsys, words, message
):
    assert nutbeam("warc", table, tmp_path / "archive", *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "archive").exists()


@pytest.mark.long
def test_an_archive_is_not_mixed_and_not_in_the_table(table, tmp_path, capsys):
    assert nutbeam("warc", table, tmp_path / "archive") == 0
    assert nutbeam("warc", table, tmp_path / "archive", "--warc_version", "1.0") == 2
    assert "--warc_version '1.1', not '1.0'" in capsys.readouterr().err
    (tmp_path / "link").symlink_to(table)
    for place in (table / "archive", tmp_path / "link" / "archive"):
        assert nutbeam("warc", table, place) == 2
        assert "must be outside of the table" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert nutbeam("warc", table, tmp_path / "file" / "archive") != 0
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert str(tmp_path / "file") in line


def test_a_crawl_compares_the_options_of_its_archive_before_it_fetches(
    table, site, tmp_path, capsys
):
    archive = tmp_path / "archive"
    first = min(path.name for path in (table / "batches").iterdir())
    assert nutbeam("warc", table, archive, "--batch", first) == 0
    requests = len(site.requests)
    words = ["--add_days", "40", "--warc", archive, "--warc_version", "1.0"]
    assert crawl(table, site, *words, rounds=1) == 2
    assert "--warc_version '1.1', not '1.0'" in capsys.readouterr().err
    # So does the command, for batches that are not in the archive yet.
    assert nutbeam("warc", table, archive, "--include_parse_text") == 2
    assert "--include_parse_text False, not True" in capsys.readouterr().err
    assert len(site.requests) == requests


def test_a_lost_receipt_makes_a_part_again_and_no_record_twice(table, tmp_path):
    archive = tmp_path / "archive"
    assert nutbeam("warc", table, archive, "--warc_size", "1500") == 0
    before = {path.name: path.read_bytes() for path in files_of(archive)}
    receipts = sorted((archive / ".nutbeam").glob("*.receipt.json"))
    (first, *_) = json.loads(receipts[0].read_bytes())["files"]
    # An attempt that found fewer revisits may have filled one more file; a kill leaves half a file.
    extra = archive / first["name"].replace("-00000-", "-00900-")
    receipts[0].unlink()
    for mark in (archive / ".nutbeam").glob("*.complete"):
        mark.unlink()
    extra.write_bytes(before[first["name"]])
    (archive / f".{first['name']}.0123456789abcdef").write_bytes(b"half")
    assert nutbeam("warc", table, archive, "--warc_size", "1500") == 0
    assert not extra.exists()
    assert {path.name: path.read_bytes() for path in files_of(archive)} == before
    assert not list(archive.glob(".nutbeam-*"))
    check(archive)


@pytest.mark.long
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.long)])
def test_kills_while_writing_leave_no_broken_and_no_double_record(tmp_path, kills):
    table, archive, dice = tmp_path / "table", tmp_path / "archive", random.Random(1)
    with SimWeb(hosts=3, pages=kills, seed=7, crawl_delay=0) as web:
        reach = [word for each in web.connect_to for word in ("--connect_to", each)]
        words = ["--rounds", "3", "--server_delay", "0", "--flush_seconds", "0.05", *reach]
        assert nutbeam("crawl", table, *web.seeds, *words) == 0
    more = ["--warc_indexes", "cdxj,columnar,host", "--warc_wet", "--warc_wat", "--wacz"]
    size = ["--warc_size", "5000", *more, "--progress", "false"]
    command = [sys.executable, "-P", "-m", "nutbeam", "warc", str(table), str(archive), *size]
    for _ in range(kills):
        goal = len(files_of(archive)) + dice.randint(1, 2)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        wait_until(lambda goal=goal: len(files_of(archive)) >= goal, process)
        with contextlib.suppress(ProcessLookupError):  # it has come to its end
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert nutbeam("warc", table, archive, *size[:-2]) in (0, 1)
    check(archive)
    assert nutbeam("warc", table, tmp_path / "whole", *size[:-2]) == 0
    ids = [
        sorted(fields["WARC-Record-ID"] for _, _, fields, *_ in records_of(folder))
        for folder in (archive, tmp_path / "whole")
    ]
    assert ids[0] == ids[1]
    assert not list(archive.glob(".nutbeam-*"))
    for name in ("wet", "wat"):
        files = [files_of(folder / name, "*") for folder in (archive, tmp_path / "whole")]
        assert [path.name for path in files[0]] == [path.name for path in files[1]]
    for rows in ("columnar/*/*/*.parquet", "host_index/*/*.parquet"):
        tables = [duckdb.read_parquet(f"{at}/{rows}") for at in (archive, tmp_path / "whole")]
        assert len(tables[0].fetchall()) == len(tables[1].fetchall()) > 0
    with zipfile.ZipFile(archive / "nutbeam.wacz") as package:
        assert package.testzip() is None


@pytest.mark.long
def test_a_stored_wire_is_written_as_it_came(site, tmp_path):
    table, archive = tmp_path / "table", tmp_path / "archive"
    assert crawl(table, site, "--store_wire") == 0
    assert nutbeam("warc", table, archive) == 0
    check(archive)
    answers = {
        url: (head, body) for kind, url, _, head, body in records_of(archive) if kind == "response"
    }
    head, body = answers[f"{HOST}/coded"]
    assert (head["Content-Encoding"], head["Content-Length"]) == ("gzip", str(len(body)))
    assert gzip.decompress(body) == PAGES["/coded"]
    assert not [name for name, _ in head.headers if name.startswith("X-Crawl")]
    assert answers[f"{HOST}/gone"][1] == b"not here"
    assert answers[f"{HOST}/moved"][1] == b"moved"
    fields = [fields for kind, _, fields, *_ in records_of(archive) if kind == "response"]
    assert {field["WARC-Truncated"] for field in fields} == {None}


@pytest.mark.long
def test_a_crawl_writes_its_archive_round_by_round_and_continues_it(site, tmp_path, capsys):
    table, archive = tmp_path / "table", tmp_path / "archive"
    assert crawl(table, site, rounds=1) == 0
    assert crawl(table, site, "--warc", archive, "--warc_operator", "Ada") == 0
    check(archive)
    asked = {url for kind, url, *_ in records_of(archive) if kind == "request"}
    assert asked == {f"{HOST}/{path}" for path in ("", "coded", "same", "gone", "moved", "copy")}
    assert nutbeam("warc", table, archive, "--warc_operator", "Ada") == 1
    # Nothing is due: what the archive lacks is written all the same.
    assert crawl(table, site, "--warc", tmp_path / "late", rounds=1) == 1
    assert len(records_of(tmp_path / "late")) == len(records_of(archive))
    assert crawl(table, site, "--warc", table / "in", rounds=1) == 2
    assert "must be outside of the table" in capsys.readouterr().err


def test_the_index_finds_each_answer_in_the_files(table, tmp_path):
    archive = tmp_path / "archive"
    assert nutbeam("warc", table, archive, "--warc_size", "1500") == 0
    found = []
    for path in (archive / "indexes").glob("*.cdxj"):
        lines = path.read_bytes().splitlines()
        assert lines == sorted(lines)
        for line in lines:
            key, time, fields = line.decode().split(" ", 2)
            entry = json.loads(fields)
            with (archive / entry["filename"]).open("rb") as file:
                file.seek(int(entry["offset"]))
                data = io.BytesIO(file.read(int(entry["length"])))
            (record,) = ArchiveIterator(data)
            assert record.rec_headers["WARC-Target-URI"] == entry["url"]
            assert record.rec_headers["WARC-Date"][:4] == time[:4]
            assert key.startswith("com,example,site)/")
            found.append(record.rec_headers["WARC-Record-ID"])
    answers = [fields for kind, _, fields, *_ in records_of(archive) if kind != "request"]
    assert sorted(found) == sorted(fields["WARC-Record-ID"] for fields in answers)
    assert nutbeam("warc", table, tmp_path / "bare", "--warc_indexes", "") == 0
    assert not (tmp_path / "bare" / "indexes").exists()


WHOLE = ["--warc_indexes", "cdxj,columnar,host", "--warc_wet", "--warc_wat", "--wacz"]


@pytest.mark.long
def test_tables_texts_and_a_package_are_made_of_an_archive_and_renewed(
    table, site, tmp_path, capsys
):
    archive = tmp_path / "archive"
    words = ["--warc_prefix", "mine", "--warc_size", "1500", *WHOLE]
    assert "host index and package of" in printed(capsys, "warc", table, archive, *words)
    check_whole(archive, fetched=3)
    package = (archive / "mine.wacz").read_bytes()
    assert nutbeam("warc", table, archive, *words) == 1
    # A killed run may leave no package: the same command makes it.
    (archive / "mine.wacz").unlink()
    (archive / ".nutbeam" / "whole").unlink()
    assert nutbeam("warc", table, archive, *words) == 0
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(archive / "mine.wacz") as new:
        assert [entry.CRC for entry in old.infolist()[:-2]] == [
            entry.CRC for entry in new.infolist()[:-2]
        ]
    # A crawl renews them at its end.
    reach = ["--add_days", "40", "--warc", archive, *words]
    assert crawl(table, site, *reach, rounds=1) == 0
    check_whole(archive, fetched=6)


def check_whole(archive, fetched):
    """Asserts that the files beside an archive fit it."""
    urls = f"read_parquet('{archive}/columnar/*/*/*.parquet', hive_partitioning=true)"
    rows = duckdb.sql(f"FROM {urls} SELECT crawl, subset, url, warc_filename, warc_record_offset, "
                      "warc_record_length, lower(hex(warc_record_id))")  # fmt: skip
    places = {}
    for crawl_name, subset, url, file, offset, length, record_id in rows.fetchall():
        assert (crawl_name, subset) in {
            ("mine", name) for name in ("warc", "crawldiagnostics", "robotstxt")
        }
        data = io.BytesIO((archive / file).read_bytes()[offset:][:length])
        (record,) = ArchiveIterator(data)
        assert record.rec_headers["WARC-Target-URI"] == url
        assert record_id in record.rec_headers["WARC-Record-ID"].replace("-", "")
        places[file, offset] = length
    answers = [kind for kind, *_ in records_of(archive) if kind not in ("request", "metadata")]
    assert len(places) == len(answers)
    hosts = f"read_parquet('{archive}/host_index/crawl=mine/*.parquet', hive_partitioning=true)"
    ((name, domain, pages, gone, robots),) = duckdb.sql(
        "SELECT surt_host_name, url_host_registered_domain, fetch_200, fetch_gone, robots_200 FROM "
        f"{hosts} WHERE crawl = 'mine'"
    ).fetchall()
    assert (name, domain, pages) == ("com,example,site", "example.com", fetched + 1)
    assert gone >= 1 <= robots
    texts = [
        content for kind, *_, content in records_of(archive / "wet", "*") if kind == "conversion"
    ]
    assert any(text.startswith(b"Coded\npear") for text in texts)
    described = [json.loads(content) for *_, content in records_of(archive / "wat", "*")]
    links = [
        link["url"]
        for each in described
        for link in each["Envelope"]["Payload-Metadata"]
        .get("HTTP-Response-Metadata", {}).get("HTML-Metadata", {}).get("Links", ())
    ]  # fmt: skip
    assert {"/coded", "/same", "/gone", "/moved"} <= set(links)
    assert [path.name.replace(".wat", "") for path in files_of(archive / "wat", "*")] == [
        path.name for path in files_of(archive)
    ]
    with zipfile.ZipFile(archive / "mine.wacz") as package:
        check_package(package, archive, places)


def check_package(package, archive, places):
    """Asserts that a package is as WACZ 1.1.1 demands, and that its index finds each answer."""
    names = package.namelist()
    assert all(
        PurePosixPath(name).parts[0] in ("archive", "indexes", "pages", name) for name in names
    )
    assert not [name for name in names if name.startswith("/") or ".." in PurePosixPath(name).parts]
    described = json.loads(package.read("datapackage.json"))
    assert (described["profile"], described["wacz_version"]) == ("data-package", "1.1.1")
    for resource in described["resources"]:
        content = package.read(resource["path"])
        assert len(content) == resource["bytes"]
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == resource["hash"]
    digest = json.loads(package.read("datapackage-digest.json"))
    description = hashlib.sha256(package.read("datapackage.json")).hexdigest()
    assert digest == {"path": "datapackage.json", "hash": f"sha256:{description}"}
    own = {*names} - {"datapackage.json", "datapackage-digest.json"}
    assert {each["path"] for each in described["resources"]} == own
    for path in files_of(archive):
        entry = package.getinfo(f"archive/{path.name}")
        assert (entry.compress_type, package.read(entry)) == (zipfile.ZIP_STORED, path.read_bytes())
    meta, *blocks = package.read("indexes/index.idx").decode().splitlines()
    assert json.loads(meta.split(" ", 2)[2])["format"] == "cdxj-gzip-1.0"
    index, lines = package.read("indexes/index.cdx.gz"), []
    for block in blocks:
        place = json.loads(block.split(" ", 2)[2])
        data = index[place["offset"] :][: place["length"]]
        lines += gzip.decompress(data).decode().splitlines()
    assert lines == sorted(lines)
    entries = [json.loads(line.split(" ", 2)[2]) for line in lines]
    assert {
        (each["filename"], int(each["offset"])): int(each["length"]) for each in entries
    } == places
    header, *pages = map(json.loads, package.read("pages/pages.jsonl").splitlines())
    assert header == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    assert {(page["url"], page.get("title")) for page in pages} >= {(f"{HOST}/coded", "Coded")}


@pytest.mark.few(1)
@in_stores
def test_an_archive_in_a_store_has_the_records_of_one_on_disk(address, table, tmp_path):
    archive, copy = place_of(address).parent / "archive", tmp_path / "copy"
    assert nutbeam("warc", table, archive, "--warc_size", "1500") == 0
    assert nutbeam("warc", table, tmp_path / "archive", "--warc_size", "1500") == 0
    copy.mkdir()
    for name in names(archive):
        if name.endswith(".warc.gz"):
            (copy / name).write_bytes(read_bytes(archive / name))
    check(copy)
    assert [path.name for path in files_of(copy)] == [
        path.name for path in files_of(tmp_path / "archive")
    ]
    ids = [[r[2]["WARC-Record-ID"] for r in records_of(at)] for at in (copy, tmp_path / "archive")]
    assert ids[0] == ids[1]
    assert len(names(archive / "indexes")) == len(
        list((tmp_path / "archive" / "indexes").iterdir())
    )
    assert nutbeam("warc", table, archive, "--warc_size", "1500") == 1
