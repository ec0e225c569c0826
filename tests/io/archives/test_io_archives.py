"""Files and plans of an archive: rotation, order with threads, exclusive plans, failures."""

import functools
import gzip
import json
import zlib

import pytest
from warcio.archiveiterator import ArchiveIterator

from nutbeam.io.archives.archive_files import ArchiveWriter, FilesBeside, RecordGroup
from nutbeam.io.archives.archive_indexes import write_capture_list
from nutbeam.io.archives.archive_plans import (
    ArchiveFolder,
    ArchivePlan,
    archive_name,
    plan_parts,
    remove_other_files,
)
from nutbeam.io.archives.wacz_files import write_package
from nutbeam.io.storage.parquet_files import row_groups
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.policy.archives.captured_pages import capture_row
from nutbeam.policy.components.archive_rows import CAPTURES
from nutbeam.web.archives.captures import Capture
from nutbeam.web.archives.page_records import (
    CapturedContent,
    PageContent,
    answer_of,
    capture_records,
    warcinfo_record,
)
from nutbeam.web.archives.wat import WAT_ENDING, WET_ENDING, wat_records, wet_records
from nutbeam.web.base.errors import UserError

PLAN = ArchivePlan(
    "1795883544-665eb295",
    1_795_883_544_000,
    5,
    "nutbeam/1",
    {"expr": "", "warc_prefix": "x"},
    (("a",),),
)


def group(number):
    body = str(number).encode() * 400
    capture = Capture(f"http://a/{number}", "1-a", number, status=200, status_line="HTTP/1.1 200",
                      body=body, content_type="Text/HTML; charset=x")  # fmt: skip
    answer, page = answer_of(capture), PageContent(f"text {number}", [("language", "de")], [])
    content = CapturedContent(capture, page)
    row = capture_row(content, answer.digest, whole=True, sniffed=False)
    return RecordGroup(list(capture_records(capture, answer)), row, content)


def writer(folder, size=10**9, threads=1, beside=()):
    return ArchiveWriter(
        place_of(str(folder)), lambda serial: f"{serial}.warc.gz", lambda name: warcinfo_record(name, 0, []),
        "1.1", "gzip", size, threads, beside,
    )  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
def test_files_end_at_their_size_and_each_capture_is_where_the_list_says(tmp_path, threads):
    made = writer(tmp_path, 1500, threads)
    write_capture_list(place_of(str(tmp_path / "list")), made.write(map(group, range(60))))
    (rows,) = row_groups(place_of(str(tmp_path / "list")), CAPTURES)
    assert rows["url"].to_pylist() == [f"http://a/{number}" for number in range(60)]
    assert set(rows["mime"].to_pylist()) == {"Text/HTML"}
    for row in rows.to_pylist():
        data = (tmp_path / row["file"]).read_bytes()[row["offset"] :][: row["length"]]
        assert f"WARC-Target-URI: {row['url']}\r\n".encode() in gzip.decompress(data)
    assert len(made.files) > 5
    for file in made.files:
        assert file.bytes == (tmp_path / file.name).stat().st_size <= 1500


def test_a_record_larger_than_a_file_has_a_file_of_its_own(tmp_path):
    made = writer(tmp_path, 10)
    assert sum(map(len, made.write([group(1), group(2)]))) == 2
    assert [file.records for file in made.files] == [2, 2]


def test_a_failure_leaves_no_file_under_a_name(tmp_path):
    def groups():
        yield group(1)
        raise UserError("no more")

    with pytest.raises(UserError):
        list(writer(tmp_path).write(groups()))
    assert list(tmp_path.iterdir()) == []


def test_the_first_plan_of_a_batch_counts(tmp_path):
    archive = ArchiveFolder(place_of(str(tmp_path)))
    assert archive.plan_of(PLAN.batch) is None
    assert archive.keep_plan(PLAN) == PLAN
    other = ArchivePlan(PLAN.batch, 1, 2, "x", {}, ())
    assert archive.keep_plan(other) == archive.plan_of(PLAN.batch) == PLAN
    (tmp_path / ".nutbeam" / f"{PLAN.batch}.plan.json").write_text("{}")
    with pytest.raises(UserError, match="plan of an archive is damaged"):
        archive.plan_of(PLAN.batch)


def test_parts_are_filled_in_order_with_whole_files():
    files = [DataFile(f"f{n}", 1, size) for n, size in enumerate([50, 40, 500, 10, 10])]
    assert plan_parts(files, 125) == (("f0", "f1"), ("f2",), ("f3", "f4"))


