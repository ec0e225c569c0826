"""Reads and writes the content of the manifest row of a table in Bigtable."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any, TypeVar

from ...web.base.errors import UserError
from ...web.base.safe_json import read_json
from ..disk.record_checks import WRITER, check_format, this_version

HEAD_FORMAT = 1
Made = TypeVar("Made")


@dataclasses.dataclass(frozen=True)
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


@dataclasses.dataclass(frozen=True)
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
