"""Writes files into a folder for other programs; none of them leaves it, and none replaces another."""

from pathlib import PurePosixPath

from ...web.base.errors import UserError
from ..storage.files import LARGEST_BYTES, create_exclusive, read_bytes, size_of
from ..storage.place_addresses import place_of
from ..storage.places import Place


class DumpFolder:
    """A folder, on this machine or in a store, that gets files.

    Args:
        address: Its path or address. It is made when the first file is written.
    """

    def __init__(self, address: str) -> None:
        self._root = place_of(address)
        self._inside: set[str] = set()

    def place(self, name: str) -> Place:
        """Returns the place of a file.

        Args:
            name: Its name below the folder, with slashes.

        Raises:
            UserError: It is not in the folder, or a link in the folder leads out of it.
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
        try:
            root, resolved = self._root.resolve(), folder.resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            raise UserError(f"a link leads nowhere: {str(folder)!r}") from error
        if root not in (resolved, *resolved.parents):
            raise UserError(f"a link leads out of {str(self._root)!r}: {str(folder)!r}")

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
