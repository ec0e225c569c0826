"""Where a web table may be."""

from ...web.base.errors import Unavailable, UsageError
from ..bigtable.address import is_bigtable
from ..bigtable.root import BigtableRoot
from ..storage import stores
from ..storage.files import names
from ..storage.places import Place, Remote
from ..storage.store_clients import client_of
from ..storage.store_errors import StoreUnreachable
from .manifest import Manifest, latest_snapshot, load_manifest
from .roots import root_of

# What a table's folder may hold before its first snapshot is there.
KNOWN = frozenset(
    {"bars", "batches", "exports", "hosts", "links", "manifest", "operations", "seeds", "state"}
)


def check_folder(table: str, command: str) -> None:
    """Refuses a table whose rows are no files.

    Raises:
        UsageError: The command has nothing for it.
    """
    if is_bigtable(table):
        raise UsageError(
            f"{command} works on tables of files only, so far: {table!r} is in Bigtable"
        )


def check_address(table: str) -> None:
    """Refuses what cannot be, or become, a web table.

    Raises:
        UsageError: The address is of a store that is not supported, or names a
            file, or a folder with something else in it.
        Unavailable: The store does not answer.
    """
    root = root_of(table)
    if isinstance(root, BigtableRoot):
        root.log.head()  # says so where there is none
        _names(root.files, str(root.files))
        return
    found = set(_names(root, table))
    strange = sorted(name for name in found - KNOWN if not name.startswith("."))
    if "manifest" not in found and strange:
        raise UsageError(
            f"no web table in folder {table!r}, and it is not empty: it has {strange[0]!r}"
        )


def _names(root: Place, table: str) -> list[str]:
    """Returns what is in a folder, or below an address, of whose store all that is needed is there."""
    try:
        if isinstance(root, Remote):
            client_of(root)
            found = list(stores.names(root))
            if not found:
                stores.check_reach(root)
            return found
        if root.exists() and not root.is_dir():
            raise UsageError(f"the table must be a folder, got the file {table!r}")
        return [entry.name for entry in root.iterdir()] if root.exists() else []
    except NotADirectoryError as error:
        raise UsageError(f"the table must be a folder, got the file {table!r}") from error
    except OSError as error:
        kind = Unavailable if isinstance(error, StoreUnreachable) else UsageError
        raise kind(f"cannot read table {table!r}: {error.strerror}") from error


def open_table(table: str) -> Manifest:
    """Returns the newest snapshot of a table.

    Raises:
        UsageError: There is no table at the address.
    """
    root = root_of(table)
    manifest = load_manifest(root, latest_snapshot(root))
    if manifest.snapshot == 0:
        if isinstance(root, BigtableRoot):
            raise UsageError(f"the web table at {table!r} is empty: inject puts seeds into it")
        missing = not (names(root) if isinstance(root, Remote) else root.exists())
        hint = "it does not exist" if missing else "it has no manifest"
        raise UsageError(f"no web table at {table!r}: {hint}")
    return manifest
