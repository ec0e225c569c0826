"""Errors about files and snapshots of all kinds of tables."""

from ...web.base.errors import UsageError, UserError


class NoTable(UsageError):
    """There is no table at the address."""


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
