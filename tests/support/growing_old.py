"""Small tables whose files grow old when a test says so."""

import os

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.manifest import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.tablets.written import Written

DAY = 86_400
WEEK = 7 * DAY


def put(root, path, text="x"):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return path


def written(root, component, *paths, replaced=()):
    files = tuple(DataFile(put(root, path), rows=1, bytes=1) for path in paths)
    return Written(component, files, tuple(replaced))


def make(root, name, *parts, batch=None, job="update", **known):
    operation = begin(str(root), job, f"{name}.{job}", batch=batch)
    return commit(operation, parts, batch=Batch(**known) if known else None)


def pass_time(root, days, since=0.0):
    """Makes all files older that were not written before."""
    for path in root.rglob("*"):
        if path.is_file() and path.stat().st_mtime >= since:
            then = path.stat().st_mtime - days * DAY
            os.utime(path, (then, then))


def paths(root, *folders):
    found = (path for folder in folders for path in (root / folder).rglob("*") if path.is_file())
    return sorted(path.relative_to(root).as_posix() for path in found)
