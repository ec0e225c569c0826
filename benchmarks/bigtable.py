"""Bigtable: reading and writing state rows against Google's clients, on the emulator.

``python benchmarks/bigtable.py [--small]``. 100,000 rows of the state, as one packed cell each. Ours
encodes and decodes all columns; the baselines move keys and bytes only: Google's data client, and its
low-level client in a bare loop over a channel with the same options.

Budget: at least 60 % of the rows/s of the bare client.
"""

import contextlib
import functools
import importlib.util
import os
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import measure

DUE = 1_000  # ms; a fifth of the rows are due then


def make(address: str, folder: str, rows: int) -> None:
    """Makes a table with rows."""
    from nutbeam.io.bigtable.address import parse_address
    from nutbeam.io.bigtable.admin import create_table
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import encode
    from nutbeam.io.bigtable.client import connect

    create_table(parse_address(address), folder)
    connect(address).write(cell_kind("state"), encode(_state(rows), cell_kind("state")), 1)


def _state(rows: int) -> Any:
    import numpy as np
    import pyarrow as pa

    from nutbeam.policy.components.schema import STATE, conform

    number = np.arange(rows)
    text = [
        f"com.host{n // 50:06d}.www:https/some/path/page-{n % 50:06d}.html" for n in range(rows)
    ]
    columns = {
        "key": text,
        "status": number % 6 + 1,
        "fetch_time": number % 5 * 500 + DUE - 400,
        "fetch_interval": number * 0 + 2_592_000,
        "last_fetch_time": number,
        "score": 1 / (number + 1.0),
        "http_code": number * 0 + 200,
        "etag": [f'"{n:016x}"' for n in range(rows)],
        "signature": [n.to_bytes(16, "big") for n in range(rows)],
        "content_type": ["text/html"] * rows,
        "batch_id": ["1700000000-0123abcd"] * rows,
        "document": ["batches/1700000000-0123abcd/documents/0123456789abcdef.parquet"] * rows,
    }
    return conform(pa.table(columns), STATE)


def ours_scan(address: str, due: bool) -> int:
    """Reads all rows, or those that are due, and unpacks all columns."""
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import decode
    from nutbeam.io.bigtable.client import Due, connect
    from nutbeam.io.bigtable.key_ranges import KeyRange

    table = connect(address)
    _warm(table)
    with measure.measured():
        parts = table.scan(cell_kind("state"), KeyRange(None, None), 1, Due(DUE) if due else None)
        return sum(len(decode(part, cell_kind("state"))) for part in parts)


def bare_scan(address: str, due: bool) -> int:
    """The low-level client in a loop; keys and bytes, nothing unpacked."""
    from google.cloud.bigtable_v2 import types

    table, request = _bare(address, due)
    keys, values = [], []
    with measure.measured():
        request.rows.row_ranges.add()
        wrapped = types.ReadRowsRequest.wrap(request)
        for reply in table.client.read_rows(request=wrapped, retry=None, timeout=600):
            for chunk in types.ReadRowsResponse.pb(reply).chunks:
                keys.append(chunk.row_key)
                values.append(chunk.value)
        return len(keys)


def data_scan(address: str, due: bool) -> int:
    """The data client; keys and bytes, nothing unpacked."""
    from google.cloud.bigtable.data import ReadRowsQuery

    with _data(address) as (table, column):
        with measure.measured():
            query = ReadRowsQuery(row_filter=column(due))
            rows = [(row.row_key, row.cells[0].value) for row in table.read_rows_stream(query)]
        return len(rows)


def ours_seek(address: str, keys: list[str]) -> int:
    """Reads given rows and unpacks all columns."""
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import decode
    from nutbeam.io.bigtable.client import connect

    table = connect(address)
    _warm(table)
    with measure.measured():
        return sum(
            len(decode(part, cell_kind("state")))
            for part in table.seek(cell_kind("state"), keys, 1)
        )


