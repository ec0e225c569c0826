"""Records of archives: of other writers, damaged in many ways, and in parts."""

import gzip
import io
import random

import pytest
import zstandard
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from nutbeam.web.archive_reading import next_record
from nutbeam.web.archive_reading.archived_records import (
    decode_digest,
    parse_date,
    parse_record_head,
)
from nutbeam.web.archive_reading.warc_reading import RecordReader, check_beginning
from nutbeam.web.archives import member_codecs

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"


def record(block=b"hi", kind="response", length=None, version="1.0", extra=b"", name="a"):
    length = len(block) if length is None else length
    head = (
        f"WARC/{version}\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{name}>\r\n"
        f"WARC-Date: 2016-01-02T03:04:05Z\r\nWARC-Target-URI: http://a.com/{name}\r\n"
    )
    return (
        head.encode() + extra + f"Content-Length: {length}\r\n\r\n".encode() + block + b"\r\n\r\n"
    )


def packed(kind, *records):
    """Returns a file of records, each compressed alone."""
    if kind in ("plain", "whole"):
        return b"".join(records)
    compress = (
        gzip.compress if kind == "gzip" else zstandard.ZstdCompressor(write_checksum=True).compress
    )
    return b"".join(map(compress, records))


def read(data, *args, **keywords):
    reader = RecordReader(io.BytesIO(data), *args, **keywords)
    records = list(reader)
    return [r.id.removeprefix("urn:uuid:") for r in records], dict(reader.damages), records


KINDS = pytest.mark.parametrize("kind", ["gzip", "zstd", "plain"])


@KINDS
def test_each_kind_of_compression_gives_the_records_and_where_they_are(kind):
    parts = [packed(kind, record(name=str(i), block=b"x" * i)) for i in range(5)]
    names, damages, records = read(b"".join(parts))
    assert (names, damages) == (list("01234"), {})
    assert [r.block for r in records] == [b"x" * i for i in range(5)]
    offsets = [sum(map(len, parts[:i])) for i in range(5)]
    assert [(r.offset, r.length) for r in records] == list(
        zip(offsets, map(len, parts), strict=True)
    )
    assert read(b"".join(parts), offsets[3])[0] == ["3", "4"]


@pytest.mark.parametrize("gzipped", [True, False])
def test_records_of_warcio_are_right_and_their_digests_too(gzipped):
    file = io.BytesIO()
    writer = WARCWriter(file, gzip=gzipped)
    headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
    for i in range(3):
        body = io.BytesIO(b"<p>%d" % i)
        writer.write_record(
            writer.create_warc_record(
                f"http://a.com/{i}", "response", payload=body, http_headers=headers
            )
        )
    _, damages, records = read(file.getvalue())
    assert [(r.url, r.block_is_right, r.payload_is_right, r.is_http) for r in records] == [
        (f"http://a.com/{i}", True, True, True) for i in range(3)
    ]
    assert not damages


def test_a_wrong_digest_is_seen_and_one_of_an_unknown_algorithm_is_not_judged():
    wrong = b"WARC-Block-Digest: sha1:" + b"A" * 32 + b"\r\nWARC-Payload-Digest: md4:AA\r\n"
    _, _, [one] = read(record(PAGE, extra=wrong + b"Content-Type: application/http\r\n"))
    assert (one.block_is_right, one.payload_is_right) == (False, None)


@KINDS
def test_versions_may_be_mixed_and_types_and_names_of_fields_have_any_case(kind):
    data = packed(
        kind,
        record(version="0.18", name="a"),
        record(version="1.1", name="b").replace(b"WARC-Type: response", b"warc-type:  Response"),
    )
    names, damages, records = read(data)
    assert (names, damages) == (["a", "b"], {})
    assert [(r.version, r.kind) for r in records] == [("0.18", "response"), ("1.1", "response")]


