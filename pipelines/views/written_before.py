"""Keeps a note for the next run of ``pages --new``: the batches whose pages are written.

A page has the id of the batch that fetched its newest text, and a batch is applied to the table
once, as a whole. So a page is new if its batch is not in the note. This holds however old the note
is, and whatever snapshots the table still keeps.
"""

import json
from pathlib import Path

from ...io.snapshots.manifest import Manifest
from ...io.storage.files import write_bytes
from ...io.storage.local_place import LocalPlace
from ...web.base.errors import UsageError
from ...web.base.safe_json import json_object


def read_batches(path: Path) -> list[str]:
    """Returns the batches in a note; none if there is no file.

    Raises:
        UsageError: The file is no note, or it cannot be read.
    """
    try:
        batches = json_object(path.read_bytes())["batches"]
        if not isinstance(batches, list) or not all(isinstance(name, str) for name in batches):
            raise ValueError("batches must be a list of names")
    except FileNotFoundError:
        return []
    except (ValueError, KeyError) as error:
        raise UsageError(
            f"--new {str(path)!r} was not written by nutbeam pages --new: "
            "name another file, or remove it to write all pages again"
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot read --new {str(path)!r}: {str(error.strerror).lower()}"
        ) from error
    return batches


def write_batches(path: Path, manifest: Manifest) -> None:
    """Writes the note about a snapshot whose pages are written."""
    applied = [name for name, batch in manifest.batches.items() if batch.phase == "updated"]
    note = {"snapshot": manifest.snapshot, "batches": sorted(applied)}
    write_bytes(LocalPlace(path), f"{json.dumps(note)}\n".encode())
