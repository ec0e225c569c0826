"""Create a file exactly once: the one primitive that commits rest on."""

import errno
import os
from pathlib import Path

from ..web.errors import UserError
from .files import make_room, new_name, sync


def create_exclusive(path: Path, data: bytes, *, durable: bool = True) -> bool:
    """Creates a file with all of its content, or not at all.

    Locally: a temporary file, fsync, and ``os.link``, which fails where the
    name is taken; no reader ever sees half of it, and a crash leaves at most
    the temporary file behind.

    Args:
        path: Its name.
        data: Its content.
        durable: Whether it must survive a crash of the machine.

    Returns:
        True if this call created it; False if it existed already, unchanged.

    Raises:
        UserError: The folder may not be written.
    """
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
