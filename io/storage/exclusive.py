"""Creates a file exactly once; all commits depend on this operation."""

import contextlib
import errno
import os
from pathlib import Path

from ...web.base.errors import UserError
from ..disk.table_links import check_links
from . import stores
from .file_errors import errors_as
from .files import new_name, sync, temporary_beside
from .places import Place, Remote


def create_exclusive(path: Place, data: bytes, *, durable: bool = True) -> bool:
    """Creates a file with its complete content, or not at all.

    In a local folder it writes a temporary file, calls fsync, then ``os.link``, which
    fails if the name is taken. No reader ever sees an incomplete file, and a crash leaves
    at most the temporary file. For stores see ``stores.create``.

    Args:
        path: Place of the file.
        data: Its content.
        durable: Whether it must survive a crash of the machine.

    Returns:
        True if this call created it; False if it existed already, unchanged.

    Raises:
        UserError: The folder is not writable.
    """
    with errors_as(f"cannot write {path}"):
        if isinstance(path, Remote):
            return stores.create(path, data)
        check_links(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(path) as temporary:
            temporary.write_bytes(data)
            if durable:
                sync(temporary)
            created = _link(temporary, path)
        if durable:
            sync(path.parent)
    return created


def check_exclusive(folder: Place) -> None:
    """Checks that a store creates each name only once; called before it gets a table.

    Some stores that speak S3's protocol ignore ``If-None-Match``: two commits could
    overwrite each other, unnoticed.

    Raises:
        UserError: The store replaces existing objects.
    """
    if not isinstance(folder, Remote):
        return
    place = folder / f".exclusive-{new_name('')}"
    once, twice = create_exclusive(place, b"1"), create_exclusive(place, b"2")
    with contextlib.suppress(OSError):
        stores.remove(place)
    if not once or twice:
        raise UserError(
            f"no table can be kept at {place.store}: the store does not create a name only once "
            "(If-None-Match), so commits could be lost"
        )


def _link(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError("the file system has no hard links") from error
        raise
    return True
