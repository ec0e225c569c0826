"""One host with half of five million rows, on Flink workers with 1 GB of heap."""

import base64
import importlib.util

import polars as pl
import pytest
from crawling import VOLATILE, files_of, manifest_of, nutbeam
from flink.cluster import started
from flink.jobs import launched
from here import ROOT

from nutbeam.io.tablets.tablets import tablets as tablets_in
from nutbeam.pipelines.views.reading_job import Reading

pytestmark = [pytest.mark.flink, pytest.mark.long]
ROWS, HOSTS = 5_000_000, 100_000
PAGES, LINKS = 50_000, 20
LIMIT = 64 << 20  # bytes of a key's values
BIG = "com.example.h0050000:"


@pytest.fixture(scope="module")
def tables():
    """benchmarks/tables.py, with a host that has half of the rows."""
    path = ROOT / "benchmarks" / "tables.py"
    spec = importlib.util.spec_from_file_location("benchmark_tables", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    even = module.host_sizes

    def half_in_one(rows, hosts):
        sizes = even(rows // 2, hosts)
        sizes[hosts // 2] += rows - rows // 2
        return sizes

    module.host_sizes = half_in_one
    return module


@pytest.fixture(scope="module")
def table(tables, tmp_path_factory):
    """The table, with a batch that waits for its update."""
    folder = tmp_path_factory.mktemp("skew") / "table"
    tables.make_table(folder, ROWS, HOSTS)
    tables.add_batch(folder, ROWS, HOSTS, PAGES, LINKS)
    rows = pl.scan_parquet(files_of(folder, "state")).select(
        pl.len(), big=pl.col("key").str.starts_with(BIG).sum()
    )
    assert rows.collect().row(0)[0] == ROWS
    assert rows.collect().row(0)[1] >= ROWS // 2
    return folder


@pytest.fixture(scope="module")
def small():
    """A cluster that refuses a key with more than 64 MB: a quarter of what it may sort in."""
    yield from started(
        more_settings={
            "taskmanager.memory.managed.size": "256m",
            "taskmanager.memory.process.size": "2464m",
        },
        attempts=1,
    )


def hashes_of(table):
    """Returns a hash of each row of the state in key order, without what differs between two runs."""
    reading, found = Reading(str(table), "", manifest_of(table).snapshot), []
    for tablet in tablets_in(reading.files("state")):
        for rows in reading.table.scan("state", tablet):
            found.append(rows.drop(VOLATILE, strict=False).hash_rows())
    return pl.concat(found)


def largest_element(flink):
    """Returns the bytes of the largest element that was sampled: a chunk, or a key with its values."""
    largest = 0
    for part in (flink.folder / "jobserver.log").read_text().split('"urn": ')[1:]:
        if part.startswith('"beam:metric:sampled_byte_size:v1"'):
            payload = part.partition('"payload": "')[2].partition('"')[0]
            count, _, _, most = varints(base64.b64decode(payload))
            largest = max(largest, most if count else 0)
    assert largest  # Flink has told sizes
    return largest


def varints(data):
    """Returns the numbers of a distribution: count, sum, least, largest."""
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number, shift = 0, 0
    return numbers


@pytest.mark.parametrize("limit", [[], ["--max_count", 100_000]], ids=["all", "limited"])
def test_generate(small, tables, table, tmp_path, limit):
    chosen = {}
    for name, options in (("here", []), ("there", ["--num_fetchers", 2])):
        copy = tables.clone(table, tmp_path / name)
        words = ["generate", copy, "--top_n", ROWS, *limit, *options]
        if name == "here":
            assert nutbeam(*words) == 0
        else:
            with launched(small, *words) as command:
                assert command.ended() == 0
                assert [small.failures(job) for job in command.jobs()] == [[]]
        batch = manifest_of(copy).batch
        paths = files_of(copy, f"batches/{batch}/fetchlist")
        chosen[name] = pl.read_parquet(paths, columns=["key"]).sort("key")
    assert chosen["there"].equals(chosen["here"])
    of_big = chosen["here"]["key"].str.starts_with(BIG).sum()
    assert of_big == 100_000 if limit else of_big > 400_000
    assert largest_element(small) < LIMIT


def test_update(small, tables, table, tmp_path):
    here, there = (tables.clone(table, tmp_path / name) for name in ("here", "there"))
    assert nutbeam("updatedb", here) == 0
    with launched(small, "updatedb", there) as command:
        assert command.ended() == 0
        assert [small.failures(job) for job in command.jobs()] == [[]]
    assert manifest_of(there).counts == manifest_of(here).counts
    # Contributions are summed in the order of their sources: the same bits.
    hashes = hashes_of(there)
    assert len(hashes) > ROWS
    assert hashes.equals(hashes_of(here))
    assert largest_element(small) < LIMIT
