"""The newest snapshot of the table at an address."""

from ...web.base.errors import UsageError
from ..table.opening import open_table
from .manifest import Manifest, load_manifest


def newest_manifest(table: str) -> Manifest:
    """Returns the newest snapshot of a table.

    Raises:
        UsageError: There is no table at the address.
    """
    root = open_table(table)
    manifest = load_manifest(root, root.latest_snapshot())
    if manifest.snapshot == 0:
        raise UsageError(root.why_empty())
    return manifest
