"""Small tables whose files grow old when a test says so."""

import hashlib
import os

from nutbeam.io.disk.table_names import is_made_name
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.tablets.written import Written

DAY = 86_400
WEEK = 7 * DAY
# The words of tests for the names of files, which are as jobs make them.
_WORDS = {}


def file_name(path):
    """Returns the name of a file that a test calls by a word: ``state/orphan``."""
    if is_made_name(path):
        return path
    above, _, word = path.rpartition("/")
    unique = hashlib.sha256(word.encode()).hexdigest()[:16]
    stem, dot, ending = word.rpartition(".")
    made = f".{unique}" if (not stem and dot) or ending == "writing" else unique
    made += "" if made.startswith(".") else f".{ending if dot else 'parquet'}"
    _WORDS[f"{above}/{made}"] = path
    return f"{above}/{made}"


def put(root, path, text="x"):
    file = root / file_name(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file_name(path)


def written(root, component, *paths, replaced=()):
    files = tuple(DataFile(put(root, path), rows=1, bytes=1) for path in paths)
    return Written(component, files, tuple(map(file_name, replaced)))


def make(root, name, *parts, batch=None, job="update", **known):
    operation = begin(str(root), job, f"{name}.{job}", batch=batch)
    return commit(operation, parts, CommitTerms(batch=Batch(**known) if known else None))


def pass_time(root, days, since=0.0):
    """Makes all files older that were not written before."""
    for path in root.rglob("*"):
        if path.is_file() and path.stat().st_mtime >= since:
            then = path.stat().st_mtime - days * DAY
            os.utime(path, (then, then))


def paths(root, *folders):
    found = (path for folder in folders for path in (root / folder).rglob("*") if path.is_file())
    names = (path.relative_to(root).as_posix() for path in found)
    return sorted(_WORDS.get(name, name) for name in names)
