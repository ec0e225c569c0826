"""What is known of hosts: from the table to the engine, and back."""

import polars as pl
import pytest
from crawling import nutbeam, rows_of
from web_servers import connect_to, reply, serve
from web_tables import Snapshot

from nutbeam.io.batches import known_hosts
from nutbeam.io.batches.attempts import Note
from nutbeam.io.batches.known_hosts import HostRecords, host_tables
from nutbeam.policy.components.schema import to_frame
from nutbeam.web.engine.tasks import HostRecord

ROBOTS = "User-agent: *\nCrawl-delay: 0.5\nSitemap: http://a.example.com/map.xml\n# äö"
HOSTS = ["a.example.com", "b.example.com", "c.example.com"]


def answer(path, _):
    return reply(ROBOTS.encode()) if path == "/robots.txt" else reply(b"x")


def known(table, hosts, notes=None):
    pinned = Snapshot(table)
    keys = pl.Series([".".join(reversed(host.split("."))) for host in hosts], dtype=pl.String)
    return HostRecords(pinned.table, pinned.files("hosts"), keys, notes or {})


@pytest.mark.long
@pytest.mark.few(1)
def test_host_records_go_from_the_table_to_the_engine_and_back(backend):
    table = backend.fresh()
    with serve(answer) as server:
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        # The second round makes runs: of two rows of a host the newer counts.
        for host in HOSTS[:2]:
            assert nutbeam("inject", table, f"http://{host}/") == 0
            words = ("--server_delay", "0", "--progress", "false")
            assert nutbeam("round", table, *reach, *words) == 0
    rows = rows_of(table, "hosts")
    found = known(table, HOSTS)
    records = [found.get(host) for host in HOSTS[:2]]
    assert {record.robots_text for record in records} == {ROBOTS}
    assert [record.host for record in records] == HOSTS[:2]
    assert found.get("c.example.com") is None
    grown = known(table, HOSTS[1:])
    assert grown.get(HOSTS[0]) is None
    grown.add(pl.Series(["com.example.a", "com.example.b"]))
    assert [grown.get(host) for host in HOSTS[:2]] == records
    again = pl.concat([to_frame(table) for table in host_tables(records)])
    # The registered domain of both has a row of its own, with the number of its URLs.
    rows = rows.filter(pl.col("key") != "com.example")
    of_records = set(known_hosts._SAME) | {"key", "robots_text", "sitemaps"}
    same = [n for n in rows.columns if n in of_records - {"requests"}]
    assert len(same) > 10
    assert again.select(same).equals(rows.select(same))


def test_newer_notes_of_other_batches_override_host_records(tmp_path):
    table = str(tmp_path / "table")
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    notes = {"a.example.com": Note(7.0, 70), "c.example.com": Note(None, 90)}
    found = known(table, HOSTS, notes)
    assert (found.get("a.example.com").crawl_delay, found.get("a.example.com").backoff_until) == (
        7.0,
        70,
    )
    assert found.get("c.example.com") == HostRecord("c.example.com", backoff_until=90)
    assert found.get("b.example.com") is None


def test_long_texts_go_out_few_at_a_time():
    records = (HostRecord(f"h{n}.example.com", "http://h/", 200, "x" * 500_000) for n in range(100))
    assert max(table.nbytes for table in host_tables(records)) < 10 << 20
