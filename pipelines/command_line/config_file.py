"""Reads options from ``nutbeam.toml``; each error names the line, and all errors are found at once."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...web.base.errors import UsageError, one_line
from ..base.command import DEFAULT_CONFIG
from ..base.suggestions import suggestion
from .config import DeclaredOptions, SourcedValue, read_value

COMMON = "common"
_HEADER = re.compile(r"\s*\[\s*(?P<name>[^\[\]]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*(?P<key>\"[^\"]*\"|'[^']*'|[\w-]+)\s*(?:\.|=)")
_MOST_ERRORS = 5


class ConfigEntry(NamedTuple):
    """A key of the file.

    Attributes:
        section: Its section; ``common`` for keys at the top.
        key: The name of the option.
        value: Its value.
        line: Its line, from 1; 0 if it is unknown.
    """

    section: str
    key: str
    value: Any
    line: int


class ConfigErrors(UsageError):
    """A file has unknown names or wrong values.

    Args:
        name: The file.
        errors: The line of each, or 0, and its text.
    """

    def __init__(self, name: str, errors: list[tuple[int, str]]) -> None:
        super().__init__(_all_errors(name, errors))
        self.name, self.errors = name, errors


def from_file(path: str | None, command: str, declared: DeclaredOptions) -> dict[str, SourcedValue]:
    """Returns the values of a toml file for this command.

    Keys at the top or in ``[common]`` apply to every command. Keys in the section of a command
    apply only to this command, and override the others.

    Args:
        path: The file; None for ``nutbeam.toml``, if it exists.
        command: Name of the command.
        declared: The allowed keys and sections.

    Raises:
        UsageError: The file cannot be read.
        ConfigErrors: It has unknown names or wrong values; the message has the line of each.
    """
    # os.path, not pathlib: pathlib raises an error in a folder without permission.
    if path is None and not os.path.isfile(DEFAULT_CONFIG):  # noqa: PTH113
        return {}
    name = path or DEFAULT_CONFIG
    text = _read_text(name)
    content = _parse(name, text)
    lines = text.splitlines()
    entries = list(_entries(content, lines))
    errors = list(_name_errors(name, content, entries, declared))
    values = {}
    for section in (COMMON, command):
        for entry in entries:
            if entry.section == section and entry.key in declared.options and entry.key != "config":
                place = _place(name, entry)
                try:
                    value = read_value(declared.options[entry.key], entry.value, place)
                except UsageError as error:
                    errors.append((entry.line, str(error)))
                    continue
                own = "" if section == COMMON else section
                values[entry.key] = SourcedValue(value, place, name, entry.line, own)
    if errors:
        raise ConfigErrors(name, errors)
    return values


def _all_errors(name: str, errors: list[tuple[int, str]]) -> str:
    """Returns one line with all errors, by their lines; the first ones if there are many.

    >>> _all_errors("a.toml", [(3, "unknown option 'x' in a.toml, line 3"), (1, "b")])
    "2 errors in a.toml: (1) b (2) unknown option 'x' in a.toml, line 3"
    """
    texts = [text for _, text in sorted(errors, key=lambda error: error[0])]
    if len(texts) == 1:
        return texts[0]
    shown = " ".join(f"({at}) {text}" for at, text in enumerate(texts[:_MOST_ERRORS], 1))
    more = f" and {len(texts) - _MOST_ERRORS} more" if len(texts) > _MOST_ERRORS else ""
    return f"{len(texts)} errors in {name}: {shown}{more}"


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"--config must be a readable file, got {path!r}: {reason}") from error
    except UnicodeDecodeError as error:
        reason = f"byte {error.start + 1:,} of it is not UTF-8"
        raise UsageError(f"--config must be a toml file, got {path!r}: {reason}") from error


def _parse(path: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = one_line(error)[:1].lower() + one_line(error)[1:]
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        raise UsageError(f"--config must be a toml file, got {path!r}: {reason}") from error


def _entries(content: Mapping[str, Any], lines: list[str]) -> Iterator[ConfigEntry]:
    """Yields the keys of the file, without dashes; keys at the top are in ``common``."""
    at = dict(_key_lines(lines))
    for name, value in content.items():
        keys = value if isinstance(value, dict) else {name: value}
        section = name if isinstance(value, dict) else ""
        for key, one in keys.items():
            line = at.get((section, key), 0)
            yield ConfigEntry(section or COMMON, key.replace("-", "_"), one, line)


def _key_lines(lines: list[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yields the line of each section and of each key in it.

    A line within a text or a list of several lines is none: what stands before it is no toml file.
    """
    section, begin = "", 0
    for number, line in enumerate(lines, 1):
        header, key = _HEADER.fullmatch(line), _KEY.match(line)
        if not (header or key) or not _is_complete("\n".join(lines[begin : number - 1])):
            continue
        begin = number - 1
        if header:
            section = header["name"].strip("\"'")
            yield (section, ""), number
            outer, dot, inner = section.partition(".")
            if dot:  # a table in a section is a key of it
                yield (outer, inner.partition(".")[0]), number
        elif key:
            yield (section, key["key"].strip("\"'")), number


def _is_complete(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _name_errors(
    name: str, content: Mapping[str, Any], entries: list[ConfigEntry], declared: DeclaredOptions
) -> Iterator[tuple[int, str]]:
    """Yields an error for each section and each key with an unknown name, with its line."""
    sections = [section for section, keys in content.items() if isinstance(keys, dict)]
    for section in [COMMON, *(each for each in sections if each != COMMON)]:
        own = [entry for entry in entries if entry.section == section]
        is_common = section == COMMON
        if not is_common and section not in declared.commands:
            advice = suggestion(section, [COMMON, *declared.commands])
            line = min((entry.line for entry in own), default=0)
            yield line, f"unknown section {section!r} in {name}{advice}"
            continue
        missing = [e.key for e in own if not (is_common and e.key in declared.options)]
        unknown = declared.unknown(missing, declared.commands if is_common else [section])
        for entry in own:
            if entry.key in unknown or entry.key == "config":
                names = declared.anywhere() if is_common else declared.names_of(section)
                near = suggestion(entry.key, names)
                yield entry.line, f"unknown option {entry.key!r} in {_place(name, entry)}{near}"


def _place(name: str, entry: ConfigEntry) -> str:
    """Returns where a key is; those for all commands need no section."""
    line = f", line {entry.line}" if entry.line else ""
    return f"{name}{line}" if entry.section == COMMON else f"[{entry.section}] of {name}{line}"
