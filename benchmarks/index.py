"""The index writer tantivy against tantivy alone, and how long a query takes.

``python benchmarks/index.py [--small] [--full] [--queries]``. 40,000 documents (``--full``: 100,000) of 1 to 6 KB of text, with
a vocabulary of 50,000 words whose frequencies follow Zipf's law, become a shard: with the fields
of a crawl, in the writer's own schema. tantivy alone gets the same texts as Python objects, with
the same schema, analyzers, heap and number of threads, and leaves its files in a folder; it packs
nothing, and knows no row keys.

Budget: at least 60 % of tantivy's documents per second.

``--queries`` instead asks 200 queries of two words and of one in an index of 20,000 such documents
in eight shards, after it was opened, as people type them; and the same with a letter too few in a
word, which no document has. Budget: 10 ms for a query, as the median; 50 ms for a misspelt one.
"""

import itertools
import pathlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import measure

if TYPE_CHECKING:
    import polars as pl

THREADS = 1
AT_ONCE = 2_000


def frames(documents: int) -> "Iterator[pl.DataFrame]":
    """Yields documents as the job index makes them."""
    import polars as pl

    words, rng = _words(), random.Random(7)
    weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(words))))
    text = rng.choices(words, cum_weights=weights, k=1_000_000)
    for start in range(0, documents, AT_ONCE):
        rows = []
        for number in range(start, min(documents, start + AT_ONCE)):
            begin, size = rng.randrange(len(text) - 1_000), rng.randint(150, 900)
            rows.append(
                {
                    "id": f"http://www.host{number % 500}.example.com/pages/{number}",
                    "host": f"www.host{number % 500}.example.com",
                    "title": " ".join(text[begin : begin + 6]),
                    "content": " ".join(text[begin : begin + size]),
                    "lang": "en",
                    "type": ["text/html", "text", "html"],
                    "boost": rng.paretovariate(1.2),
                    "tstamp": 1_790_000_000_000 + number,
                    "anchor": [" ".join(text[begin : begin + 2])],
                    "digest": f"{number:032x}",
                }
            )
        yield pl.DataFrame(rows)


def _words() -> list[str]:
    rng = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    return ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(50_000)]


def write(folder: str, documents: int, shards: int = 1) -> dict[str, Any]:
    """Writes shards with the writer; returns their files and sizes."""
    import polars as pl

    from nutbeam.io.indexing.index_writer import IndexTarget
    from nutbeam.io.indexing.tantivy_writer import TantivyWriter
    from nutbeam.io.table.opening import open_table

    table, made = open_table(folder), []
    some = list(frames(documents))
    with measure.measured():
        for number in range(shards):
            parameters = {"threads": str(THREADS)}
            target = IndexTarget("main", "main", parameters, table, number + 1, f"op{number}")
            writer = TantivyWriter(target)
            for frame in some[number::shards]:
                writer.write(frame, pl.Series([], dtype=pl.String))
            made += writer.close().files
    return {"files": [file.path for file in made], "bytes": sum(file.bytes for file in made)}


def bare(folder: str, documents: int) -> dict[str, Any]:
    """Indexes the same documents with tantivy alone."""
    import tantivy

    from nutbeam.io.indexing.shard_documents import analyzers, register_analyzers, shard_schema
    from nutbeam.io.indexing.shards import HEAP_BYTES

    records = [row for frame in frames(documents) for row in frame.to_dicts()]
    path = pathlib.Path(folder)
    path.mkdir()
    with measure.measured():
        index = tantivy.Index(shard_schema(), path=folder)
        register_analyzers(index)
        index.register_tokenizer("terms", analyzers()["text_en"])  # texts as they are
        writer = index.writer(HEAP_BYTES * THREADS, THREADS)
        for row in records:
            document = tantivy.Document(
                id=row["id"], url=row["id"], site=row["host"], lang="en", analyzer="en",
                type=row["type"], date=row["tstamp"], weight=row["boost"], title=row["title"],
                content=row["content"], anchor=row["anchor"], title_words=row["title"],
                words=[row["title"], row["content"]], title_text=row["title"].encode(),
                content_text=row["content"].encode(), anchor_text=row["anchor"][0].encode(),
                document=(row["id"] + row["digest"] + row["host"]).encode(),
            )  # fmt: skip
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
    return {"bytes": sum(one.stat().st_size for one in path.iterdir())}


