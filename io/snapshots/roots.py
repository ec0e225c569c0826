"""What an address of a table stands for: a folder, names in a store, or rows in Bigtable."""

from pathlib import Path
from typing import TypeAlias

from ..bigtable.address import is_bigtable, parse_address
from ..bigtable.root import BigtableRoot
from ..storage.places import HDFS, LOCAL_OR_STORE, Place, Remote, place_of

Root: TypeAlias = Path | Remote | BigtableRoot


def root_of(table: str) -> Root:
    """Returns what the address of a table stands for; nothing is asked for there.

    Raises:
        UsageError: It is malformed, or of a kind that is not supported.

    >>> root_of("s3://bucket/table")
    Remote(store='s3://bucket', key=PurePosixPath('table'))
    """
    if is_bigtable(table):
        return BigtableRoot(parse_address(table))
    return place_of(table, f"{LOCAL_OR_STORE}, {HDFS} or bigtable://PROJECT/INSTANCE/TABLE")


def files_of(root: Root) -> Place:
    """Returns where the files of a table are."""
    return root.files if isinstance(root, BigtableRoot) else root
