"""Counts leftover files of a table, and operations that never ended."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator

from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ..snapshots.hold import HOLD
from ..snapshots.manifest import readable_manifests
from ..snapshots.operation_records import LOST, OPERATIONS
from ..snapshots.operations import operation_of_record
from ..storage.files import list_files, read_bytes
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import WebTable
from ..tablets.file_lists import load_files
from .operation_fsck import record_files
from .purge import unnamed_files
from .retention import UNDER_WAY


@dataclasses.dataclass(frozen=True)
class Leftovers:
    """Harmless leftovers in a table.

    Attributes:
        orphans: Number of files that no snapshot names: of jobs that died or did not commit yet.
        orphan_bytes: Size of these files.
        temporary: Number of files that were never completed.
        leases: Number of claims of fetch attempts, held or not.
        unfinished: Operations that began more than a day ago and never committed.
    """

    orphans: int = 0
    orphan_bytes: int = 0
    temporary: int = 0
    leases: int = 0
    unfinished: tuple[str, ...] = ()


def left_over(table: WebTable) -> Leftovers:
    """Counts leftover files; lists operations that began over a day ago and never committed."""
    named = table.needed_files()
    components = {c for one in readable_manifests(table) for c in one.components.values()}
    for component in components:
        named.add(component.list)
        with contextlib.suppress(UserError):  # the list is damaged
            named |= {file.path for file in load_files(table, component)}
    records = {table / HOLD, *(file.path for file in record_files(table))}
    others = [file for file in list_files(table / OPERATIONS) if file.path not in records]
    files = [*unnamed_files(table, named, math.inf), *others]
    orphans = [one.bytes for one in files if not one.path.name.startswith(".")]
    claims = [one for one in list_files(table / "batches") if one.path.suffix == ".claim"]
    temporary, unfinished = len(files) - len(orphans), tuple(_unfinished_operations(table))
    return Leftovers(len(orphans), sum(orphans), temporary, len(claims), unfinished)


def _unfinished_operations(table: TableSnapshots) -> Iterator[str]:
    manifests = list(readable_manifests(table))
    done = {manifest.operation for manifest in manifests}
    first = min((manifest.snapshot for manifest in manifests), default=0)
    records = {file.path for file in record_files(table)}
    now = now_ms(max((manifest.latest_time for manifest in manifests), default=0))
    for path in sorted(records):
        if path.suffix == LOST or path.with_suffix(LOST) in records:
            continue
        with contextlib.suppress(UserError):
            pinned = operation_of_record(path, read_bytes(path))
            if pinned.now > now - UNDER_WAY * 1000:
                continue
            # Operations before the first snapshot in the history have an unknown end.
            if pinned.snapshot >= first - 1 and pinned.job != "crawl" and pinned.id not in done:
                yield pinned.id
