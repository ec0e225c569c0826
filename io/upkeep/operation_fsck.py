"""Looks at the records of operations, and repairs them; see ``operation_records``.

A damaged record stops whoever launches that operation again, and compact. What it said can be told
from the history if the operation was committed; else it can only be removed.
"""

import contextlib
import dataclasses
import zlib
from collections.abc import Iterator
from pathlib import Path

from ...web.base.errors import UserError
from ..snapshots.manifest import Manifest, load_manifest, readable_manifests
from ..snapshots.operation_records import FOLDER, LOST, id_of, parse_record
from ..snapshots.operations import Operation, reach, to_json
from ..storage.files import Found, list_files, overwrite_bytes, read_bytes, remove_file, store_time
from ..storage.formats import NewerFormat
from ..storage.places import Place, below
from ..storage.reach import is_shared
from ..table.web_table import WebTable
from .fsck import Problem, without
from .retention import UNDER_WAY

KIND = "operation"
# Jobs that work on a batch which another job has made.
_ON_BATCHES = ("fetch", "parse", "update")


@dataclasses.dataclass(frozen=True)
class Mended:
    """What a repair did with a file: ``made again`` or ``removed``."""

    path: str
    done: str

    def __str__(self) -> str:
        after = ": the same id begins anew" if self.done == "removed" else " from the history"
        return f"{self.path}: {self.done}{after}"


def check_operations(root: WebTable) -> list[Problem]:
    """Finds records of operations that are damaged, of a newer format, or name what is not there."""
    records = list(record_files(root))
    known = reach(root)  # after the records: one that is pinned just now is not among them
    problems = list(_no_files(root))
    for found in records:
        try:
            text, newer = _problem(root, found.path, known), False
        except UserError as error:
            text, newer = without(error, found.path), isinstance(error, NewerFormat)
        if text:
            problems.append(Problem(KIND, below(root, found.path), text, newer=newer))
    return problems


def record_files(root: WebTable) -> Iterator[Found]:
    """Yields the files of records, and the notes that operations have lost."""
    for found in list_files(root / FOLDER):
        direct = found.path.parent == root / FOLDER and not found.path.name.startswith(".")
        if direct and found.path.suffix in (".json", LOST):
            yield found


def _no_files(root: WebTable) -> Iterator[Problem]:
    """Finds folders and dead links that stand where a record belongs."""
    folder = root / FOLDER
    for path in () if is_shared(folder) else sorted(Path(str(folder)).glob("*")):
        named = path.suffix in (".json", LOST) and not path.name.startswith(".")
        dead = path.is_symlink() and not path.exists()
        if named and (dead or path.is_dir()):
            text = "is a link to nothing" if dead else "is a folder"
            yield Problem(KIND, below(root, path), f"{text}, not a record: remove it")


def _problem(root: WebTable, path: Place, known: tuple[int, int]) -> str:
    data = read_bytes(path)
    if path.suffix == LOST:
        if not data.isdigit():
            return "is damaged: it should be the number of a snapshot"
        return _ahead(int(data[:20]), *known)
    record = parse_record(path, data)
    batch, snapshot = record["batch"], record["snapshot"]
    job = id_of(path).rpartition(".")[2]
    if record["job"] != job:
        return f"names job {record['job'][:50]!r}, its id ends in {job!r}"
    on_batch = record["job"] in _ON_BATCHES and batch is not None
    if on_batch and snapshot in (0, *root.snapshots()):
        with contextlib.suppress(UserError):  # of a damaged manifest its own check tells
            if batch not in load_manifest(root, snapshot).batches:
                return f"names batch {batch!r}, which snapshot {snapshot} does not have"
        return ""
    return _ahead(snapshot, *known)


def _ahead(snapshot: int, newest: int, most: int) -> str:
    """Returns what is wrong with a number that is too large, see ``reach``."""
    if snapshot <= most:
        return ""
    return f"names snapshot {str(snapshot)[:20]}, the newest one is {newest}"


def mend_operations(root: WebTable, problems: list[Problem], drop: bool) -> list[Mended]:
    """Makes damaged records again, or removes those that cannot be.

    A record that may be of an operation under way, younger than a day, is only
    removed where ``drop`` says so.

    Args:
        root: The table.
        problems: What is wrong with records.
        drop: Whether to remove young ones, too.
    """
    records = {below(root, found.path): found for found in record_files(root)}
    history, now = [*readable_manifests(root)][::-1], store_time(root / FOLDER)
    done = []
    for problem in problems:
        found = records.get(problem.path)
        if found is None or problem.newer:
            continue
        known = _from_history(history, found.path) if found.path.suffix != LOST else None
        if known is not None:
            overwrite_bytes(found.path, to_json(known))
            done.append(Mended(problem.path, "made again"))
        elif drop or found.path.suffix == LOST or found.changed < now - UNDER_WAY:
            remove_file(found.path)
            remove_file(found.path.with_suffix(LOST))
            done.append(Mended(problem.path, "removed"))
    return done


def _from_history(history: list[Manifest], path: Place) -> Operation | None:
    """Returns what an operation has pinned, or something as good, if it has made a snapshot."""
    name, _, behind = path.stem.partition("@")
    launch, _, job = name.rpartition(".")
    after = int(behind) if behind.isdigit() else 0
    # A crawl makes none itself: its phases do.
    made = [
        manifest
        for manifest in history
        if manifest.snapshot > after
        if manifest.operation == name
        or (job == "crawl" and manifest.operation.startswith(f"{launch}."))
    ]
    if not made:
        return None
    first = made[0]
    crawls = job == "crawl"
    return Operation(
        table="",
        id=name,
        job="crawl" if crawls else first.job,
        snapshot=first.snapshot - 1,
        now=first.time,
        seed=zlib.crc32(name.encode()),
        batch=None if crawls else first.batch,
    )