def test_only_files_of_the_same_part_are_removed(tmp_path):
    names = [archive_name(PLAN, part, serial, "gzip") for part in (0, 1) for serial in (0, 1)]
    foreign = {"mine.warc.gz", f"copy-of-{names[3]}", f"{names[3]}.bak"}
    for name in (*names, *foreign):
        (tmp_path / name).touch()
    remove_other_files(ArchiveFolder(place_of(str(tmp_path))), PLAN, 1, {names[2]})
    assert {path.name for path in tmp_path.iterdir()} == {*names[:3], *foreign}


@pytest.mark.parametrize("threads", [1, 3])
def test_each_file_has_a_wet_and_a_wat_file_whose_records_name_its_records(tmp_path, threads):
    beside = [
        FilesBeside(place_of(str(tmp_path / "wet")), WET_ENDING, lambda n: warcinfo_record(n, 0, []), wet_records),
        FilesBeside(place_of(str(tmp_path / "wat")), WAT_ENDING, lambda n: warcinfo_record(n, 0, []),
                    functools.partial(wat_records, 0, "1.1")),
    ]  # fmt: skip
    made = writer(tmp_path, 1500, threads, beside)
    list(made.write(map(group, range(30))))
    assert len(made.files) > 3
    texts = []
    for file in made.files:
        stem = file.name.removesuffix(".warc.gz")
        records = records_of(tmp_path / file.name)
        wat = records_of(tmp_path / "wat" / f"{stem}.{WAT_ENDING}")
        assert [kind for kind, *_ in wat] == ["warcinfo"] + ["metadata"] * len(records)
        data = (tmp_path / file.name).read_bytes()
        for (_, own_id, _, plain), (_, _, fields, content) in zip(records, wat[1:], strict=True):
            container = json.loads(content)["Container"]
            assert (fields["WARC-Refers-To"], container["Filename"]) == (own_id, file.name)
            place, packed = int(container["Offset"]), container["Gzip-Metadata"]
            record = gzip.decompress(data[place:][: int(packed["Deflate-Length"])])
            assert own_id.encode() in record
            assert record.endswith(plain + b"\r\n\r\n")
            assert int(packed["Inflated-Length"]) == len(record)
            assert int(packed["Inflated-CRC"]) % 2**32 == zlib.crc32(record)
        _, *wet = records_of(tmp_path / "wet" / f"{stem}.{WET_ENDING}")
        answers = [own_id for kind, own_id, *_ in records if kind == "response"]
        assert [fields["WARC-Refers-To"] for _, _, fields, _ in wet] == answers
        assert {fields["WARC-Identified-Content-Language"] for _, _, fields, _ in wet} == {"deu"}
        texts += [content for *_, content in wet]
    assert texts == [f"text {number}".encode() for number in range(30)]


def records_of(path):
    with path.open("rb") as file:
        return [
            (record.rec_type, record.rec_headers["WARC-Record-ID"], record.rec_headers,
             record.raw_stream.read())
            for record in ArchiveIterator(file, no_record_parse=True)
        ]  # fmt: skip


def test_a_new_part_makes_the_whole_archive_out_of_date(tmp_path):
    archive = ArchiveFolder(place_of(str(tmp_path)))
    assert (archive.capture_bytes(), archive.complete_parts()) == (0, [])
    sizes = []
    for part in range(2):
        made = writer(tmp_path / str(part))
        captures = archive.capture_list_of("1-a", part)
        write_capture_list(captures, made.write([group(part)]))
        assert archive.complete_parts() == [
            f"1-a-{n:05d}" for n in range(part)
        ]  # it has no receipt
        archive.keep_receipt("1-a", part, {"files": [{"name": f"{part}.warc.gz"}], "counts": {}})
        assert not archive.is_whole()
        archive.note_whole(archive.whole_state())
        assert archive.is_whole()
        sizes.append(captures.stat().st_size)
    assert archive.capture_bytes() == sum(sizes)
    assert list(archive.file_names()) == ["0.warc.gz", "1.warc.gz"]


def test_a_package_takes_no_file_from_outside_of_its_archive(tmp_path):
    archive = ArchiveFolder(place_of(str(tmp_path / "archive")))
    (tmp_path / "secret").write_bytes(b"x")
    write_capture_list(archive.capture_list_of("1-a", 0), [])
    for name in ("../secret", "/etc/passwd", ".."):
        (tmp_path / "archive/.nutbeam/1-a-00000.receipt.json").unlink(missing_ok=True)
        archive.keep_receipt("1-a", 0, {"files": [{"name": name}], "counts": {}})
        with pytest.raises(UserError, match="receipt of an archive is damaged"):
            write_package(archive, archive.package_of("mine"), "nutbeam/1", 0, "")
        assert not (tmp_path / "archive" / "mine.wacz").exists()
