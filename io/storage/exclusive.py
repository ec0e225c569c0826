"""Create a file exactly once: the one primitive that commits rest on."""

import contextlib
import errno
import os
from pathlib import Path

from ...web.base.errors import UserError
from . import stores
from .files import make_room, new_name, sync
from .places import Place, Remote


def create_exclusive(path: Place, data: bytes, *, durable: bool = True) -> bool:
    """Creates a file with all of its content, or not at all.

    Locally: a temporary file, fsync, and ``os.link``, which fails where the
    name is taken; no reader ever sees half of it, and a crash leaves at most
    the temporary file behind. In stores: see ``stores.create``.

    Args:
        path: Its name.
        data: Its content.
        durable: Whether it must survive a crash of the machine.

    Returns:
        True if this call created it; False if it existed already, unchanged.

    Raises:
        UserError: The folder may not be written.
    """
    if isinstance(path, Remote):
        try:
            return stores.create(path, data)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(data)
            if durable:
                sync(temporary)
            created = _link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        if durable:
            sync(path.parent)
    except OSError as error:
        why = f"{error.strerror or error}{make_room(error)}"
        raise UserError(f"cannot write {path}: {why}") from error
    return created


def check_exclusive(folder: Place) -> None:
    """Sees whether a store creates a name only once, before a table is begun in it.

    Not all that speak S3's protocol heed ``If-None-Match``; they would let two
    commits overwrite each other without a word.

    Raises:
        UserError: It does not.
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
            raise OSError(error.errno, "the file system has no hard links") from error
        raise
    return True
