"""Lets DuckDB read a table: the SQL of its views, and its files in stores.

Files in stores are read by nutbeam's own clients: no extension of DuckDB is needed. The views have
the rows as ``vocabulary.py`` shows them to users.

The stored rows are in a schema of their own, ``stored``, so that ``SHOW TABLES`` lists only the
views for users:

- ``stored.empty_KIND``: no rows, with the declared columns and types of a component;
- ``stored.KIND``: the rows of a component, runs folded;
- ``stored.newest_documents``, ``stored.newest_pages``: of each URL in the state, the row of the
  file that its columns ``document`` and ``page`` name, if the table still has it.
"""

import contextlib
import datetime
import functools
import io
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import IO, Any, cast

import polars as pl
import pyarrow as pa

from ...policy.components.columns import Column, Form
from ...policy.components.declaration import Kind
from ...policy.components.item_views import ITEM_VIEWS
from ...policy.components.kinds import components_of, kind_of
from ...policy.components.schema import STATE_COLUMNS, TEXT, to_frame
from ...policy.components.views import View, views
from ...policy.components.vocabulary import BATCHES_COLUMNS, LIVING, MARKDOWN_COLUMN
from ...web.base.errors import UserError
from ..snapshots.entries import DEDUP
from ..snapshots.manifest import Manifest
from ..storage import stores
from ..storage.file_errors import MissingFile, unreadable
from ..storage.parquet_files import check_before_opening
from ..storage.places import Folder, Place
from ..tablets.file_lists import DataFile, load_files
from ..tablets.tablets import ROW_NUMBER, Tablet, tablets

# The URL of a row key, and the host of a reversed host; a time in ms, null if it is out of range.
MACROS = (
    """CREATE MACRO host_of(key) AS CASE WHEN starts_with(key, '[')
         THEN left(key, position(']' IN key))
         ELSE array_to_string(list_reverse(string_split(split_part(key, ':', 1), '.')), '.') END""",
    """CREATE MACRO url_of(key) AS regexp_replace(
         CASE WHEN starts_with(key, '[') THEN substr(key, position(']' IN key) + 2)
              ELSE substr(key, position(':' IN key) + 1) END,
         '^([a-z][a-z0-9+.-]*)(:[0-9]+)?(/.*)$',
         '\\1://' || replace(host_of(key), '\\', '\\\\') || '\\2\\3', 's')""",
    # As ``cut_text`` does it.
    """CREATE MACRO main_text(text, main) AS CASE WHEN len(main) > 0 THEN array_to_string(
         [substring(text, part.start + 1, part."end" - part.start) FOR part IN main], E'\\n\\n')
         ELSE text END""",
    "CREATE SCHEMA stored",
    """CREATE MACRO stored.timestamp_of(ms) AS
         CASE WHEN ms BETWEEN -62135596800000 AND 253402300799999 THEN make_timestamp(ms * 1000) END""",
)
# Macros that make these columns of a row key.
_NAMES = {"url": "url_of", "host": "host_of"}
_LIVING = ", ".join(str(int(status)) for status in LIVING)
# How many small files are kept in memory, because DuckDB opens a file several times.
_KEPT = 64
_NEVER_CHANGED = datetime.datetime(2025, 1, 1)


def batches_frame(manifest: Manifest) -> pl.DataFrame:
    """Returns the batches of a snapshot, one row per batch, with ``BATCHES_COLUMNS`` as stored."""
    rows = [
        {
            "batch_id": name,
            **vars(batch),
            "deduped": DEDUP in batch.taken_in,
            "segment": batch.segment or None,
        }
        for name, batch in sorted(manifest.batches.items())
    ]
    return to_frame(pa.Table.from_pylist(rows, schema=BATCHES_COLUMNS.schema))


