"""The interface between the ``nutbeam`` command and the module of each command.

The module of a command has ``Options`` (a frozen dataclass of ``web.options.option``
fields), ``ARGUMENTS`` and ``run(invocation) -> exit code``. A module with several commands has
``CommandParts`` for each. It is imported for ``--help`` and for usage errors, too.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, one_line
from ...web.base.options import option

# Exit codes of every command; a UserError has its own.
DONE = 0
NOTHING_TO_DO = 1
NOTHING_FETCHED = 4
RULES_FAILED = 5  # a rule suddenly finds nothing, with --strict
DEFAULT_CONFIG = "nutbeam.toml"
# The file in the folders that Nutch writes.
NUTCH_FILE = "part-r-00000"


@dataclass(frozen=True)
class Argument:
    """A positional argument; it may also be given as ``--name``, as templates do.

    Attributes:
        name: Key in ``Invocation.arguments``, in snake_case.
        help: One sentence.
        nargs: None for exactly one value, ``?`` for at most one (None if absent), ``*`` for a
            list of all remaining values, ``+`` for a list of at least one value.
    """

    name: str
    help: str
    nargs: Literal["*", "+", "?"] | None = None


TABLE = Argument(
    "table", "Folder of the web table, or its address: gs://, s3://, hdfs://, bigtable://."
)


def is_page(word: str) -> bool:
    """Returns whether a word is the URL of a page, which no table has as its address."""
    return word.lower().startswith(("http://", "https://"))


@dataclass(frozen=True)
class CommonOptions:
    """Options of every command; the command line itself applies them."""

    config: str | None = option(
        None,
        "File with options; by default nutbeam.toml in the working directory, if it exists.",
        takes="path",
    )
    format: str = option(
        "text",
        "Format of the result; csv is for sql and export, jsonl and parquet are for export.",
        choices=("text", "json", "csv", "jsonl", "parquet"),
    )
    log_level: str | None = option(
        None,
        "Lowest severity that is logged: warning, or info with --log_format json. debug also shows "
        "the logs of Beam and other packages.",
        choices=("critical", "error", "warning", "info", "debug"),
    )
    progress: bool | None = option(
        None, "Show progress on standard error, as a live view if that is a terminal."
    )


@dataclass(frozen=True)
class Invocation:
    """A checked command line.

    Attributes:
        command: Name of the command.
        arguments: Value of each of the module's ``ARGUMENTS``.
        options: Instance of the module's ``Options``.
        beam_args: Words for Beam, unchanged.
        format: ``text`` or ``json``.
        table: The argument ``table``, an address, if the command has one.
        progress: For ``live_view``.
        given_names: Names of the options that have a value from the command line, the environment or a
            file.
        typed: Values of the options on the command line, by name, as they were typed.
        modules: The modules of all commands, for commands about them; each is imported when it is asked for.
        take_record: Takes the result, if a Python program calls the command; None prints it.
    """

    command: str
    arguments: dict[str, Any]
    options: Any
    beam_args: list[str]
    format: str = "text"
    table: str | None = None
    progress: bool | None = None
    given_names: frozenset[str] = frozenset()
    typed: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    modules: Mapping[str, "CommandModule"] = dataclasses.field(default_factory=dict)
    take_record: Callable[[Mapping[str, Any]], object] | None = None


def gives_record(invocation: Invocation, record: Mapping[str, Any]) -> bool:
    """Gives the result of a command to the program that called it, or prints it as JSON for scripts.

    Returns:
        False if the result must be printed as text, for people.
    """
    if invocation.take_record is not None:
        invocation.take_record(record)
    elif invocation.format == "json":
        print(json.dumps(record))
    else:
        return False
    return True


class CommandModule(Protocol):
    """The module of a command, or its ``CommandParts``."""

    Options: type
    ARGUMENTS: tuple[Argument, ...]

    def run(self, invocation: Invocation) -> int:
        """Runs the command and returns the exit code."""


class CommandParts(NamedTuple):
    """One of several commands of a module: what the module of another command has at its top.

    ``SHOWS_CONFIG``: it reads the toml file for all commands, and names the faults itself.
    """

    Options: type
    run: Callable[[Invocation], int]
    ARGUMENTS: tuple[Argument, ...] = (TABLE,)
    SHOWS_CONFIG: bool = False


@contextlib.contextmanager
def configuration() -> Iterator[None]:
    """Converts a ``ValueError`` of the set-up inside the block to a ``UsageError``.

    >>> with configuration():
    ...     raise ValueError("--scope must be one of host, domain, any, got 'web'")
    Traceback (most recent call last):
    nutbeam.web.base.errors.UsageError: --scope must be one of host, domain, any, got 'web'
    """
    try:
        yield
    except ValueError as error:
        raise UsageError(one_line(error)) from error
