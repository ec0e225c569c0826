"""Makes the SQL of DuckDB views of a table: their files and columns."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

import polars as pl
import pyarrow as pa

from ...policy.kinds import exportable, kind_of
from ...policy.schema import STATUS_NAMES
from ..snapshots.manifest import Manifest
from ..storage.places import Folder
from ..tablets.file_lists import DataFile, load_files
from ..tablets.tablets import NUMBER, Tablet, tablets

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
    """Returns the batches of a snapshot, one row per batch."""
    schema = {
        "batch": pl.String, "phase": pl.String, "created": pl.Int64, "partitions": pl.Int64,
        "urls": pl.Int64, "blocks_until": pl.Int64, "deduped": pl.Boolean,
    }  # fmt: skip
    rows = [{"batch": name, **vars(batch)} for name, batch in sorted(manifest.batches.items())]
    return pl.DataFrame(rows, schema=schema)


def files_of(root: Folder, manifest: Manifest, view: str) -> list[tuple[str, DataFile]]:
    """Returns the files that a view reads, as (batch id or empty, file).

    Raises:
        UserError: A list is missing or damaged.
    """
    if not kind_of(view).of_batch:
        return [("", file) for file in load_files(root, manifest.components.get(view))]
    return [
        (name.split("/")[1], file)
        for name, component in sorted(manifest.components.items())
        if name.startswith("batches/") and name.endswith(f"/{view}")
        for file in load_files(root, component)
    ]


def shown() -> list[str]:
    """Returns the views of components; the views ``batches`` and ``links`` are not among them."""
    return list(exportable())


def view_sql(root: Folder, view: str, files: Sequence[tuple[str, DataFile]]) -> str:
    """Returns the SQL of a view; needs a relation ``empty_VIEW`` with the declared columns.

    Args:
        root: The table's folder.
        view: Name of the view.
        files: Its files, from ``files_of``.
    """
    name = "host_of(key) AS host, " if kind_of(view).of_hosts else "url_of(key) AS url, "
    name = "" if kind_of(view).hashed else name
    return f"CREATE VIEW {view} AS SELECT {name}* FROM ({' '.join(_parts(root, view, files))})"


def links_sql(root: Folder, files: Sequence[tuple[str, DataFile]]) -> str:
    """Returns the SQL of the view ``links``: the links in each page's newest document.

    The view ``state`` and a relation ``empty_documents`` must exist.

    Args:
        root: The table's folder.
        files: Files of ``documents``, from ``files_of``.
    """
    found = [file for _, file in files]
    read = _read(root, found, "filename = true, file_row_number = true") if found else ""
    # The name of each file in the state: a file may have replaced the one that the state names.
    names = ", ".join(
        f"({_quoted(str(root / file.path))}, {_quoted(name)})"
        for file in found
        for name in sorted({file.path, file.formerly or file.path})
    )
    return f"""CREATE VIEW links AS
        WITH found AS NOT MATERIALIZED (
            SELECT *, '' AS filename, 0 AS file_row_number FROM empty_documents
            {"UNION ALL BY NAME SELECT * FROM " + read if read else ""}),
        newest AS (
            SELECT found.filename, found.key,
              arg_min(found.file_row_number, (found.part_of IS NOT NULL, found.file_row_number))
              AS file_row_number
            FROM found JOIN (VALUES {names or "('', '')"}) AS named (filename, name)
              ON found.filename = named.filename
            JOIN state ON state.key = found.key AND state.document = named.name
            GROUP BY ALL),
        every AS (
            SELECT found.key, unnest(found.outlinks) AS link FROM found SEMI JOIN newest
            USING (filename, key, file_row_number))
        SELECT url_of(key) AS url, key, url_of(link.key) AS target_url, link.key AS target_key,
               link.anchor AS anchor, link.rel AS rel FROM every"""


def _parts(root: Folder, view: str, files: Sequence[tuple[str, DataFile]]) -> Iterator[str]:
    yield f"SELECT * FROM empty_{view}"  # columns that an older file lacks are null
    if kind_of(view).in_tablets:
        known = tablets(file for _, file in files)
        plain = [tablet.base for tablet in known if not tablet.runs]
        if plain:
            yield f"UNION ALL BY NAME SELECT * FROM {_read(root, plain)}"
        layered = [tablet for tablet in known if tablet.runs]
        if layered:
            yield from _folded(root, layered)
        return
    for batch, some in itertools.groupby(files, key=itemgetter(0)):
        read = _read(root, [file for _, file in some])
        batches = f", {_quoted(batch)} AS batch" if kind_of(view).of_batch else ""
        yield f"UNION ALL BY NAME SELECT *{batches} FROM {read}"


def _folded(root: Folder, layered: Sequence[Tablet]) -> Iterator[str]:
    """Yields SQL for tablets with runs: the newest row of each number, as in ``fold``."""
    lies = ", ".join(
        f"({_quoted(str(root / run.path))}, {_quoted(str(root / tablet.base.path))}, {number})"
        for tablet in layered
        for number, run in enumerate(tablet.runs)
    )
    runs = _read(root, [run for tablet in layered for run in tablet.runs], "filename = true")
    newest = (
        f"SELECT run.*, lies.base AS _base FROM {runs} AS run "
        f"JOIN (VALUES {lies}) AS lies (path, base, number) ON run.filename = lies.path "
        f"QUALIFY row_number() OVER (PARTITION BY lies.base, run.{NUMBER} ORDER BY lies.number DESC) = 1"
    )
    bases = _read(
        root, [tablet.base for tablet in layered], "filename = true, file_row_number = true"
    )
    yield (
        f"UNION ALL BY NAME SELECT * EXCLUDE (filename, file_row_number) FROM {bases} AS base "
        f"ANTI JOIN ({newest}) AS newer "
        f"ON newer._base = base.filename AND newer.{NUMBER} = base.file_row_number"
    )
    yield f"UNION ALL BY NAME SELECT * EXCLUDE (filename, _base, {NUMBER}) FROM ({newest})"


def _read(root: Folder, files: Iterable[DataFile], how: str = "") -> str:
    paths = ", ".join(_quoted(str(root / file.path)) for file in files)
    return f"read_parquet([{paths}], union_by_name = true{', ' if how else ''}{how})"


def empty_table(view: str) -> pa.Table:
    """Returns a table without rows that has the columns of a view, those of the schema first."""
    schema = kind_of(view).schema
    if kind_of(view).of_batch:
        schema = schema.append(pa.field("batch", pa.large_string()))
    return schema.empty_table()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
