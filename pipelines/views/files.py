"""files: lists the current files of a component, for other readers of Parquet."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from ...io.rows.duckdb_tables import files_of
from ...io.snapshots.manifest import newest_manifest
from ...io.storage.files import size_of
from ...io.storage.places import Place
from ...io.table.opening import open_table
from ...io.tablets.file_lists import DataFile
from ...policy.components.views import views
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ..base.command import TABLE, Argument, Invocation
from ..base.suggestions import suggestion

WHAT = Argument("what", "state, hosts, or a component of batches, such as batch_pages.")
ARGUMENTS = (TABLE, WHAT)
_FOLD = "of several rows of a key the one in the last file counts"


@dataclass(frozen=True)
class Options:
    """Options of files."""

    query: bool = option(
        False, "Print a query for DuckDB that reads the current rows in these files."
    )


def run(invocation: Invocation) -> int:
    address, what = str(invocation.table), invocation.arguments["what"]
    kinds = {name: view.kind for name, view in views().items() if view.kind is not None}
    if what not in kinds:
        advice = suggestion(what, kinds)
        raise UsageError(f"files can be listed of {', '.join(kinds)}, got {what!r}{advice}")
    table, manifest = open_table(address), newest_manifest(address)
    if not table.in_files(kinds[what].name):
        raise UsageError(
            f"{what} of {address!r} is in Bigtable, not in files: nutbeam export writes it to one"
        )
    files = in_order([file for _, file in files_of(table.files, manifest, kinds[what])])
    paths = [_readable(table / file.path) for file in files]
    runs = sum(file.base is not None for file in files)
    if invocation.options.query:
        if not paths:
            raise UsageError(f"{what} of {address!r} has no files yet")
        print(_query(paths, runs=bool(runs)))
    elif invocation.format == "json":
        listed = [_record(path, file) for path, file in zip(paths, files, strict=True)]
        print(json.dumps({"what": what, "snapshot": manifest.snapshot, "files": listed}))
    else:
        for path in paths:
            print(path)
        if runs:
            print(f"nutbeam files: {runs} of {len(files)} files are runs: {_FOLD}", file=sys.stderr)
    return 0


def _readable(place: Place) -> str:
    """Returns the name of a file for other programs, which follow links that nutbeam does not.

    Raises:
        UserError: It is no regular file, or a link leads to it.
    """
    if place.has_cheap_seeks:  # in a store there are no links, and a request for each file is slow
        size_of(place)
    return str(place)


def in_order(files: Sequence[DataFile]) -> list[DataFile]:
    """Returns files so that of several rows of a key the one of the last file counts.

    Bases come first. A run comes after all older runs.

    >>> base, old, new = DataFile("b", 9, 9), DataFile("x", 1, 1, base="b", order=2), DataFile(
    ...     "a", 1, 1, base="b", order=10)
    >>> [file.path for file in in_order([new, base, old])]
    ['b', 'x', 'a']
    """
    return sorted(files, key=lambda file: (file.base is not None, file.order if file.base else 0))


def _query(paths: Sequence[str], *, runs: bool) -> str:
    """Returns a query for DuckDB that reads the rows of current files, as they are stored.

    >>> print(_query(["t/a.parquet"], runs=False))
    SELECT * FROM read_parquet(['t/a.parquet'], union_by_name = true)
    """
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    if not runs:
        return f"SELECT * FROM read_parquet([{listed}], union_by_name = true)"
    return (
        f"SELECT * EXCLUDE (filename, row_number) "
        f"FROM read_parquet([{listed}], union_by_name = true, filename = true)\n"
        "QUALIFY row_number() OVER (PARTITION BY key "
        f"ORDER BY list_position([{listed}], filename) DESC) = 1"
    )


def _record(path: str, file: DataFile) -> dict[str, Any]:
    return {"path": path, "rows": file.rows, "bytes": file.bytes, "run_on": file.base}
