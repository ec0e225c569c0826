"""The report of a job: what its snapshot has changed, as a record and as a line."""

from collections.abc import Mapping
from typing import Any

from ...io.snapshots.manifest import Manifest, load_manifest, names_that_differ
from ...io.table.opening import open_table
from ...policy.components.kinds import kind_of
from ...policy.extracting.rule_figures import COUNT_PREFIX
from ..base.command import DONE, NOTHING_TO_DO, Invocation, gives_record


def job_record(manifest: Manifest, address: str) -> dict[str, Any]:
    """Returns the report of a snapshot's operation, as a record.

    Args:
        manifest: The snapshot.
        address: Address of its table.
    """
    names = ("job", "operation", "snapshot")
    record: dict[str, Any] = {name: getattr(manifest, name) for name in names}
    if manifest.batch in manifest.batches:
        record["batch"] = manifest.batch
        record["phase"] = manifest.batches[str(manifest.batch)].phase
    if segments := batches_of_segments(manifest):
        record["segments"] = segments
    return {**record, "counts": dict(manifest.counts), "changed": _has_changed(manifest, address)}


def batches_of_segments(manifest: Manifest) -> dict[str, str]:
    """Returns the batch of each segment of Nutch that a snapshot's operation has imported."""
    return {
        batch.segment: name
        for name, batch in sorted(manifest.batches.items())
        if batch.segment and name.startswith(str(manifest.batch))
    }


def _has_changed(manifest: Manifest, address: str) -> bool:
    """Returns whether a snapshot differs from the one before: in its files, or in its batches.

    If the one before has expired, the counts decide.
    """
    table, number = open_table(address), manifest.snapshot - 1
    if number and number not in table.snapshots():
        return bool(manifest.counts)
    return differ(load_manifest(table, number), manifest)


def differ(older: Manifest, newer: Manifest) -> bool:
    """Returns whether two snapshots differ for users.

    Neither notes of jobs that have seen a batch count, nor records that a job has run.

    >>> differ(Manifest(snapshot=1), Manifest(snapshot=2, counts={"rows": 5}))
    False
    """
    components, batches = names_that_differ(older, newer)
    return any(
        _list_of(older, name) != _list_of(newer, name)
        for name in components
        if not kind_of(name).journal
    ) or any(_phase_of(older, name) != _phase_of(newer, name) for name in batches)


def _list_of(manifest: Manifest, component: str) -> str | None:
    files = manifest.components.get(component)
    return None if files is None else files.list


def _phase_of(manifest: Manifest, batch: str) -> str | None:
    record = manifest.batches.get(batch)
    return None if record is None else record.phase


def report(invocation: Invocation, record: Mapping[str, Any], code: int = DONE) -> int:
    """Gives or prints a job's record, as JSON for scripts or as a line; returns the exit code.

    "nothing to do" is the line of ``NOTHING_TO_DO``, and of no other code.
    """
    if gives_record(invocation, record):
        return code
    head = str(record["job"]) + (f" batch {record['batch']}" if "batch" in record else "")
    head += " (dry run)" if record.get("dry_run") else ""
    # What rules have found has a report of its own.
    parts = [
        f"{name} {number:,}"
        for name, number in record.get("counts", {}).items()
        if not name.startswith(COUNT_PREFIX)
    ]
    if code == NOTHING_TO_DO:
        parts = parts or ["nothing to do"]
    elif not record.get("changed") and not record.get("dry_run"):
        parts.append("nothing changed")
    text = ", ".join(parts)
    if record.get("submitted"):
        text = f"submitted as operation {record['operation']}"
    elif record.get("done_before"):
        text = "done before"
    print(f"{head}: {text}")
    return code
