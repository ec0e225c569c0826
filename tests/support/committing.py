"""Commits for tests: rows whose values say of which snapshot they are."""

import json

from frames import table_of

from nutbeam.io.bigtable.cell_layout import cell_kind
from nutbeam.io.bigtable.cells import decode
from nutbeam.io.bigtable.key_ranges import KeyRange
from nutbeam.io.bigtable.snapshot_log import ChangedFile
from nutbeam.io.storage.files import new_name
from nutbeam.io.storage.parquet_files import ParquetWriter
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import HOSTS, STATE

ROWS = 40
HALF = 5


def changes_of(snapshot):
    """Returns the rows of a commit by component: every row says the snapshot."""
    return {
        "state": table_of(
            STATE, *({"key": f"com.a:http/{n:03d}", "retries": snapshot} for n in range(ROWS))
        ),
        "hosts": table_of(HOSTS, {"key": "com.a", "exceptions": snapshot}),
    }


def record_of(snapshot):
    record = {"format": 1, "snapshot": snapshot, "components": {}, "batches": {}}
    return json.dumps(record).encode()


def write_changes(folder, tables, deleted=()):
    """Writes rows as files of changes."""
    changes = []
    for component, rows in tables.items():
        name = f"changes/{new_name()}"
        with ParquetWriter(folder / name, KINDS[component].schema) as writer:
            writer.write(rows)
        changes.append(ChangedFile(component, name, component in deleted))
    return changes


def read(log, component="state", snapshot=None):
    """Returns the rows of a snapshot, the newest that can be read if none is given."""
    kind = cell_kind(component)
    parts = log.table.scan(kind, KeyRange(None, None), log.pin() if snapshot is None else snapshot)
    return [row for part in parts for row in decode(part, kind).to_pylist()]


def versions(log, snapshot=None):
    """Returns of which snapshots all rows are that a reader sees, state and hosts."""
    state = {row["retries"] for row in read(log, "state", snapshot)}
    return state | {row["exceptions"] for row in read(log, "hosts", snapshot)}
