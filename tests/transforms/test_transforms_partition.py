import collections
import itertools
import subprocess
import sys

import apache_beam as beam
import polars as pl
import pytest
from frames import chunks_of, rows_in
from hypothesis import given
from hypothesis import strategies as st
from running import apply, run

from nutbeam.policy.base.hash_buckets import SLOTS, hash_buckets
from nutbeam.policy.base.key_columns import hosts_of
from nutbeam.transforms.elements import chunks as chunks_module
from nutbeam.transforms.elements.chunks import split_by_hash
from nutbeam.transforms.partition import PartitionByHost, partition_by_host

# Half of all rows are on one host.
FRAME = pl.DataFrame(
    {
        "host": ["com.big" if n % 2 else f"com.h{n % 97}" for n in range(1000)],
        "url": list(range(1000)),
    }
)


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=30), st.integers(1, 50))
def test_a_number_for_each_value(values, buckets):
    numbers = hash_buckets(pl.Series(values, dtype=pl.String), buckets)
    assert len(numbers) == len(values)
    by_value = dict(zip(values, numbers, strict=True))
    assert [by_value[value] for value in values] == numbers.to_list()
    assert all(0 <= number < buckets for number in numbers)


def test_text_and_bytes_are_alike():
    text = pl.Series(["a", "é", None, ""])
    data = pl.Series([b"a", "é".encode(), None, b""])
    assert hash_buckets(text, 4096).to_list() == hash_buckets(data, 4096).to_list()


