"""purge: takes a URL, a host or a domain out of the table, and bars it from coming back.

::

    all tablets and files of batches, one by one ─ those that hold it are written anew ─▶ the same
    names ─ hashes ─▶ bars'

Jobs that commit meanwhile are not in its way: see ``io/upkeep/purge_commit.py``.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.snapshots.hold import held
from ..io.snapshots.operations import Operation
from ..io.table.opening import open_table
from ..io.tablets.written import Written
from ..io.upkeep.purge import sweep
from ..io.upkeep.purge_commit import Piece, Task, commit_purge, prepare_purge
from ..policy.bars import Names
from ..transforms.metrics import count
from ..transforms.operations import Begin, ForEach, Ticket, Together, gathered, ticket_after
from ..web.base.errors import UsageError
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from ..web.rules.url_rules import UrlOptions, UrlRules
from ..web.urls.domains import is_public_suffix
from ..web.urls.normalize import normalize_basic
from ..web.urls.row_keys import BadUrl, host, host_key
from ..web.urls.schemes import SCHEMES
from .command_line.command import TABLE, Invocation
from .launch.job import JobOptions, run_job

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class PurgeOptions:
    """What is purged."""

    url: tuple[str, ...] = option((), "Purge this URL.", group="purge")
    host: tuple[str, ...] = option((), "Purge all URLs of this host.", group="purge")
    domain: tuple[str, ...] = option(
        (), "Purge all URLs of this domain and the hosts below it.", group="purge"
    )
    unbar: bool = option(
        False, "Purge nothing: let in again what was barred by a purge.", group="purge"
    )
    now: bool = option(
        False,
        "Delete what only older snapshots need, at once: there is no way back then. "
        "Without it, that goes when those snapshots expire.",
        group="purge",
    )
    wait_seconds: int = option(
        600,
        "How long to wait for jobs under way that would fail if the purge committed before them; "
        "after that they do, and a crawl runs them again.",
        minimum=0,
        group="purge",
    )

    def __post_init__(self) -> None:
        if not (self.url or self.host or self.domain):
            raise ValueError("--url, --host or --domain must say what to purge")
        if self.unbar and self.now:
            raise ValueError("--unbar and --now contradict each other: give one")


@dataclasses.dataclass(frozen=True)
class Options(PurgeOptions, JobOptions):
    """Options of purge."""


def run(invocation: Invocation) -> int:
    names = names_of(invocation.options)
    return run_job(invocation, lambda tickets, options: build(tickets, options, names), "purge")


def names_of(options: PurgeOptions) -> Names:
    """Returns the keys of what options name.

    Raises:
        UsageError: A name is none.
    """
    admitted = UrlRules(UrlOptions(schemes=SCHEMES)).admit(
        pl.Series(list(options.url), dtype=pl.String), "inject", filters=False
    )
    for url, key, reason in zip(options.url, admitted["key"], admitted["reason"], strict=True):
        if key is None:
            raise UsageError(f"--url is no URL that can be crawled ({reason}): {url!r}")
    return Names(
        urls=tuple(admitted["key"]),
        hosts=tuple(_host_key("host", name) for name in options.host),
        domains=tuple(_host_key("domain", name) for name in options.domain),
    )


def _host_key(flag: str, name: str) -> str:
    """Returns the key of a host, normalized as the hosts of URLs are."""
    try:
        found = host(normalize_basic(f"http://{name}/"))
    except BadUrl:
        found = ""
    if not found or (any(c in name for c in "/:@?#* ") and not name.startswith("[")):
        hint = ", an IPv6 address in brackets" if name.count(":") > 1 else ""
        raise UsageError(f"--{flag} must be a name such as www.example.com{hint}, got {name!r}")
    if flag == "domain" and is_public_suffix(found):
        raise UsageError(
            f"--domain is a public suffix, below which are domains of many: name these, got {name!r}"
        )
    return host_key(found)


def build(
    tickets: beam.PCollection[Ticket], options: PurgeOptions, names: Names
) -> beam.PCollection[Ticket]:
    """Purges; the ticket that comes out is for the next job.

    Args:
        tickets: One ticket.
        options: How.
        names: What.
    """
    task = Task(names, options.unbar)
    operations = tickets | "Begin" >> Begin("purge")
    pieces = ForEach(_Pieces(task), _purge, (task,), Written, step="Pieces")
    written = operations | "Pieces" >> pieces
    finish = beam.Map(_finish, task, options).with_output_types(Ticket)
    # One small group: descriptors.
    return (operations, written) | Together() | "Commit" >> finish


@dataclasses.dataclass(frozen=True)
class _Pieces:
    task: Task

    def __call__(self, operation: Operation) -> Iterator[Piece]:
        found = list(self.task.pieces(operation))
        PROGRESS.start("purge", total=len(found), unit="files")
        yield from found


def _purge(piece: Piece, task: Task) -> Iterator[Written]:
    yield from task(piece)
    PROGRESS.add()


def _finish(grouped: tuple[int, Iterable[Any]], task: Task, options: PurgeOptions) -> Ticket:
    operation, written, _ = gathered(grouped, ("Pieces",))
    root, purged = open_table(operation.table), prepare_purge(operation, written, task)
    with held(root, operation.id):
        made = commit_purge(operation, purged, task, options.wait_seconds)
        if options.now:
            sweep(root, made.snapshot, task.names)
    count(operation.job, made.counts)
    PROGRESS.finish()
    return ticket_after(operation, nothing=False)
