"""What Bigtable answers when it fails: cut connections, quotas, denials, large cells in parts."""

import contextlib
import dataclasses
import time

import grpc
import pyarrow as pa
import pytest
from bigtable_emulator import Proxy
from cell_kinds import STATE_CELL
from google.cloud.bigtable_v2 import types
from state_rows import ALL, keys_of, scanned, state

from nutbeam.io.bigtable import client as module
from nutbeam.io.bigtable import request_parts as bigtable_packets
from nutbeam.io.bigtable.admin import create_table
from nutbeam.io.bigtable.cells import decode, encode
from nutbeam.io.bigtable.client import BigtableTable, connect
from nutbeam.io.bigtable.own_rows import SWAP_ATTEMPTS, OwnRows
from nutbeam.web.base.errors import UserError

pytestmark = pytest.mark.bigtable


def test_a_cell_in_parts_and_rows_passed_over(scripted):
    # As production sends them: the emulator sends one reply a row, always whole.
    table, server = scripted
    chunk = types.ReadRowsResponse.CellChunk
    server.answers["ReadRows"] = [
        types.ReadRowsResponse(chunks=[chunk(row_key=b"a", value=b"1", commit_row=True),
                                       chunk(row_key=b"b", value=b"2", value_size=6)]),
        types.ReadRowsResponse(chunks=[chunk(value=b"34", value_size=6)]),
        types.ReadRowsResponse(chunks=[chunk(value=b"56", commit_row=True),
                                       chunk(row_key=b"c", value=b"x", value_size=9),
                                       chunk(reset_row=True),
                                       chunk(row_key=b"c", value=b"7", commit_row=True)]),
        types.ReadRowsResponse(last_scanned_row_key=b"d"),
    ]  # fmt: skip
    (found,) = table.scan(STATE_CELL, ALL, 1)
    assert found.to_pylist() == [
        {"key": b"a", "cell": b"1"}, {"key": b"b", "cell": b"23456"}, {"key": b"c", "cell": b"7"},
    ]  # fmt: skip


@pytest.mark.parametrize("cuts", [1, 3])
def test_a_scan_that_is_cut_off_goes_on_where_it_was(cut, cuts, monkeypatch):
    # A channel whose connection broke needs a moment, or a cut is several failures.
    monkeypatch.setattr(module, "back_off", lambda failed: time.sleep(0.1))
    table, proxy = cut
    rows = state(3_000)
    table.write(STATE_CELL, encode(rows, STATE_CELL), 1)
    proxy.cut_after, proxy.cuts = proxy.received + 60_000, cuts
    assert scanned(table).equals(rows)
    assert proxy.cuts == 0
    proxy.cuts = cuts
    sought = keys_of(rows)[::2]
    found = decode(pa.concat_tables(table.seek(STATE_CELL, sought, 1)), STATE_CELL)
    assert keys_of(found) == sought
    assert proxy.cuts == 0


def test_a_write_that_is_cut_off_is_repeated(cut, monkeypatch):
    monkeypatch.setattr(module, "back_off", lambda failed: time.sleep(0.1))
    monkeypatch.setattr(bigtable_packets, "REQUEST_ROWS", 100)
    table, proxy = cut
    rows = state(3_000)
    proxy.cut_after, proxy.cuts = 2_000, 3
    table.write(STATE_CELL, encode(rows, STATE_CELL), 1)
    assert proxy.cuts == 0
    assert scanned(table).equals(rows)