@pytest.mark.long
def test_numbers_are_the_same_in_another_process():
    program = """
import polars
from nutbeam.policy.base.hash_buckets import hash_buckets
print(hash_buckets(polars.Series([f"h{n}" for n in range(50)]), 4096, "salt").to_list())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    expected = hash_buckets(pl.Series([f"h{n}" for n in range(50)]), 4096, "salt").to_list()
    assert done.stdout.splitlines()[-1] == str(expected)


def meetings(hosts, buckets, salt="", prefix=""):
    numbers = hash_buckets(pl.Series([prefix + host for host in hosts]), buckets, salt)
    places = collections.defaultdict(list)
    for host, number in zip(hosts, numbers, strict=True):
        places[number].append(host)
    return {pair for met in places.values() for pair in itertools.combinations(met, 2)}


@pytest.mark.parametrize("kind", ["salt", "prefix"])
def test_hosts_that_share_a_slot_in_one_batch_rarely_share_it_in_another(kind):
    # Of one length: that is where a plain crc would bring together the same ones for ever.
    hosts = [f"com.example.h{n:04d}" for n in range(2000)]
    one, other = (meetings(hosts, SLOTS, **{kind: batch}) for batch in ("1-a/", "2-b/"))
    expected = 2000 * 1999 / 2 / SLOTS
    assert 0.5 * expected < len(one) < 1.5 * expected
    assert len(one & other) < 10


def test_numbers_are_spread_evenly():
    numbers = hash_buckets(pl.Series([f"com.example.h{n}" for n in range(16_000)]), 16)
    counts = numbers.value_counts()["count"]
    assert counts.min() > 900
    assert counts.max() < 1100


@pytest.mark.few(3)
@pytest.mark.parametrize("partitions", [1, 3, 50])
@pytest.mark.parametrize("key", ["host", "url"])
def test_splitting_keeps_equal_values_together(partitions, key):
    frame = FRAME.with_columns(url=pl.col("url").cast(pl.String).cast(pl.Binary))
    places = collections.defaultdict(set)
    found = []
    for chunk in chunks_of(frame, 130):
        numbers = []
        for number, part in split_by_hash(chunk, key, partitions):
            assert 0 <= number < partitions
            assert len(part)
            assert part.schema == chunk.schema
            numbers.append(number)
            found.append(part)
            for value in pl.from_arrow(part)[key]:
                places[value].add(number)
        assert len(numbers) == len(set(numbers))
    assert all(len(numbers) == 1 for numbers in places.values())
    assert rows_in(found) == sorted(frame.rows())


@pytest.mark.parametrize("partitions", [1, 3])
def test_no_rows_have_no_part(partitions):
    assert list(split_by_hash(FRAME.clear().to_arrow(), "host", partitions)) == []
    assert list(partition_by_host(FRAME.clear().to_arrow(), partitions)) == []


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_partitions_never_separate_hosts_of_one_slot(partitions):
    (chunk,) = chunks_of(FRAME, 1000)
    slots = {
        host: slot
        for slot, part in partition_by_host(chunk, SLOTS)
        for host in pl.from_arrow(part)["host"]
    }
    for number, part in partition_by_host(chunk, partitions):
        for host in pl.from_arrow(part)["host"]:
            assert slots[host] * partitions // SLOTS == number


@pytest.mark.few(2)
@pytest.mark.parametrize("chunk_rows", [10, 1000])
@pytest.mark.parametrize("partitions", [1, 5])
def test_all_rows_of_a_host_come_to_one_partition(chunk_rows, partitions, monkeypatch):
    monkeypatch.setattr(chunks_module, "MAX_ROWS", 50)
    found = apply(chunks_of(FRAME, chunk_rows), PartitionByHost(partitions, salt="b"))
    assert rows_in(chunk for _, chunk in found) == sorted(FRAME.rows())
    places = collections.defaultdict(set)
    for number, chunk in found:
        assert 0 < len(chunk) <= 50
        for host in pl.from_arrow(chunk)["host"]:
            places[host].add(number)
    assert all(len(numbers) == 1 for numbers in places.values())
    expected = {
        number: rows_in([part])
        for number, part in partition_by_host(FRAME.to_arrow(), partitions, salt="b")
    }
    assert {
        number: rows_in(chunk for place, chunk in found if place == number) for number, _ in found
    } == expected


def test_the_column_has_a_name():
    frame = FRAME.rename({"host": "place"})
    found = apply(chunks_of(frame, 100), PartitionByHost(3, host="place"))
    assert rows_in(chunk for _, chunk in found) == sorted(frame.rows())


@pytest.mark.parametrize("partitions", [0, -1])
def test_bad_arguments(partitions):
    with pytest.raises(ValueError, match=rf"^partitions must be at least 1, got {partitions}$"):
        PartitionByHost(partitions)


def test_rows_get_the_number_of_their_partition():
    rows = [beam.Row(**row) for row in FRAME.rows(named=True)]
    transform = PartitionByHost(5, salt="b", slot="slot")
    found = run(lambda p: p | beam.Create(rows) | transform | beam.Map(as_tuple))
    chunks = apply(chunks_of(FRAME, 100), PartitionByHost(5, salt="b", slot="slot"))
    expected = [(*row, number) for number, chunk in chunks for row in pl.from_arrow(chunk).rows()]
    assert sorted(found) == sorted(expected)


def as_tuple(row):
    return row.host, row.url, row.slot, row.partition


def test_rows_of_a_partition_come_one_after_the_other():
    rows = [beam.Row(host=f"h{n}") for n in range(200)]
    numbers = [row.partition for row in apply(rows, PartitionByHost(4))]
    assert len([number for number, _ in itertools.groupby(numbers)]) == 4


URLS = ["http://A.com/x", "https://a.com:8443/", "http://a.com./", "http://b.com/", "nothing", None]


def test_hosts_of_urls():
    hosts = ["a.com", "a.com", "a.com", "b.com", None, None]
    assert hosts_of(pl.Series(URLS, dtype=pl.String)).to_list() == hosts


def test_a_column_of_urls_will_do():
    frame = pl.DataFrame({"link": URLS})
    found = apply(chunks_of(frame, 1), PartitionByHost(SLOTS, url="link"))
    places = collections.defaultdict(set)
    for number, chunk in found:
        places[number] |= set(chunk["link"].to_pylist())
    expected = [set(URLS[:3]), {URLS[3]}, set(URLS[4:])]
    assert sorted(places.values(), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("chunks", [True, False])
def test_a_column_that_is_not_there_is_an_error_that_names_it(chunks):
    rows = chunks_of(FRAME, 500) if chunks else [beam.Row(host="a", url=1)]
    message = r"PartitionByHost needs the column 'link' \(url\), there are 'host', 'url'"
    with pytest.raises(Exception, match=message):
        apply(rows, PartitionByHost(2, url="link"))


def test_a_column_that_is_added_must_not_be_there():
    rows = beam.Pipeline("FnApiRunner") | beam.Create([beam.Row(host="a", partition=1)])
    with pytest.raises(ValueError, match="adds the column 'partition', which is there already"):
        rows | PartitionByHost(2)
