"""Writes files into a folder for other programs; none of them leaves it, and none replaces another."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from ...policy.components.kinds import folders
from ...web.base.errors import UsageError, UserError
from ..storage.file_errors import errors_as
from ..storage.files import LARGEST_BYTES, create_exclusive, read_bytes, size_of
from ..storage.place_addresses import place_of
from ..storage.places import Place

_MANIFEST = re.compile(r"\d{8,12}\.json")


class DumpFolder:
    """A folder, on this machine or in a store, that gets files.

    Args:
        address: Its path or address. It is made when the first file is written.
        tables: Folders of the tables whose data is written.

    Raises:
        UsageError: It is a file, or the folder of a table, or in one.
    """

    def __init__(self, address: str, tables: Iterable[Place] = ()) -> None:
        self._root = place_of(address)
        self._inside: set[str] = set()
        with errors_as(f"cannot read {self._root}"):
            try:
                self._root.names_and_versions()
            except NotADirectoryError as error:
                raise UsageError(f"expected a folder, got {address!r}: a file is there") from error
        root = _resolve(self._root)
        above = {root, *root.parents}
        own_folders = {folder for table in tables for folder in _folders_of_table(table)}
        if above & own_folders or any(map(_has_table, above)):
            raise UsageError(f"{address!r} is in the folder of a table: give another folder")

    def place(self, name: str) -> Place:
        """Returns the place of a file.

        Args:
            name: Its name below the folder, with slashes.

        Raises:
            UserError: It is not in the folder, a link in the folder leads out of it, or it is in a table.
        """
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or name.startswith("/"):
            raise UserError(f"no name for a file in {str(self._root)!r}: {name!r}")
        path = self._root / name
        folder = str(path.parent)
        if folder not in self._inside:
            self._check_inside(path.parent)
            self._inside.add(folder)
        return path

    def _check_inside(self, folder: Place) -> None:
        root, resolved = _resolve(self._root), _resolve(folder)
        if root not in (resolved, *resolved.parents):
            raise UserError(f"a link leads out of {str(self._root)!r}: {str(folder)!r}")
        # The name of a host may be that of a table; in a store this would cost a request per folder.
        below = [place for place in (resolved, *resolved.parents) if root in place.parents]
        if root.has_cheap_seeks and any(map(_has_table, below)):
            raise UserError(f"no files are written into a table: {str(folder)!r}")

    def has(self, name: str) -> bool:
        """Returns whether there is a file of a name."""
        return size_of(self.place(name)) is not None

    def has_same(self, name: str, data: bytes) -> bool:
        """Returns whether a file that is there has this content."""
        place = self.place(name)
        return size_of(place) == len(data) and read_bytes(place, LARGEST_BYTES) == data

    def write(self, name: str, data: bytes) -> bool:
        """Writes a file; returns False, and changes nothing, if it is there already.

        Raises:
            UserError: See ``place``; or the file cannot be written.
        """
        return create_exclusive(self.place(name), data, durable=False)


def _resolve(place: Place) -> Place:
    try:
        return place.resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise UserError(f"a link leads nowhere: {str(place)!r}") from error


def _folders_of_table(table: Place) -> Iterator[Place]:
    """Yields the folder of a table, and those of its components, which may be links to other disks."""
    yield _resolve(table)
    yield from (_resolve(table / name) for name in folders())


def _has_table(folder: Place) -> bool:
    try:
        return any(map(_MANIFEST.fullmatch, (folder / "manifest").names_and_versions()))
    except OSError:  # what cannot be read cannot be written
        return False
