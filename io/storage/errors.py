"""Errors of reading a table that its snapshots have in common."""

from ...web.base.errors import UserError


class SnapshotTooOld(UserError):
    """What the snapshot says was deleted: its retention is over, or newer rows took the place."""


class PurgedMeanwhile(UserError):
    """A purge that left nothing behind has deleted what was to be read."""


class ConflictError(UserError):
    """Somebody else changed what the operation had read; nothing was written."""
