"""Shared by the commands that only read: part files are written, which the command joins.

``item_reading.py`` reads item by item, ``reading_pipeline.py`` by pipelines that may shuffle rows.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.operations import new_id
from ...io.snapshots.pinned import Pinned
from ...io.storage.files import names
from ...io.storage.local_place import LocalPlace
from ...io.storage.place_addresses import place_of
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...io.tablets.file_lists import DataFile
from ...io.tablets.tablets import Tablet, tablets
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ..base.command import NUTCH_FILE
from ..launch.launch import LaunchOptions, preflight, workers_elsewhere

PartFiles = tuple[Manifest, list[Place]]


@dataclass(frozen=True)
class Reading(Pinned):
    """The snapshot that an export reads, and the folder of its part files.

    Attributes:
        address: Address of the table.
        folder: Address of the folder for the part files.
        snapshot: Number of the snapshot; the launcher pins it, because nothing is changed.
    """

    address: str
    folder: str
    snapshot: int

    def part_file(self, number: int, suffix: str) -> Place:
        """Returns the place of a part file; they are joined in the order of their numbers."""
        return place_of(self.folder) / f"part-{number:08d}{suffix}"

    def find(self, component: str, key: str) -> dict[str, Any] | None:
        """Returns the row of a key in a component of tablets, or None."""
        rows = self.find_rows(component, pl.Series("key", [key]))
        return rows.row(0, named=True) if len(rows) else None


@dataclass(frozen=True)
class ReadItem:
    """A tablet or file that one worker reads, with the batch or index that owns it; or the list of batches."""

    reading: Reading
    number: int
    tablet: Tablet | None = None
    file: DataFile | None = None
    owner: str = ""


def tablets_of(reading: Reading, component: str = "state") -> Iterator[ReadItem]:
    """Yields an item for each tablet of a component."""
    for number, tablet in enumerate(tablets(reading.files(component))):
        yield ReadItem(reading, number, tablet)


@contextmanager
def written_parts(
    address: str,
    write: Callable[[Reading], None],
    beam_args: Sequence[str],
    options: LaunchOptions,
) -> Iterator[PartFiles]:
    """Calls a function that writes files; yields the snapshot that it has read and the files, in order.

    The files are removed afterwards.

    Args:
        address: Address of the table.
        write: Reads a snapshot, and writes part files.
        beam_args: Arguments for Beam.
        options: Options of the launch.
    """
    preflight(address, options, beam_args)
    manifest = newest_manifest(address)
    address = open_table(address).worker_address()
    folder = _folder(address, elsewhere=workers_elsewhere(beam_args))
    try:
        write(Reading(address, str(folder), manifest.snapshot))
        yield manifest, [folder / name for name in names(folder) if not name.startswith(".")]
    finally:
        folder.remove_tree()


def _folder(address: str, *, elsewhere: bool) -> Place:
    """Returns a folder for part files, in the table so that workers elsewhere find it.

    If no worker is elsewhere, a temporary folder takes the place of one in a store, or of one that
    cannot be made: a user without permission to write in a table can still read it.
    """
    folder = open_table(address).files / "exports" / new_id()
    try:
        folder.make_folder()
    except OSError as error:
        if elsewhere:
            reason = f"cannot write the parts to {str(folder)!r}: {error.strerror}"
            raise UsageError(reason) from error
    else:
        if elsewhere or folder.has_cheap_seeks:
            return folder
    return LocalPlace(tempfile.mkdtemp(prefix="nutbeam-"))


def check_dump(dump: str, regex: str, *endings: str) -> None:
    """Checks ``--dump`` and ``--regex`` of a command that writes records.

    Raises:
        ValueError: The file has another ending, and is not that of Nutch; or the expression is wrong.
    """
    if dump not in ("", "-") and Path(dump).suffix not in endings and Path(dump).name != NUTCH_FILE:
        raise ValueError(f"--dump must end in {' or '.join(endings)}, got {dump!r}")
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(f"--regex is no regular expression: {error}: {regex!r}") from error
