"""export: writes a component of the table to one file, as ``vocabulary.py`` shows it to users.

::

    tablets, or files of batches ─ rows, as Parquet, CSV or JSON lines ─▶ parts ─▶ one file
"""

import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from ...io.rows.duckdb_tables import batches_frame, files_of
from ...io.storage.parquet_files import row_groups
from ...io.tablets.checksums import verify_file, verify_tablets
from ...policy.components.columns import Columns
from ...policy.components.kinds import components_of
from ...policy.components.schema import to_frame
from ...policy.components.views import View, views
from ...policy.components.vocabulary import shown_schema
from ...policy.conditions import ExprOptions, wanted_rows
from ...policy.expressions.compiler import Expression
from ...policy.page_rows import MarkdownOptions, with_markdown
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.wording import format_count
from ..base.command import TABLE, Invocation, configuration
from ..base.suggestions import suggestion
from ..launch.launch import LaunchOptions
from ..outputs.output_files import Output, output_of
from .item_reading import item_parts
from .reader import stored_names_of, with_owner
from .reading_job import Reading, ReadItem, tablets_of

ARGUMENTS = (TABLE,)
KINDS_OF_FILES = ("parquet", "csv", "jsonl")
FORMATS = ("text", "json", *KINDS_OF_FILES)


def _names() -> list[str]:
    """Returns the components and the list of batches; other views are not stored as they are."""
    return [name for name, view in views().items() if view.kind or name == "batches"]


@dataclass(frozen=True)
class Options(ExprOptions, MarkdownOptions, LaunchOptions):
    """Options of export."""

    GROUP = "export"

    what: str = option(
        "state",
        f"Component or list to write: {', '.join(_names()[:-1])} or {_names()[-1]}.",
    )
    columns: tuple[str, ...] = option(
        (),
        "Columns to write, such as url,markdown; the default is all but markdown.",
    )
    output: str = option(
        "-",
        "File to write; - is standard output. Without --format, the ending of the name gives the "
        "format: .parquet, .csv or .jsonl; standard output gets JSON lines.",
        short="o",
    )

    def __post_init__(self) -> None:
        names = _names()
        if self.what not in names:
            other_commands = {
                "pages": "nutbeam pages writes them",
                "outlinks": "nutbeam pages writes them",
            }
            advice = (
                f"; {other_commands[self.what]}"
                if self.what in other_commands
                else suggestion(self.what, names)
            )
            raise ValueError(f"--what must be one of {', '.join(names)}, got {self.what!r}{advice}")
        try:
            self.wanted_columns()
        except ValueError as error:
            raise ValueError(f"--{error}") from error

    def wanted_columns(self) -> Columns:
        """Returns the columns to write.

        Raises:
            ValueError: There is no such column; the message quotes it.
        """
        return views()[self.what].pick(self.columns)


def run(invocation: Invocation) -> int:
    options, address = invocation.options, str(invocation.table)
    kind = kind_of_file(invocation.format, options.output)
    output = output_of(options.output, "--output", f".{kind}")

    now = now_ms()
    with configuration():
        _condition(options.what, options.expr, now)

    write = functools.partial(_write, options=options, output=output, now=now)
    divide = functools.partial(_items, what=options.what)
    schema = shown_schema(options.wanted_columns())
    with item_parts(address, write, invocation.beam_args, options, divide) as (_, parts):
        number = output.join(parts, schema.names, schema)
    if output.path:
        record = {"what": options.what, "rows": number, "output": str(output.path)}
        text = f"{format_count(number, 'rows')} of {options.what} in {output.path}"
        print(json.dumps(record) if invocation.format == "json" else text)
    return 0


def kind_of_file(format: str, output: str) -> str:
    """Returns the kind of file to write, one of ``KINDS_OF_FILES``.

    Args:
        format: The option; ``text`` and ``json`` are formats of the message, not of the rows.
        output: Path of the file; ``-`` is standard output.

    Raises:
        UsageError: Neither the option nor the path has a kind, or the output of Parquet would be
            standard output.

    >>> kind_of_file("text", "rows.csv"), kind_of_file("jsonl", "rows"), kind_of_file("text", "-")
    ('csv', 'jsonl', 'jsonl')
    """
    if format in KINDS_OF_FILES:
        if format == "parquet" and output == "-":
            raise UsageError("--format parquet needs a file: give --output")
        return format
    kind = "jsonl" if output == "-" else Path(output.removesuffix(".gz")).suffix[1:]
    if kind not in KINDS_OF_FILES or output.endswith(".parquet.gz"):
        endings = ", ".join(f".{kind}" for kind in KINDS_OF_FILES)
        raise UsageError(f"--output must end in {endings}, or --format say how, got {output!r}")
    return kind


def _items(reading: Reading, what: str) -> Iterator[ReadItem]:
    kind = views()[what].kind
    if kind is None:
        yield ReadItem(reading, 0)
    elif kind.in_tablets:
        names = components_of(kind, reading.manifest().components)
        items = ((name, item) for name in names for item in tablets_of(reading, name))
        for number, (name, item) in enumerate(items):
            owner = name.split("/")[1] if kind.owner.column else ""
            yield dataclasses.replace(item, number=number, owner=owner)
    else:
        files = files_of(reading.table, reading.manifest(), kind)
        for number, (owner, file) in enumerate(files):
            yield ReadItem(reading, number, file=file, owner=owner)


def _frames(item: ReadItem, view: View, names: Iterable[str]) -> Iterator[pl.DataFrame]:
    """Yields stored rows with at least these columns; with their batch or index if they are of one."""
    table, kind = item.reading.table, view.kind
    if kind is None:
        yield batches_frame(item.reading.manifest())
        return
    # Damaged rows are not exported.
    if item.tablet is not None:
        verify_tablets(table, item.tablet)
        for rows in table.scan(kind.name, item.tablet):
            yield with_owner(rows.filter(kind.counting), kind, item.owner)
        return
    assert item.file is not None
    verify_file(table, item.file)
    for group in row_groups(table / item.file.path, kind.schema, stored_names_of(kind, names)):
        yield with_owner(to_frame(group), kind, item.owner)


def _write(item: ReadItem, options: Options, output: Output, now: int) -> None:
    view, path = views()[options.what], item.reading.part_file(item.number, output.suffix)
    wanted, columns = _condition(options.what, options.expr, now), options.wanted_columns()
    needs = wanted.needs if wanted else ()
    frames = _frames(item, view, [*(column.name for column in columns), *needs])
    if wanted is not None:
        condition = wanted.expr
        frames = (frame.filter(condition) for frame in frames)
    frames = (with_markdown(frame, columns, options.markdown_links) for frame in frames)
    with item.reading.reading():
        output.write_frames(path, frames, columns)


def _condition(what: str, expr: str, now: int) -> Expression | None:
    """Returns the condition of ``--expr`` on the stored rows of a view, or None."""
    view = views()[what]
    return wanted_rows(expr, view.columns.drop("url", "host", *view.on_request), now)
