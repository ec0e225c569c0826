"""Opens the web table at an address."""

from ..bigtable.address import is_bigtable, parse_address
from ..storage.place_addresses import HDFS, LOCAL_OR_STORE, place_of
from .folder_table import FolderTable
from .web_table import WebTable


def open_table(address: str) -> WebTable:
    """Returns the table at an address, without a request.

    Raises:
        UsageError: The address is malformed, or its kind is not supported.

    >>> open_table("s3://bucket/table")
    FolderTable(files=StorePlace(store='s3://bucket', key=PurePosixPath('table')))
    """
    if is_bigtable(address):
        from .bigtable_web_table import BigtableWebTable  # late: most tables are folders

        return BigtableWebTable(parse_address(address))
    allowed = f"{LOCAL_OR_STORE}, {HDFS} or bigtable://PROJECT/INSTANCE/TABLE"
    return FolderTable(place_of(address, allowed))
