"""Changes of the state of a table, and what it then has, on any back end."""

from frames import frame_of
from marking import newer

from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.manifest import load_manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.ranges import Range
from nutbeam.io.tablets.resolve import Resolution
from nutbeam.io.tablets.tablets import tablets
from nutbeam.policy.components.schema import STATE

ROWS = {f"com.a:http/{n:02d}": float(n) for n in range(20)}


def state_of(scores, **columns):
    return frame_of(STATE, *({"key": k, "score": s, **columns} for k, s in sorted(scores.items())))


def change(table, rows, name, component="state", reads=()):
    """Commits rows, as an inject does."""
    operation = begin(table, "inject", f"{name}.inject")
    return commit(
        operation, resolved(operation, rows, component), CommitTerms(reads=frozenset(reads))
    )


def resolved(operation, rows, component="state", resolver=newer):
    known = tablets(operation.files(component))
    base = known[0] if known else None
    return list(
        operation.table.resolve(
            Resolution(component, Range(None, None, base), resolver, order=operation.snapshot + 1),
            rows,
        )
    )


def parts_of(address, component="state", snapshot=None):
    """Returns (the table as of a snapshot, the tablets of a component)."""
    table = open_table(address)
    number = table.latest_snapshot() if snapshot is None else snapshot
    listed = load_manifest(table, number).components.get(component)
    return table.at(number), tablets(load_files(table, listed))


def scores(address, snapshot=None):
    """Returns the score of each URL, as a reader of the newest or another snapshot sees it."""
    table, known = parts_of(address, snapshot=snapshot)
    return dict(row for t in known for rows in table.scan("state", t)
                for row in rows.select("key", "score").iter_rows())  # fmt: skip
