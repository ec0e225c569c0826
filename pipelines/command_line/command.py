"""What the ``nutbeam`` command and the module of a command have to say to each other.

A command's module has ``Options`` (a frozen dataclass of ``web.options.option``
fields), ``ARGUMENTS`` and ``run(invocation) -> exit code``. It is imported for
its ``--help`` and for its usage errors, too.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any, Literal, Protocol

from ...web.base.errors import UsageError, one_line
from ...web.base.options import option

# Exit codes of every command; a UserError has its own.
DONE = 0
NOTHING_TO_DO = 1


@dataclasses.dataclass(frozen=True)
class Argument:
    """A positional argument; it may also be given as ``--name``, as templates do.

    Attributes:
        name: Key in ``Invocation.arguments``, in snake_case.
        help: One sentence.
        nargs: None for exactly one, ``?`` for at most one (else None), ``*``
            for all that are left, as a list, ``+`` for those, at least one.
    """

    name: str
    help: str
    nargs: Literal["*", "+", "?"] | None = None


TABLE = Argument(
    "table",
    "Folder of the web table, or its address: gs://, s3://, hdfs://, bigtable://.",
)


@dataclasses.dataclass(frozen=True)
class CommonOptions:
    """Options of every command; the command line itself acts on them."""

    config: str | None = option(
        None, "File to read options from; nutbeam.toml in the working directory where it exists."
    )
    format: str = option(
        "text",
        "Result for people or for scripts; csv for sql and export, jsonl and parquet for export.",
        choices=("text", "json", "csv", "jsonl", "parquet"),
    )
    log_level: str = option(
        "warning",
        "Least severity that is logged; below warning, Beam's own log is shown too.",
        choices=("critical", "error", "warning", "info", "debug"),
    )
    progress: bool | None = option(
        None, "Show progress on standard error; a live view where that is a terminal."
    )


@dataclasses.dataclass(frozen=True)
class Invocation:
    """One use of a command, understood and checked.

    Attributes:
        command: Name of the command.
        arguments: Value of each of the module's ``ARGUMENTS``.
        options: Instance of the module's ``Options``.
        beam_args: What is left for Beam, as it was typed.
        format: ``text`` or ``json``.
        table: The argument ``table``, where the command has one.
        progress: For ``live_view``.
    """

    command: str
    arguments: dict[str, Any]
    options: Any
    beam_args: list[str]
    format: str = "text"
    table: str | None = None
    progress: bool | None = None


class CommandModule(Protocol):
    """What the module of a command holds."""

    Options: type
    ARGUMENTS: tuple[Argument, ...]

    def run(self, invocation: Invocation) -> int:
        """Does the work and returns the exit code."""


@contextlib.contextmanager
def configuration() -> Iterator[None]:
    """Turns a ``ValueError`` of what is set up within into a ``UsageError``.

    >>> with configuration():
    ...     raise ValueError("--scope must be one of host, domain, any, got 'web'")
    Traceback (most recent call last):
    nutbeam.web.base.errors.UsageError: --scope must be one of host, domain, any, got 'web'
    """
    try:
        yield
    except ValueError as error:
        raise UsageError(one_line(error)) from error
