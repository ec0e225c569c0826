"""Creates, describes and drops the table in Bigtable that holds a web table."""

import functools
from typing import Any

from google.api_core import exceptions as errors
from google.cloud.bigtable_admin_v2 import BigtableTableAdminClient, types
from google.cloud.bigtable_admin_v2.services.bigtable_table_admin.transports import (
    BigtableTableAdminGrpcTransport,
)

from ...policy.components.kinds import kinds_in_rows
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ..storage.place_addresses import place_of
from .address import BigtableAddress
from .cell_layout import OWN_FAMILY, cell_kind, later_families
from .channel import open_channel, persistent
from .client import connect
from .own_rows import Settings
from .request_parts import VERSIONS
from .snapshot_log import SnapshotLog, settings_of_table


@dataclass(frozen=True)
class Description:
    """The settings and the state of a table.

    Attributes:
        address: Its address.
        files: The place of its batches and changes.
        app_profile: Default application profile.
        snapshot: The newest snapshot that can be read.
        applying: Number of a snapshot that is not yet applied, or None.
        families: Number of versions kept, by column family; 0 if the family has another rule.
        ranges: (first key or None, bytes) of parts of the table, from samples of Bigtable.
    """

    address: BigtableAddress
    files: str
    app_profile: str
    snapshot: int
    applying: int | None
    families: dict[str, int]
    ranges: list[tuple[str | None, int]]


def families() -> dict[str, int]:
    """Returns the number of versions to keep, by column family.

    Versions never expire by age: a reader may still need an old version, and timestamps are
    snapshot numbers.
    """
    return {**{cell_kind(name).family: VERSIONS for name in kinds_in_rows()}, OWN_FAMILY: 1}


def create_table(address: BigtableAddress, files: str) -> None:
    """Creates a table with its column families and snapshot 0.

    The next call completes a creation that was interrupted.

    Raises:
        UsageError: A web table, or a table with other families, exists already.
        UserError: Bigtable refuses the request.
    """
    admin = open_admin(address)
    request = types.CreateTableRequest(
        parent=address.instance_name,
        table_id=address.table,
        table=types.Table(column_families={n: _family(v) for n, v in families().items()}),
    )

    def make() -> None:
        try:
            admin.create_table(request=request, retry=None, timeout=120)
        except errors.AlreadyExists:
            _check_families(admin, address)
        except errors.NotFound as error:
            raise UsageError(f"no instance for {address}: {error.message}") from error

    persistent(address, make)
    log = SnapshotLog(connect(address), place_of(files))
    if not log.create(Settings(files, address.app_profile)):
        raise UsageError(f"there is a web table already at {address}")


def describe_table(address: BigtableAddress) -> Description:
    """Describes a table.

    Raises:
        UserError: The table does not exist.
    """
    admin, table = open_admin(address), connect(address)
    log = SnapshotLog(table, place_of("."))
    head, settings = log.head(), log.settings()
    return Description(
        address,
        settings.files,
        settings.app_profile,
        head.pinned_snapshot,
        head.snapshot if head.applying else None,
        _families_of(admin, address),
        _ranges(table.samples()),
    )


def drop_table(address: BigtableAddress) -> str:
    """Deletes a table with all its rows; returns the place of its files, which are kept.

    Raises:
        UserError: The table does not exist.
    """
    files = SnapshotLog(connect(address), place_of(".")).settings().files
    admin = open_admin(address)
    persistent(address, lambda: admin.delete_table(name=address.name, retry=None, timeout=120))
    add_families.cache_clear()
    settings_of_table.cache_clear()  # a new table of this name may have its files elsewhere
    return files


def open_admin(address: BigtableAddress) -> Any:
    """Returns Google's client for tables."""
    channel = open_channel(address, "bigtableadmin.googleapis.com:443")
    return BigtableTableAdminClient(transport=BigtableTableAdminGrpcTransport(channel=channel))


@functools.lru_cache(maxsize=16)
def add_families(address: BigtableAddress, names: frozenset[str]) -> None:
    """Adds the column families of components that a table lacks, because it is older than they are.

    Raises:
        UserError: The account may not add one, or a family keeps another number of versions.
    """
    admin = open_admin(address)
    present_families = _families_of(admin, address)
    for name in sorted(names):
        if present_families.get(name, VERSIONS) != VERSIONS:
            raise UserError(
                f"column family {name!r} of {address} must keep {VERSIONS} versions of a cell, "
                f"got {present_families[name] or 'another rule'}"
            )
        if name not in present_families:
            persistent(address, functools.partial(_add_family, admin, address, name))


def _add_family(admin: Any, address: BigtableAddress, name: str) -> None:
    change = types.ModifyColumnFamiliesRequest.Modification(id=name, create=_family(VERSIONS))
    request = types.ModifyColumnFamiliesRequest(name=address.name, modifications=[change])
    try:
        admin.modify_column_families(request=request, retry=None, timeout=60)
    except errors.AlreadyExists:
        pass  # another job was faster
    except errors.Forbidden as error:
        raise UserError(
            f"{address} lacks column family {name!r}, which this nutbeam needs, and you may not "
            "add it: run one job as an account with roles/bigtable.admin"
        ) from error


def has_family(address: BigtableAddress, name: str) -> bool:
    """Returns whether a table has a column family."""
    return name not in later_families() or name in _families_of(open_admin(address), address)


def _family(versions: int) -> Any:
    return types.ColumnFamily(gc_rule=types.GcRule(max_num_versions=versions))


def _families_of(admin: Any, address: BigtableAddress) -> dict[str, int]:
    request = types.GetTableRequest(name=address.name, view=types.Table.View.SCHEMA_VIEW)
    table = persistent(address, lambda: admin.get_table(request=request, retry=None, timeout=60))
    return {n: f.gc_rule.max_num_versions for n, f in sorted(table.column_families.items())}


def _check_families(admin: Any, address: BigtableAddress) -> None:
    present_families, wanted = _families_of(admin, address), families()
    # A job adds the families of later components.
    if {**dict.fromkeys(later_families(), VERSIONS), **present_families} != wanted:
        raise UsageError(
            f"there is another table at {address}: its column families (and versions) are "
            f"{present_families or 'none'}, those of a web table {wanted}"
        )


def _ranges(samples: list[tuple[bytes, int]]) -> list[tuple[str | None, int]]:
    ranges: list[tuple[str | None, int]] = []
    first, start_offset = None, 0
    for key, offset in samples:
        if key and key < b"\1":
            continue
        ranges.append((first, offset - start_offset))
        first, start_offset = key.decode("utf-8", "replace"), offset
    return ranges or [(None, 0)]
