"""Generates the data dictionary, ``docs/reference/data.md``, from the declarations of columns."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...policy.components.columns import Column, Form
from ...policy.components.schema import Status
from ...policy.components.view_columns import BATCHES_COLUMNS, HOST_COLUMN, URL_COLUMN
from ...policy.components.vocabulary import shown_type, views
from .markdown import markdown_table

_STATUSES = {
    Status.DB_UNFETCHED: "Not fetched yet, or a retry is due.",
    Status.DB_FETCHED: "Fetched; the content is new, or differs from the last one.",
    Status.DB_GONE: "Gone: not found, denied, or failed too often.",
    Status.DB_REDIR_TEMP: "Redirects to another URL, for now.",
    Status.DB_REDIR_PERM: "Redirects to another URL, for good.",
    Status.DB_NOTMODIFIED: "Fetched again, with the same content as before.",
    Status.DB_DUPLICATE: "Has the same content as a better URL.",
    Status.DB_ORPHAN: "No page has linked to it for long (only with `--scoring orphan`).",
    Status.DB_PARSE_FAILED: "Could not be parsed (only with `--delete_failed_parse`).",
}
_TYPES = {
    pa.large_string(): "text",
    pa.large_binary(): "bytes",
    pa.bool_(): "true or false",
    pa.float32(): "number",
    pa.float64(): "number",
    pa.date32(): "date",
    pa.timestamp("ms", "UTC"): "time",
    pa.map_(pa.large_string(), pa.large_string()): "names and values",
}
_HEADS = ("column", "type", "in files", "meaning")


def data_tables() -> str:
    """Returns a section per view with its columns, and the values of codes, in Markdown."""
    parts: list[str] = []
    for name, view in views().items():
        parts += _section(name, view.meaning, view.columns, in_files=view.kind is not None)
    parts.append("## Values of codes\n")
    for column in _codes():
        parts += [f"### {column.name}\n", _values(column), ""]
    return "\n".join(parts)


def _section(
    title: str, meaning: str, columns: Iterable[Column], *, in_files: bool
) -> Iterator[str]:
    rows = [
        (f"`{column.name}`", _type(column), _in_files(column) if in_files else "", column.meaning)
        for column in columns
    ]
    shown = (0, 1, 2, 3) if in_files else (0, 1, 3)
    heads = [_HEADS[n] for n in shown]
    yield f"## {title}\n\nA row is {meaning}.\n"
    yield f"{markdown_table(heads, [[row[n] for n in shown] for row in rows])}\n"


def _type(column: Column) -> str:
    """Returns the type that users see, and the unit."""
    if column.form is Form.CODE:
        return f"[name](#{column.name})"
    seen = shown_type(column)
    if pa.types.is_integer(seen):
        text = "whole number"
    elif pa.types.is_large_list(seen):
        inner = seen.value_type
        names = ", ".join(field.name for field in inner) if pa.types.is_struct(inner) else "texts"
        text = f"list of {names}"
    else:
        text = _TYPES[seen]
    return f"{text}, {column.unit}" if column.unit else text


def _in_files(column: Column) -> str:
    """Returns the stored type, with the unit of times and days."""
    if column in (URL_COLUMN, HOST_COLUMN):
        return "not stored: made of `key`"
    if column in BATCHES_COLUMNS.pick("batch_id"):
        return "not stored: the folder"
    unit = f", {column.form.value}" if column.form in (Form.TIME, Form.DAY, Form.URL) else ""
    return f"`{_storage_type(column)}`{unit}"


def _storage_type(column: Column) -> str:
    kinds = (pa.types.is_large_list, pa.types.is_map)
    names = ("list", "map")
    containers = [name for name, is_kind in zip(names, kinds, strict=True) if is_kind(column.type)]
    return containers[0] if containers else str(column.type).removeprefix("large_")


def _codes() -> list[Column]:
    """Returns each column of codes once."""
    columns = [column for view in views().values() for column in view.columns if column.codes]
    return list({column.name: column for column in columns}.values())


def _values(column: Column) -> str:
    if column.name == "status":
        rows = [(f"`{n}`", str(c), _STATUSES[Status(c)]) for c, n in column.codes.items()]
        return markdown_table(("name", "number", "meaning"), rows)
    return markdown_table(("name", "number"), [(f"`{n}`", str(c)) for c, n in column.codes.items()])
