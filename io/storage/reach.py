"""Operations that differ between folders and stores."""

import contextlib
import os
from collections.abc import Iterable

import polars as pl

from ...web.base.errors import Unavailable, UsageError
from . import stores
from .files import file_version, list_files, names, read_bytes
from .places import Place, Remote
from .store_clients import client_of
from .store_errors import StoreUnreachable


def is_shared(place: Place) -> bool:
    """Returns whether a place is in a store.

    Other machines can use the same name for it. A store loses no files, and each name is used
    only once.
    """
    return isinstance(place, Remote)


def list_version(path: Place) -> tuple[int, str] | tuple[()]:
    """Returns the version of a file list; see ``file_version``.

    For a store it is empty: the version would cost a request, and names are never reused.
    """
    return () if isinstance(path, Remote) else file_version(path)


def exists(place: Place) -> bool:
    """Returns whether a folder or file exists."""
    return bool(names(place)) if isinstance(place, Remote) else place.exists()


def absolute(place: Place) -> Place:
    """Returns the absolute form of a place, which is valid in any working folder."""
    return place if isinstance(place, Remote) else place.absolute()


def redate(folders: Iterable[Place], now: float, tolerance: float) -> int:
    """Sets the time of local files that are dated in the future to now; returns how many.

    Args:
        folders: The folders of the files; files in a store keep their time.
        now: The time, s since the epoch.
        tolerance: Files that are less than this many seconds ahead keep their time.
    """
    local = [folder for folder in folders if not isinstance(folder, Remote)]
    files = [file for folder in local for file in list_files(folder)]
    late = [file.path for file in files if file.changed > now + tolerance]
    for path in late:
        with contextlib.suppress(OSError):  # another process has removed it
            os.utime(str(path), (now, now))
    return len(late)


def files_in(place: Place) -> list[Place]:
    """Returns the files directly in a folder, in order; for a file, the file alone.

    Raises:
        OSError: It does not exist, or cannot be read.
    """
    if not isinstance(place, Remote):
        if not place.is_dir():
            return [place]
        return sorted(path for path in place.iterdir() if path.is_file())
    try:
        return sorted(place / name for name in stores.names(place, folders=False)) or [place]
    except NotADirectoryError:
        return [place]


def read_ipc(path: Place) -> pl.DataFrame:
    """Reads an Arrow file; a local one is mapped into memory."""
    return pl.read_ipc(read_bytes(path) if isinstance(path, Remote) else path)


def check_client(place: Place) -> None:
    """Checks that the client of a store is installed here.

    Raises:
        UserError: A package or the credentials are missing.
    """
    if isinstance(place, Remote):
        client_of(place)


def folder_names(place: Place, table: str) -> list[str]:
    """Returns the names in the place of a table; checks that its store can be reached.

    Raises:
        UsageError: The place is a file, or cannot be read.
        Unavailable: The store does not answer.
    """
    try:
        if isinstance(place, Remote):
            client_of(place)
            found = list(stores.names(place))
            if not found:
                stores.check_reach(place)
            return found
        return [entry.name for entry in place.iterdir()] if place.exists() else []
    except NotADirectoryError as error:
        raise UsageError(f"the table must be a folder, got the file {table!r}") from error
    except OSError as error:
        kind = Unavailable if isinstance(error, StoreUnreachable) else UsageError
        raise kind(f"cannot read table {table!r}: {error.strerror}") from error
