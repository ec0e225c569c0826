"""Files that say what a run of an index is about to send, and a mark that such files were lost.

They are in ``index/NAME/receipts``. Compact and purge delete old ones, with the row keys in them.
Then a server may have pages of which nothing is known, so the next run builds the index again.
"""

from ..storage.files import create_exclusive, size_of
from ..storage.places import Place

# Ending of the files with the keys that a part is about to send.
INTENT = ".intent"
RECEIPTS = "receipts"
_LOST = "lost"


def is_intent(path: Place) -> bool:
    """Returns whether a file says what a run is about to send.

    >>> from nutbeam.io.storage.place_addresses import place_of
    >>> is_intent(place_of("table/index/main/receipts/0000000000017-a.index/0123.intent"))
    True
    """
    return path.suffix == INTENT and path.parents[1].name == RECEIPTS


def note_lost(path: Place) -> None:
    """Notes that a file of keys will be deleted; called before it is."""
    create_exclusive(path.parents[1] / _LOST, b"")


def is_mark(path: Place) -> bool:
    """Returns whether a file is the mark of ``note_lost``."""
    return path.name == _LOST and path.parent.name == RECEIPTS


def lost_mark(receipts: Place) -> Place:
    """Returns the place of the mark in the folder with the receipts of an index."""
    return receipts / _LOST


def were_lost(receipts: Place) -> bool:
    """Returns whether files of keys of an index were deleted before their pages were corrected."""
    return size_of(lost_mark(receipts)) is not None
