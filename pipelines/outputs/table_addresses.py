"""From an address to a table of another database, of all kinds that there are."""

from .duckdb_output import DUCKDB_ADDRESS, duckdb_output_of
from .iceberg_output import ICEBERG_PREFIX, iceberg_output_of
from .output_tables import TableOutput


def names_table(text: str) -> bool:
    """Returns whether an address is that of a table, not of a file.

    >>> names_table("iceberg:web.pages"), names_table("a.duckdb:pages"), names_table("a.jsonl")
    (True, True, False)
    """
    return text.startswith(ICEBERG_PREFIX) or DUCKDB_ADDRESS.fullmatch(text) is not None


def table_output_of(text: str, catalog: str, table: str) -> TableOutput | None:
    """Returns the table of an address; None if the address is that of a file, or ``-``.

    Args:
        text: The address: ``iceberg:NAMESPACE.TABLE``, ``FILE.duckdb`` or ``FILE.duckdb:TABLE``.
        catalog: As ``CatalogOptions.catalog``.
        table: Name of the table in a file, if the address has none.

    Raises:
        UsageError: The address is wrong, or its package is not installed.
    """
    return iceberg_output_of(text, catalog) or duckdb_output_of(text, table)
