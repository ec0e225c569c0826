"""Create a file exactly once: the one primitive that commits rest on."""

import errno
import os
from pathlib import Path

from ..web.errors import UserError
from .files import new_name


def create_exclusive(path: Path, data: bytes) -> bool:
    """Creates a file with all of its content, or not at all.

    Locally: a temporary file, fsync, and ``os.link``, which fails where the
    name is taken; no reader ever sees half of it, and a crash leaves at most
    the temporary file behind.

    Returns:
        True if this call created it; False if it existed already, unchanged.

    Raises:
        UserError: The folder may not be written.
    """
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except FileExistsError:
        return False
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP) and not isinstance(
            error, PermissionError
        ):
            reason = "the file system has no hard links"
        raise UserError(f"cannot write {path}: {reason}") from error
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
