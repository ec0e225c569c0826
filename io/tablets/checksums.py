"""Verifies checksums before data is rewritten, so that damage does not spread."""

from ...web.base.errors import UserError
from ..storage.file_errors import repair_advice
from ..storage.files import copy_bytes, crc32_of, size_of
from ..storage.places import Folder, Place
from .file_lists import DataFile
from .tablets import Tablet


def verify_tablets(root: Folder, *chosen_tablets: Tablet) -> None:
    """Checks that the files of tablets are unchanged.

    A reader may not notice a flipped bit. If the data is rewritten, its new checksum hides
    the damage.

    Raises:
        UserError: A file is missing, cannot be read, or has another checksum.
    """
    for file in (file for tablet in chosen_tablets for file in tablet.files):
        verify_file(root, file)


def verify_file(root: Folder, file: DataFile) -> None:
    """Checks that a file is unchanged; see ``verify_tablets``."""
    verify_bytes(root / file.path, file.crc32)


def verify_bytes(path: Place, crc32: int | None) -> None:
    """Compares a data file with its checksum, unless the checksum is None."""
    if crc32 is not None and crc32_of(path) != crc32:
        raise _damage_error(path)


def copy_file(source: Folder, target: Folder, file: DataFile) -> None:
    """Copies a file under the same name, unless an earlier attempt has copied it.

    Args:
        source: The folder of the table that has the file.
        target: The folder of the other table.
        file: The description of the file, valid for both tables.

    Raises:
        UserError: The file is missing, cannot be read, or has another checksum.
    """
    path, copy = source / file.path, target / file.path
    if size_of(copy) == file.bytes and crc32_of(copy) == (file.crc32 or crc32_of(path)):
        return
    if file.crc32 not in (None, copy_bytes(path, copy)):
        raise _damage_error(path)


def _damage_error(path: Place) -> UserError:
    return UserError(f"data file is damaged: {path}: its checksum differs{repair_advice(path)}")
