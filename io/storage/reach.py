"""Operations that differ between folders and stores."""

import contextlib
import math
import os
import stat
import tempfile
from collections.abc import Hashable, Iterable
from pathlib import Path

import polars as pl

from ...web.base.errors import Unavailable, UsageError
from ..disk.regular_files import NotRegular, kind_of_entry, stat_file
from ..disk.table_links import check_links, note_table
from . import stores
from .file_errors import note_folder
from .files import Found, file_version, names, read_bytes
from .places import Place, Remote, place_of
from .store_clients import store_client_of
from .store_errors import StoreUnreachable


def needs_shared_path(place: Place) -> bool:
    """Returns whether other machines find a place only if they share a folder with this one."""
    return not isinstance(place, Remote)


def hint_if_missing(place: Place) -> str:
    """Returns advice on a place of seeds that does not exist, after an error; it may be empty."""
    # What lacks http:// is taken for a folder of this machine.
    return "" if isinstance(place, Remote) else "; a URL begins with http:// or https://"


def found_by_workers(place: Place, root: Place) -> bool:
    """Returns whether workers elsewhere find a file: in a store, or in a table that they share."""
    return isinstance(place, Remote) or place.is_relative_to(str(absolute(root)))


def is_linked(folder: Place) -> bool:
    """Returns whether a folder is a symbolic link."""
    return not isinstance(folder, Remote) and folder.is_symlink()


def make_folder(folder: Place) -> None:
    """Makes a folder and those above it, unless it is there; a store has none to make.

    Raises:
        OSError: It cannot be made.
    """
    if not isinstance(folder, Remote):
        check_links(folder)
        folder.mkdir(parents=True, exist_ok=True)


def missing_folders(folder: Place) -> list[Path]:
    """Returns those of a folder and the folders above it that do not exist; none in a store."""
    above = [] if isinstance(folder, Remote) else [folder, *folder.parents]
    return [path for path in above if not path.exists()]


def folder_for_part_files(folder: Place, *, elsewhere: bool) -> Place:
    """Returns a folder for files that workers write and that this process then reads.

    Args:
        folder: A new folder in the table, which workers elsewhere find, too.
        elsewhere: Whether workers may be on other machines. If not, a temporary folder takes the
            place of one in a store, or of one that cannot be made: a user without permission to
            write in a table can still read it.

    Raises:
        OSError: The folder cannot be made, and workers are elsewhere.
    """
    try:
        make_folder(folder)
    except OSError:
        if elsewhere:
            raise
    else:
        if elsewhere or not isinstance(folder, Remote):
            return folder
    return Path(tempfile.mkdtemp(prefix="nutbeam-"))


def version_of(path: Place, *known: Hashable) -> Hashable:
    """Returns a version of an immutable file, None if there is no file.

    Args:
        path: The file.
        known: Versions that the caller knows, or nothing; for a file in a store one of them is
            enough, because another would cost a request.
    """
    found = next(filter(None, known), None) if isinstance(path, Remote) else None
    return found or file_version(path) or None


def write_interval(place: Place) -> float:
    """Returns the shortest time between two writes of the same name, s."""
    # Cloud Storage accepts one write per second to the same name.
    return 1.0 if isinstance(place, Remote) else 0.0


def look_interval(place: Place) -> float:
    """Returns the time between two checks whether a file exists, s; each is a request in stores."""
    return 5.0 if isinstance(place, Remote) else 1.0


def limit_after(place: Place, time: float) -> float:
    """Returns the time below which times of files count as not later than ``time``, s."""
    # Times on S3 are whole seconds: files of the same second count as not later, too.
    return math.nextafter(time, math.inf) if isinstance(place, Remote) else time


def odd_entries(folder: Place) -> list[tuple[Path, str]]:
    """Returns what is no regular file in a folder, and its kind, such as ``a FIFO``.

    A store has only files.
    """
    found = [] if isinstance(folder, Remote) else sorted(folder.glob("*"))
    kinds = [(path, kind_of_entry(path)) for path in found]
    return [(path, kind) for path, kind in kinds if kind]


def list_version(path: Place) -> tuple[int, str] | tuple[()]:
    """Returns the version of a file list; see ``file_version``.

    For a store it is empty: the version would cost a request, and names are never reused.
    """
    return () if isinstance(path, Remote) else file_version(path)


def exists(place: Place) -> bool:
    """Returns whether a folder or file exists."""
    return bool(names(place)) if isinstance(place, Remote) else place.exists()


def root_at(address: str) -> Place:
    """Returns the place of a table's files; records it, so that no link leads out of it."""
    return noted_root(place_of(address))


def noted_root(place: Place) -> Place:
    """Records the place of a table's files, also for advice; a store has no links."""
    note_folder(place)
    if not isinstance(place, Remote):
        note_table(place)
    return place


def absolute(place: Place) -> Place:
    """Returns the absolute form of a place, which is valid in any working folder."""
    return place if isinstance(place, Remote) else place.absolute()


def redate(files: Iterable[Found], now: float, tolerance: float) -> int:
    """Sets the time of local files that are dated in the future to now; returns how many.

    Args:
        files: The files.
        now: The time, s since the epoch.
        tolerance: Files that are less than this many seconds ahead keep their time.
    """
    late = [file.path for file in files if file.changed > now + tolerance]
    number = 0
    for path in late:
        if isinstance(path, Remote):
            continue
        with contextlib.suppress(OSError):  # another process has removed it
            # A file with another name elsewhere, as backups with hard links have, is left alone.
            if stat_file(path).st_nlink == 1:
                os.utime(path, (now, now), follow_symlinks=False)
                number += 1
    return number


def check_readable_twice(place: Place) -> None:
    """Checks that a place of seeds is no FIFO, device or socket: they can be read once, if at all.

    Raises:
        OSError: It is one, or does not exist.
    """
    if not isinstance(place, Remote):
        mode = place.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise NotRegular("it is no regular file: give - to read standard input")


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


def folders_in(place: Place) -> list[str]:
    """Returns the folders directly in a folder, in order; for a file, none."""
    if not isinstance(place, Remote):
        return (
            sorted(str(path) for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
        )
    try:
        files = stores.names(place, folders=False)
        return sorted(str(place / name) for name in stores.names(place) if name not in files)
    except NotADirectoryError:
        return []


def read_ipc(path: Place) -> pl.DataFrame:
    """Reads an Arrow file; a local one is mapped into memory."""
    if isinstance(path, Remote):
        return pl.read_ipc(read_bytes(path))
    stat_file(path)
    return pl.read_ipc(path)


def check_client(place: Place) -> None:
    """Checks that the client of a store is installed here.

    Raises:
        UserError: A package or the credentials are missing.
    """
    if isinstance(place, Remote):
        store_client_of(place)


def folder_names(place: Place, address: str) -> list[str]:
    """Returns the names in the place of a table; checks that its store can be reached.

    Raises:
        UsageError: The place is a file, or cannot be read.
        Unavailable: The store does not answer.
    """
    try:
        if isinstance(place, Remote):
            store_client_of(place)
            found = list(stores.names(place))
            if not found:
                stores.check_reach(place)
            return found
        return [entry.name for entry in place.iterdir()] if place.exists() else []
    except NotADirectoryError as error:
        raise UsageError(f"the table must be a folder, got the file {address!r}") from error
    except OSError as error:
        kind = Unavailable if isinstance(error, StoreUnreachable) else UsageError
        raise kind(f"cannot read table {address!r}: {error.strerror}") from error
