"""Where a web table may be."""

from pathlib import Path

from ..web.errors import UsageError
from .manifest import Manifest, latest_snapshot, load_manifest

# What a table's folder may hold before its first snapshot is there.
KNOWN = frozenset(
    {"bars", "batches", "exports", "hosts", "links", "manifest", "operations", "seeds", "state"}
)


def check_address(table: str) -> None:
    """Refuses what cannot be, or become, a web table.

    Raises:
        UsageError: The address is of a store that is not supported, or names a
            file, or a folder with something else in it.
    """
    if "://" in table:
        raise UsageError(f"the table must be a local folder in this version, got {table!r}")
    path = Path(table)
    try:
        if path.exists() and not path.is_dir():
            raise UsageError(f"the table must be a folder, got the file {table!r}")
        names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    except OSError as error:
        raise UsageError(f"cannot read table {table!r}: {error.strerror}") from error
    strange = sorted(name for name in names - KNOWN if not name.startswith("."))
    if "manifest" not in names and strange:
        raise UsageError(
            f"no web table in folder {table!r}, and it is not empty: it has {strange[0]!r}"
        )


def open_table(table: str) -> Manifest:
    """Returns the newest snapshot of a table.

    Raises:
        UsageError: There is no table at the address.
    """
    root = Path(table)
    manifest = load_manifest(root, latest_snapshot(root))
    if manifest.snapshot == 0:
        hint = "it does not exist" if not root.exists() else "it has no manifest"
        raise UsageError(f"no web table at {table!r}: {hint}")
    return manifest
