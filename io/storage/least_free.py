"""How much room the disk of a table must keep: fetches end before it is full."""

import dataclasses
import logging
from typing import NamedTuple

from rich import filesize

from ...web.base.errors import UserError
from ...web.base.options import option
from .places import DiskRoom, Place

_LOG = logging.getLogger("nutbeam")
# The reason of URLs that stay due because a fetch has ended for lack of room.
DISK_LOW = "disk_low"
# Without an option, this share of a disk stays free, and at most this number of bytes.
_SHARE, _MOST = 20, 1_000_000_000
# The folders of a table that may be links to other disks: a fetch writes into the second one.
_WRITTEN = ("", "batches")


class DiskLow(UserError):
    """The disk of a table has less room than it must keep; nothing was begun."""


@dataclasses.dataclass(frozen=True)
class LeastFreeOptions:
    """Options of jobs that bring much into a table."""

    GROUP = "job"

    least_free: int = option(
        -1,
        "How much of the table's disk stays free. A fetch that finds less ends early: its pages are "
        "kept, the others stay due, and what is left of the round uses this room. 0: no limit; -1: "
        "a twentieth of the disk, at most 1 GB.",
        unit="B",
        minimum=-1,
    )


class TableRoom(NamedTuple):
    """The room of a table's disk, in bytes: what is free, and what must stay free."""

    free: int
    least: int

    @property
    def is_low(self) -> bool:
        """Whether less is free than must stay free."""
        return self.free < self.least


def least_free_of(room: DiskRoom, least: int) -> int:
    """Returns how much of a disk must stay free, in bytes; see ``least_free``.

    >>> least_free_of(DiskRoom(total=1_000_000, free=7), -1)
    50000
    >>> least_free_of(DiskRoom(total=10**13, free=7), -1), least_free_of(DiskRoom(1, 1), 5)
    (1000000000, 5)
    """
    return min(room.total // _SHARE, _MOST) if least < 0 else least


def table_room(files: Place, least: int) -> TableRoom | None:
    """Returns the room of the fullest disk on which a table's files are; None in a store.

    Args:
        files: The place of the files.
        least: The value of ``least_free``.
    """
    places = (files / name if name else files for name in _WRITTEN)
    rooms = [
        TableRoom(room.free, least_free_of(room, least))
        for room in (place.disk_room() for place in places)
        if room is not None
    ]
    return min(rooms, key=lambda room: room.free - room.least, default=None)


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
    if room is not None and room.free < 2 * room.least:
        _LOG.warning("%s", scarce_message(address, room))


def low_message(address: str, room: TableRoom) -> str:
    """Returns that a disk has too little room, and what to do.

    >>> low_message("mine", TableRoom(free=1_500_000, least=2_000_000))[:76]
    "the disk of 'mine' has 1.5 MB free, and --least_free keeps 2.0 MB free: make"
    """
    free, least = (filesize.decimal(number) for number in room)
    return (
        f"the disk of {address!r} has {free} free, and --least_free keeps {least} free: make room "
        f"(nutbeam table describe {address} says what compact frees), then run the same again"
    )


def scarce_message(address: str, room: TableRoom) -> str:
    """Returns that the room of a disk may not last for the next fetch."""
    free, least = (filesize.decimal(number) for number in room)
    return (
        f"the disk of {address!r} has {free} free: a fetch ends when less than {least} is free "
        f"(--least_free); nutbeam table describe {address} says what compact frees"
    )
