"""Rows of a table in Bigtable: scanned, sought and written, as Arrow tables of packed cells.

Google's client reads and writes cell by cell, at 20 to 50 times the cost of what
is done here: whole replies over a channel of our own. A reader that is cut off
goes on behind the last row that it has; a writer repeats the same cells with the
same timestamps, which changes nothing.
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
from .cells import CellKind
from .channel import (
    ATTEMPTS,
    RETRYABLE,
    RETRYABLE_CODES,
    gave_up,
    open_channel,
    persistent,
    refused,
    said,
)
from .key_ranges import KeyRange, plan_key_ranges
from .limits import check_limits
from .pace import Pace, back_off
from .request_batches import REQUEST_ROWS, key_bytes, packets, requests, table_of
from .row_filters import change_filter, snapshot_filter, version_filter

CHUNK_ROWS = 65_536
CHUNK_BYTES = 16 << 20
TIMEOUT_S = 600.0


class BigtableTable:
    """A connection to one table. It cannot be pickled: use ``connect`` where it is needed.

    Attributes:
        address: Where the table is.
        client: Google's low-level client, on our channel.
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

    def scan(
        self, kind: CellKind, part: KeyRange, snapshot: int, due: Due | None = None, limit: int = 0
    ) -> Iterator[pa.Table]:
        """Yields the cells of a key range, in key order.

        Args:
            kind: Which cells.
            part: Which rows.
            snapshot: Number of the snapshot that is read; later cells are not there.
            due: Only rows of the state that are due. Those of unknown time may
                be among them.
            limit: How many rows at most, such that fit into one request; 0 is all.

        Yields:
            Tables of ``key`` and ``cell`` (binary), up to ``CHUNK_ROWS`` rows and
            about ``CHUNK_BYTES``.

        Raises:
            UserError: Bigtable refuses, or fails ``ATTEMPTS`` times in a row.
        """
        request = self._request(snapshot_filter(kind, snapshot, due))
        request.rows_limit = limit
        yield from self._read_range(request, part)

    def changed(self, kind: CellKind, part: KeyRange, snapshot: int) -> Iterator[pa.Table]:
        """Yields the rows of a key range that were changed after a snapshot, in key order.

        Args:
            kind: Which cells.
            part: Which rows.
            snapshot: Number of the snapshot.

        Yields:
            As ``scan``; cells are empty.

        Raises:
            UserError: Bigtable refuses, or fails ``ATTEMPTS`` times in a row.
        """
        yield from self._read_range(self._request(change_filter(kind, snapshot)), part)

    def _read_range(self, request: Any, part: KeyRange) -> Iterator[pa.Table]:
        span = request.rows.row_ranges.add()
        if part.low is not None:
            span.start_key_closed = key_bytes(part.low)
        if part.high is not None:
            span.end_key_open = key_bytes(part.high)

        def go_on(last: bytes) -> bool:
            span.start_key_open = last
            return not span.end_key_open or last < span.end_key_open

        yield from self._read(request, go_on)

    def seek(self, kind: CellKind, keys: Iterable[str], snapshot: int) -> Iterator[pa.Table]:
        """Yields the cells of the rows with the given keys, in key order; only those are read.

        Args:
            kind: Which cells.
            keys: Row keys, in any order.
            snapshot: Number of the snapshot that is read.

        Yields:
            As ``scan``.

        Raises:
            UserError: Bigtable refuses, or fails ``ATTEMPTS`` times in a row.
        """
        for some in packets(sorted({key_bytes(key) for key in keys})):
            request = self._request(snapshot_filter(kind, snapshot))
            request.rows.row_keys.extend(some)

            def go_on(last: bytes, request: Any = request, some: list[bytes] = some) -> bool:
                del request.rows.row_keys[:]
                request.rows.row_keys.extend(key for key in some if key > last)
                return bool(request.rows.row_keys)

            yield from self._read(request, go_on)

    def write(self, kind: CellKind, cells: pa.Table, snapshot: int) -> None:
        """Writes cells with the timestamp of a snapshot. Again, it changes nothing.

        One request of at most ``REQUEST_ROWS`` rows and about ``REQUEST_BYTES``
        is under way at a time; where Bigtable asks for less, less is sent.

        Args:
            kind: Which cells.
            cells: Columns ``key`` and ``cell``; an empty cell is a tombstone.
            snapshot: Number of the snapshot that they belong to.

        Raises:
            UserError: A row is beyond Bigtable's limits, Bigtable refuses one, or
                fails ``ATTEMPTS`` times in a row.
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
        """Yields of rows with the given keys what a snapshot shows, in key order.

        Args:
            kind: Which cells.
            keys: Row keys, in any order.
            snapshot: Number of the snapshot.

        Yields:
            (key, number of the snapshot that has made the cell, whether it is a
            tombstone), of rows that had a cell by then.

        Raises:
            UserError: Bigtable refuses, or fails ``ATTEMPTS`` times in a row.
        """
        for some in packets(sorted({key_bytes(key) for key in keys}), REQUEST_ROWS):
            request = self._request(version_filter(kind, snapshot))
            request.rows.row_keys.extend(some)
            wrapped = types.ReadRowsRequest.wrap(request)
            yield from persistent(self.address, functools.partial(self._heads, wrapped))

    def _heads(self, request: Any) -> list[tuple[bytes, int, bool]]:
        found: list[tuple[bytes, int, bool]] = []
        for reply in self.client.read_rows(request=request, retry=None, timeout=TIMEOUT_S):
            for chunk in types.ReadRowsResponse.pb(reply).chunks:
                if chunk.row_key:  # the first part of a row; one that is reset comes again
                    empty = not chunk.value and not chunk.value_size
                    found.append((chunk.row_key, chunk.timestamp_micros // 1000, empty))
                elif chunk.reset_row:
                    found.pop()
        return found

    def erase(self, kind: CellKind, rows: Iterable[tuple[bytes, int]]) -> None:
        """Removes the older versions of cells. Again, it changes nothing.

        Args:
            kind: Which cells.
            rows: (key, number of the first snapshot whose version stays).

        Raises:
            UserError: Bigtable refuses, or fails ``ATTEMPTS`` times in a row.
        """
        family, qualifier = kind.family, kind.qualifier

        def fill(entry: Any, first: Any) -> None:
            deletion = entry.mutations.add().delete_from_column
            deletion.family_name, deletion.column_qualifier = family, qualifier
            deletion.time_range.end_timestamp_micros = first * 1000

        waiting = iter(rows)
        while some := list(itertools.islice(waiting, REQUEST_ROWS)):
            self._send(some, fill)

    def _send(self, rows: list[tuple[bytes, Any]], fill: Callable[[Any, Any], None]) -> None:
        """Changes rows, until all are; ``fill`` says how, for (entry of the request, value)."""
        failed = 0
        while rows:
            self.pace.wait()
            left, error = self._mutate(rows, fill)
            # What goes forward is no failure, as long as it does.
            failed = 0 if len(left) < len(rows) else failed + 1
            if left and failed == ATTEMPTS:
                raise gave_up(self.address, error)
            if left:
                self.pace.failed()
                back_off(failed)
            rows = left

    def ranges(self, number: int) -> list[KeyRange]:
        """Cuts the table into about so many ranges; others at each call."""
        return plan_key_ranges(self.samples(), number)

    def samples(self) -> list[tuple[bytes, int]]:
        """Returns (key, bytes before it) of some rows, in key order."""
        address = self.address

        def ask() -> list[tuple[bytes, int]]:
            replies = self.client.sample_row_keys(
                table_name=address.name, app_profile_id=address.app_profile, retry=None,
                timeout=60,
            )  # fmt: skip
            return [(reply.row_key, reply.offset_bytes) for reply in replies]

        return persistent(address, ask)

    def _request(self, row_filter: Any) -> Any:
        request = types.ReadRowsRequest.pb()(
            table_name=self.address.name, app_profile_id=self.address.app_profile
        )
        request.filter.CopyFrom(row_filter)
        return request

    def _read(self, request: Any, go_on: Callable[[bytes], bool]) -> Iterator[pa.Table]:
        failed = 0
        done = False
        keys: list[bytes] = []
        values: list[bytes] = []
        size = 0
        while not done:
            last = b""
            try:
                with said(self.address, keep=RETRYABLE):
                    for seen, key, value in self._stream(request):
                        last = seen
                        failed = 0
                        if key:
                            keys.append(key)
                            values.append(value)
                            size += len(value)
                            if len(keys) >= CHUNK_ROWS or size >= CHUNK_BYTES:
                                yield table_of(keys, values)
                                keys, values, size = [], [], 0
                done = True
            except RETRYABLE as error:
                failed += 1
                if failed == ATTEMPTS:
                    raise gave_up(self.address, error) from error
                done = bool(last) and not go_on(last)
                if not done:
                    back_off(failed)
        if keys:
            yield table_of(keys, values)

    def _stream(self, request: Any) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yields (last key seen, key, cell) of rows; key is empty where rows were only passed."""
        half_key, half = b"", b""
        replies = self.client.read_rows(
            request=types.ReadRowsRequest.wrap(request), retry=None, timeout=TIMEOUT_S
        )
        to_pb = types.ReadRowsResponse.pb
        for reply in replies:
            message = to_pb(reply)
            for chunk in message.chunks:
                if chunk.commit_row and not half_key:
                    yield chunk.row_key, chunk.row_key, chunk.value
                elif chunk.reset_row:
                    half_key, half = b"", b""
                else:  # a large cell comes in parts
                    half_key = chunk.row_key or half_key
                    half += chunk.value
                    if chunk.commit_row:
                        yield half_key, half_key, half
                        half_key, half = b"", b""
            if message.last_scanned_row_key:
                yield message.last_scanned_row_key, b"", b""

    def _mutate(
        self, rows: list[tuple[bytes, Any]], fill: Callable[[Any, Any], None]
    ) -> tuple[list[tuple[bytes, Any]], Exception | None]:
        """Returns the rows that may be tried again, and what was wrong with the first one."""
        request = types.MutateRowsRequest.pb()(
            table_name=self.address.name, app_profile_id=self.address.app_profile
        )
        add = request.entries.add
        for key, value in rows:
            fill(add(row_key=key), value)
        waiting = set(range(len(rows)))
        problem: Exception | None = None
        try:
            with said(self.address, keep=RETRYABLE):
                replies = self.client.mutate_rows(
                    request=types.MutateRowsRequest.wrap(request), retry=None, timeout=60,
                    metadata=self._metadata,
                )  # fmt: skip
                for reply in replies:
                    message = types.MutateRowsResponse.pb(reply)
                    for entry in message.entries:
                        if not entry.status.code:
                            waiting.discard(entry.index)
                            continue
                        problem = errors.from_grpc_status(entry.status.code, entry.status.message)
                        if entry.status.code not in RETRYABLE_CODES:
                            raise refused(self.address, rows[entry.index][0], problem)
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
    found = parse_address(address) if isinstance(address, str) else address
    with _LOCK:  # a process that was forked needs one of its own
        return _connect(found, os.getpid())


@functools.lru_cache(maxsize=16)
def _connect(address: BigtableAddress, process: int) -> BigtableTable:
    return BigtableTable(address)
