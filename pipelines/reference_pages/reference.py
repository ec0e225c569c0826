"""Generates files from declarations; ``make docs`` runs it.

``python -m nutbeam.pipelines.reference_pages.reference ROOT``, where ROOT is the folder of the
repository, rewrites the tables in ``docs/reference``, the files in ``templates``, and the list of
the options of all commands.
"""

import json
import logging
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from ...policy.chunking.chunk_rows import CHUNK_COLUMNS
from ...policy.chunking.embeddings import EMBEDDING_COLUMN
from ...policy.components.columns import Column, Form
from ...policy.components.item_views import PRICE
from ...policy.components.reasons import ANY_JOB, NO_FAMILY, reasons_by_section
from ...policy.components.schema import Status
from ...policy.components.views import views
from ...policy.components.vocabulary import (
    BATCHES_COLUMNS,
    CHANGE_COLUMNS,
    HOST_COLUMN,
    MARKDOWN_COLUMN,
    URL_COLUMN,
    shown_type,
)
from ...web.base.options import Option, default_text, value_text
from ...web.exchange.status import FETCH_STATUS_NAMES, PROTOCOL_STATUS_NAMES, STATUS_TABLE
from ..as_in_nutch.nutch_pages import nutch_tables
from ..base.command import Argument, CommandModule
from ..checkers.reasons import advice_of
from ..command_line.cli import load, quiet
from ..command_line.commands import COMMANDS
from ..command_line.foreign_names import unsupported_commands
from ..command_line.usage import COMMON_GROUP, options_by_group
from .markdown_tables import markdown_table
from .metric_tables import metric_tables
from .option_files import write_option_files
from .property_tables import SECTIONS, property_rows
from .python_files import formatted, python_files
from .python_page import python_tables
from .template_files import TEMPLATES, template

_BEGIN, _END = "<!-- tables: make docs writes this -->\n\n", "\n<!-- end of tables -->\n"
Uses = dict[str, dict[str, list[tuple[str, Option]]]]
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
    PRICE: "decimal with 8 places",
    pa.map_(pa.large_string(), pa.large_string()): "names and values",
}
_HEADS = ("column", "type", "in files", "meaning")
_CHUNK = "a part of the text of a page, by `nutbeam pages --chunks` and `nutbeam.read_chunks`; it is no view of `sql`"
_CHANGE = "what became of a page, by `nutbeam pages --since` and in tables: these columns, then those of the page or chunk"


def main(argv: Sequence[str]) -> None:
    """Rewrites the generated files below a folder."""
    quiet(logging.WARNING)
    root = Path(argv[0])
    write_option_files(root, modules())
    for path, text in python_files(modules()).items():
        (root / path).write_text(formatted(text), "utf-8")
    pages = {"options": option_tables(modules()), "status": status_table(), "data": data_tables(),
             "reasons": reason_tables(), "nutch-commands": nutch_tables(unsupported_commands()),
             "nutch-properties": nutch_property_tables(), "python": python_tables(), "metrics": metric_tables()}  # fmt: skip
    for name, tables in pages.items():
        page = root / "docs" / "reference" / f"{name}.md"
        page.write_text(with_tables(page.read_text("utf-8"), tables), "utf-8")
    for command in TEMPLATES:
        text = json.dumps(template(command), indent=2) + "\n"
        (root / "templates" / f"{command}.json").write_text(text, "utf-8")


def with_tables(page: str, tables: str) -> str:
    """Returns a page with the tables between its two marks replaced."""
    head, _, rest = page.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}{tables}{_END}{tail}"


def modules() -> dict[str, CommandModule]:
    """Returns the modules of all commands that this installation has, by command."""
    command_modules = {}
    for command in COMMANDS:
        try:
            command_modules[command] = load(command)
        except ModuleNotFoundError as error:
            if error.name != COMMANDS[command].file:
                raise
    return command_modules


def option_tables(command_modules: Mapping[str, CommandModule]) -> str:
    """Returns tables of the commands and of their options, in Markdown."""
    commands = [
        (f"`{name}`", _arguments(module.ARGUMENTS), COMMANDS[name].help)
        for name, module in command_modules.items()
    ]
    parts = ["## Commands\n", markdown_table(("command", "arguments", "what it does"), commands)]
    groups = _uses(command_modules)
    groups[COMMON_GROUP] = groups.pop(COMMON_GROUP)
    heads = ("option", "value", "default", "Nutch property", "meaning", "commands")
    for title, by_name in groups.items():
        # The last column lists the commands that have the option.
        width = len(heads) - (title == COMMON_GROUP)
        rows = [_row(uses)[:width] for uses in by_name.values()]
        parts += [f"\n## Options: {title}\n", markdown_table(heads[:width], rows)]
    return "\n".join(parts) + "\n"


def status_table() -> str:
    """Returns the table of HTTP's status codes, in Markdown."""
    rows = []
    for row in STATUS_TABLE:
        protocol = f"`{PROTOCOL_STATUS_NAMES[row.protocol_status]}` ({row.protocol_status})"
        fetch = f"`{FETCH_STATUS_NAMES[row.fetch_status]}` ({row.fetch_status})"
        rows.append((row.codes.replace(",", ", ") + "[^codes]", protocol, fetch, row.meaning))
    heads = ("status codes", "protocol status", "fetch status", "meaning")
    return markdown_table(heads, rows) + "\n"


