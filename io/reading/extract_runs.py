"""Runs of sets of rules on a table: what each has found, in ``extracts/SET/RUN.json``.

The newest run of a set says which columns its rows have, and what the next run is compared with.
"""

import contextlib
import json
from typing import Any

from ...web.base.errors import UserError
from ...web.base.safe_json import object_or_empty
from ..snapshots.operations import new_id
from ..storage.files import names, read_bytes, remove_file, write_bytes
from ..storage.places import Place

_FOLDER = "extracts"
_KEPT_RUNS = 50  # of a set


def write_extract_run(files: Place, rules: str, record: dict[str, Any]) -> None:
    """Writes the record of a run, and removes those of very old ones.

    Args:
        files: Place of the table's files.
        rules: Name of the set.
        record: The record.

    Raises:
        UserError: It cannot be written.
        OSError: The same.
    """
    folder = files / _FOLDER / rules
    folder.make_folder()
    write_bytes(folder / f"{new_id()}.json", json.dumps(record).encode())
    for name in sorted(_run_names(folder))[:-_KEPT_RUNS]:
        remove_file(folder / name)


def last_extract_run(files: Place, rules: str) -> dict[str, Any]:
    """Returns the record of the newest run of a set; empty if there is none that can be read."""
    folder = files / _FOLDER / rules
    for name in sorted(_run_names(folder), reverse=True):
        with contextlib.suppress(UserError):
            if record := object_or_empty(read_bytes(folder / name)):
                return record
    return {}


def copy_extract_runs(source: Place, target: Place) -> None:
    """Copies the newest run of each set that the target lacks: documents that are copied have its rows.

    Args:
        source: Place of the files of one table.
        target: That of another table.

    Raises:
        UserError: It cannot be written.
        OSError: The same.
    """
    for name, run in _last_runs(source).items():
        if run and not last_extract_run(target, name):
            write_extract_run(target, name, run)


def stored_columns(files: Place) -> dict[str, Any]:
    """Returns the type of each field by name, by the name of the set, of sets whose rows are in documents."""
    runs = _last_runs(files)
    return {name: run["stored_columns"] for name, run in runs.items() if run.get("stored_columns")}


def unstored_rules(files: Place) -> dict[str, str]:
    """Returns the text of the newest rules, by the name of the set, of sets whose rows are in no document."""
    runs = _last_runs(files)
    return {
        name: run["text"]
        for name, run in runs.items()
        if not run.get("stored_columns") and isinstance(run.get("text"), str)
    }


def _last_runs(files: Place) -> dict[str, dict[str, Any]]:
    sets = sorted(name for name in names(files / _FOLDER) if not name.startswith("."))
    return {name: last_extract_run(files, name) for name in sets}


def _run_names(folder: Place) -> list[str]:
    return [name for name in names(folder) if name.endswith(".json") and not name.startswith(".")]