def ask(folder: str, documents: int, queries: int) -> dict[str, Any]:
    """Returns how long queries take in an open index of eight shards, and to open it, in ms."""
    from nutbeam.io.indexing.unpacked_index import unpack_index
    from nutbeam.io.storage.place_addresses import place_of
    from nutbeam.io.tablets.file_lists import DataFile
    from nutbeam.pipelines.searching.forgiving_search import ForgivingSearch
    from nutbeam.pipelines.searching.index_search import ShardSearch

    paths = write(folder, documents, 8)["files"]
    files = [DataFile(path, 0, 0, order=order + 1) for order, path in enumerate(paths)]
    times = {"opened first": _ms(lambda: unpack_index(place_of(folder), files, _cache(folder)))}
    unpacked = unpack_index(place_of(folder), files, _cache(folder))
    times["opened again"] = _ms(lambda: ShardSearch(unpacked))
    search, rng = ForgivingSearch(ShardSearch(unpacked)), random.Random(3)
    words = [word for word in _words()[:2_000] if len(word) > 5]
    found: dict[str, list[float]] = {"query": [], "misspelt query": []}
    for number in range(queries):
        chosen = rng.sample(words, 1 + number % 2)
        misspelt = [chosen[0][:3] + chosen[0][4:], *chosen[1:]]
        for name, text in zip(found, (chosen, misspelt), strict=True):
            found[name].append(_ms(lambda text=text: search.search(" ".join(text))))
    for name, each in found.items():
        times[f"{name}, median"] = statistics.median(each)
        times[f"{name}, 95 %"] = statistics.quantiles(each, n=20)[-1]
    return times


def _cache(folder: str) -> pathlib.Path:
    return pathlib.Path(folder) / "cache"


def _ms(function: Any) -> float:
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1000


def compare(folder: pathlib.Path, documents: int, repeats: int) -> None:
    """Times both writers."""
    ours, theirs = [], []
    for at in range(repeats):
        ours.append(measure.fresh("index", "write", str(folder / f"ours-{at}"), documents))
        theirs.append(measure.fresh("index", "bare", str(folder / f"bare-{at}"), documents))
    speeds = [documents / measure.median(figures, "work") for figures in (ours, theirs)]
    cpus = [measure.median(figures, "cpu") for figures in (ours, theirs)]
    peaks = [measure.median(figures, "peak") / 2**20 for figures in (ours, theirs)]
    sizes = [figures[0].result["bytes"] / 1e6 for figures in (ours, theirs)]
    rows = [
        ("documents per second", *speeds, speeds[0] / speeds[1]),
        *(
            (what, *both, both[0] / both[1])
            for what, both in (("CPU s", cpus), ("peak memory, MB", peaks), ("written, MB", sizes))
        ),
    ]
    title = f"{documents:,} documents, {THREADS} thread; median of {repeats}"
    measure.table(title, ("the work alone", "writer", "tantivy", "ratio"), rows)


def latency(folder: pathlib.Path, documents: int, queries: int) -> None:
    """Times queries."""
    result = measure.fresh("index", "ask", str(folder / "asked"), documents, queries).result
    rows = [(what, milliseconds) for what, milliseconds in result.items()]
    measure.table(f"{queries} queries of {documents:,} documents", ("what", "ms"), rows)


def main() -> None:
    """Does what the command line says."""
    with tempfile.TemporaryDirectory(prefix="index-") as folder:
        if "--queries" in sys.argv:
            latency(pathlib.Path(folder), *measure.sized((400, 20), (20_000, 200)))
        else:
            sizes = measure.sized((1_000, 1), (40_000, 3), (100_000, 3))
            compare(pathlib.Path(folder), *sizes)


if __name__ == "__main__":
    main()