def bare_seek(address: str, keys: list[str]) -> int:
    """The low-level client, all keys in one request."""
    from google.cloud.bigtable_v2 import types

    table, request = _bare(address, False)
    found = []
    with measure.measured():
        request.rows.row_keys.extend(sorted(key.encode() for key in keys))
        wrapped = types.ReadRowsRequest.wrap(request)
        for reply in table.client.read_rows(request=wrapped, retry=None, timeout=600):
            for chunk in types.ReadRowsResponse.pb(reply).chunks:
                found.append((chunk.row_key, chunk.value))
        return len(found)


def data_seek(address: str, keys: list[str]) -> int:
    """The data client, all keys in one query."""
    from google.cloud.bigtable.data import ReadRowsQuery

    with _data(address) as (table, column):
        with measure.measured():
            query = ReadRowsQuery(row_keys=[key.encode() for key in keys], row_filter=column(False))
            rows = [(row.row_key, row.cells[0].value) for row in table.read_rows_stream(query)]
        return len(rows)


def ours_write(address: str, rows: int) -> int:
    """Packs rows and writes them as a snapshot."""
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import encode
    from nutbeam.io.bigtable.client import connect

    table, state = connect(address), _state(rows)
    _warm(table)
    with measure.measured():
        table.write(cell_kind("state"), encode(state, cell_kind("state")), 2)
    return rows


def bare_write(address: str, rows: int) -> int:
    """The low-level client in a loop over cells that are packed already."""
    from google.cloud.bigtable_v2 import types

    table, _ = _bare(address, False)
    cells = _cells(rows)
    with measure.measured():
        for at in range(0, rows, 5_000):
            request = types.MutateRowsRequest.pb()(table_name=table.address.name)
            for key, value in cells[at : at + 5_000]:
                cell = request.entries.add(row_key=key).mutations.add().set_cell
                cell.family_name, cell.column_qualifier = "s", b"state"
                cell.timestamp_micros, cell.value = 2_000, value
            wrapped = types.MutateRowsRequest.wrap(request)
            for reply in table.client.mutate_rows(request=wrapped, retry=None, timeout=600):
                for entry in types.MutateRowsResponse.pb(reply).entries:
                    assert not entry.status.code
    return rows


def data_write(address: str, rows: int) -> int:
    """The data client's batcher over cells that are packed already."""
    from google.cloud.bigtable.data import RowMutationEntry, SetCell

    cells = _cells(rows)
    with _data(address) as (table, _):
        with measure.measured(), table.mutations_batcher() as batcher:
            for key, value in cells:
                cell = SetCell("s", b"state", value, timestamp_micros=2_000)
                batcher.append(RowMutationEntry(key, [cell]))
        return rows


def _cells(rows: int) -> list[tuple[bytes, bytes]]:
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import encode

    cells = encode(_state(rows), cell_kind("state"))
    return list(zip(*(cells.column(n).to_pylist() for n in ("key", "cell")), strict=True))


def _bare(address: str, due: bool) -> Any:
    from google.cloud.bigtable_v2 import types

    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.client import Due, connect
    from nutbeam.io.bigtable.request_parts import snapshot_filter

    table = connect(address)
    _warm(table)
    request = types.ReadRowsRequest.pb()(table_name=table.address.name)
    request.filter.CopyFrom(snapshot_filter(cell_kind("state"), 1, Due(DUE) if due else None))
    return table, request


def _warm(table: Any) -> None:
    """Connects, and does what is only done once a process."""
    from nutbeam.io.bigtable.cell_layout import cell_kind
    from nutbeam.io.bigtable.cells import decode, encode

    list(table.seek(cell_kind("state"), ["none"], 1))
    decode(encode(_state(1), cell_kind("state")), cell_kind("state"))