def files_of(root: Folder, manifest: Manifest, kind: Kind) -> list[tuple[str, DataFile]]:
    """Returns the files of a kind, as (batch id, name of the index, or empty; file).

    Raises:
        UserError: A list is missing or damaged.
    """
    return [
        (name.split("/")[1] if kind.owner.column else "", file)
        for name in components_of(kind, manifest.components)
        for file in load_files(root, manifest.components.get(name))
    ]


def views_sql(root: Folder, files: dict[str, list[tuple[str, DataFile]]]) -> Iterator[str]:
    """Yields the statements that create all views.

    The tables ``stored.empty_KIND`` and ``stored.batches`` must exist.

    Args:
        root: The table's folder.
        files: Files by kind of component, from ``files_of``.
    """
    all_views = views()
    for view in all_views.values():
        if view.kind is not None:
            rows = " ".join(_parts(root, view.kind, files[view.kind.name]))
            yield f"CREATE VIEW stored.{view.kind.name} AS {rows}"
    for kind in ("documents", "pages"):
        yield f"CREATE VIEW stored.newest_{kind} AS {_newest(root, kind, files[kind])}"
    for name, view in all_views.items():
        if view.kind is not None:
            columns = ", ".join(map(_expression, view.columns))
            counting = f" WHERE {view.kind.ended} IS NULL" if view.kind.ended else ""
            yield f"CREATE VIEW {name} AS SELECT {columns} FROM stored.{view.kind.name}{counting}"
    batches = ", ".join(map(_expression, BATCHES_COLUMNS))
    yield f"CREATE VIEW batches AS SELECT {batches} FROM stored.batches"
    yield _pages(all_views["pages"])
    yield """CREATE VIEW outlinks AS
        SELECT url_of(key) AS url, url_of(link.key) AS target_url, link.anchor AS anchor,
               link.rel AS rel, key, link.key AS target_key
        FROM (SELECT key, unnest(outlinks) AS link FROM stored.newest_documents)"""
    for name, item_view in ITEM_VIEWS.items():
        columns = ", ".join(_expression(column, "item.") for column in item_view.columns)
        yield f"""CREATE VIEW {name} AS SELECT url_of(key) AS url, {columns}, key
            FROM (SELECT d.key AS key, unnest({name}_of(d.key, d.structured_data)) AS item
                  FROM stored.state AS s JOIN stored.newest_documents AS d ON d.key = s.key
                  WHERE s.status IN ({_LIVING}) AND len(d.structured_data) > 0)"""


def _expression(column: Column, source: str = "") -> str:
    """Returns the SQL of a column as users see it; ``shown_frame`` does the same on frames.

    Args:
        column: The declaration.
        source: Prefix of the column's name, such as ``s.``.
    """
    if column == MARKDOWN_COLUMN:
        names = ", ".join(f"{source}{name}" for name in ("key", "text", "blocks"))
        return f"markdown_of({names}) AS {column.name}"
    if column.name in _NAMES:
        return f"{_NAMES[column.name]}({source}key) AS {column.name}"
    name = f"{source}{column.name}"
    match column.form:
        case Form.TIME:
            seen = f"stored.timestamp_of({name})"
        case Form.DAY:
            seen = f"DATE '1970-01-01' + {name}"
        case Form.CODE:
            names = " ".join(f"WHEN {code} THEN '{word}'" for code, word in column.codes.items())
            seen = f"CASE {name} {names} ELSE {name}::VARCHAR END"
        case Form.HEX:
            seen = f"lower(hex({name}))"
        case Form.URL:
            seen = f"url_of({name})"
        case _:
            seen = name
    return f"{seen} AS {column.name}"