@pytest.mark.parametrize("kind", ["gzip", "zstd", "plain", "whole"])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(length=10**12, name="bad"), "wrong_length"),
        (record(b"x" * 50, length=3, name="bad"), "wrong_length"),
        (record(name="bad").replace(b"Content-Length: 2", b"Content-Length: two"), "broken_head"),
        (record(name="bad").replace(b"Content-Length", b"Content-Len"), "broken_head"),
        (record(name="bad").replace(b"WARC/1.0", b"WARC/x"), "broken_head"),
        (b"\0" * 99 + b"\n", "bytes_between_records"),
    ],
)
def test_a_broken_record_costs_that_record(kind, bad, reason):
    data = packed(kind, record(name="a"), bad, record(name="b"), record(name="c"))
    data = gzip.compress(data) if kind == "whole" else data
    names, damages, records = read(data)
    assert [name for name in names if name != "bad"] == ["a", "b", "c"]
    # A record that is longer than it says is there, as far as it says.
    assert [r.id[9:] for r in records if r.is_cut] == [name for name in names if name == "bad"]
    assert ("bad" in names) == (b"Content-Length: 3" in bad)
    assert damages == {reason: 1}


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("at", [0, 40, -6])
def test_a_broken_member_costs_its_record(kind, at):
    noise = random.Random(1).randbytes(3000)
    parts = [packed(kind, record(noise, name=name)) for name in "abc"]
    broken = bytearray(parts[1])
    broken[at if at >= 0 else len(broken) + at] ^= 0xFF
    names, damages, _ = read(parts[0] + bytes(broken) + parts[2])
    assert (names, damages) == (["a", "c"], {"broken_compression": 1})


@KINDS
def test_a_file_that_breaks_off_loses_its_last_record_alone(kind):
    data = packed(kind, record(name="a"), record(b"x" * 1000, name="b"))
    names, damages, _ = read(data[:-20])
    assert (names, damages) == (["a"], {"truncated_file": 1})


def test_a_file_on_disk_whose_last_member_is_damaged_is_read_to_its_end(tmp_path):
    data = bytearray(packed("gzip", record(name="a"), record(b"x" * 1000, name="b")))
    data[-20] ^= 0xFF
    (tmp_path / "a.warc.gz").write_bytes(bytes(data))
    for part in (None, 70_000):
        with (tmp_path / "a.warc.gz").open("rb") as file:
            reader = RecordReader(file, 0, part)
            assert [r.id for r in reader] == ["urn:uuid:a"]
        assert reader.damages == {"broken_compression": 1}


def test_bytes_are_missing_in_the_middle_of_a_file():
    parts = [gzip.compress(record(random.Random(i).randbytes(500), name=str(i))) for i in range(9)]
    names, damages, _ = read(b"".join(parts[:3]) + parts[3][:200] + b"".join(parts[5:]))
    assert (names, damages) == (list("01245678".replace("4", "")), {"broken_compression": 1})


def written(kind, *records):
    return gzip.compress(b"".join(records)) if kind == "whole" else packed(kind, *records)


# A page about records, and one that is an archive itself.
TEXT = b"\r\n\r\n" + 3 * record(name="forged") + b"</pre>"
INNER = 900 * record(b"x" * 900, name="forged")


@pytest.mark.parametrize("kind", ["gzip", "zstd", "plain", "whole"])
@pytest.mark.parametrize(
    "text", [TEXT, INNER, INNER[:-100]], ids=["text", "archive", "cut archive"]
)
@pytest.mark.parametrize("damage", ["short", "long", "head", "length"])
def test_texts_and_archives_in_the_page_of_a_broken_record_are_no_records(kind, text, damage):
    bad = record(PAGE + b"\n" + text, name="bad", length={"short": 20, "long": 10**12}.get(damage))
    bad = bad.replace(*{"head": (b"WARC/1.0", b"XARC/1.0", 1), "length": (b"-Length: ", b": ", 1)}
                      .get(damage, (b"", b"", 0)))  # fmt: skip
    names, damages, _ = read(written(kind, record(name="a"), bad, record(name="b")))
    assert [name for name in names if name != "bad"] == ["a", "b"]
    reasons = {"head": "bytes_between_records", "length": "broken_head"}
    assert damages.pop("doubtful_record", 0) == text.count(b"WARC/") * (kind in ("plain", "whole"))
    assert damages == {reasons.get(damage, "wrong_length"): 1}


