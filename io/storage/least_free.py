"""How much room the disk of a table must keep: fetches end before it is full."""

import logging
from typing import NamedTuple

from rich import filesize

from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.options import option
from .places import DiskRoom, Place

_LOG = logging.getLogger("nutbeam")
# The reason of URLs that stay due because a fetch has ended for lack of room.
DISK_LOW = "disk_low"
# Without an option, this share of a disk stays free, and at most this number of bytes.
_SHARE, _MOST = 20, 1_000_000_000
# Of the files that fit on a disk, this number stays free at most: a round writes some for each tablet.
_MOST_FILES = 10_000
# The folders of a table that may be links to other disks: a fetch writes into the second one.
_WRITTEN = ("", "batches")


class DiskLow(UserError):
    """The disk of a table has less room than it must keep; nothing was begun."""


@dataclass(frozen=True)
class LeastFreeOptions:
    """Options of jobs that bring much into a table."""

    GROUP = "job"

    least_free: int = option(
        -1,
        "How much of the table's disk stays free. A fetch that finds less ends early: its pages are "
        "kept, the others stay due, and what is left of the round uses this room. An import does not "
        "begin. 0: no limit; -1: a twentieth of the disk, at most 1 GB. A twentieth of its inodes stays free, too, at most "
        "10,000, except with 0.",
        unit="B",
        minimum=-1,
    )


class TableRoom(NamedTuple):
    """The room of a table's disk: what is free, and what must stay free.

    Attributes:
        free: Free bytes.
        least: Bytes that must stay free.
        free_files: How many more files fit.
        least_files: How many must still fit; 0: their number has no limit.
    """

    free: int
    least: int
    free_files: int = 0
    least_files: int = 0

    @property
    def is_low(self) -> bool:
        """Whether less is free than must stay free."""
        return self.free < self.least or self.lacks_files

    @property
    def lacks_files(self) -> bool:
        """Whether fewer files fit than must."""
        return self.free_files < self.least_files

    def lasts(self, used: int, used_files: int) -> bool:
        """Returns whether enough is left after this number of bytes and of files more."""
        return self.free - used >= self.least and self.free_files - used_files >= self.least_files


def least_free_of(room: DiskRoom, least: int) -> int:
    """Returns how much of a disk must stay free, in bytes; see ``least_free``.

    >>> least_free_of(DiskRoom(total=1_000_000, free=7), -1)
    50000
    >>> least_free_of(DiskRoom(total=10**13, free=7), -1), least_free_of(DiskRoom(1, 1), 5)
    (1000000000, 5)
    """
    return min(room.total // _SHARE, _MOST) if least < 0 else least


def least_files_of(room: DiskRoom, least: int) -> int:
    """Returns how many files must still fit on a disk.

    >>> least_files_of(DiskRoom(9, 9, total_files=1_000, free_files=7), -1)
    50
    >>> least_files_of(DiskRoom(9, 9, 1_000, 7), 0), least_files_of(DiskRoom(9, 9, 10**9, 7), 5)
    (0, 10000)
    """
    return min(room.total_files // _SHARE, _MOST_FILES) if least else 0


def table_room(files: Place, least: int) -> TableRoom | None:
    """Returns the room of the fullest disk on which a table's files are; None in a store.

    Args:
        files: The place of the files.
        least: The value of ``least_free``.
    """
    places = (files / name if name else files for name in _WRITTEN)
    rooms = [
        TableRoom(
            room.free, least_free_of(room, least), room.free_files, least_files_of(room, least)
        )
        for room in (place.disk_room() for place in places)
        if room is not None
    ]
    return min(rooms, key=lambda room: (not room.is_low, room.free - room.least), default=None)


def check_room(address: str, files: Place, least: int) -> None:
    """Checks that the disk of a table has more room than must stay free; warns if it is scarce.

    Args:
        address: Address of the table, for messages.
        files: The place of its files.
        least: The value of ``least_free``.

    Raises:
        DiskLow: It has not.
    """
    room = table_room(files, least)
    if room is not None and room.is_low:
        raise DiskLow(low_message(address, room))
    if room is not None and not room.lasts(room.least, room.least_files):
        _LOG.warning("%s", scarce_message(address, room))


def low_message(address: str, room: TableRoom) -> str:
    """Returns that a disk has too little room, and what to do.

    >>> low_message("mine", TableRoom(free=1_500_000, least=2_000_000))[:76]
    "the disk of 'mine' has 1.5 MB free, and --least_free keeps 2.0 MB free: make"
    >>> low_message("mine", TableRoom(9, 1, free_files=70, least_files=1_000))[:77]
    "the disk of 'mine' has room for 70 more files (inodes), and 1,000 stay free: "
    """
    if room.lacks_files:
        return (
            f"the disk of {address!r} has room for {room.free_files:,} more files (inodes), and "
            f"{room.least_files:,} stay free: delete small files (nutbeam compact {address} merges "
            "those of the table), then run the same again"
        )
    return (
        f"the disk of {address!r} has {filesize.decimal(room.free)} free, and --least_free keeps "
        f"{filesize.decimal(room.least)} free: make room (nutbeam table describe {address} says what "
        "compact frees), then run the same again"
    )


def scarce_message(address: str, room: TableRoom) -> str:
    """Returns that the room of a disk may not last for the next fetch."""
    free, least = filesize.decimal(room.free), filesize.decimal(room.least)
    if room.least_files:
        free, least = (
            f"{free} and {room.free_files:,} files",
            f"{least} or {room.least_files:,} files",
        )
    return (
        f"the disk of {address!r} has {free} free: a fetch ends when less than {least} is free "
        f"(--least_free); nutbeam table describe {address} says what compact frees"
    )