def _pages(view: View) -> str:
    """Returns the SQL of the view ``pages``.

    The columns that no query asks for are not read from the files, so a query without ``body`` and
    ``text`` reads little more than the keys of pages and documents.
    """
    of_state = {column.name for column in STATE_COLUMNS} - {"distance", "metadata", "parse_status"}
    of_body = {"headers", "body"}
    links = (
        "[{'url': url_of(link.key), 'anchor': link.anchor, 'rel': link.rel} "
        "FOR link IN coalesce(d.outlinks, [])] AS links"
    )
    columns = ", ".join(
        links
        if column.name == "links"
        else _expression(
            column,
            "s." if column.name in (*of_state, "url") else "b." if column.name in of_body else "d.",
        )
        for column in view.columns
    )
    return f"""CREATE VIEW pages AS SELECT {columns}
        FROM stored.state AS s JOIN stored.newest_documents AS d ON d.key = s.key
        LEFT JOIN stored.newest_pages AS b ON b.key = s.key
        WHERE s.status IN ({_LIVING})"""


def _newest(root: Folder, kind: str, files: Sequence[tuple[str, DataFile]]) -> str:
    """Returns the SQL of the rows that the state refers to, in files of documents or of pages.

    Args:
        root: The table's folder.
        kind: ``documents`` or ``pages``.
        files: Their files.
    """
    data_files = [file for _, file in files]
    read = _read(root, data_files, "filename = true, file_row_number = true") if data_files else ""
    # The name of each file in the state: a file may have replaced the one that the state names.
    names = ", ".join(
        f"({_quote(str(root / file.path))}, {_quote(name)})"
        for file in data_files
        for name in sorted({file.path, file.formerly or file.path})
    )
    # A part of a page may have the key of a page; of several rows the first one counts.
    column, first = {
        "documents": ("document", "(found.part_of IS NOT NULL, found.file_row_number)"),
        "pages": ("page", "found.file_row_number"),
    }[kind]
    return f"""
        WITH found AS NOT MATERIALIZED (
            SELECT *, '' AS filename, 0 AS file_row_number FROM stored.empty_{kind}
            {"UNION ALL BY NAME SELECT * FROM " + read if read else ""}),
        newest AS (
            SELECT found.filename, found.key, arg_min(found.file_row_number, {first}) AS file_row_number
            FROM found JOIN (VALUES {names or "('', '')"}) AS named (filename, name)
              ON found.filename = named.filename
            JOIN stored.state AS state ON state.key = found.key AND state.{column} = named.name
            GROUP BY ALL)
        SELECT * EXCLUDE (filename, file_row_number)
        FROM found SEMI JOIN newest USING (filename, key, file_row_number)"""


def _parts(root: Folder, kind: Kind, files: Sequence[tuple[str, DataFile]]) -> Iterator[str]:
    yield f"SELECT * FROM stored.empty_{kind.name}"  # columns that an older file lacks are null
    for owner, group in itertools.groupby(files, key=itemgetter(0)):
        own = f", {_quote(owner)} AS {kind.owner.column}" if kind.owner.column else ""
        if not kind.in_tablets:
            read = _read(root, [file for _, file in group])
            yield f"UNION ALL BY NAME SELECT *{own} FROM {read}"
            continue
        group_tablets = tablets(file for _, file in group)
        plain = [tablet.base for tablet in group_tablets if not tablet.runs]
        if plain:
            yield f"UNION ALL BY NAME SELECT *{own} FROM {_read(root, plain)}"
        layered = [tablet for tablet in group_tablets if tablet.runs]
        if layered:
            yield from _fold_sql(root, layered, own)


def _fold_sql(root: Folder, layered: Sequence[Tablet], own: str = "") -> Iterator[str]:
    """Yields SQL for tablets with runs: the newest row of each number, as in ``tablets``."""
    run_files = ", ".join(
        f"({_quote(str(root / run.path))}, {_quote(str(root / tablet.base.path))}, {number})"
        for tablet in layered
        for number, run in enumerate(tablet.runs)
    )
    runs = _read(root, [run for tablet in layered for run in tablet.runs], "filename = true")
    newest = (
        f"SELECT run.*, run_files.base AS _base FROM {runs} AS run "
        f"JOIN (VALUES {run_files}) AS run_files (path, base, number) ON run.filename = run_files.path "
        f"QUALIFY row_number() OVER (PARTITION BY run_files.base, run.{ROW_NUMBER} ORDER BY run_files.number DESC) = 1"
    )
    bases = _read(
        root, [tablet.base for tablet in layered], "filename = true, file_row_number = true"
    )
    yield (
        f"UNION ALL BY NAME SELECT * EXCLUDE (filename, file_row_number){own} FROM {bases} AS base "
        f"ANTI JOIN ({newest}) AS newer "
        f"ON newer._base = base.filename AND newer.{ROW_NUMBER} = base.file_row_number"
    )
    yield f"UNION ALL BY NAME SELECT * EXCLUDE (filename, _base, {ROW_NUMBER}){own} FROM ({newest})"


