"""Rows of our own beside those of the crawl: read, written, and changed only if they are as known.

Their keys begin with a zero byte, which no key of a URL or a host does, and their
cells are in a family of which one version is kept.
"""

import secrets
from typing import Any

from google.api_core import exceptions as errors
from google.cloud.bigtable_v2 import types

from ...web.base.errors import UserError
from .channel import RETRYABLE, gave_up, persistent, said
from .client import BigtableTable
from .pace import back_off

FAMILY = "m"
_ATTEMPTS = 20
_BY = b"by"
# Column and value of each cell.
Cells = dict[bytes, bytes]


class OwnRows:
    """The rows of our own of one table.

    Attributes:
        table: The connection.
    """

    def __init__(self, table: BigtableTable) -> None:
        self.table = table

    def get(self, key: bytes, column: bytes | None = None) -> Cells:
        """Returns the newest cells of a row, all or of one column; none where there is no such row."""
        address = self.table.address
        request = types.ReadRowsRequest.pb()(
            table_name=address.name, app_profile_id=address.app_profile
        )
        request.rows.row_keys.append(key)
        request.filter.CopyFrom(_newest(column))
        wrapped = types.ReadRowsRequest.wrap(request)

        def ask() -> Cells:
            cells: Cells = {}
            name = b""
            for reply in self.table.client.read_rows(request=wrapped, retry=None, timeout=60):
                for chunk in types.ReadRowsResponse.pb(reply).chunks:
                    if chunk.reset_row:
                        cells = {}
                        continue
                    if chunk.HasField("qualifier"):
                        name = chunk.qualifier.value
                    # A large cell comes in parts.
                    cells[name] = cells.get(name, b"") + chunk.value
            return cells

        return persistent(address, ask)

    def put(self, key: bytes, cells: Cells, snapshot: int) -> None:
        """Writes cells of a row with the timestamp of a snapshot. Again, it changes nothing."""
        address = self.table.address
        request = types.MutateRowRequest.pb()(
            table_name=address.name, app_profile_id=address.app_profile, row_key=key,
            mutations=_mutations(cells, snapshot),
        )  # fmt: skip
        wrapped = types.MutateRowRequest.wrap(request)
        persistent(
            address, lambda: self.table.client.mutate_row(request=wrapped, retry=None, timeout=60)
        )

    def keys(self, prefix: bytes) -> list[bytes]:
        """Returns the keys of the rows that begin with something, in order."""
        address = self.table.address
        request = types.ReadRowsRequest.pb()(
            table_name=address.name, app_profile_id=address.app_profile
        )
        # No key goes on with 255: all are ASCII.
        request.rows.row_ranges.add(start_key_closed=prefix, end_key_open=prefix + b"\xff")
        add = request.filter.chain.filters.add
        add(cells_per_row_limit_filter=1)
        add(strip_value_transformer=True)
        wrapped = types.ReadRowsRequest.wrap(request)

        def ask() -> list[bytes]:
            replies = self.table.client.read_rows(request=wrapped, retry=None, timeout=60)
            chunks = (c for reply in replies for c in types.ReadRowsResponse.pb(reply).chunks)
            return [chunk.row_key for chunk in chunks if chunk.row_key]

        return persistent(address, ask)

    def delete(self, key: bytes) -> None:
        """Removes a row; one that is not there is none."""
        address = self.table.address
        mutation = types.Mutation(delete_from_row=types.Mutation.DeleteFromRow())
        request = types.MutateRowRequest(
            table_name=address.name, app_profile_id=address.app_profile, row_key=key,
            mutations=[mutation],
        )  # fmt: skip
        persistent(
            address, lambda: self.table.client.mutate_row(request=request, retry=None, timeout=60)
        )

    def create(self, key: bytes, cells: Cells) -> bool:
        """Makes a row exactly once; False if it existed already, unchanged."""
        # What tells ours from another one's, where the outcome is unknown.
        attempt = secrets.token_bytes(8)
        for failed in range(1, _ATTEMPTS + 1):
            try:
                there = self._check(key, None, (), _mutations({**cells, _BY: attempt}, 0))
                return not there or self.get(key).get(_BY) == attempt
            except RETRYABLE as error:
                if failed == _ATTEMPTS:
                    raise gave_up(self.table.address, error) from error
                back_off(failed)
        raise AssertionError

    def swap(self, key: bytes, column: bytes, old: bytes, cells: Cells, snapshot: int) -> bool:
        """Writes cells of a row, provided that one column is as it was read.

        Returns:
            Whether it was, and they are written.

        Raises:
            google.api_core.exceptions.GoogleAPICallError: One of ``RETRYABLE``: it
                may have come in or not.
            UserError: Bigtable refuses.
        """
        chain = _newest(column)
        chain.chain.filters.add(
            value_range_filter={"start_value_closed": old, "end_value_closed": old}
        )
        return self._check(key, chain, _mutations(cells, snapshot), ())

    def _check(self, key: bytes, predicate: Any, true: Any, false: Any) -> bool:
        """One CheckAndMutateRow; returns whether the predicate held.

        What may be tried again is raised as it is: whether the row was changed is
        then unknown.
        """
        address = self.table.address
        request = types.CheckAndMutateRowRequest.pb()(
            table_name=address.name, app_profile_id=address.app_profile, row_key=key,
            predicate_filter=predicate, true_mutations=true, false_mutations=false,
        )  # fmt: skip
        with said(address, keep=(*RETRYABLE, errors.FailedPrecondition)):
            try:
                return self.table.client.check_and_mutate_row(
                    request=types.CheckAndMutateRowRequest.wrap(request), retry=None, timeout=60
                ).predicate_matched
            except errors.FailedPrecondition as error:
                raise UserError(
                    f"{address} takes no commits: {error.message}: give an application profile "
                    "with single-cluster routing that allows single-row transactions "
                    "(?app_profile=NAME)"
                ) from error


def _newest(column: bytes | None) -> Any:
    """Returns the filter that leaves the newest cell of one column, or of each."""
    chain = types.RowFilter.pb()()
    add = chain.chain.filters.add
    column_range: dict[str, Any] = {"family_name": FAMILY}
    if column is not None:
        column_range |= {"start_qualifier_closed": column, "end_qualifier_closed": column}
    add(column_range_filter=column_range)
    add(cells_per_column_limit_filter=1)
    return chain


def _mutations(cells: Cells, snapshot: int) -> list[Any]:
    made = []
    for column, value in cells.items():
        mutation = types.Mutation.pb()()
        cell = mutation.set_cell
        cell.family_name, cell.column_qualifier = FAMILY, column
        cell.timestamp_micros, cell.value = snapshot * 1000, value
        made.append(mutation)
    return made