def nutch_property_tables() -> str:
    """Returns the tables of Nutch's properties, in Markdown."""
    rows = list(property_rows())
    parts = []
    for title, text in SECTIONS.items():
        own = [row for section, row in rows if section == title]
        heads = ("property", "versions of Nutch", "default there", "here")
        parts += [f"## {title} ({len(own)})\n", f"{text}\n", markdown_table(heads, own), ""]
    return "\n".join(parts)


def reason_tables() -> str:
    """Returns a table of the reasons for each section of the catalogue, in Markdown."""
    heads = ("reason", "meaning", "what to do", "counted by")
    parts = []
    for title, reasons in reasons_by_section().items():
        rows = [
            (f"`{reason.name}`", *map(_mark_options, (reason.meaning, advice_of(reason, None))),
             _counting_jobs(reason.counted))
            for reason in reasons
        ]  # fmt: skip
        parts += [f"## {title}\n", markdown_table(heads, rows), ""]
    return "\n".join(parts)


def _mark_options(text: str) -> str:
    """Returns a text with options as code.

    >>> _mark_options("`nutbeam x --y` shows it; --depth allows more")
    '`nutbeam x --y` shows it; `--depth` allows more'
    """
    code = re.compile(r"(`[^`]*`)|(--\w+)")
    return code.sub(lambda match: match[1] or f"`{match[2]}`", text)


def _counting_jobs(counted: Iterable[str]) -> str:
    """Returns jobs and their families of counts, for people.

    >>> _counting_jobs(["fetch dropped", "fetch not_fetched", "* dropped"]), _counting_jobs(["index -"])
    ('fetch `dropped/` `not_fetched/`, any job `dropped/`', 'index')
    """
    families = defaultdict[str, list[str]](list)
    for pair in counted:
        job, family = pair.split(" ")
        families[job] += [] if family == NO_FAMILY else [f"`{family}/`"]
    return ", ".join(
        " ".join(["any job" if job == ANY_JOB else job, *names]) for job, names in families.items()
    )


def _uses(command_modules: Mapping[str, CommandModule]) -> Uses:
    """Returns (command, option) of all commands with each option, by group and option name."""
    groups: Uses = defaultdict(lambda: defaultdict(list))
    for command, module in command_modules.items():
        for title, options in options_by_group(module).items():
            for option in options:
                groups[title][option.name].append((command, option))
    return groups


def _row(uses: Sequence[tuple[str, Option]]) -> tuple[str, ...]:
    option = uses[-1][1]
    return (
        f"`{option.flag}`" + (f", `-{option.short}`" if option.short else ""),
        _kind(option),
        _default(uses),
        ", ".join(f"`{name}`" for name in (option.nutch or "").split(", ") if name),
        option.help,
        ", ".join(command for command, _ in uses),
    )


def _default(uses: Sequence[tuple[str, Option]]) -> str:
    """Returns an option's default; if commands differ, each default with its commands."""
    defaults = defaultdict(list)
    for command, option in uses:
        defaults[default_text(option)].append(command)
    if len(defaults) > 1:
        parts = (f"`{text}` ({', '.join(commands)})" for text, commands in defaults.items())
        return "; ".join(parts)
    (text,) = defaults
    return f"`{text}`" if text else ""


def _kind(option: Option) -> str:
    if option.choices:
        shown = (value_text(option, choice) for choice in option.choices if choice != "")
        return ", ".join(f"`{text}`" for text in shown)
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    kind = names[option.item]
    kind += f" ({option.unit})" if option.unit else ""
    kind += f" ≥ {option.minimum:g}" if option.minimum is not None else ""
    kind += f" ≤ {option.maximum:g}" if option.maximum is not None else ""
    return f"list of {kind}" if option.type is tuple else kind


def _arguments(arguments: Sequence[Argument]) -> str:
    return "; ".join(f"`{a.name.upper()}`: {a.help.rstrip('.')}" for a in arguments)


def data_tables() -> str:
    """Returns a section per view with its columns, and the values of codes, in Markdown."""
    parts: list[str] = []
    for name, view in views().items():
        parts += _section(name, view.meaning, view.columns, in_files=view.kind is not None)
        if name == "pages":
            parts += _section("chunks", _CHUNK, [*CHUNK_COLUMNS, EMBEDDING_COLUMN], in_files=False)
            parts += _section("changes", _CHANGE, CHANGE_COLUMNS, in_files=False)
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
        struct = pa.types.is_struct(inner)
        names = ", ".join(field.name for field in inner) if struct else f"{_TYPES[inner]}s"
        text = f"list of {names}"
    else:
        text = _TYPES[seen]
    return f"{text}, {column.unit}" if column.unit else text


def _in_files(column: Column) -> str:
    """Returns the stored type, with the unit of times and days."""
    if column in (URL_COLUMN, HOST_COLUMN):
        return "not stored: made of `key`"
    if column == MARKDOWN_COLUMN:
        return "not stored: made of `text` and `blocks`"
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


if __name__ == "__main__":
    main(sys.argv[1:])