def _read(root: Folder, files: Iterable[DataFile], how: str = "") -> str:
    paths = ", ".join(_quote(str(root / file.path)) for file in files)
    return f"read_parquet([{paths}], union_by_name = true{', ' if how else ''}{how})"


def empty_table(kind: str) -> pa.Table:
    """Returns a table without rows: the stored columns of a kind, and its batch or its index."""
    schema = kind_of(kind).schema
    if owner := kind_of(kind).owner.column:
        schema = schema.append(pa.field(owner, TEXT))
    return schema.empty_table()


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def register_files(connection: Any, sizes: Mapping[Place, int], failures: list[UserError]) -> None:
    """Makes files in a store readable by a connection of DuckDB, which reads local ones itself.

    It reads the parts of a file that a query needs, each with one request. Other files of the
    store are not readable.

    Args:
        connection: The connection.
        sizes: The size of each file, in bytes. No file changes while the connection is open.
        failures: Gets the errors of reading; those of DuckDB have only a traceback as their text.

    Raises:
        UserError: A local file is no regular file, or no Parquet file of a table.
    """
    in_stores: dict[str, tuple[Place, int]] = {}
    for place, size in sizes.items():
        if not place.opens_by_name:
            in_stores[str(place)] = place, size
            continue
        with contextlib.suppress(MissingFile):  # a query of other files does not need it
            check_before_opening(place)
    for scheme in {address.partition("://")[0] for address in in_stores}:
        connection.register_filesystem(_system_of(scheme, in_stores, failures))


class _Parts(io.RawIOBase):
    """An open file; notes errors of reading it."""

    def __init__(self, file: IO[bytes], place: Place, failures: list[UserError]) -> None:
        self._file, self._place, self._failures = file, place, failures

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        with _noting_errors(self._place, self._failures):
            return self._file.read(-1 if size is None else size)


@contextlib.contextmanager
def _noting_errors(place: Place, failures: list[UserError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failures.append(unreadable(place, error))
        raise


def _system_of(
    scheme: str, files: Mapping[str, tuple[Place, int]], failures: list[UserError]
) -> Any:
    """Returns a file system of fsspec, which DuckDB accepts."""
    from fsspec.spec import AbstractFileSystem  # late: few commands need it

    @functools.lru_cache(maxsize=_KEPT)
    def small(address: str) -> bytes:
        place, size = files[address]
        return place.read_whole(size)

    class StoreFiles(AbstractFileSystem):  # type: ignore[misc]
        """The methods that DuckDB calls."""

        protocol = scheme
        cachable = False  # instances are not shared

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path] if path in files else []

        def exists(self, path: str, **_: Any) -> bool:
            return path in files

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            if path not in files:
                raise FileNotFoundError(path)
            return {"name": path, "size": files[path][1], "type": "file"}

        def modified(self, _: str) -> datetime.datetime:
            return _NEVER_CHANGED

        def open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:
            if path not in files or mode != "rb":
                raise PermissionError(f"not a file of the table: {path}")
            place, size = files[path]
            if size > stores.WHOLE_BYTES:
                return cast("IO[bytes]", _Parts(place.open_parts(size), place, failures))
            with _noting_errors(place, failures):
                return io.BytesIO(small(path))

    return StoreFiles()
