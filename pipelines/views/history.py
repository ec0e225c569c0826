"""history: the snapshots of a table: when, by which job, and what each one changed."""

import dataclasses
import datetime
import json
from collections.abc import Iterator
from typing import Any

from ...io.snapshots.manifest import newest_manifest
from ...io.table.opening import open_table
from ...io.upkeep.rollback import Change, Event, events, sizes
from ...web.base.errors import UserError
from ...web.base.options import option
from ...web.base.visible import visible_lines
from ..command_line.command import TABLE, Invocation

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of history."""

    last: int = option(20, "How many snapshots, the newest; 0 is all.", minimum=0, group="history")
    counts: bool = option(False, "Show what each operation has counted.", group="history")


def run(invocation: Invocation) -> int:
    root = open_table(str(invocation.table))
    found = list(events(root, invocation.options.last))
    if not found:
        newest_manifest(str(invocation.table))  # says that there is none
    try:
        total = sizes(newest_manifest(str(invocation.table)))
    except UserError:
        total = {}  # the newest is damaged: its line says so
    if invocation.format == "json":
        record = {
            "snapshots": [_record(event) for event in found],
            "sizes": {n: _sizes(s) for n, s in total.items()},
        }
        print(json.dumps(record))
        return 0
    for event in found:
        print(visible_lines(_lines(event, invocation.options.counts)))
    for name, (files, rows, size) in total.items():
        print(f"{name}: {_files(files)}, {rows:,} rows, {in_bytes(size)}")
    return 0


def _record(event: Event) -> dict[str, Any]:
    manifest = event.manifest
    if manifest is None:
        return {"snapshot": event.number, "error": event.error}
    return {
        "snapshot": event.number,
        "time": manifest.time,
        "job": manifest.job,
        "operation": manifest.operation,
        "batch": manifest.batch,
        "restores": manifest.restores,
        "undone": event.undone,
        "counts": dict(manifest.counts),
        "changes": {
            name: {
                "added": _sizes(change.added),
                "removed": _sizes(change.removed),
                "exact": change.exact,
            }
            for name, change in event.changes.items()
        },
    }


def _sizes(numbers: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(("files", "rows", "bytes"), numbers, strict=True))


def _lines(event: Event, counts: bool) -> Iterator[str]:
    manifest = event.manifest
    if manifest is None:
        yield f"{event.number}  {event.error}"
        return
    words = [str(event.number), when(manifest.time), manifest.job, manifest.operation]
    if manifest.batch:
        words.append(f"batch {manifest.batch}")
    if manifest.restores is not None:
        words.append(f"as snapshot {manifest.restores}")
    if event.undone:
        words.append("(undone)")
    own = f"batches/{manifest.batch}/"
    changes = [
        f"{name.removeprefix(own)} {_change(change)}" for name, change in event.changes.items()
    ]
    yield "  ".join([*words, "; ".join(changes) or "nothing"])
    if counts and manifest.counts:
        yield "    " + ", ".join(f"{name} {number:,}" for name, number in manifest.counts.items())


def _change(change: Change) -> str:
    parts = []
    for sign, (files, rows, size) in (("+", change.added), ("-", change.removed)):
        if files or rows or size:
            parts.append(f"{sign}{_files(files)} {sign}{rows:,} rows {sign}{in_bytes(size)}")
    return " ".join(parts) or "0"


def _files(number: int) -> str:
    return f"{number:,} file" + ("" if number == 1 else "s")


def when(time_ms: int) -> str:
    """Returns a time for people, in UTC.

    >>> when(0)
    '1970-01-01 00:00:00Z'
    """
    try:
        moment = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"


def in_bytes(number: int) -> str:
    """Returns a size for people.

    >>> in_bytes(999), in_bytes(25_300), in_bytes(7_000_000_000)
    ('999 B', '25.3 kB', '7.0 GB')
    """
    size, units = float(number), ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(size) >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"