def test_a_server_that_never_answers_is_given_up(bigtable, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr(module, "back_off", waits.append)
    with Proxy(bigtable.host) as proxy:
        address = bigtable.new_address(proxy.host)
        create_table(address, str(tmp_path))
        with contextlib.closing(BigtableTable(address)) as table:
            proxy.cut_after, proxy.cuts = 0, 10**9
            for attempt in (
                lambda: scanned(table),
                lambda: table.write(STATE_CELL, encode(state(3), STATE_CELL), 1),
            ):
                with pytest.raises(
                    UserError, match="failed 5 times in a row for bigtable://my-pro"
                ):
                    attempt()
    assert waits == [1, 2, 3, 4] * 2


def test_a_commit_that_is_never_answered_names_its_attempts(cut, monkeypatch):
    table, proxy = cut
    waits = []
    monkeypatch.setattr("nutbeam.io.bigtable.channel.back_off", waits.append)
    proxy.cut_after, proxy.cuts = 0, 10**9
    with pytest.raises(
        UserError, match=f"failed {SWAP_ATTEMPTS} times in a row for bigtable://my-pro"
    ):
        OwnRows(table).swap(b"\0o", b"column", b"old", {b"column": b"new"}, 1)
    assert waits == list(range(1, SWAP_ATTEMPTS))


def test_errors_that_bigtable_returns_for_a_row_are_quoted(table, monkeypatch):
    monkeypatch.setattr(module, "back_off", lambda failed: None)
    other = dataclasses.replace(STATE_CELL, family="x")
    # The emulator calls it an internal error, which may be tried again.
    with pytest.raises(UserError, match=r"failed 5 times in a row for bigtable:.*unknown family"):
        table.write(other, encode(state(3), STATE_CELL), 1)


def statuses(*codes):
    reply = types.MutateRowsResponse.pb()()
    for at, (code, message) in enumerate(codes):
        entry = reply.entries.add(index=at)
        entry.status.code, entry.status.message = code, message
    return types.MutateRowsResponse.wrap(reply)


def test_the_status_of_each_row_counts(scripted, monkeypatch):
    # The emulator takes or refuses requests as a whole.
    waits = []
    monkeypatch.setattr(module, "back_off", waits.append)
    table, server = scripted
    rows = pa.table({"key": [b"a", b"b", b"c"], "cell": [b"1", b"2", b"3"]})
    server.answers["MutateRows"] = [statuses((0, ""), (14, "busy"), (0, ""))]
    table.write(STATE_CELL, rows, 1)
    sent = [[entry.row_key for entry in request.entries] for request in server.requests]
    # What did not come in is sent again; then the answer is of one row, and that is in.
    assert sent == [[b"a", b"b", b"c"], [b"b"]]
    assert waits == [0]
    server.answers["MutateRows"] = [statuses((0, ""), (3, "cell too big"))]
    with pytest.raises(UserError, match=r"Bigtable refuses row b'b' of bigtable:.*cell too big"):
        table.write(STATE_CELL, rows, 1)


BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)


@pytest.mark.parametrize("code", BUSY)
def test_requests_over_quota_are_retried_and_finally_reported(scripted, monkeypatch, code):
    waits = []
    monkeypatch.setattr(module, "back_off", waits.append)
    table, server = scripted
    rows = pa.table({"key": [b"a"], "cell": [b"1"]})
    server.answers["MutateRows"] = [statuses((0, ""))]
    server.refusals = [code] * 4
    table.write(STATE_CELL, rows, 1)
    assert waits == [1, 2, 3, 4]
    server.refusals = [code] * 4
    assert scanned(table).num_rows == 0
    for attempt in (lambda: table.write(STATE_CELL, rows, 1), lambda: scanned(table)):
        server.refusals = [code] * 5
        with pytest.raises(
            UserError, match=r"^[^\n]* failed 5 times in a row for bigtable:.*Quota exceeded[^\n]*$"
        ):
            attempt()
        assert server.refusals == []


def test_a_missing_permission_is_reported_at_once(scripted):
    table, server = scripted
    server.refusals = [grpc.StatusCode.PERMISSION_DENIED]
    with pytest.raises(UserError, match=r"^no permission for bigtable:.*roles/bigtable.user"):
        scanned(table)


def test_an_answer_that_lacks_a_row_says_nothing_of_it(scripted, monkeypatch):
    monkeypatch.setattr(module, "back_off", lambda failed: None)
    table, server = scripted
    rows = pa.table({"key": [b"a", b"b"], "cell": [b"1", b"2"]})
    server.answers["MutateRows"] = [statuses((0, ""))]
    table.write(STATE_CELL, rows, 1)
    assert [len(request.entries) for request in server.requests] == [2, 1]


def test_writing_slows_down_when_the_server_limits_its_rate(scripted):
    table, server = scripted
    answer = statuses((0, ""))
    answer.rate_limit_info = types.RateLimitInfo(period={"seconds": 10}, factor=0.7)
    server.answers["MutateRows"] = [answer]
    assert table.pace.rate is None
    table.write(STATE_CELL, pa.table({"key": [b"a"], "cell": [b"1"]}), 1)
    assert table.pace.rate == 7


def test_no_table(bigtable):
    table = connect(bigtable.new_address())
    for attempt in (
        lambda: scanned(table),
        lambda: table.write(STATE_CELL, encode(state(1), STATE_CELL), 1),
        table.samples,
    ):
        with pytest.raises(
            UserError, match=r"no table at bigtable://.*: nutbeam table create makes"
        ):
            attempt()


def test_the_application_profile_is_sent(scripted):
    table, server = scripted
    table.address = dataclasses.replace(table.address, app_profile="batch")
    server.answers["MutateRows"] = [statuses((0, ""))]
    list(table.scan(STATE_CELL, ALL, 1))
    list(table.seek(STATE_CELL, ["a"], 1))
    table.write(STATE_CELL, pa.table({"key": [b"a"], "cell": [b"1"]}), 1)
    table.samples()
    assert [request.app_profile_id for request in server.requests] == ["batch"] * 4
