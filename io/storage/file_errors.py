"""Errors about files and snapshots of all kinds of tables: one line, with advice for the user."""

import contextlib
import errno
import os
from collections.abc import Iterator

from ...policy.components.declaration import RowLayout
from ...policy.components.index_schema import DEFAULT_INDEX
from ...policy.components.kinds import folders, kind_of
from ...web.base.errors import UsageError, UserError
from .places import Place

MAKE_ROOM = ": make room, then run the same again"
# Addresses of the tables that this process has opened, by the place of their files.
_ADDRESSES: dict[Place, str] = {}


class NoTable(UsageError):
    """There is no table at the address."""


class NoRoom(UserError):
    """A disk is full."""


class MissingFile(UserError):
    """A file to read, or the folder of a file to write, does not exist."""


class SnapshotTooOld(UserError):
    """Files or rows of the snapshot are gone, by retention or because newer rows replaced them."""


class PurgedMeanwhile(UserError):
    """A purge without retention has deleted data of the snapshot."""


class ConflictError(UserError):
    """Another operation changed the data that this one had read; nothing was written."""


class BatchMovedOn(ConflictError):
    """Another operation has done the same work on the same batch; nothing was written."""


def is_disk_full(error: OSError) -> bool:
    """Returns whether an error of the system says that a disk is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)


def is_no_room(error: UserError) -> bool:
    """Returns whether something failed because a disk is full, here or in a worker."""
    return isinstance(error, NoRoom) or os.strerror(errno.ENOSPC) in str(error)


@contextlib.contextmanager
def errors_as(failure: str) -> Iterator[None]:
    """Re-raises an ``OSError`` as one line.

    Args:
        failure: The start of the line, such as ``cannot read FILE``.

    Raises:
        MissingFile: There is no such file or folder.
        NoRoom: The disk is full.
        UserError: There was another ``OSError``, such as no permission.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error.strerror or str(error)
        full = is_disk_full(error)
        advice = MAKE_ROOM if full else ""
        is_missing = isinstance(error, FileNotFoundError)
        kind = MissingFile if is_missing else NoRoom if full else UserError
        raise kind(f"{failure}: {reason}{advice}") from error


def unreadable(path: Place, error: Exception) -> UserError:
    """Returns the error for a table's file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"data file is missing: {path}{repair_advice(path)}")
    return UserError(f"data file cannot be read: {path}: {first_line(error)}{repair_advice(path)}")


def repair_advice(path: Place) -> str:
    """Returns the advice for a missing or damaged file: the command that repairs it.

    It is ``fsck``, or for a shard the command that builds the index again.

    >>> from nutbeam.io.storage.place_addresses import place_of
    >>> repair_advice(place_of("mine/manifest/lists/state-1.parquet"))
    ': run nutbeam fsck mine'
    >>> repair_advice(place_of("mine/index/main/shards/1.parquet"))
    ': run nutbeam index mine --full'
    >>> repair_advice(place_of("mine/index/test/shards/1.parquet"))
    ': run nutbeam index mine --full --index test'
    >>> repair_advice(place_of("seeds.txt"))
    ''
    """
    table = _table_of(path)
    if not table:
        return ""
    if kind_of(path.parent.name).layout is not RowLayout.SHARDS:
        return f": run nutbeam fsck {table}"
    index = path.parent.parent.name
    option = "" if index == DEFAULT_INDEX else f" --index {index}"
    return f": run nutbeam index {table} --full{option}"


def _table_of(path: Place) -> str:
    """Returns the address of the table that a file is in; empty: it is in none."""
    for folder in path.parents:
        if folder in _ADDRESSES:
            return _ADDRESSES[folder]
    for folder in path.parents:
        if folder.name in ("manifest", "operations", *folders()):
            return str(folder.parent)
    return ""


def note_address(files: Place, address: str) -> None:
    """Records the address of a table whose files are in another place."""
    _ADDRESSES[files] = address


def note_folder(files: Place) -> None:
    """Records the place of a table's files, which is its address unless another one is recorded."""
    _ADDRESSES.setdefault(files, str(files))


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text, or the name of its class if it has no text."""
    return (str(error).splitlines() or [type(error).__name__])[0]
