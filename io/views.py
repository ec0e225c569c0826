"""The table as views of DuckDB: which files each one reads, and what it shows of them."""

from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from ..policy.schema import COMPONENTS, STATUS_NAMES
from .manifest import DataFile, Manifest, load_files
from .places import Place
from .reading import TABLETS

# The files of all batches together, one view each.
KINDS = ("fetchlist", "pages", "learnt", "documents", "outcome")
# The URL of a row key, and the host of a reversed host, as SQL.
MACROS = (
    """CREATE MACRO host_of(key) AS CASE WHEN starts_with(key, '[')
         THEN left(key, position(']' IN key))
         ELSE array_to_string(list_reverse(string_split(split_part(key, ':', 1), '.')), '.') END""",
    """CREATE MACRO url_of(key) AS regexp_replace(
         CASE WHEN starts_with(key, '[') THEN substr(key, position(']' IN key) + 2)
              ELSE substr(key, position(':' IN key) + 1) END,
         '^([a-z][a-z0-9+.-]*)(:[0-9]+)?(/.*)$',
         '\\1://' || replace(host_of(key), '\\', '\\\\') || '\\2\\3', 's')""",
    "CREATE MACRO utc(ms) AS make_timestamp(ms * 1000)",
    "CREATE MACRO status_name(code) AS CASE code "
    + " ".join(f"WHEN {code} THEN '{name}'" for code, name in STATUS_NAMES.items())
    + " END",
)


def batches_frame(manifest: Manifest) -> pl.DataFrame:
    """Returns the batches of a snapshot, a row each."""
    schema = {
        "batch": pl.String, "phase": pl.String, "created": pl.Int64, "partitions": pl.Int64,
        "urls": pl.Int64, "blocks_until": pl.Int64, "deduped": pl.Boolean,
    }  # fmt: skip
    rows = [{"batch": name, **vars(batch)} for name, batch in sorted(manifest.batches.items())]
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def files_of(root: Place, manifest: Manifest, view: str) -> list[tuple[str, DataFile]]:
    """Returns the files that a view reads: (batch or empty, file).

    Raises:
        UserError: A list is missing or damaged.
    """
    if view in TABLETS:
        return [("", file) for file in load_files(root, manifest.components.get(view))]
    return [
        (name.split("/")[1], file)
        for name, component in sorted(manifest.components.items())
        if name.startswith("batches/") and name.endswith(f"/{view}")
        for file in load_files(root, component)
    ]


def shown(manifest: Manifest) -> list[str]:
    """Returns the names of the views that a snapshot has; ``batches`` is one more."""
    tablets = [name for name in TABLETS if name in COMPONENTS or name in manifest.components]
    return [*tablets, *KINDS]


def view_sql(root: Place, view: str, files: Sequence[tuple[str, DataFile]]) -> str:
    """Returns the SQL of a view; a relation ``empty_VIEW`` of the declared columns must exist.

    Args:
        root: The table's folder.
        view: Its name.
        files: Of ``files_of``.
    """
    return f"CREATE VIEW {view} AS SELECT {_first(view)} * FROM ({' '.join(_parts(root, view, files))})"


def _first(view: str) -> str:
    if view in ("hosts", "learnt"):
        return "host_of(key) AS host,"
    return "url_of(key) AS url,"


def _parts(root: Place, view: str, files: Sequence[tuple[str, DataFile]]) -> Iterator[str]:
    yield f"SELECT * FROM empty_{view}"  # what an older file lacks is null
    by_batch: dict[str, list[str]] = {}
    for batch, file in files:
        by_batch.setdefault(batch, []).append(_quoted(str(root / file.path)))
    for batch, paths in by_batch.items():
        named = "" if view in TABLETS else f", {_quoted(batch)} AS batch"
        columns = f"SELECT *{named} FROM read_parquet([{', '.join(paths)}], union_by_name = true)"
        yield f"UNION ALL BY NAME {columns}"


def empty_table(view: str) -> pa.Table:
    """Returns a table of no rows with the columns that a view has, those of the schema first."""
    schema = COMPONENTS.get(view, pa.schema([("key", pa.large_string())]))
    if view not in TABLETS:
        schema = schema.append(pa.field("batch", pa.large_string()))
    return schema.empty_table()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
