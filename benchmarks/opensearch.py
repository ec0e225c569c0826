"""The index writer opensearch against the bulk helper of opensearch-py, on a real OpenSearch.

``python benchmarks/opensearch.py [--small] [--url URL]``. 20,000 documents of 1 to 6 KB of text, with
the fields of a crawl, go into a new index in requests of up to 1,000 documents and 5 MB, without
gzip. The helper gets the same documents as Python objects, with the same ids, versions and
mapping. CPU is that of the client. The server is the one of the tests, unless a URL names another;
it uses the same cores.

Budget: at least 80 % of the helper's documents per second, at most 1.25 times its CPU.
"""

import contextlib
import itertools
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import measure

SUPPORT = pathlib.Path(__file__).parent.parent / "tests" / "support"
AT_ONCE, MOST_BYTES = 1_000, 5_000_000


def _writer(url: str, name: str) -> Any:
    from nutbeam.io.indexing.index_writer import IndexTarget
    from nutbeam.io.indexing.opensearch_writer import OpenSearchWriter
    from nutbeam.io.table.opening import open_table

    given = {"url": url, "name": name, "replicas": "0"}
    writer = OpenSearchWriter(IndexTarget("main", "main", given, open_table("."), 7, "op"))
    writer.prepare()
    return writer


def write(url: str, name: str, documents: int) -> int:
    """Sends documents with the writer; returns how many were added."""
    import index
    import polars as pl

    writer, added = _writer(url, name), 0
    some = list(index.frames(documents))
    with measure.measured():
        for frame in some:
            added += writer.write(frame, pl.Series([], dtype=pl.String)).counts["added"]
    return added


def bulk(url: str, name: str, documents: int) -> int:
    """Sends the same documents with the bulk helper; returns how many were added."""
    import index
    from opensearchpy import OpenSearch, helpers

    _writer(url, name)  # the same mapping
    client = OpenSearch(url, timeout=120)
    records = [row for frame in index.frames(documents) for row in frame.to_dicts()]
    with measure.measured():
        actions = (
            {
                "_op_type": "index", "_index": name, "_id": row["id"], "version": 7,
                "version_type": "external_gte", "_source": row,
            }
            for row in records
        )  # fmt: skip
        added, _ = helpers.bulk(client, actions, chunk_size=AT_ONCE, max_chunk_bytes=MOST_BYTES)
    return int(added)


def compare(url: str, documents: int, repeats: int) -> None:
    """Times both, in turn."""
    number = itertools.count(1)

    def run(function: str) -> measure.Figures:
        name = f"bench-{next(number)}"
        found = measure.fresh("opensearch", function, url, name, documents)
        if found.result != documents:
            raise SystemExit(f"{function} has added {found.result} of {documents} documents")
        with contextlib.closing(urlopen(Request(f"{url}/{name}-0", method="DELETE"))):
            return found

    figures = measure.interleaved(
        {"ours": lambda: run("write"), "theirs": lambda: run("bulk")}, repeats
    )
    both = figures["ours"], figures["theirs"]
    speeds = [documents / measure.median(some, "work") for some in both]
    rows = [("documents per second", *speeds, speeds[0] / speeds[1])]
    for what, name, unit in (("CPU s of the client", "cpu", 1), ("peak memory, MB", "peak", 2**20)):
        ours, theirs = (measure.median(some, name) / unit for some in both)
        rows.append((what, ours, theirs, ours / theirs))
    title = f"{documents:,} documents into OpenSearch; median of {repeats}"
    measure.table(title, ("the work alone", "writer", "opensearch-py", "ratio"), rows)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Yields the address of a server: the one that ``--url`` names, or a new one."""
    if "--url" in sys.argv:
        yield sys.argv[sys.argv.index("--url") + 1]
        return
    sys.path.append(str(SUPPORT))
    from search_servers_here import search_server

    with (
        tempfile.TemporaryDirectory(prefix="opensearch-") as folder,
        search_server("opensearch", pathlib.Path(folder) / "data", HEAP="1g") as found,
    ):
        yield found.url


def main() -> None:
    """Does what the command line says."""
    measure.need("opensearchpy")
    with server() as url:
        compare(url, *measure.sized((1_000, 1), (20_000, 3), (20_000, 5)))


if __name__ == "__main__":
    main()
