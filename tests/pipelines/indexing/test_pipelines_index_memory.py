"""index needs less than a gigabyte of memory, whatever the sizes of the documents and the writer."""

import itertools
import random

import pytest
from bulk_servers import bulk_server
from crawling import rows_of
from indexed_tables import operations_of, page, put
from linked_web import fill_many_links
from peak_memory import peak_memory
from search_servers_here import ServerIndex, managed_configset, search_server

from nutbeam.io.indexing.index_page_frames import LONGEST_TEXT
from nutbeam.policy.components.index_schema import HELD

ALL_SIZES = {"one of 100 MB": (1, 100 << 20), "200 of 2 MB": (200, 2 << 20),
             "16 of 8 MB": (16, 8 << 20), "60,000 of 2 KB": (60_000, 2 << 10)}  # fmt: skip
FILES = ("jsonl", "csv", "parquet")


def texts(sizes):
    """Yields texts of different words, each of a size."""
    number, size = ALL_SIZES[sizes]
    rng = random.Random(1)
    words = [f"{rng.choice(('word', 'wörd', 'слово'))}{n}" for n in range(20_000)]
    piece = " ".join(rng.choices(words, k=100_000))
    for _ in range(number):
        at = rng.randrange(len(piece) // 2)
        text = piece[at:] * (1 + 2 * size // len(piece))
        yield text[:size].encode()[:size].decode(errors="ignore")


def fill(table, sizes):
    put(table, "17-1", {f"com.a:http/{n}": page(text) for n, text in enumerate(texts(sizes))})


def states(table):
    """Returns how many pages the journal of the index has in each state."""
    counted = rows_of(table, "index/main/indexed").get_column("state").value_counts()
    return dict(counted.iter_rows())


def megabytes(table, *words):
    """Returns the peak of the memory of a process that writes an index."""
    return peak_memory("index", table, *words)[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("writer", "sizes"),
    [
        *itertools.product(["tantivy", "parquet"], ALL_SIZES),
        *itertools.product(["jsonl", "csv"], ["one of 100 MB", "60,000 of 2 KB"]),
    ],
)
def test_documents_of_each_size_need_less_than_a_gigabyte(tmp_path, writer, sizes):
    table = str(tmp_path / "table")
    fill(table, sizes)
    folder = ("--writer_parameters", f"path={tmp_path / 'out'}") if writer in FILES else ()
    assert megabytes(table, "--writer", writer, *folder) < 1_000
    assert states(table) == {HELD: ALL_SIZES[sizes][0]}


@pytest.mark.long
@pytest.mark.parametrize("sizes", ALL_SIZES)
@pytest.mark.parametrize("packed", ["false", "true"])
def test_documents_on_their_way_to_a_server_need_less_than_a_gigabyte(tmp_path, packed, sizes):
    table = str(tmp_path / "table")
    fill(table, sizes)
    with bulk_server() as server:
        parameters = f"url={server.url},gzip={packed}"
        words = ("--writer", "opensearch", "--writer_parameters", parameters)
        assert megabytes(table, *words) < 1_000
        number, size = ALL_SIZES[sizes]
        assert len(server.documents) == number
        lengths = {len(one["content"]) for one in server.documents.values()}
        assert max(lengths) <= LONGEST_TEXT
        assert min(lengths) >= min(size // 2, LONGEST_TEXT)


@pytest.mark.long
@pytest.mark.servers
@pytest.mark.parametrize("kind", ["opensearch", "elasticsearch", "solr"])
def test_a_page_of_100_mb_is_found_on_a_real_server(tmp_path, kind):
    table = str(tmp_path / "table")
    ends = "".join(f"word{n % 50} " for n in range(20_000_000 // 2))
    put(table, "17-1", {"com.a:http/huge": page(f"pelican {ends}"), "com.a:http/2": page("small")})
    with search_server(kind, tmp_path / "data") as server:
        if kind == "solr":
            managed_configset(tmp_path / "data")
        index = ServerIndex(server, "huge")
        assert megabytes(table, *index.words) < 1_000
        assert [len(text) for text in index.visible("pelican").values()] == [LONGEST_TEXT]
    assert states(table) == {HELD: 2}


@pytest.mark.long
def test_a_thousand_pages_with_ten_thousand_inlinks_each_need_less_than_a_gigabyte(tmp_path):
    table = str(tmp_path / "table")
    put(table, "17-1", {f"com.a:http/{n:04}": page(f"t{n}") for n in range(1_000)})
    fill_many_links(table, [f"com.a:http/{n:04}" for n in range(1_000)], 10_000)
    words = ("--writer", "jsonl", "--writer_parameters", f"path={tmp_path / 'out'}")
    assert megabytes(table, *words, "--index_filters", "basic,anchor,links") < 1_000
    ((_, adds, _),) = operations_of(tmp_path / "out")
    assert {document["inlink_count"] for document in adds.values()} == {10_000}
