"""Rows in a real emulator: scans, seeks, writes."""

import contextlib
import threading

import pyarrow as pa
import pytest
from bigtable_emulator import Proxy
from cell_kinds import HOST_CELL, STATE_CELL
from frames import table_of
from google.cloud.bigtable.data import BigtableDataClient, ReadRowsQuery
from state_rows import ALL, keys_of, scanned, state

from nutbeam.io.bigtable import client as module
from nutbeam.io.bigtable import request_parts as bigtable_packets
from nutbeam.io.bigtable.address import EMULATOR
from nutbeam.io.bigtable.admin import create_table, open_admin
from nutbeam.io.bigtable.cells import decode, encode
from nutbeam.io.bigtable.client import BigtableTable, Due, connect
from nutbeam.io.bigtable.key_ranges import KeyRange
from nutbeam.policy.components.schema import HOSTS, STATE
from nutbeam.web.base.errors import UserError

pytestmark = pytest.mark.bigtable


def test_written_rows_are_read_back(table):
    rows, hosts = state(500), table_of(HOSTS, {"key": "com.h1", "robots_text": "User-agent: *"})
    table.write(STATE_CELL, encode(rows, STATE_CELL), 1)
    table.write(HOST_CELL, encode(hosts, HOST_CELL), 1)
    assert scanned(table).equals(rows)
    # A host's row lies among its URLs, and is not seen by who reads the state.
    assert scanned(table, HOST_CELL).equals(hosts)


@pytest.mark.filterwarnings("ignore:Connecting to Bigtable emulator")
def test_googles_client_reads_the_written_cells(table, monkeypatch):
    rows = state(20)
    table.write(STATE_CELL, encode(rows, STATE_CELL), 3)
    monkeypatch.setenv(EMULATOR, table.address.emulator)
    with (
        BigtableDataClient(project="my-project") as client,
        client.get_table("my-instance", table.address.table) as theirs,
    ):
        found = theirs.read_rows(ReadRowsQuery())
    cells = [cell for row in found for cell in row.cells if cell.family == "s"]
    assert [cell.row_key.decode() for cell in cells] == keys_of(rows)
    assert {cell.qualifier for cell in cells} == {b"state"}
    assert {cell.timestamp_micros for cell in cells} == {3_000}
    assert [cell.value for cell in cells] == encode(rows, STATE_CELL).column("cell").to_pylist()


@pytest.mark.parametrize(
    ("low", "high"),
    [(None, None), (None, "com.h3:"), ("com.h3:", None), ("com.h2:", "com.h4:"),
     ("com.h3:http/000003", "com.h3:http/000010"), ("x", "y"), (None, "a")],
)  # fmt: skip
def test_a_range_is_read_and_no_more(table, low, high):
    rows = state(200)
    table.write(STATE_CELL, encode(rows, STATE_CELL), 1)
    wanted = [k for k in keys_of(rows) if (low is None or k >= low) and (high is None or k < high)]
    assert keys_of(scanned(table, part=KeyRange(low, high))) == wanted


def test_a_snapshot_does_not_see_later_rows(table):
    for snapshot in (1, 2, 3):
        rows = table_of(STATE, {"key": "a", "retries": snapshot}, {"key": f"b{snapshot}"})
        table.write(STATE_CELL, encode(rows, STATE_CELL), snapshot)
    for snapshot in (1, 2, 3):
        found = scanned(table, snapshot=snapshot)
        assert keys_of(found) == ["a", *(f"b{n}" for n in range(1, snapshot + 1))]
        assert found.column("retries")[0].as_py() == snapshot
    assert keys_of(scanned(table, snapshot=0)) == []


def test_a_tombstone_hides_older_cells_and_no_newer_ones(table):
    table.write(STATE_CELL, encode(state(3), STATE_CELL), 1)
    gone = keys_of(state(3))[1]
    tombstone = pa.table({"key": [gone.encode()], "cell": [b""]})
    table.write(STATE_CELL, tombstone, 2)
    assert gone in keys_of(scanned(table, snapshot=1))
    assert gone not in keys_of(scanned(table, snapshot=2))
    assert gone not in keys_of(scanned(table, snapshot=2, due=Due(10)))
    assert gone not in keys_of(scanned(table, snapshot=2, due=Due(10, 20)))
    assert keys_of(decode(next(table.seek(STATE_CELL, keys_of(state(3)), 2)), STATE_CELL)) == [
        key for key in keys_of(state(3)) if key != gone
    ]
    table.write(STATE_CELL, encode(state(3), STATE_CELL), 3)
    assert gone in keys_of(scanned(table, snapshot=3))


