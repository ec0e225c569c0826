"""history: lists the snapshots of a table, with time, job and changes of each."""

import json
from collections.abc import Iterator
from typing import Any

from rich import filesize

from ...io.reading.row_history import row_history
from ...io.snapshots.manifest import newest_manifest
from ...io.table.opening import open_table
from ...io.upkeep.rollback import ComponentChange, ShownSnapshot, events, sizes
from ...policy.components.kinds import kind_of
from ...policy.components.schema import STATE_COLUMNS
from ...policy.components.vocabulary import iso, record_of
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.options import option
from ...web.base.visible import visible_lines
from ...web.base.wording import format_count
from ..base.command import TABLE, Invocation

ARGUMENTS = (TABLE,)
# The columns that make a version of a row.
VERSIONED = ("status", "fetch_time", "score", "retries", "http_code")
_COLUMNS = STATE_COLUMNS.pick(*VERSIONED)


def history_records(address: str, key: str) -> list[dict[str, Any]]:
    """Returns the versions of a row of the state in the snapshots that are kept, the newest first.

    Args:
        address: Address of the table.
        key: The row key.

    Returns:
        Of each: ``snapshot``, ``time`` and ``job`` of the snapshot that made it, and ``VERSIONED``;
        without these if there was no row.
    """
    records = []
    for version in row_history(address, key, VERSIONED):
        manifest, values = version.manifest, version.values
        record = {"snapshot": manifest.snapshot, "time": iso(manifest.time), "job": manifest.job}
        records.append(record | ({} if values is None else record_of(values, _COLUMNS)))
    return records


@dataclass(frozen=True)
class Options:
    """Options of history."""

    last: int = option(20, "How many of the newest snapshots to show; 0 is all.", minimum=0)
    counts: bool = option(
        False, "Show the counts of each operation, also of those whose snapshots have expired."
    )


def run(invocation: Invocation) -> int:
    table = open_table(str(invocation.table))
    options = invocation.options
    all_events = list(events(table, options.last, expired=options.counts))
    if not all_events:
        newest_manifest(str(invocation.table))  # raises the error for a missing table
    try:
        total = sizes(newest_manifest(str(invocation.table)))
    except UserError:
        total = {}  # the newest manifest is damaged; its line shows that
    if invocation.format == "json":
        record = {
            "snapshots": [event_record(event) for event in all_events],
            "sizes": {n: _sizes(s) for n, s in total.items()},
        }
        print(json.dumps(record))
        return 0
    for event in all_events:
        print(visible_lines(_lines(event, invocation.options.counts)))
    for name, (files, rows, size) in total.items():
        amount = f"{format_count(files, 'files')}, {format_count(rows, 'rows')}"
        print(f"{name}: {amount}, {filesize.decimal(size)}")
    return 0


def event_record(event: ShownSnapshot) -> dict[str, Any]:
    """Returns a snapshot as a record; with ``error`` if its manifest cannot be read."""
    manifest = event.manifest
    if manifest is None:
        return {"snapshot": event.number, "error": event.error}
    return {
        "snapshot": event.number,
        "time": iso(manifest.time),
        "committed": iso(manifest.committed) if manifest.committed else None,
        "job": manifest.job,
        "operation": manifest.operation,
        "batch": manifest.batch,
        "restores": manifest.restores,
        "undone": event.undone,
        "expired": event.expired,
        "counts": dict(manifest.counts),
        "changes": {name: _change_record(name, change) for name, change in event.changes.items()},
    }


def _change_record(component: str, change: ComponentChange) -> dict[str, Any]:
    added, removed = _sizes(change.added), _sizes(change.removed)
    what = kind_of(component).shown_as
    return {"what": what, "added": added, "removed": removed, "exact": change.exact}


def _sizes(numbers: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(("files", "rows", "bytes"), numbers, strict=True))


def _lines(event: ShownSnapshot, counts: bool) -> Iterator[str]:
    manifest = event.manifest
    if manifest is None:
        yield f"{event.number}  {event.error}"
        return
    words = [str(event.number), str(iso(manifest.time)), manifest.job, manifest.operation]
    if manifest.committed:
        words.append(f"committed {iso(manifest.committed)}")
    if manifest.batch:
        words.append(f"batch {manifest.batch}")
    if manifest.restores is not None:
        words.append(f"as snapshot {manifest.restores}")
    if event.undone:
        words.append("(undone)")
    changes = [
        f"{_name(n, manifest.batch)} {_change(change)}" for n, change in event.changes.items()
    ]
    yield "  ".join([*words, "(expired)" if event.expired else "; ".join(changes) or "nothing"])
    if counts and manifest.counts:
        yield "    " + ", ".join(f"{name} {number:,}" for name, number in manifest.counts.items())


def _name(component: str, batch: str | None) -> str:
    """Returns the name of a component as in ``sql``; with its index, or its batch if it is another.

    >>> _name("links", None), _name("batches/1/pages", "1"), _name("index/main/shards", None)
    ('inlinks', 'batch_pages', 'shards of main')
    """
    kind = kind_of(component)
    owner = component.split("/")[1] if kind.owner.folder else batch
    return kind.shown_as if owner == batch else f"{kind.shown_as} of {owner}"


def _change(change: ComponentChange) -> str:
    parts = []
    for sign, (files, rows, size) in (("+", change.added), ("-", change.removed)):
        if files or rows or size:
            parts.append(
                f"{sign}{format_count(files, 'files')} {sign}{format_count(rows, 'rows')} "
                f"{sign}{filesize.decimal(size)}"
            )
    return " ".join(parts) or "0"
