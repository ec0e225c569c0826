"""Writes the tables of docs/reference/python.md from the public names and their docstrings."""

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import nutbeam

from ..api.crawl_table import Table
from ..api.results import (
    CrawlResult,
    Explanation,
    FsckResult,
    HistoryEntry,
    JobResult,
    NextUrlDue,
    ReportResult,
    RowsResult,
    TableStats,
    WarcResult,
)
from ..api.single_pages import DocumentContent, FetchedDocument, RuleRecord
from ..api.table_jobs import TableJobs
from ..api.table_pages import NESTED, TablePage
from ..command_line.commands import COMMANDS
from ..searching.index_search import FoundPages, Hit
from .markdown_tables import markdown_table

RECORDS: tuple[type, ...] = (
    TablePage, *NESTED.values(), CrawlResult, NextUrlDue, JobResult, FsckResult, RowsResult, ReportResult, WarcResult,
    TableStats, Explanation, HistoryEntry, FoundPages, Hit, FetchedDocument, DocumentContent, RuleRecord,
)  # fmt: skip
_SECTION = re.compile(r"^(Args|Raises|Attributes|Returns|Yields):\n", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


def python_tables() -> str:
    """Returns the sections of the page, in Markdown."""
    functions = [name for name in nutbeam.__all__ if _is_function(getattr(nutbeam, name))]
    readers = [name for name, _ in _own_methods(Table)]
    parts = ["## Functions\n"]
    for name in functions:
        parts += _function(f"nutbeam.{name}", getattr(nutbeam, name))
    parts += ["## Table\n", *_text(Table), "## Methods of Table that read\n"]
    for name in readers:
        parts += _function(f"Table.{name}", inspect.getattr_static(Table, name))
    parts += ["## Methods of Table that are jobs\n", *_text(TableJobs), _job_table() + "\n"]
    parts.append("## Records\n")
    for record in RECORDS:
        parts += [f"### {record.__name__}\n", *_text(record), _fields(record) + "\n"]
    parts += ["## Errors\n", "\n".join(_errors(nutbeam.UserError, 0)), ""]
    return "\n".join(parts)


def _is_function(value: Any) -> bool:
    return not inspect.isclass(value) and callable(value)


def _own_methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods that a class itself defines."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and callable(value):
            yield name, value


# In signatures: the modules of types, types as texts, and the class of the options.
_MODULES = re.compile(r"\b(?:nutbeam|collections|os|pl)\.(?:\w+\.)*(?=[A-Z])")
_TEXT_TYPES = re.compile(r"(?<=(?:: |> ))'([^']*)'")


def _function(name: str, function: Any) -> list[str]:
    signature = _TEXT_TYPES.sub(r"\1", str(inspect.signature(inspect.unwrap(function))))
    signature = re.sub(r"\*\*options: Unpack\[\w+\]", "**options", _MODULES.sub("", signature))
    signature = re.sub(r"\(self(?:, )?", "(", signature)
    return [f"### {name}\n", f"```text\n{name}{signature}\n```\n", *_text(function)]


def _text(documented: Any) -> list[str]:
    """Returns a docstring as Markdown."""
    text = inspect.getdoc(documented) or ""
    head, *sections = _SECTION.split(text)
    parts = [_mark(head).strip(), ""]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Attributes" and (
            dataclasses.is_dataclass(documented) or documented is TableJobs
        ):
            continue  # there is a table of the first, and Table has the others
        entries = [
            f"- `{name}`: {_mark(_joined(meaning))}" for name, meaning in _ENTRY.findall(body)
        ]
        parts += [f"{title}:\n", *(entries or [_mark(_joined(body))]), ""]
    return parts


def _joined(text: str) -> str:
    return " ".join(text.split())


def _mark(text: str) -> str:
    return text.replace("``", "`")


def _fields(record: Any) -> str:
    section = _SECTION.split(inspect.getdoc(record) or "")
    meanings: Mapping[str, str] = {}
    for title, body in zip(section[1::2], section[2::2], strict=True):
        if title == "Attributes":
            meanings = dict(_ENTRY.findall(body))
    rows = [
        (f"`{field.name}`", f"`{_kind(field.type)}`", _mark(_joined(meanings[field.name])))
        for field in dataclasses.fields(record)
    ]
    return markdown_table(("field", "type", "meaning"), rows)


def _kind(kind: Any) -> str:
    name = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", name).strip("'\"")


def _job_table() -> str:
    rows = []
    for name, command in COMMANDS.items():
        if command.method:
            signature = inspect.signature(inspect.unwrap(vars(TableJobs)[command.method]))
            words = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
            shown = ", ".join(str(p.replace(annotation=p.empty)) for p in words if p.name != "self")
            rows.append(
                (
                    f"`{command.method}({shown})`",
                    f"`{command.returns}`",
                    command.help,
                    f"`nutbeam {name}`",
                )
            )
    return markdown_table(("method", "returns", "what it does", "command"), rows)


def _errors(error: type, depth: int) -> Iterator[str]:
    """Yields a public error and those below it, as a list in a list."""
    summary = _mark((inspect.getdoc(error) or "").partition("\n\n")[0])
    yield f"{'  ' * depth}- `nutbeam.{error.__name__}`: {_joined(summary)}"
    public = [getattr(nutbeam, name) for name in nutbeam.__all__]
    for other in public:
        if inspect.isclass(other) and error in other.__bases__:
            yield from _errors(other, depth + 1)
