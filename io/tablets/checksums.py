"""What is damaged is not passed on: whoever writes rows or files anew compares checksums first."""

from ...web.base.errors import UserError
from ..storage.file_errors import fsck_advice
from ..storage.files import copy_bytes, crc32_of, size_of
from ..storage.places import Folder, Place
from .file_lists import Component, DataFile
from .tablets import Tablet


def check_tablets(root: Folder, *some: Tablet) -> None:
    """Sees whether the files of tablets are what was written.

    Where a bit has flipped, a reader may not see it; under a new checksum nobody would.

    Raises:
        UserError: One is missing, cannot be read, or is something else.
    """
    for file in (file for tablet in some for file in tablet.files):
        check_file(root, file)


def check_file(root: Folder, file: DataFile) -> None:
    """Sees whether a file is what was written; see ``check_tablets``."""
    check_bytes(root / file.path, file.crc32)


def check_bytes(path: Place, crc32: int | None) -> None:
    """Sees whether a file has the checksum that was noted, if there is one."""
    if crc32 is not None and crc32_of(path) != crc32:
        raise _damaged(path)


def check_list(root: Folder, component: Component) -> None:
    """Sees whether a list of files is what was written; see ``check_tablets``."""
    path = root / component.list
    if component.crc32 is not None and crc32_of(path) != component.crc32:
        raise _damaged(path, "file list")


def copy_file(source: Folder, target: Folder, file: DataFile) -> None:
    """Copies a file under the same name, unless an earlier attempt has done so.

    Args:
        source: The folder of the table that has it.
        target: That of the other.
        file: Its description, which holds for both.

    Raises:
        UserError: It is missing, cannot be read, or is not what was written.
    """
    path, copy = source / file.path, target / file.path
    if size_of(copy) == file.bytes and crc32_of(copy) == (file.crc32 or crc32_of(path)):
        return
    found = copy_bytes(path, copy)
    if file.crc32 not in (None, found):
        raise _damaged(path)


def _damaged(path: Place, kind: str = "data file") -> UserError:
    return UserError(f"{kind} is damaged: {path}: its checksum is another{fsck_advice(path)}")
