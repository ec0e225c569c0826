"""purge: removes a URL, a host or a domain from the table, and puts it into the blocklist.

::

    all tablets and files of batches ─ those that contain it are rewritten ─▶ the same
    names ─ hashes ─▶ blocklist'

It can commit while other jobs run: see ``io/upkeep/purge.py``.
"""

import functools
from collections.abc import Iterator
from typing import Any

import apache_beam as beam

from ..io.indexing.unpacked_index import forget_unpacked
from ..io.snapshots.heartbeats import remove_all_heartbeats
from ..io.snapshots.hold import hold_table
from ..io.snapshots.manifest import Manifest
from ..io.snapshots.operations import UPKEEP, Operation
from ..io.table.opening import open_table
from ..io.tablets.written import Written
from ..io.upkeep.purge import PurgeItem, PurgeTask, commit_purge, delete_purged, prepare_purge
from ..policy.components.blocklist import Names
from ..policy.purging import block_names, purge_of, unblock_names
from ..transforms.for_each import ForEach
from ..transforms.operations import Begin, Finish
from ..transforms.tickets import Ticket
from ..web.base.dataclass import dataclass
from ..web.base.errors import UsageError
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from ..web.normalizers.basic import normalize_basic
from ..web.urls.domains import is_public_suffix
from ..web.urls.row_keys import BadUrl, host, host_key
from .base.command import TABLE, Invocation
from .checkers.checking import row_key
from .launch.job import run_job
from .launch.job_options import JobOptions

ARGUMENTS = (TABLE,)


@dataclass(frozen=True)
class Options(JobOptions):
    """Options of purge."""

    url: tuple[str, ...] = option((), "Purge this URL.")
    host: tuple[str, ...] = option((), "Purge all URLs of this host.")
    domain: tuple[str, ...] = option((), "Purge all URLs of this domain and the hosts below it.")
    unblock: bool = option(False, "Purge nothing: remove the names from the blocklist.")
    now: bool = option(
        False,
        "Delete at once the files that only older snapshots need: a rollback is impossible then. "
        "Without it, they are deleted when these snapshots expire.",
    )
    wait_seconds: int = option(
        600,
        "How long to wait for running jobs that would fail if the purge committed before them. "
        "After that they fail, and a crawl runs them again.",
        minimum=0,
    )

    def __post_init__(self) -> None:
        if not (self.url or self.host or self.domain):
            raise ValueError("--url, --host or --domain must say what to purge")
        if self.unblock and self.now:
            raise ValueError("--unblock and --now contradict each other: give one")


def run(invocation: Invocation) -> int:
    names = names_of(invocation.options)
    code = run_job(invocation, lambda tickets, options: build(tickets, options, names), "purge")
    forget_unpacked(str(invocation.table))  # they may have what was purged
    files = open_table(str(invocation.table)).files
    remove_all_heartbeats(files)  # so may these
    return code


def names_of(options: Options) -> Names:
    """Returns the keys of the URLs, hosts and domains in options.

    Raises:
        UsageError: A name is not valid.
    """
    return Names(
        urls=tuple(row_key(url, "--url") for url in options.url),
        hosts=tuple(_host_key("host", name) for name in options.host),
        domains=tuple(_host_key("domain", name) for name in options.domain),
    )


def _host_key(flag: str, name: str) -> str:
    """Returns the key of a host, with the same normalization as hosts in URLs."""
    try:
        found = host(normalize_basic(f"http://{name}/"))
    except BadUrl:
        found = ""
    if not found or (any(c in name for c in "/:@?#* ") and not name.startswith("[")):
        hint = ", an IPv6 address in brackets" if name.count(":") > 1 else ""
        raise UsageError(f"--{flag} must be a name such as www.example.com{hint}, got {name!r}")
    if flag == "domain" and is_public_suffix(found):
        raise UsageError(f"--domain must be a registered domain, not a public suffix, got {name!r}")
    return host_key(found)


def build(
    tickets: beam.PCollection[Ticket], options: Options, names: Names
) -> beam.PCollection[Ticket]:
    """Purges; the returned ticket is for the next job.

    Args:
        tickets: One ticket.
        options: Options of purge.
        names: Keys to purge.
    """
    change = functools.partial(unblock_names if options.unblock else block_names, names=names)
    task = PurgeTask(change, None if options.unblock else purge_of(names))
    operations = tickets | "Begin" >> Begin("purge", allows=UPKEEP)
    items = ForEach(functools.partial(_items, task=task), _purge, (task,), Written, step="Pieces")
    commit = functools.partial(_commit, task=task, options=options)
    return (operations, operations | "Pieces" >> items) | Finish(
        commit, whole=("Pieces",), repeats=True
    )


def _items(operation: Operation, task: PurgeTask) -> list[PurgeItem]:
    found = list(task.items(operation))
    PROGRESS.start("purge", total=len(found), unit="files")
    return found


def _purge(item: PurgeItem, task: PurgeTask) -> Iterator[Written]:
    yield from task(item)
    PROGRESS.add()


def _commit(
    operation: Operation, written: list[Written], _: list[Any], task: PurgeTask, options: Options
) -> Manifest:
    table, purged = open_table(operation.address), prepare_purge(operation, written, task)
    with hold_table(table, operation.id):
        made = commit_purge(operation, purged, task, options.wait_seconds)
        if options.now and task.edit is not None:
            delete_purged(table, made.snapshot, task.edit)
    return made
