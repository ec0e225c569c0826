"""What jobs did and counted, kept when their snapshots expire.

``compact`` deletes manifests after some time. Before it does so, it writes what they say about their
jobs into a file, ``history/FIRST-LAST.jsonl``: a JSON record per snapshot. These files stay as long as
the table; they have neither URLs nor hosts.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.record_checks import PAST_CHECKS, check_fields
from ..storage.file_errors import MissingFile
from ..storage.files import create_exclusive, list_files, read_bytes
from ..storage.places import Folder, Found, Place
from ..table.table_snapshots import TableSnapshots
from .lineage import lineage
from .manifest import Manifest, load_manifest

HISTORY = "history"


@dataclass(frozen=True)
class PastJob:
    """A job whose snapshot has expired.

    Attributes:
        manifest: The manifest of the snapshot, without components and batches.
        undone: Whether a rollback has undone it.
    """

    manifest: Manifest
    undone: bool = False


class ExpiringJobs:
    """What the manifests of the snapshots before ``oldest`` say about their jobs, read at once.

    An interrupted ``compact`` may write the same snapshots again, into another file.

    Args:
        table: The table.
        oldest: Number of the first snapshot that stays.
    """

    def __init__(self, table: TableSnapshots, oldest: int) -> None:
        numbers = [number for number in table.snapshots() if number < oldest]
        self._table, self._numbers = table, numbers
        self._lines = list(_lines(table, numbers, oldest)) if numbers else []

    def keep(self) -> None:
        """Writes it into a file of the history.

        Raises:
            NoRoom: The disk is full.
        """
        if self._numbers:
            name = f"{self._numbers[0]:08d}-{self._numbers[-1]:08d}.jsonl"
            data = "".join(f"{line}\n" for line in self._lines).encode()
            create_exclusive(self._table / HISTORY / name, data)


def _lines(table: TableSnapshots, numbers: list[int], oldest: int) -> Iterator[str]:
    past = set[int]()
    with contextlib.suppress(UserError):
        past.update(manifest.snapshot for manifest in lineage(table))
    # What a damaged manifest between them has undone is unknown.
    first = min(past, default=oldest)
    for number in numbers:
        with contextlib.suppress(UserError):  # the manifest is damaged: what it said is lost
            manifest = load_manifest(table, number)
            record = {name: getattr(manifest, name) for name in PAST_CHECKS}
            record["undone"] = number > first and number not in past
            yield json.dumps(record)


def past_jobs(table: TableSnapshots) -> list[PastJob]:
    """Returns the jobs whose snapshots have expired, the oldest first.

    Raises:
        UserError: A file is damaged.
    """
    jobs: dict[int, PastJob] = {}
    # Listed first: a file is written before its snapshots are deleted.
    stored_snapshots = set(table.snapshots())
    for file in _files(table):
        jobs |= {job.manifest.snapshot: job for job in _read(file.path)}
    return [jobs[number] for number in sorted(jobs) if number not in stored_snapshots]


def damaged_history(table: Folder) -> Iterator[tuple[Place, UserError]]:
    """Yields the damaged files, with what is wrong."""
    for file in _files(table):
        try:
            _read(file.path)
        except MissingFile:
            continue  # removed since then
        except UserError as error:
            yield file.path, error


def _files(table: Folder) -> list[Found]:
    history_files = (f for f in list_files(table / HISTORY) if f.path.suffix == ".jsonl")
    return sorted(history_files, key=lambda file: file.path.name)


def _read(path: Place) -> list[PastJob]:
    data = read_bytes(path)
    try:
        return [_past_job(json_object(line)) for line in data.decode().splitlines()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"file is damaged: {path}: remove it; the counts of its jobs are lost"
        ) from error


def _past_job(record: Mapping[str, Any]) -> PastJob:
    manifest = Manifest(**{name: record[name] for name in PAST_CHECKS})
    check_fields(manifest, PAST_CHECKS)
    return PastJob(manifest, bool(record["undone"]))