@contextlib.contextmanager
def _data(address: str) -> Iterator[Any]:
    from google.cloud.bigtable.data import BigtableDataClient, row_filters

    from nutbeam.io.bigtable.address import EMULATOR, parse_address
    from nutbeam.io.bigtable.cells import due_bytes

    def column(due: bool) -> Any:
        parts = [
            row_filters.ColumnRangeFilter("s", b"state", b"state"),
            row_filters.CellsColumnLimitFilter(1),
        ]
        if due:
            parts.append(row_filters.ValueRangeFilter(end_value=due_bytes(DUE + 1),
                                                      inclusive_end=False))  # fmt: skip
        return row_filters.RowFilterChain(parts)

    found = parse_address(address)
    os.environ[EMULATOR] = found.emulator
    with (
        BigtableDataClient(project=found.project) as client,
        client.get_table(found.instance, found.table) as table,
    ):
        table.read_row(b"none")
        yield table, column


def compare(emulator: Any, folder: str, rows: int, repeats: int) -> None:
    """Times all, one after the other, and prints rows/s and CPU."""
    read = str(emulator.new_address())
    measure.fresh("bigtable", "make", read, folder, rows)
    keys = _state(rows).column("key").to_pylist()[::10]

    def fresh(function: str, *args: object) -> measure.Figures:
        return measure.fresh("bigtable", function, read, *args)

    def written(function: str) -> measure.Figures:
        address = str(emulator.new_address())
        measure.fresh("bigtable", "make", address, folder, 0)
        return measure.fresh("bigtable", function, address, rows)

    patterns: list[tuple[str, int, Callable[[str], measure.Figures]]] = [
        ("read all", rows, lambda who: fresh(f"{who}_scan", False)),
        ("read the due fifth", rows, lambda who: fresh(f"{who}_scan", True)),
        ("read a tenth by key", len(keys), lambda who: fresh(f"{who}_seek", keys)),
        ("write", rows, lambda who: written(f"{who}_write")),
    ]
    shown = []
    for name, number, run in patterns:
        runs = {who: functools.partial(run, who) for who in ("ours", "bare", "data")}
        found = measure.interleaved(runs, repeats)
        results = {who: {figure.result for figure in figures} for who, figures in found.items()}
        if len(set(map(frozenset, results.values()))) != 1:
            raise SystemExit(f"{name}: not the same rows: {results}")
        work = {who: measure.median(figures, "work") for who, figures in found.items()}
        cpu = {who: measure.median(figures, "cpu") for who, figures in found.items()}
        shown.append(
            (name, *(number / work[who] for who in runs), work["bare"] / work["ours"],
             work["data"] / work["ours"], *(cpu[who] / number * 1e6 for who in runs))
        )  # fmt: skip
    heads = ("rows/s", "ours", "bare", "data client", "of bare", "of data", "CPU µs: ours", "bare",
             "data client")  # fmt: skip
    title = f"{rows:,} rows of the state, one packed cell each; median of {repeats}; per row passed"
    measure.table(title, heads, shown)
    print(
        f"\nload {statistics.fmean(os.getloadavg()):.1f}; budget: at least 0.6 of the bare client"
    )


def emulator() -> Any:
    """Returns the emulator, which ``with`` starts; ends with one line where it is not installed."""
    measure.need("pytest")
    helper = _emulator_helper()
    program = helper.find()
    if program is None:
        raise SystemExit(helper.MISSING)
    return helper.Emulator(program)


def _emulator_helper() -> ModuleType:
    path = measure.HERE.parent / "tests" / "support" / "bigtable_emulator.py"
    spec = importlib.util.spec_from_file_location("bigtable_emulator", path)
    assert spec is not None
    assert spec.loader is not None
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    return helper


def main() -> None:
    """Does what the command line says."""
    rows, repeats = (20_000, 1) if "--small" in sys.argv[1:] else (100_000, 3)
    with (
        tempfile.TemporaryDirectory(prefix="bigtable-") as name,
        emulator() as running,
    ):
        compare(running, str(pathlib.Path(name)), rows, repeats)


if __name__ == "__main__":
    main()
