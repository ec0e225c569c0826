"""What holds of a folder and not of a store, or the other way around."""

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from ...web.base.errors import Unavailable, UsageError
from . import stores
from .files import creating, file_version, list_files, names, read_bytes, versions
from .places import Place, Remote
from .store_clients import client_of
from .store_errors import StoreUnreachable


def is_shared(place: Place) -> bool:
    """Returns whether a place is in a store.

    Other machines reach it under the same name. It loses no file, and a name is used once.
    """
    return isinstance(place, Remote)


def list_version(path: Place) -> tuple[int | str, ...]:
    """Returns the version of a file whose name is never used again; see ``file_version``.

    Asking a store takes a request.
    """
    return () if isinstance(path, Remote) else file_version(path)


def exists(place: Place) -> bool:
    """Returns whether a folder or file is there."""
    return bool(names(place)) if isinstance(place, Remote) else place.exists()


def absolute(place: Place) -> Place:
    """Returns a place so that processes in other folders find it."""
    return place if isinstance(place, Remote) else place.absolute()


def redate(folders: Iterable[Place], now: float, tolerance: float) -> int:
    """Gives files of this machine that are of the future the time that it is; returns how many.

    Args:
        folders: Where they are; the files of a store keep their time.
        now: s.
        tolerance: How much later a file may be, s.
    """
    local = [folder for folder in folders if not isinstance(folder, Remote)]
    files = [file for folder in local for file in list_files(folder)]
    late = [file.path for file in files if file.changed > now + tolerance]
    for path in late:
        with contextlib.suppress(OSError):  # somebody else has removed it
            os.utime(str(path), (now, now))
    return len(late)


def files_in(place: Place) -> list[Place]:
    """Returns the files directly in a folder, in order; of a file itself.

    Raises:
        OSError: It is not there, or cannot be read.
    """
    if not isinstance(place, Remote):
        inside = (
            sorted(path for path in place.iterdir() if path.is_file())
            if place.is_dir()
            else [place]
        )
        return list(inside)
    try:
        return sorted(place / name for name in stores.names(place, folders=False)) or [place]
    except NotADirectoryError:
        return [place]


def names_and_versions(folder: Place, called: str) -> dict[str, str]:
    """Returns the names in a folder, in a store with their versions; see ``names``."""
    if isinstance(folder, Remote):
        return versions(folder, called)
    return dict.fromkeys(names(folder, called), "")


def write_ipc(path: Place, rows: pl.DataFrame) -> None:
    """Writes rows as an Arrow file, which need not survive a crash of the machine."""
    with creating(path) as file:
        rows.write_ipc(file)


def read_ipc(path: Place) -> pl.DataFrame:
    """Reads an Arrow file, of one in a folder only those pages that are used."""
    return pl.read_ipc(read_bytes(path) if isinstance(path, Remote) else path)


def temporary_folder() -> Path:
    """Makes a folder of this machine that nobody else uses."""
    return Path(tempfile.mkdtemp(prefix="nutbeam-"))


def check_client(place: Place) -> None:
    """Sees whether all that a store needs is installed here.

    Raises:
        UserError: A package, or a right, is missing.
    """
    if isinstance(place, Remote):
        client_of(place)


def folder_names(place: Place, table: str) -> list[str]:
    """Returns the names in the place of a table, whose store must be within reach.

    Raises:
        UsageError: It is a file, or cannot be read.
        Unavailable: The store does not answer.
    """
    try:
        if isinstance(place, Remote):
            client_of(place)
            found = list(stores.names(place))
            if not found:
                stores.check_reach(place)
            return found
        if place.exists() and not place.is_dir():
            raise UsageError(f"the table must be a folder, got the file {table!r}")
        return [entry.name for entry in place.iterdir()] if place.exists() else []
    except NotADirectoryError as error:
        raise UsageError(f"the table must be a folder, got the file {table!r}") from error
    except OSError as error:
        kind = Unavailable if isinstance(error, StoreUnreachable) else UsageError
        raise kind(f"cannot read table {table!r}: {error.strerror}") from error
