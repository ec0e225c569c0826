"""Nutbeam's internal rows in Bigtable: the manifest row and others, with conditional writes.

They are in the same table as the rows of the crawl. Their keys begin with a zero byte; keys
of URLs and hosts never do. Their cells are in a family that keeps one version.
"""

import json
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from google.api_core import exceptions as errors
from google.cloud.bigtable_v2 import types

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import read_json
from ..disk.record_checks import WRITER, check_format, this_version
from .cell_layout import OWN_FAMILY
from .channel import persistent
from .client import BigtableTable

HEAD_FORMAT = 1
Made = TypeVar("Made")
SWAP_ATTEMPTS = 20
_BY = b"by"
# Column and value of each cell.
Cells = dict[bytes, bytes]


@dataclass(frozen=True)
class ManifestHead:
    """The content of the manifest row.

    Attributes:
        snapshot: The newest snapshot that was committed.
        id: Id of the attempt that made it.
        applying: Whether its changes may be missing from some rows.
        value: The unparsed cell.
        time: Time of its commit, ms, by the clock of the committing machine.
        writes: Number of snapshots up to this one that changed rows.
    """

    snapshot: int
    id: str
    applying: bool
    value: bytes
    time: int = 0
    writes: int = 0

    @property
    def pinned_snapshot(self) -> int:
        """The newest snapshot that can be read."""
        return self.snapshot - 1 if self.applying else self.snapshot


@dataclass(frozen=True)
class Settings:
    """Settings that were chosen when the table was created.

    Attributes:
        files: The place of batches and changes: a folder or an address in a store.
        app_profile: Default application profile.
    """

    files: str
    app_profile: str = ""


def new_head(snapshot: int, attempt: str, *, applying: bool, now: int, writes: int) -> ManifestHead:
    """Returns the next content of the manifest row."""
    record = {
        "format": HEAD_FORMAT, WRITER: this_version(), "snapshot": snapshot, "id": attempt,
        "applying": applying, "time": now, "writes": writes,
    }  # fmt: skip
    return ManifestHead(snapshot, attempt, applying, json.dumps(record).encode(), now, writes)


def head_of(value: bytes) -> ManifestHead:
    """Parses a cell of the manifest row; see ``parsed_cell``."""
    names = ("snapshot", "id", "applying", "time", "writes")
    return parsed_cell(
        value, lambda record: ManifestHead(value=value, **{name: record[name] for name in names})
    )


def parsed_cell(value: bytes, make: Callable[[Any], Made]) -> Made:
    """Returns the result of ``make`` on the JSON in a cell of the manifest row.

    Raises:
        UserError: The cell is damaged, or its format is newer.
    """
    try:
        record = read_json(value)
        if isinstance(record, dict):
            check_format(record, HEAD_FORMAT, "the table")
        return make(record)
    except (ValueError, KeyError, TypeError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise UserError(
            f"the manifest row is damaged: {value[:80]!r}: {reason}: restore the table from a "
            "backup, or from a copy by nutbeam copy"
        ) from error


class OwnRows:
    """The internal rows of one table.

    Attributes:
        table: The connection.
    """

    def __init__(self, table: BigtableTable) -> None:
        self.table = table

    def get(self, key: bytes, column: bytes | None = None) -> Cells:
        """Returns the newest cells of a row, or of one column; empty if there is no such row."""
        cells = self.table.read_cells(_newest(column), row_keys=[key])
        return {name: value for _, name, _, value in cells}

    def keys(self, prefix: bytes) -> list[bytes]:
        """Returns the keys of the rows that begin with a prefix, in order."""
        chain = types.RowFilter.pb()()
        chain.chain.filters.add(cells_per_row_limit_filter=1)
        chain.chain.filters.add(strip_value_transformer=True)
        # Keys are ASCII, so no key has the byte 255.
        span = {"start_key_closed": prefix, "end_key_open": prefix + b"\xff"}
        return [key for key, *_ in self.table.read_cells(chain, row_ranges=[span])]

    def put(self, key: bytes, cells: Cells, snapshot: int) -> None:
        """Writes cells of a row with the timestamp of a snapshot; repeating it changes nothing."""
        self._mutate(key, _mutations(cells, snapshot))

    def delete(self, key: bytes) -> None:
        """Removes a row, if it exists."""
        self._mutate(key, [types.Mutation.pb()(delete_from_row={})])

    def create(self, key: bytes, cells: Cells) -> bool:
        """Creates a row exactly once; returns False, and changes nothing, if it exists."""
        # If the outcome of a request is unknown, this value shows who created the row.
        attempt = secrets.token_bytes(8)
        mutations = _mutations({**cells, _BY: attempt}, 0)

        def make() -> bool:
            existed = self._check(key, None, false_mutations=mutations)
            return not existed or self.get(key).get(_BY) == attempt

        return persistent(self.table.address, make, SWAP_ATTEMPTS)

    def swap(self, key: bytes, column: bytes, old: bytes, cells: Cells, snapshot: int) -> bool:
        """Writes cells of a row if one column still has its old value.

        Returns:
            Whether the column had its old value. After a lost reply and a retry it is False
            although the cells were written.

        Raises:
            UserError: Bigtable refuses, or fails ``SWAP_ATTEMPTS`` times in a row.
        """
        chain = _newest(column)
        chain.chain.filters.add(
            value_range_filter={"start_value_closed": old, "end_value_closed": old}
        )
        mutations = _mutations(cells, snapshot)
        return persistent(
            self.table.address,
            lambda: self._check(key, chain, true_mutations=mutations),
            SWAP_ATTEMPTS,
        )

    def _mutate(self, key: bytes, mutations: list[Any]) -> None:
        request = self.table.request(types.MutateRowRequest, row_key=key, mutations=mutations)
        write = self.table.client.mutate_row
        persistent(self.table.address, lambda: write(request=request, retry=None, timeout=60))

    def _check(self, key: bytes, predicate: Any, **mutations: list[Any]) -> bool:
        """Sends one CheckAndMutateRow; returns whether the predicate held."""
        request = self.table.request(
            types.CheckAndMutateRowRequest, row_key=key, predicate_filter=predicate, **mutations
        )
        try:
            answer = self.table.client.check_and_mutate_row(request=request, retry=None, timeout=60)
        except errors.FailedPrecondition as error:
            raise UserError(
                f"{self.table.address} takes no commits: {error.message}: give an application "
                "profile with single-cluster routing that allows single-row transactions "
                "(?app_profile=NAME)"
            ) from error
        return answer.predicate_matched


def _newest(column: bytes | None) -> Any:
    """Returns the filter that passes the newest cell of one column, or of each."""
    chain = types.RowFilter.pb()()
    add = chain.chain.filters.add
    column_range: dict[str, Any] = {"family_name": OWN_FAMILY}
    if column is not None:
        column_range |= {"start_qualifier_closed": column, "end_qualifier_closed": column}
    add(column_range_filter=column_range)
    add(cells_per_column_limit_filter=1)
    return chain


def _mutations(cells: Cells, snapshot: int) -> list[Any]:
    mutations = []
    for column, value in cells.items():
        mutation = types.Mutation.pb()()
        cell = mutation.set_cell
        cell.family_name, cell.column_qualifier = OWN_FAMILY, column
        cell.timestamp_micros, cell.value = snapshot * 1000, value
        mutations.append(mutation)
    return mutations
