"""Reads records of operations: ``operations/ID.json``.

``ID.lost`` is added if another commit has changed the rows that the operation had read. If an
operation is pinned again, after a rollback or such a loss, its record is ``ID@SNAPSHOT.json``.
"""

from typing import Any

from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.record_checks import check_count, check_format, check_number
from ..disk.table_names import checked_part
from ..storage.file_errors import first_line, repair_advice
from ..storage.places import Place

_FORMAT = 1
OPERATIONS = "operations"
# Suffix of the file which says that a pinned operation has lost to another commit.
LOST = ".lost"
# Fields of a record and their types; older records lack those of ``_LATER``.
_KINDS: dict[str, tuple[type, ...]] = {
    "id": (str,), "job": (str,), "snapshot": (int,), "now": (int,), "seed": (int,),
    "batch": (str, type(None)), "process": (dict, type(None)), "allows": (list,),
}  # fmt: skip
_LATER: dict[str, Any] = {"format": 1, "process": None, "allows": []}


def id_of(path: Place) -> str:
    """Returns the id of an operation from the name of its record."""
    return path.stem.partition("@")[0]


def parse_record(path: Place, data: bytes) -> dict[str, Any]:
    """Returns the fields of a record.

    Raises:
        NewerFormat: A later version of nutbeam wrote the record.
        UserError: The record is damaged.
    """
    try:
        record = _LATER | json_object(data)
        check_format(record, _FORMAT, f"operation file {path}")
        for name, kinds in _KINDS.items():
            if type(record[name]) not in kinds:
                raise ValueError(f"{name} is {record[name]!r}"[:100])
        check_count(record["snapshot"])
        check_number(record["now"])
        check_number(record["seed"])
        if record["batch"] is not None:
            checked_part(record["batch"])
        if record["id"] != id_of(path):
            raise ValueError(f"it is of operation {record['id']!r}"[:100])
        return {name: record[name] for name in _KINDS}
    except (ValueError, KeyError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else first_line(error)
        raise UserError(
            f"operation file is damaged: {path}: {reason}{repair_advice(path)}"
        ) from error
