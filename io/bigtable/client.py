"""Reads and writes rows of a table in Bigtable, as Arrow tables of packed cells.

Google's client handles each cell separately, which costs 20 to 50 times as much CPU time. This
client handles whole replies, over a channel of its own. After an interruption a reader
continues after its last row. A writer repeats the same cells with the same
timestamps, which changes nothing.
"""

import base64
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from google.api_core import exceptions as errors
from google.cloud.bigtable_v2 import BigtableClient, types
from google.cloud.bigtable_v2.services.bigtable.transports import BigtableGrpcTransport

from ..tablets.tablets import Due
from .address import BigtableAddress, parse_address
from .cell_layout import CellKind
from .channel import (
    CALL_ATTEMPTS,
    RETRYABLE,
    Pace,
    back_off,
    gave_up,
    one_line_errors,
    open_channel,
    persistent,
    refused_row,
)
from .key_ranges import KeyRange, plan_key_ranges
from .request_parts import (
    REQUEST_ROWS,
    check_limits,
    key_batches,
    key_bytes,
    requests,
    snapshot_filter,
    table_of,
    version_filter,
)

CHUNK_ROWS = 65_536
CHUNK_BYTES = 16 << 20
TIMEOUT_S = 600.0


class BigtableTable:
    """A connection to one table. It cannot be pickled: each process calls ``connect``.

    Attributes:
        address: Where the table is.
        client: Google's low-level client, on the channel of ``open_channel``.
        pace: Limits how fast rows are written.
    """

    def __init__(self, address: BigtableAddress) -> None:
        self.address = address
        self._channel = open_channel(address)
        self.client = BigtableClient(transport=BigtableGrpcTransport(channel=self._channel))
        self.pace = Pace()
        flags = types.FeatureFlags(mutate_rows_rate_limit2=True)
        encoded = base64.urlsafe_b64encode(types.FeatureFlags.serialize(flags)).decode()
        self._metadata = (("bigtable-features", encoded),)

    def close(self) -> None:
        self.client.transport.close()

    def request(self, kind: Any, **fields: Any) -> Any:
        """Returns a request of Google's class ``kind`` about this table."""
        address = self.address
        fields |= {"table_name": address.name, "app_profile_id": address.app_profile}
        return kind.wrap(kind.pb()(**fields))

    def scan(
        self, kind: CellKind, part: KeyRange, snapshot: int, due: Due | None = None, limit: int = 0
    ) -> Iterator[pa.Table]:
        """Yields the cells of a key range, in key order.

        Args:
            kind: The kind of the cells.
            part: The key range.
            snapshot: Number of the snapshot; later cells are left out.
            due: Selects rows that are due by ``Kind.due``; rows without a time may pass, too.
            limit: The largest number of rows, for ranges that need one request; 0 is no limit.

        Yields:
            Tables of ``key`` and ``cell`` (binary), up to ``CHUNK_ROWS`` rows and
            about ``CHUNK_BYTES``.

        Raises:
            UserError: Bigtable refuses, or fails ``CALL_ATTEMPTS`` times in a row.
        """
        yield from self.read_range(snapshot_filter(kind, snapshot, due), part, limit)

    def read_range(self, row_filter: Any, part: KeyRange, limit: int = 0) -> Iterator[pa.Table]:
        """Yields the cells of a key range that a filter passes; see ``scan``."""
        request = self.request(types.ReadRowsRequest, filter=row_filter, rows_limit=limit)
        span = types.ReadRowsRequest.pb(request).rows.row_ranges.add()
        if part.low is not None:
            span.start_key_closed = key_bytes(part.low)
        if part.high is not None:
            span.end_key_open = key_bytes(part.high)

        def go_on(last: bytes) -> bool:
            span.start_key_open = last
            return not span.end_key_open or last < span.end_key_open

        yield from self._read(request, go_on)

    def seek(self, kind: CellKind, keys: Iterable[str], snapshot: int) -> Iterator[pa.Table]:
        """Yields the cells of the rows with the given keys, in key order.

        Args:
            kind: The kind of the cells.
            keys: Row keys, in any order.
            snapshot: Number of the snapshot that is read.

        Yields:
            Tables as ``scan`` does.

        Raises:
            UserError: Bigtable refuses, or fails ``CALL_ATTEMPTS`` times in a row.
        """
        row_filter = snapshot_filter(kind, snapshot)
        for batch in key_batches(keys):
            rows = {"row_keys": batch}
            request = self.request(types.ReadRowsRequest, filter=row_filter, rows=rows)
            row_keys = types.ReadRowsRequest.pb(request).rows.row_keys

            def go_on(last: bytes, row_keys: Any = row_keys, batch: list[bytes] = batch) -> bool:
                row_keys[:] = [key for key in batch if key > last]
                return bool(row_keys)

            yield from self._read(request, go_on)

    def read_cells(self, row_filter: Any, **rows: Any) -> list[tuple[bytes, bytes, int, bytes]]:
        """Returns all cells of a few rows that a filter passes.

        Args:
            row_filter: The filter.
            rows: Fields of Bigtable's ``RowSet``.

        Returns:
            (row key, column, timestamp in us, value), as Bigtable orders them: the newest version of a
            cell first.

        Raises:
            UserError: Bigtable refuses, or fails ``CALL_ATTEMPTS`` times in a row.
        """
        request = self.request(types.ReadRowsRequest, rows=rows, filter=row_filter)
        return persistent(self.address, functools.partial(self._cells, request))

    def _cells(self, request: Any) -> list[tuple[bytes, bytes, int, bytes]]:
        cells: list[tuple[bytes, bytes, int, bytes]] = []
        key, column, value, time, committed = b"", b"", b"", 0, 0
        for reply in self.client.read_rows(request=request, retry=None, timeout=60):
            for chunk in types.ReadRowsResponse.pb(reply).chunks:
                if chunk.reset_row:
                    value = b""
                    del cells[committed:]
                    continue
                key = chunk.row_key or key
                column = chunk.qualifier.value if chunk.HasField("qualifier") else column
                time = time if value else chunk.timestamp_micros
                value += chunk.value
                if not chunk.value_size:  # else a large cell goes on
                    cells.append((key, column, time, value))
                    value = b""
                committed = len(cells) if chunk.commit_row else committed
        return cells

    def write(self, kind: CellKind, cells: pa.Table, snapshot: int) -> None:
        """Writes cells with the timestamp of a snapshot; repeating it changes nothing.

        It sends one request at a time, with at most ``REQUEST_ROWS`` rows and about
        ``REQUEST_BYTES``. It sends more slowly if Bigtable demands it.

        Args:
            kind: The kind of the cells.
            cells: Columns ``key`` and ``cell``; an empty cell is a tombstone.
            snapshot: Number of the snapshot that they belong to.

        Raises:
            UserError: A row is beyond Bigtable's limits, Bigtable refuses one, or
                fails ``CALL_ATTEMPTS`` times in a row.
        """
        check_limits(cells)
        family, qualifier = kind.family, kind.qualifier

        def fill(entry: Any, value: Any) -> None:
            cell = entry.mutations.add().set_cell
            cell.family_name, cell.column_qualifier = family, qualifier
            cell.timestamp_micros, cell.value = snapshot * 1000, value

        for rows in requests(cells):
            self._send(rows, fill)

    def newest(
        self, kind: CellKind, keys: Iterable[str], snapshot: int
    ) -> Iterator[tuple[bytes, int, bool]]:
        """Yields the snapshots that made the cells of the given rows, in key order.

        Args:
            kind: The kind of the cells.
            keys: Row keys, in any order.
            snapshot: Number of the snapshot.

        Yields:
            (key, number of the snapshot that made the cell, whether the cell is a
            tombstone), for rows that have a cell in the snapshot.

        Raises:
            UserError: Bigtable refuses, or fails ``CALL_ATTEMPTS`` times in a row.
        """
        for batch in key_batches(keys, REQUEST_ROWS):
            for key, _, time, value in self.read_cells(
                version_filter(kind, snapshot), row_keys=batch
            ):
                yield key, time // 1000, not value

    def erase(self, kind: CellKind, rows: Iterable[tuple[bytes, int]]) -> None:
        """Removes the older versions of cells; repeating it changes nothing.

        Args:
            kind: The kind of the cells.
            rows: (key, number of the first snapshot whose version stays).

        Raises:
            UserError: Bigtable refuses, or fails ``CALL_ATTEMPTS`` times in a row.
        """
        family, qualifier = kind.family, kind.qualifier

        def fill(entry: Any, first: Any) -> None:
            deletion = entry.mutations.add().delete_from_column
            deletion.family_name, deletion.column_qualifier = family, qualifier
            deletion.time_range.end_timestamp_micros = first * 1000

        waiting = iter(rows)
        while batch := list(itertools.islice(waiting, REQUEST_ROWS)):
            self._send(batch, fill)

    def _send(self, rows: list[tuple[bytes, Any]], fill: Callable[[Any, Any], None]) -> None:
        """Changes rows, with retries; ``fill`` writes a row's value into a request's entry."""
        failed = 0
        while rows:
            self.pace.wait()
            remaining_rows, error = self._mutate(rows, fill)
            # An attempt that has written some rows is not a failure.
            failed = 0 if len(remaining_rows) < len(rows) else failed + 1
            if remaining_rows and failed == CALL_ATTEMPTS:
                raise gave_up(self.address, error)
            if remaining_rows:
                self.pace.slow_down()
                back_off(failed)
            rows = remaining_rows

    def ranges(self, number: int) -> list[KeyRange]:
        """Cuts the table into about ``number`` ranges; the cuts differ from call to call."""
        return plan_key_ranges(self.samples(), number)

    def samples(self) -> list[tuple[bytes, int]]:
        """Returns (key, bytes of the table before the key) of sampled rows, in key order."""
        request = self.request(types.SampleRowKeysRequest)
        sample = self.client.sample_row_keys
        replies = persistent(
            self.address, lambda: list(sample(request=request, retry=None, timeout=60))
        )
        return [(reply.row_key, reply.offset_bytes) for reply in replies]

    def _read(self, request: Any, go_on: Callable[[bytes], bool]) -> Iterator[pa.Table]:
        """Yields tables of rows; retries failed requests.

        Before a retry, ``go_on`` changes the request so that it starts after the last key
        received; it returns False if no row is left.
        """
        failed, done, size = 0, False, 0
        keys: list[bytes] = []
        cells: list[bytes] = []
        while not done:
            last = b""
            try:
                with one_line_errors(self.address, keep=RETRYABLE):
                    for last, cell, _ in self._stream(request):
                        failed = 0
                        if cell is None:
                            continue
                        keys.append(last)
                        cells.append(cell)
                        size += len(cell)
                        if len(keys) >= CHUNK_ROWS or size >= CHUNK_BYTES:
                            yield table_of(keys, cells)
                            keys, cells, size = [], [], 0
                done = True
            except RETRYABLE as error:
                failed += 1
                if failed == CALL_ATTEMPTS:
                    raise gave_up(self.address, error) from error
                done = bool(last) and not go_on(last)
                if not done:
                    back_off(failed)
        if keys:
            yield table_of(keys, cells)

    def _stream(self, request: Any) -> Iterator[tuple[bytes, bytes | None, int]]:
        """Yields (key, cell, timestamp) of rows; a row that the filter drops has the cell None."""
        key, cell, time = b"", b"", 0  # parts of a large cell so far
        to_pb = types.ReadRowsResponse.pb
        for reply in self.client.read_rows(request=request, retry=None, timeout=TIMEOUT_S):
            message = to_pb(reply)
            for chunk in message.chunks:
                if chunk.commit_row and not key:
                    yield chunk.row_key, chunk.value, chunk.timestamp_micros
                elif chunk.reset_row:
                    key, cell = b"", b""
                else:
                    key, time = chunk.row_key or key, chunk.timestamp_micros or time
                    cell += chunk.value
                    if chunk.commit_row:
                        yield key, cell, time
                        key, cell = b"", b""
            if message.last_scanned_row_key:
                yield message.last_scanned_row_key, None, 0

    def _mutate(
        self, rows: list[tuple[bytes, Any]], fill: Callable[[Any, Any], None]
    ) -> tuple[list[tuple[bytes, Any]], Exception | None]:
        """Sends one request; returns the rows to retry, and the last error."""
        request = self.request(types.MutateRowsRequest)
        add = types.MutateRowsRequest.pb(request).entries.add
        for key, value in rows:
            fill(add(row_key=key), value)
        waiting = set(range(len(rows)))
        problem: Exception | None = None
        try:
            with one_line_errors(self.address, keep=RETRYABLE):
                replies = self.client.mutate_rows(
                    request=request, retry=None, timeout=60, metadata=self._metadata
                )
                for reply in replies:
                    message = types.MutateRowsResponse.pb(reply)
                    for entry in message.entries:
                        if not entry.status.code:
                            waiting.discard(entry.index)
                            continue
                        problem = errors.from_grpc_status(entry.status.code, entry.status.message)
                        if not isinstance(problem, RETRYABLE):
                            raise refused_row(self.address, rows[entry.index][0], problem)
                    if message.HasField("rate_limit_info"):
                        limit = message.rate_limit_info
                        self.pace.learn(limit.factor, limit.period.ToTimedelta().total_seconds())
        except RETRYABLE as error:
            problem = error
        return [rows[at] for at in sorted(waiting)], problem


_LOCK = threading.Lock()


def connect(address: BigtableAddress | str) -> BigtableTable:
    """Returns this process's connection to a table, opened once.

    Raises:
        UserError: There are no credentials.
    """
    parsed = parse_address(address) if isinstance(address, str) else address
    with _LOCK:  # a forked process needs a connection of its own
        return _connect(parsed, os.getpid())


@functools.lru_cache(maxsize=16)
def _connect(address: BigtableAddress, process: int) -> BigtableTable:
    return BigtableTable(address)