@pytest.mark.parametrize("kind", ["plain", "whole"])
def test_records_between_damages_are_read_if_their_warcinfo_record_shows_that_they_are_no_page(
    kind,
):
    info = b"WARC-Warcinfo-ID: <urn:uuid:info>\r\n"
    records = [
        record(TEXT, name=str(i), extra=info, length=10**10 if i % 3 == 1 else None)
        for i in range(9)
    ]
    names, damages, _ = read(written(kind, *records))
    assert (names, damages) == (list("023568"), {"wrong_length": 3, "doubtful_record": 9})
    # Without it they may be the text of a page.
    names, damages, _ = read(written(kind, *(each.replace(info, b"") for each in records)))
    assert (names[0], names[-1], "forged" in names) == ("0", "8", False)
    assert len(names) + damages["wrong_length"] + damages["doubtful_record"] >= 9


@pytest.mark.parametrize(
    "change", [(b"\r\n", b"\n"), (b"<br>\n", b"<br>\r\n")], ids=["no CR", "line ends of pages"]
)
@pytest.mark.parametrize("kind", ["plain", "whole"])
def test_records_of_a_file_with_changed_line_ends_are_cut_or_counted(kind, change):
    page = PAGE + 30 * b"pear<br>\n"
    data = b"".join(record(page, name=str(n)) for n in range(20)).replace(*change)
    _, damages, records = read(written(kind, data))
    assert sum(damages.values()) == 20
    assert set(damages) <= {"wrong_length", "doubtful_record"}
    assert all(each.is_cut and page.replace(*change).startswith(each.block) for each in records)
    # With a second CR no head can be read.
    data = b"".join(record(page, name=str(n)) for n in range(20)).replace(b"\n", b"\r\n")
    assert read(written(kind, data))[:2] == ([], {"broken_head": 1})


@pytest.mark.parametrize("kind", ["plain", "whole"])
def test_large_records_after_a_wrong_length_are_read(kind):
    rng = random.Random(4)
    records = [record(rng.randbytes(900_000), name=str(i)) for i in range(8)]
    records[2] = records[2].replace(b"Content-Length: ", b"Content-Length: 9")
    records[5] = records[5].replace(b"Content-Length: ", b"Content-Length: 9")
    names, damages, read_records = read(written(kind, *records), most=100)
    assert (names, damages) == (list("013467"), {"wrong_length": 2})
    reader = RecordReader(io.BytesIO(written(kind, *records)))
    for each in read_records:
        again = reader.read_at(each.offset, each.number)
        assert (again.id, again.block[:100]) == (each.id, each.block)


def test_a_damaged_file_that_is_compressed_as_a_whole_is_decoded_a_limited_number_of_times(
    monkeypatch,
):
    info = b"WARC-Warcinfo-ID: <urn:uuid:info>\r\n"
    records = [
        record(bytes(100_000), extra=info, length=n % 2 * 10**9 or None, name=str(n))
        for n in range(41)
    ]
    data = gzip.compress(b"".join(records))
    assert read(data)[:2] == ([str(n) for n in range(0, 41, 2)], {"wrong_length": 20})
    monkeypatch.setattr(next_record, "_MOST_DECODED", 20 << 20)
    names, damages, _ = read(data)
    assert names == [str(n) for n in range(0, 2 * len(names), 2)]
    assert 1 < len(names) < 20
    assert damages == {"wrong_length": len(names) - 1, "truncated_file": 1}


