"""Reading a CrawlDb and a segment of Nutch, against bare reading and inflating of the same file.

``python benchmarks/import_nutch.py [--small]``. Made-up rows: 70 % are unfetched, a quarter of these with
one entry of metadata; 30 % are fetched, with a signature and four entries.

- CrawlDb: all rows in columns, uncompressed and in both compressions; CPU. Budget: 150,000 rows a second
  and core. Baseline: the file read, and each compressed part inflated by zlib, without a look at it.
- Segment: pages with their contents, in block compression; CPU. Budget: 1,400 pages a second and core, as
  ``import_warc`` has with all that it writes.
- LinkDb: links; rows written: a CrawlDb encoded as Nutch reads it. No budget.
- Segment as a whole: ``nutbeam import_nutch`` of 10,000 pages in block compression, in four parts, in turn
  with ``nutbeam import_warc`` of a file with the same pages. Budget: its speed.
- Import: ``nutbeam import_nutch`` of a CrawlDb in block compression into an empty table, all that it does.
  Budget: 150,000 rows a second and core beside the CPU of the same import of 100 rows.
"""

import functools
import io
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import measure
import polars as pl

ROWS, SMALL = 100_000, 20_000
BUDGET = 150_000
PAGES, WHOLE_PAGES, PARTS = 2_000, 10_000, 4
_LENGTHS = struct.Struct(">ii")


def crawl_rows(rows: int) -> pl.DataFrame:
    """Returns rows of a CrawlDb."""
    from nutbeam.web.hadoop.crawl_datums import CRAWL_DATUMS

    chance = random.Random(1)
    hosts = rows // 20
    urls = sorted(
        f"https://www.host{chance.randrange(hosts)}.example.org/{chance.randrange(rows):x}/page-{n}.html"
        for n in range(rows)
    )
    fetched = [chance.random() < 0.3 for _ in urls]
    return pl.DataFrame(
        {
            "url": urls,
            "status": [2 if each else 1 for each in fetched],
            "fetch_time": [1_790_000_000_000 + chance.randrange(10**9) for _ in urls],
            "retries": [0] * rows,
            "interval": [2_592_000] * rows,
            "score": [chance.random() for _ in urls],
            "modified_time": [1_790_000_000_000 if each else 0 for each in fetched],
            "signature": [chance.randbytes(16) if each else None for each in fetched],
            "metadata": [_metadata(each, chance) for each in fetched],
        },
        schema=CRAWL_DATUMS,
    )


def _metadata(fetched: bool, chance: random.Random) -> list[dict[str, str]]:
    entries = []
    if fetched:
        target = f": https://example.org/{chance.randrange(10**6)}" if chance.random() < 0.1 else ""
        entries = [
            ("_pst_", "ProtocolStatus", f"success(1), lastModified=0{target}"),
            ("_rs_", "IntWritable", str(chance.randrange(3000))),
            ("Content-Type", "Text", "text/html"),
            ("nutch.protocol.code", "Text", "200"),
        ]
    elif chance.random() < 0.25:
        entries = [("_depth_", "IntWritable", str(chance.randrange(6)))]
    return [dict(zip(("key", "kind", "value"), entry, strict=True)) for entry in entries]


def write_file(path: pathlib.Path, pairs: Any, value_class: str, compression: str) -> None:
    """Writes a SequenceFile of (bytes of a text, bytes of a value)."""
    from nutbeam.web.hadoop.sequence_files import Compression
    from nutbeam.web.hadoop.sequence_writers import SequenceFileWriter
    from nutbeam.web.hadoop.writable_encoding import encode_vint

    with path.open("wb") as file:
        writer = SequenceFileWriter(file, value_class, compression=Compression(compression))
        for key, value in pairs:
            writer.append(encode_vint(len(key)) + key, value)
        writer.close()


def made_pages(pages: int) -> Iterator[tuple[str, bytes]]:
    """Yields URLs and bodies of about 45 kB."""
    chance = random.Random(2)
    words = [f"{chance.getrandbits(chance.randint(8, 40)):x}" for _ in range(20_000)]
    for number in range(pages):
        url = f"http://h{number % 500}.example.com/p{number:06}"
        yield url, " ".join(chance.choices(words, k=chance.randint(500, 13_000))).encode()


def content_pairs(pages: Iterable[tuple[str, bytes]]) -> Any:
    """Yields pages as Nutch's Content."""
    from nutbeam.web.hadoop.writable_encoding import encode_text

    names = ("Date", "Server", "Content-Type", "nutch.segment.name", "_fst_", "nutch.crawl.score")
    metadata = len(names).to_bytes(4, "big") + b"".join(
        encode_text(name) + b"\0\0\0\1" + encode_text("a value") for name in names
    )
    for url, body in pages:
        head = b"\xff\xff\xff\xff" + encode_text(url) * 2 + len(body).to_bytes(4, "big")
        yield url.encode(), head + body + encode_text("text/html") + metadata


