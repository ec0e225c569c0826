"""Appends rows to a table of Apache Iceberg: one snapshot of Iceberg for each load.

The note of a load is a property of the table, set in the transaction that appends the rows. A commit
of another writer in between fails the transaction: it is not tried again on top of that one, because
that one may have brought the same rows.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...web.base.errors import UsageError, UserError, one_line
from .output_tables import Load, TableOutput, load_of_json

ICEBERG_PREFIX = "iceberg:"
_SQLITE = "catalog.db"
_NAME = re.compile(r"[\w-]+(\.[\w-]+)+")  # the folders of a table are named after it
_NOTE = "nutbeam.load."
_RETRIES = "commit.retry.num-retries"
_SIGNED = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


class IcebergOutput(TableOutput):
    """A table of Iceberg.

    Args:
        name: Its namespace and its name, with points between.
        catalog: As ``CatalogOptions.catalog``.
    """

    def __init__(self, name: str, catalog: str) -> None:
        self._name, self._catalog_name = name, catalog

    @property
    def address(self) -> str:
        return f"{ICEBERG_PREFIX}{self._name}"

    def last_load(self, source: str) -> Load | None:
        # A folder that is not there has no table, and is not made before there are rows.
        if is_folder(self._catalog_name) and not (Path(self._catalog_name) / _SQLITE).exists():
            return None
        with self._errors():
            catalog = self._catalog()
            if not catalog.table_exists(self._name):
                return None
            return self._note(catalog.load_table(self._name), source)

    def append(self, rows: pa.RecordBatchReader, load: Load) -> int:
        schema, counted = _iceberg_schema(rows.schema), _Counted(rows)
        with self._errors():
            catalog = self._catalog()
            catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
            table = catalog.create_table_if_not_exists(self._name, schema)
            self.check_last(self._note(table, load.source), load)
            names = table.schema().column_names
            self.check_columns(names, schema.names, any(map(_is_note, table.properties)))
            own = table.metadata.properties | {_RETRIES: "0"}
            table.metadata = table.metadata.model_copy(update={"properties": own})
            properties = {"nutbeam.source": load.source, "nutbeam.snapshot": str(load.snapshot)}
            with table.transaction() as transaction:
                if set(schema.names) - set(names):
                    with transaction.update_schema() as update:
                        update.union_by_name(schema)
                transaction.set_properties({_note_name(load.source): load.to_json()})
                batches = pa.RecordBatchReader.from_batches(schema, counted.cast_to(schema))
                # Only tables without partitions take their rows piece by piece.
                appended = batches if table.spec().is_unpartitioned() else batches.read_all()
                transaction.append(appended, snapshot_properties=properties)
        return counted.rows

    def _note(self, table: Any, source: str) -> Load | None:
        text = table.properties.get(_note_name(source))
        return load_of_json(text, self.address) if text else None

    def _catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog  # late: few commands need it

        if not is_folder(self._catalog_name):
            return load_catalog(self._catalog_name)
        folder = Path(self._catalog_name).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{folder / _SQLITE}"
        # Not as_uri(): pyiceberg takes escapes for names.
        return load_catalog("nutbeam", type="sql", uri=uri, warehouse=f"file://{folder}")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raises errors of pyiceberg, of catalogs and of stores as errors of users."""
        from pyiceberg.exceptions import CommitFailedException

        try:
            yield
        except UserError:
            raise
        except CommitFailedException as error:
            raise UserError(
                f"another program has changed {self.address} meanwhile: run this again"
            ) from error
        except Exception as error:  # of any catalog and store that pyiceberg has
            raise UserError(
                f"cannot append to {self.address}, catalog {self._catalog_name!r}: {one_line(error)[:300]}"
            ) from error


class _Counted:
    """Rows that are counted while they are read."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader, self.rows = reader, 0

    def cast_to(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            self.rows += len(batch)
            yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


def iceberg_output_of(text: str, catalog: str) -> IcebergOutput | None:
    """Returns the table of an address ``iceberg:NAMESPACE.TABLE``; None if it is none.

    Raises:
        UsageError: The address lacks a namespace, the folder of the catalog has a name that no address
            may have, or pyiceberg is not installed.
    """
    if not text.startswith(ICEBERG_PREFIX):
        return None
    name = text.removeprefix(ICEBERG_PREFIX)
    if not _NAME.fullmatch(name):
        raise UsageError(f"--output must be iceberg:NAMESPACE.TABLE, got {text!r}")
    folder = str(Path(catalog).absolute()) if is_folder(catalog) else ""
    if any(mark in folder for mark in "%?#"):
        raise UsageError(
            f"--catalog must be a folder without %, ? and # in its path, got {folder!r}"
        )
    try:
        import pyiceberg.catalog  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError(
            "an Iceberg table needs pyiceberg: pip install 'nutbeam[iceberg]'"
        ) from error
    return IcebergOutput(name, catalog)


def is_folder(catalog: str) -> bool:
    """Returns whether a catalog is a folder of this machine.

    >>> is_folder("./iceberg"), is_folder("production")
    (True, False)
    """
    return "/" in catalog


def _iceberg_schema(schema: pa.Schema) -> pa.Schema:
    """Returns columns with types that Iceberg has: it has no unsigned numbers."""
    return pa.schema([field.with_type(_SIGNED.get(field.type, field.type)) for field in schema])


def _note_name(source: str) -> str:
    return f"{_NOTE}{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def _is_note(name: str) -> bool:
    return name.startswith(_NOTE)