@pytest.mark.parametrize("last", [-30, None])
def test_after_a_damaged_member_no_member_in_it_is_read(last):
    inner = b"".join(
        gzip.compress(record(random.Random(i).randbytes(900), name=f"forged{i}"))
        for i in range(100)
    )
    stored = bytearray(gzip.compress(record(inner, name="b"), compresslevel=0))
    stored[15] ^= 0xFF  # the length of its first block
    data = packed("gzip", record(name="a")) + stored
    data += packed("gzip", record(name="c"), record(b"x" * 99, name="d"))
    names, damages, _ = read(data[:last])
    assert names == (["a", "c"] if last else ["a", "c", "d"])
    assert damages["broken_compression"] == 1
    names, damages, _ = read(
        packed("gzip", record(name="a")) + stored[:15] + b"\0" * 9 + stored[24:-40]
    )
    assert names == ["a"]


def test_records_between_damaged_ones_are_read():
    parts = [gzip.compress(record(random.Random(i).randbytes(500), name=str(i))) for i in range(9)]
    for broken in (1, 3, 5, 7):
        parts[broken] = parts[broken][:300] + b"\0" * 50 + parts[broken][350:]
    names, damages, _ = read(b"".join(parts))
    assert (names, damages) == (list("02468"), {"broken_compression": 4})


def test_a_record_between_members_that_break_off_is_in_doubt_and_counted():
    parts = [gzip.compress(record(random.Random(i).randbytes(500), name=str(i))) for i in range(9)]
    names, damages, _ = read(
        b"".join([*parts[:2], parts[2][:300], parts[3], parts[4][:300], *parts[5:]])
    )
    assert (names, damages) == (list("015678"), {"broken_compression": 1, "doubtful_record": 1})


def test_records_of_a_file_compressed_as_a_whole_are_read_after_a_broken_one():
    bad = record(name="bad").replace(b"Content-L", b"Content-X")
    for records in ([bad, record(name="a")], [record(name="a"), bad, record(name="b")]):
        data = b"".join(records)
        names, damages, _ = read(gzip.compress(data))
        assert (names, damages) == (read(data)[0], {"broken_head": 1})
    several = gzip.compress(record(name="a") + record(name="b"))
    names, damages, _ = read(several + gzip.compress(bad + record(name="c")))
    assert (names, damages) == (["a", "b", "c"], {"broken_head": 1})


SKIPPED = b"\x5e\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"