def link_pairs(targets: int) -> Any:
    """Yields ten links for each target."""
    from nutbeam.web.hadoop.writable_encoding import encode_text

    for number in range(targets):
        links = b"".join(
            encode_text(f"http://h{link}.example.com/p{number}") + encode_text("an anchor") + b"\0"
            for link in range(10)
        )
        yield f"http://h.example.com/p{number:07}".encode(), b"\0\0\0\x0a" + links


def bare(path: str, compression: str) -> int:
    """Reads a file and inflates its compressed parts; returns the number of raw bytes."""
    with measure.measured():
        data = pathlib.Path(path).read_bytes()
        if compression == "none":
            return len(data)
        mark = data[data.index(b"Codec") + 9 :][:16]
        at = data.index(mark) + 16
        raw = 0
        while at < len(data):
            if compression == "block":
                at += 20
                _, at = _vint(data, at)
                for _ in range(4):
                    length, at = _vint(data, at)
                    raw += len(zlib.decompress(data[at : at + length]))
                    at += length
                continue
            length, key_length = _LENGTHS.unpack_from(data, at)
            if length == -1:
                at += 20
                continue
            raw += len(zlib.decompress(data[at + 8 + key_length : at + 8 + length]))
            at += 8 + length
        return raw


def _vint(data: bytes, at: int) -> tuple[int, int]:
    first = data[at] - 256 if data[at] > 127 else data[at]
    if first >= -112:
        return first, at + 1
    size = -112 - first
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size


def ours(path: str, kind: str) -> int:
    """Reads a file in columns; returns the number of rows."""
    from nutbeam.web.hadoop import crawl_datums, link_values, segment_values
    from nutbeam.web.hadoop.sequence_files import read_blocks, read_header

    read = {
        "datums": crawl_datums.read_crawl_datums,
        "contents": segment_values.read_contents,
        "links": link_values.read_inlinks,
    }[kind]
    with pathlib.Path(path).open("rb") as file:
        header = read_header(file)
        for block in read_blocks(file, end=1):  # what libraries do once is no work on rows
            read(block, header)
        with measure.measured():
            return sum(read(block, header).height for block in read_blocks(file))


def encode(rows: int) -> int:
    """Encodes rows as a map file; returns their number."""
    from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums
    from nutbeam.web.hadoop.sequence_writers import MapFileWriter

    frame = crawl_rows(rows)
    with measure.measured():
        writer = MapFileWriter(io.BytesIO(), io.BytesIO(), CRAWL_DATUM_CLASS)
        for key, value in encode_crawl_datums(frame):
            writer.append(key, value)
        writer.close()
    return rows


def write_segment(folder: pathlib.Path, pages: list[tuple[str, bytes]]) -> None:
    """Writes a segment that was fetched and not parsed."""
    from nutbeam.web.hadoop.crawl_datums import CRAWL_DATUMS
    from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums

    protocol = {"key": "_pst_", "kind": "ProtocolStatus", "value": "success(1), lastModified=0"}
    for part in range(PARTS):
        chosen = sorted(pages[part::PARTS])
        rows = [
            {"url": url, "status": 33, "fetch_time": 1_790_000_000_000, "retries": 0, "interval": 2_592_000,
             "score": 1.0, "modified_time": 0, "signature": None, "metadata": [protocol]}
            for url, _ in chosen
        ]  # fmt: skip
        fetched = encode_crawl_datums(pl.DataFrame(rows, schema=CRAWL_DATUMS))
        for name, pairs, kind in (
            ("crawl_fetch", fetched, CRAWL_DATUM_CLASS),
            ("content", content_pairs(chosen), "org.apache.nutch.protocol.Content"),
        ):
            path = folder / name / f"part-r-{part:05}" / "data"
            path.parent.mkdir(parents=True)
            write_file(path, pairs, kind, "block")


