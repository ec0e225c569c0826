"""What jobs did and counted, kept when their snapshots expire.

``compact`` deletes manifests after some time. Before it does so, it writes what they say about their
jobs into a file, ``history/FIRST-LAST.jsonl``: a JSON record per snapshot. These files stay as long as
the table; they have neither URLs nor hosts.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..storage.exclusive import create_exclusive
from ..storage.files import list_files, read_bytes
from ..table.web_table import WebTable
from .manifest import Manifest, lineage, load_manifest

HISTORY = "history"
_KEPT = ("snapshot", "operation", "job", "batch", "time", "counts", "restores")


@dataclasses.dataclass(frozen=True)
class PastJob:
    """A job whose snapshot has expired.

    Attributes:
        manifest: The manifest of the snapshot, without components and batches.
        undone: Whether a rollback has undone it.
    """

    manifest: Manifest
    undone: bool = False


def keep_past_jobs(table: WebTable, before: int) -> None:
    """Writes what the manifests of the snapshots before a number say about their jobs.

    An interrupted ``compact`` may write the same snapshots again, into another file.
    """
    numbers = [number for number in table.snapshots() if number < before]
    if not numbers:
        return
    past = {manifest.snapshot for manifest in _readable_lineage(table)}
    # What a damaged manifest between them has undone is unknown.
    first = min(past, default=before)
    lines = []
    for number in numbers:
        with contextlib.suppress(UserError):  # the manifest is damaged: what it said is lost
            manifest = load_manifest(table, number)
            record = {name: getattr(manifest, name) for name in _KEPT}
            record |= {
                "counts": dict(manifest.counts),
                "undone": number > first and number not in past,
            }
            lines.append(json.dumps(record))
    path = table / HISTORY / f"{numbers[0]:08d}-{numbers[-1]:08d}.jsonl"
    create_exclusive(path, "".join(f"{line}\n" for line in lines).encode())


def past_jobs(table: WebTable) -> list[PastJob]:
    """Returns the jobs whose snapshots have expired, the oldest first.

    Raises:
        UserError: A file is damaged.
    """
    jobs: dict[int, PastJob] = {}
    kept = set(
        table.snapshots()
    )  # listed first: a file is written before its snapshots are deleted
    for file in sorted(list_files(table / HISTORY), key=lambda found: found.path.name):
        if file.path.suffix != ".jsonl":
            continue
        try:
            for line in read_bytes(file.path).decode().splitlines():
                job = _past_job(json_object(line))
                jobs[job.manifest.snapshot] = job
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"file is damaged: {file.path}: remove it; the counts of its jobs are lost"
            ) from error
    return [jobs[number] for number in sorted(jobs) if number not in kept]


def _past_job(record: Mapping[str, Any]) -> PastJob:
    numbers = (record["snapshot"], record["time"], *record["counts"].values())
    texts = (record["operation"], record["job"], record["batch"] or "", *record["counts"])
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError("a number is none")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a text is none")
    manifest = Manifest(**{name: record[name] for name in _KEPT})
    return PastJob(manifest, bool(record["undone"]))


def _readable_lineage(table: WebTable) -> Iterator[Manifest]:
    with contextlib.suppress(UserError):
        yield from lineage(table)
