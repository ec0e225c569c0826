"""Looks at the room of a table's disk before jobs that bring much, and from round to round of a crawl."""

import logging

from ...io.storage.least_free import (
    LeastFreeOptions,
    TableRoom,
    check_room,
    scarce_message,
    table_room,
)
from ...io.table.opening import open_table
from ...web.base.dataclass import dataclass
from ...web.base.option_checks import Launch

_LOG = logging.getLogger("nutbeam")


@dataclass(frozen=True)
class RoomOptions(LeastFreeOptions):
    """Options of jobs that begin only if the table's disk has enough room.

    Those that finish a batch, such as parse and updatedb, do not have them: they use what is kept.
    """

    def check_setup(self, launch: Launch) -> None:
        """Checks the room of the table's disk."""
        if launch.address:
            check_room(launch.address, open_table(launch.address).files, self.least_free)


def low_room(address: str, least: int) -> TableRoom | None:
    """Returns the room of a table's disk if it is low; None if there is enough.

    Args:
        address: Address of the table.
        least: The value of ``least_free``.
    """
    room = table_room(open_table(address).files, least)
    return room if room is not None and room.is_low else None


class RoomOfRounds:
    """Says before each round whether there is room for it, and warns when it may be the last one.

    Args:
        address: Address of the table.
        least: The value of ``least_free``.
    """

    def __init__(self, address: str, least: int) -> None:
        self._address, self._least = address, least
        self._files = open_table(address).files
        self._room_before: TableRoom | None = None
        self._warned = False

    def suffices(self) -> bool:
        """Returns whether the disk has more room than must stay free."""
        room = table_room(self._files, self._least)
        if room is None:
            return True
        if not self._warned and self._may_not_last(room):
            self._warned = True
            _LOG.warning("%s", scarce_message(self._address, room))
        self._room_before = room
        return not room.is_low

    def _may_not_last(self, room: TableRoom) -> bool:
        """Returns whether another round like the last one would leave too little room."""
        before = self._room_before
        if before is None or room.is_low:
            return False
        used = max(0, before.free - room.free)
        return not room.lasts(used, max(0, before.free_files - room.free_files))