def write_archive(path: pathlib.Path, pages: list[tuple[str, bytes]]) -> None:
    """Writes the same pages as an archive."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for url, body in pages:
            head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            record = writer.create_warc_record(
                url, "response", payload=io.BytesIO(body), http_headers=head
            )
            writer.write_record(record)


def import_segment(folder: pathlib.Path, number: int, repeats: int) -> None:
    """Prints what the commands take for the same pages in a segment and in an archive."""
    pages = list(made_pages(number))
    segment, archive = folder / "crawl" / "segments" / "20261129000000", folder / "a.warc.gz"
    write_segment(segment, pages)
    write_archive(archive, pages)
    del pages
    sources = {"import_warc": archive, "import_nutch": segment.parent}
    found: dict[str, list[measure.Figures]] = {name: [] for name in sources}
    for repeat in range(repeats):
        for name, figures in found.items():
            table = folder / f"{name}-{repeat}"
            figures.append(measure.command(name, table, sources[name], "--progress=false"))
            assert f"pages {number:,}" in str(figures[-1].result), figures[-1].result
            shutil.rmtree(table)
    rows = [
        (name, number, measure.median(each, "process"), measure.median(each, "cpu"))
        for name, each in found.items()
    ]
    head = ("command", "pages", "time, s", "CPU, s", "speed / import_warc")
    rows_with_speed = [(*row, rows[0][2] / row[2]) for row in rows]
    measure.table("a segment, and an archive with the same pages; budget: 1", head, rows_with_speed)


def import_whole(folder: pathlib.Path, rows: int, repeats: int) -> None:
    """Prints what the command takes for a CrawlDb of some rows, and for one of 100."""
    from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums

    for name, number in (("rows", rows), ("tiny", 100)):
        path = folder / name / "crawldb" / "current" / "part-r-00000" / "data"
        path.parent.mkdir(parents=True)
        write_file(path, encode_crawl_datums(crawl_rows(number)), CRAWL_DATUM_CLASS, "block")
    found: dict[str, list[measure.Figures]] = {"rows": [], "tiny": []}
    for repeat in range(repeats):
        for name, figures in found.items():
            words = (folder / name / f"table-{repeat}", folder / name / "crawldb")
            figures.append(measure.command("import_nutch", *words, "--progress=false"))
    took, start = (measure.median(figures, "cpu") for figures in found.values())
    seconds = measure.median(found["rows"], "process")
    table = [(rows, seconds, took, start, f"{rows / (took - start):,.0f}")]
    head = ("rows", "time, s", "CPU, s", "of that start, s", "rows / s and core")
    measure.table(f"import_nutch of a CrawlDb; budget: {BUDGET:,} beside the start", head, table)


def main() -> None:
    """Prints the tables."""
    from nutbeam.web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums

    small = "--small" in sys.argv[1:]
    rows, repeats = (SMALL, 2) if small else (ROWS, 3)
    fresh = functools.partial(functools.partial, measure.fresh, "import_nutch")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pairs = list(encode_crawl_datums(crawl_rows(rows)))
        runs = {}
        for compression in ("none", "record", "block"):
            path = folder / compression
            write_file(path, pairs, CRAWL_DATUM_CLASS, compression)
            runs[f"bare, {compression}"] = fresh("bare", str(path), compression)
            runs[f"columns, {compression}"] = fresh("ours", str(path), "datums")
        del pairs
        found = measure.interleaved(runs, repeats)
        table = []
        for compression in ("none", "record", "block"):
            bare_cpu, cpu = (
                measure.median(found[f"{way}, {compression}"], "cpu") for way in ("bare", "columns")
            )
            size = (folder / compression).stat().st_size / 1e6
            table.append((compression, size, bare_cpu, cpu, f"{rows / cpu:,.0f}"))
        measure.table(
            f"reading a CrawlDb of {rows:,} rows; budget: {BUDGET:,} rows a second and core",
            ("compression", "MB", "bare CPU, s", "CPU, s", "rows / s"),
            table,
        )
        pages = PAGES // 20 if small else PAGES
        write_file(
            folder / "content",
            content_pairs(made_pages(pages)),
            "org.apache.nutch.protocol.Content",
            "block",
        )
        write_file(
            folder / "links", link_pairs(rows // 10), "org.apache.nutch.crawl.Inlinks", "block"
        )
        others = {
            "pages of a segment": fresh("ours", str(folder / "content"), "contents"),
            "links of a LinkDb": fresh("ours", str(folder / "links"), "links"),
            "rows of a CrawlDb, written": fresh("encode", rows // 5),
        }
        found = measure.interleaved(others, repeats)
        table = [
            (what, each[0].result, cpu, f"{each[0].result / cpu:,.0f}")
            for what, each in found.items()
            for cpu in [measure.median(each, "cpu")]
        ]
        measure.table("other values, in blocks", ("what", "number", "CPU, s", "a second"), table)
        import_segment(folder, pages if small else WHOLE_PAGES, 2 if small else 5)
        import_whole(folder, rows if small else 10 * rows, repeats)


if __name__ == "__main__":
    main()
