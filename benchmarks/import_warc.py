"""Importing WARC files, against the bare reading of the same file with warcio and FastWARC.

``python benchmarks/import_warc.py [--small] [--full]``. 10,000 made-up records (``--full``: 40,000), each compressed alone:

- Reading: all records, without and with their digests; CPU against the readers of warcio, which is
  written in Python, and FastWARC, written in C++; both read each block. Budget: at least 60 % of the
  speed of each.
- Importing: ``nutbeam import_warc`` of the same file into an empty table, in turn with warcio's bare
  reading; time beside that of the same import of 100 records, which is the start. Budget: at least 60 %
  of its speed. Then parse, updatedb, dedup and a query in SQL; CPU
  and time. Budget: 2 minutes in all for 40,000 records of 1 GB on two cores.
"""

import functools
import io
import pathlib
import random
import shutil
import tempfile

import measure

FEW = 100
BUDGET_RECORD = 0.003  # s: 2 minutes for 40,000
_WORDS = 20_000


def write_archive(path: pathlib.Path, records: int) -> None:
    """Writes an archive; a record has about 25 kB compressed, as in Common Crawl's files."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    rng = random.Random(1)
    words = [f"{rng.getrandbits(rng.randint(8, 40)):x}" for _ in range(_WORDS)]
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number in range(records):
            links = "".join(f'<a href="/p{rng.randrange(records)}">x</a>' for _ in range(30))
            text = " ".join(rng.choices(words, k=rng.randint(500, 13_000)))
            body = f"<title>Page {number}</title>{links}<p>{text}".encode()
            head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            url = f"http://h{number % 500}.example.com/p{number}"
            writer.write_record(
                writer.create_warc_record(
                    url, "response", payload=io.BytesIO(body), http_headers=head
                )
            )


def bare(path: str) -> int:
    """Reads all records with FastWARC; returns their number."""
    from fastwarc.warc import ArchiveIterator

    with pathlib.Path(path).open("rb") as file, measure.measured():
        return sum(record.reader.read() is not None for record in ArchiveIterator(file))


def bare_in_python(path: str) -> int:
    """Reads all records with warcio; returns their number."""
    from warcio.archiveiterator import ArchiveIterator

    with pathlib.Path(path).open("rb") as file, measure.measured():
        return sum(
            record.raw_stream.read() is not None
            for record in ArchiveIterator(file, no_record_parse=True)
        )


def ours(path: str, checks: bool) -> int:
    """Reads all records with ``RecordReader``; returns their number."""
    from nutbeam.web.archive_reading.warc_reading import RecordReader

    with pathlib.Path(path).open("rb") as file, measure.measured():
        return sum(1 for _ in RecordReader(file, checks=checks))


def imported(path: pathlib.Path) -> measure.Figures:
    """Imports the archive into a new table."""
    table = path.parent / "table"
    shutil.rmtree(table, ignore_errors=True)
    return measure.command("import_warc", table, path)


def commands(table: pathlib.Path) -> list[tuple[str, float, float]]:
    """Returns time and CPU of each command after an import, s."""
    query = "select http_code, count(*) from batch_pages group by http_code"
    lines = (["parse", table], ["updatedb", table], ["dedup", table], ["sql", table, query])
    found = [(words[0], measure.command(*words)) for words in lines]
    return [(str(name), each.work, each.cpu) for name, each in found]


def main() -> None:
    """Prints the tables."""
    records, repeats = measure.sized((1_000, 2), (10_000, 3), (40_000, 3))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.warc.gz"
        write_archive(path, records)
        fresh = functools.partial(measure.fresh, "import_warc")
        runs = {
            "FastWARC": functools.partial(fresh, "bare", str(path)),
            "warcio": functools.partial(fresh, "bare_in_python", str(path)),
            "RecordReader": functools.partial(fresh, "ours", str(path), False),
            "RecordReader with digests": functools.partial(fresh, "ours", str(path), True),
        }
        found = measure.interleaved(runs, repeats)
        bare_cpu, warcio_cpu = (
            measure.median(found[name], "cpu") for name in ("FastWARC", "warcio")
        )
        rows = [
            (name, cpu, warcio_cpu / cpu, bare_cpu / cpu, each[0].result)
            for name, each in found.items()
            for cpu in [measure.median(each, "cpu")]
        ]
        size = path.stat().st_size / 1e6
        title = f"reading {records:,} records, {size:,.0f} MB; budget: 0.6"
        head = ("reader", "CPU, s", "speed / warcio", "speed / FastWARC", "records")
        measure.table(title, head, rows)
        few = path.with_name("few.warc.gz")
        write_archive(few, FEW)
        turns = {
            "warcio": runs["warcio"],
            "start": functools.partial(imported, few),
            "import": functools.partial(imported, path),
        }
        found = measure.interleaved(turns, repeats)
        bare_time, start, time = (measure.median(found[name], "work") for name in turns)
        cpu = measure.median(found["import"], "cpu")
        measure.table(
            "importing; budget: 0.6",
            ("", "import, s", "of that start, s", "warcio's bare reading, s", "speed / warcio"),
            [("import", time, start, bare_time, bare_time / (time - start))],
        )
        steps = [("import_warc", time, cpu), *commands(path.parent / "table")]
        title = f"with all that follows; budget: {records * BUDGET_RECORD:g} s"
        steps.append(("together", sum(row[1] for row in steps), sum(row[2] for row in steps)))
        measure.table(title, ("command", "time, s", "CPU, s"), steps)


if __name__ == "__main__":
    main()