@pytest.mark.parametrize(
    ("due", "wanted"),
    [
        (Due(5), [-9, 0, 5]),
        (Due(-10), []),
        (Due(4, 6), [-9, 0, 7, 2**62]),
        (Due(5, 7), [-9, 0, 5, 2**62]),
        (Due(2**62), [-9, 0, 5, 6, 7, 2**62]),
        (Due(6, 6), [-9, 0, 5, 6, 7, 2**62]),
    ],
)
def test_only_rows_that_are_due_come_over_the_wire(table, due, wanted):
    times = [-9, 0, 5, 6, 7, 2**62, None]
    rows = table_of(STATE, *({"key": f"k{n}", "fetch_time": t} for n, t in enumerate(times)))
    table.write(STATE_CELL, encode(rows, STATE_CELL), 1)
    # Due before, and not any more: the old version must not rise again.
    table.write(STATE_CELL, encode(table_of(STATE, {"key": "z", "fetch_time": 5}), STATE_CELL), 1)
    table.write(STATE_CELL, encode(table_of(STATE, {"key": "z", "fetch_time": 6}), STATE_CELL), 2)
    found = scanned(table, snapshot=2, due=due).filter(pa.compute.field("key") != "z")
    times = [time for time in found.column("fetch_time").to_pylist() if time is not None]
    assert times == wanted
    assert ("z" in keys_of(scanned(table, snapshot=2, due=due))) == (due.until >= 6)


def test_the_server_sends_due_rows_only(bigtable, tmp_path):
    with Proxy(bigtable.host) as proxy:
        address = bigtable.new_address(proxy.host)
        create_table(address, str(tmp_path))
        with contextlib.closing(BigtableTable(address)) as table:
            table.write(STATE_CELL, encode(state(5_000), STATE_CELL), 1)
            before = proxy.received
            assert len(scanned(table)) == 5_000
            whole, before = proxy.received - before, proxy.received
            assert len(scanned(table, due=Due(49))) == 50
            due, before = proxy.received - before, proxy.received
            sought = keys_of(state(50))
            assert len(next(table.seek(STATE_CELL, sought, 1))) == 50
            assert due < whole / 50
            assert proxy.received - before < whole / 50


def test_given_rows_are_read_in_key_order(table, monkeypatch):
    monkeypatch.setattr(bigtable_packets, "SOUGHT_BYTES", 200)
    rows = state(300)
    table.write(STATE_CELL, encode(rows, STATE_CELL), 1)
    sought = [*keys_of(rows)[::-3], "com.nobody:http/", "zzz", keys_of(rows)[-1]]
    found = decode(pa.concat_tables(table.seek(STATE_CELL, sought, 1)), STATE_CELL)
    assert keys_of(found) == sorted(set(keys_of(rows)[::-3]))
    assert list(table.seek(STATE_CELL, [], 1)) == []


def test_chunks_are_of_bounded_rows_and_bytes(table, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ROWS", 64)
    table.write(STATE_CELL, encode(state(200), STATE_CELL), 1)
    assert [len(part) for part in table.scan(STATE_CELL, ALL, 1)] == [64, 64, 64, 8]
    monkeypatch.setattr(module, "CHUNK_BYTES", 1_000)
    assert {part.nbytes < 3_000 for part in table.scan(STATE_CELL, ALL, 1)} == {True}


def test_large_cells(table):
    rows = table_of(
        HOSTS, *({"key": f"com.h{n}", "robots_text": chr(97 + n) * 6_000_000} for n in range(6))
    )
    table.write(HOST_CELL, encode(rows, HOST_CELL), 1)  # more than fits into one request
    parts = list(table.scan(HOST_CELL, ALL, 1))
    assert len(parts) > 1
    assert decode(pa.concat_tables(parts), HOST_CELL).equals(rows)


def test_beyond_the_limits_nothing_is_written(table):
    rows = pa.table({"key": [b"a", b"k" * 5_000], "cell": [b"x", b"x"]})
    with pytest.raises(UserError, match="key_too_long"):
        table.write(STATE_CELL, rows, 1)
    assert list(table.scan(STATE_CELL, ALL, 1)) == []


def test_ranges_cover_the_table(table):
    rows = state(5_000)
    table.write(STATE_CELL, encode(rows, STATE_CELL), 1)
    for number in (1, 2, 5):
        ranges = table.ranges(number)
        assert 1 <= len(ranges) <= number
        found = [keys_of(scanned(table, part=part)) for part in ranges]
        assert [key for keys in found for key in keys] == keys_of(rows)


def test_all_threads_of_a_process_share_one_connection(address):
    found = []
    threads = [threading.Thread(target=lambda: found.append(connect(address))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert connect(str(address)) is found[0]


def test_versions_that_are_kept(address):
    found = open_admin(address).get_table(name=address.name).column_families
    assert {name: family.gc_rule.max_num_versions for name, family in found.items()} == {
        "s": 4, "h": 4, "l": 4, "m": 1,
    }  # fmt: skip