@pytest.mark.parametrize(
    ("kind", "padding"),
    [
        ("gzip", b"\0" * 100),
        ("gzip", bytes(9_000_000)),
        ("zstd", SKIPPED),
        ("zstd", SKIPPED * 3000),
    ],
    ids=["zeros", "many zeros", "frame", "many frames"],
)
@pytest.mark.parametrize("size", [None, 700])
def test_zeros_and_skippable_frames_between_members_are_no_damage(kind, padding, size):
    rng = random.Random(6)
    one, two = (packed(kind, record(rng.randbytes(500), name=name)) for name in "ab")
    data = (padding if kind == "zstd" else b"") + one + padding + two + padding
    positions = [0, data.index(one), data.rindex(two), len(data) - 1]
    starts = [0] if size is None else [position // size * size for position in positions]
    parts = [read(data, start, size)[:2] for start in sorted(set(starts))]
    assert [name for names, _ in parts for name in names] == ["a", "b"]
    assert not any(damages for _, damages in parts)


def test_a_record_in_several_members_is_whole_and_so_are_several_in_one():
    one = record(b"0123456789", name="split")
    split = gzip.compress(one[:-12]) + gzip.compress(one[-12:])
    many = gzip.compress(record(name="x") + record(name="y"))
    names, damages, records = read(split + many + gzip.compress(record(name="z")))
    assert (names, damages) == (["split", "x", "y", "z"], {})
    assert (records[0].block, records[0].length) == (b"0123456789", len(split))
    assert [(r.offset, r.number, r.length) for r in records[1:3]] == [
        (len(split), 0, 0), (len(split), 1, 0)
    ]  # fmt: skip


@KINDS
def test_bare_line_ends_and_folded_lines_and_nuls_are_read(kind):
    head = b"WARC/1.0\nWARC-Type: metadata\nWARC-Record-ID: <urn:uuid:a>\nX: a\0b\n\tc\nContent-Length: 2\n\nhi\n\n"
    names, damages, records = read(packed(kind, head, record(name="b")))
    assert (names, damages) == (["a", "b"], {})
    assert (records[0].field("x"), records[0].block) == ("a b c", b"hi")


def test_a_block_is_kept_up_to_a_limit_and_its_digest_is_that_of_all():
    import hashlib

    block = b"x" * (5 << 20)
    digest = f"WARC-Block-Digest: sha256:{hashlib.sha256(block).hexdigest()}\r\n".encode()
    _, _, [one, two] = read(packed("gzip", record(block, extra=digest), record()), most=1000)
    assert (one.block, one.size, one.block_is_right) == (b"x" * 1000, 5 << 20, True)
    assert two.block == b"hi"


@pytest.mark.long
def test_a_small_member_does_not_fill_the_memory():
    import tracemalloc

    data = packed("gzip", record(b"\0" * (200 << 20)))
    zstd = packed("zstd", record(b"\0" * (200 << 20)))
    for small in (data, zstd):
        tracemalloc.start()
        _, _, [one] = read(small, most=1000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert one.size == 200 << 20
        assert peak < 80 << 20


def test_a_block_without_the_end_of_a_head_does_not_fill_the_memory():
    import tracemalloc

    extra = b"Content-Type: application/http\r\nWARC-Payload-Digest: sha1:" + b"A" * 32 + b"\r\n"
    data = packed("gzip", record(b"\0" * (60 << 20), extra=extra))
    tracemalloc.start()
    _, _, [one] = read(data, most=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (one.size, one.payload_is_right) == (60 << 20, None)
    assert peak < 20 << 20


def test_blocks_of_other_kinds_are_skipped():
    data = packed("gzip", record(kind="request"), record(b"page"))
    _, _, records = read(data, kinds={"response"})
    assert [(r.kind, r.block, r.size) for r in records] == [
        ("request", b"", 2), ("response", b"page", 4)
    ]  # fmt: skip


def ranges(data, size):
    """Returns the names of the records in each part of a file."""
    return [read(data, start, size)[0] for start in range(0, len(data), size)]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [1000, 70_000, 300_000, 10**9])
def test_the_parts_of_a_file_have_each_record_once(kind, size):
    rng = random.Random(2)
    blocks = [rng.randbytes(rng.choice([10, 3000, 90_000])) for _ in range(40)]
    data = packed(kind, *(record(block, name=str(i)) for i, block in enumerate(blocks)))
    parts = ranges(data, size)
    assert [name for part in parts for name in part] == [str(i) for i in range(40)]
    assert size > 300_000 or len([part for part in parts if part]) > 2


def test_parts_after_damage_still_have_each_other_record_once():
    rng = random.Random(3)
    parts = [gzip.compress(record(rng.randbytes(20_000), name=str(i))) for i in range(40)]
    for broken in (5, 12, 13, 30):
        parts[broken] = parts[broken][:10_000] + b"\0" * 500 + parts[broken][10_500:]
    whole = [str(i) for i in range(40) if i not in (5, 12, 13, 30)]
    data = b"".join(parts)
    for size in (30_000, 150_000, 400_000):
        assert [name for part in ranges(data, size) for name in part] == whole


def test_an_archive_that_was_crawled_is_not_read_as_records_of_the_crawl():
    # What cannot be compressed is stored as it is, so the inner members can be seen in the outer ones.
    inner = b"".join(
        gzip.compress(record(random.Random(i).randbytes(900), name=f"forged{i}"))
        for i in range(300)
    )
    stored = gzip.compress(record(inner, name="b"), compresslevel=0)
    data = packed("gzip", record(name="a")) + stored + packed("gzip", record(name="c"))
    assert data.count(b"\x1f\x8b\x08") > 250
    for size in (2000, 20_000, 100_000):
        assert [name for part in ranges(data, size) for name in part] == ["a", "b", "c"]


def test_an_uncompressed_file_is_one_part():
    data = packed("plain", *(record(name=str(i)) for i in range(50)))
    assert [len(part) for part in ranges(data, 1000)][:2] == [50, 0]


def test_zstd_files_with_a_dictionary_are_read():
    samples = [record(b"the same words " * 9, name=str(i)) for i in range(200)]
    shared = zstandard.train_dictionary(4000, samples)
    compress = zstandard.ZstdCompressor(dict_data=shared).compress
    for content in (shared.as_bytes(), zstandard.compress(shared.as_bytes())):
        frame = b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content
        data = frame + b"".join(map(compress, samples))
        names, damages, _ = read(data)
        assert (len(names), damages) == (200, {})
        assert [len(part) for part in ranges(data, 10**6)] == [200]


def test_files_of_other_kinds_are_refused_with_their_kind():
    for data, words in (
        (b"filedesc://x.arc 0.0.0.0 20080101000000 text/plain 69\n", "ARC"),
        (gzip.compress(b"filedesc://x.arc.gz 0.0.0.0 2008", mtime=0), "ARC"),
        (b"PK\x03\x04" + b"\0" * 30, "ZIP"),
        (b"PK\x03\x04" + packed("gzip", *(record(name=str(n)) for n in range(9))), "ZIP"),
        (b"<html>", "begins with b'<html>'"),
    ):
        with pytest.raises(ValueError, match=words):
            check_beginning(io.BytesIO(data))
    for data in (b"", b"\r\n" + record(), gzip.compress(record())[:9], packed("zstd", record())):
        check_beginning(io.BytesIO(data))


@KINDS
@pytest.mark.parametrize("size", [None, 70_000])
def test_a_file_whose_first_bytes_are_damaged_is_read_from_its_next_record_on(kind, size):
    rng = random.Random(8)
    data = packed(kind, *(record(rng.randbytes(9000), name=str(n)) for n in range(40)))
    for damaged in (b"\xff" + data[1:], b"\0" * 2000 + data[2000:]):
        starts = range(0, len(damaged), size) if size else [0]
        parts = [read(damaged, start, size)[:2] for start in starts]
        assert [name for names, _ in parts for name in names] == [str(n) for n in range(1, 40)]
        assert sum(sum(damages.values()) for _, damages in parts) == 1
        check_beginning(io.BytesIO(damaged), is_named=True)
        with pytest.raises(ValueError, match="is no WARC file"):
            check_beginning(io.BytesIO(damaged))


def test_a_file_without_a_record_is_refused_whatever_its_name_is():
    noise = random.Random(9).randbytes(3 << 20)
    for data in (noise, b"<html>WARC/1.0", gzip.compress(noise)):
        with pytest.raises(ValueError, match="is no WARC file"):
            check_beginning(io.BytesIO(data), is_named=True)


def test_python_s_own_zlib_reads_the_same(monkeypatch):
    import zlib

    monkeypatch.setattr(member_codecs, "fastest_zlib", lambda: zlib)
    data = packed("gzip", *(record(b"x" * 10**6 * i, name=str(i)) for i in range(4)))
    assert read(data)[0] == list("0123")
    assert read(data[:-3])[:2] == (list("012"), {"truncated_file": 1})


def test_dates_and_digests_are_read_in_all_their_forms():
    assert parse_date("2016-01-02T03:04:05.5Z") == parse_date("2016-01-02T03:04:05Z") + 500
    assert parse_date("2016-01") == parse_date("2016-01-01T00:00:00Z")
    assert [parse_date(text) for text in ("", "2016-13-01", "yesterday", "20160102030405")] == [
        None
    ] * 4
    sha1 = bytes(range(20))
    assert decode_digest(sha1.hex(), 20) == decode_digest("AAAQEAYEAUDAOCAJBIFQYDIOB4IBCEQT", 20)


def test_a_head_with_too_many_fields_is_no_head():
    assert parse_record_head(b"WARC/1.0\r\n" + b"A: b\r\n" * 5000 + b"\r\n") is None
