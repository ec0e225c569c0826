"""Marker files: empty files that show that another file was made, if that one is lost.

Only folders have them, because a store loses no files.
"""

import contextlib

from ...web.base.errors import UserError
from .exclusive import create_exclusive
from .files import names
from .places import Place, Remote


def set_marker(marker: Place) -> None:
    """Creates a marker in a folder; an error is ignored."""
    if not isinstance(marker, Remote):
        with contextlib.suppress(UserError):
            create_exclusive(marker, b"", durable=False)


def markers(folder: Place) -> list[str]:
    """Returns the names of the markers in a folder."""
    return [] if isinstance(folder, Remote) else names(folder)


def has_marker(marker: Place) -> bool:
    """Returns whether a marker exists."""
    return not isinstance(marker, Remote) and marker.exists()
