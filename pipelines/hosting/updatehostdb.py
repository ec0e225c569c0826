"""updatehostdb: counts the URLs of each host, and looks hosts up.

::

    state, tablet by tablet ─ numbers, home pages, response times ─┐
    hosts, tablet by tablet ─ an empty row for each ───────────────┴─ by tablet ─ look up ─▶ hosts'

A crawl keeps the numbers up to date without this job. It makes them from the state instead: for a
table from before 25 November 2026, and to look hosts up.
"""

import functools
import logging
import threading
from collections.abc import Iterator

import apache_beam as beam
import polars as pl

from ...io.rows.small_components import HOST_COUNTS_COMPONENT, forgets_pending, read_blocklist
from ...io.snapshots.operations import Operation, new_id
from ...io.snapshots.table_clock import oldest_open
from ...io.storage.file_errors import ConflictError
from ...io.tablets.resolve import Resolved, Resolver
from ...policy.components.clocks import COUNT, RightTimes, set_right
from ...policy.components.host_rows import has_urls
from ...policy.components.schema import HOSTS, HOSTS_COLUMNS
from ...policy.hosting.recount import (
    HostCheckOptions,
    checked_hosts,
    recount_changes,
    recount_hosts,
    to_check,
)
from ...transforms.apply_changes import Target, change_rows
from ...transforms.elements.chunks import Chunk, named_chunks
from ...transforms.for_each import TabletItem, tablet_items
from ...transforms.operations import Begin
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS
from ...web.exchange.addresses import Addresses, AddressOptions, check_host, look_up_all
from ...web.network.guard import Guard
from ...web.urls.row_keys import from_host_key, host_key
from ..base.command import TABLE, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions

ARGUMENTS = (TABLE,)
_COLUMNS = ("key", "status", "retries", "response_ms")
_TRIES = 5
_LOG = logging.getLogger("nutbeam.updatehostdb")
# Ranges of hosts may be resolved at once in a process; only one of them looks hosts up.
_LOOKING_UP = threading.Lock()


@dataclass(frozen=True)
class CheckOptions(HostCheckOptions, AddressOptions):
    """Options of updatehostdb, without those of launching."""


@dataclass(frozen=True)
class Options(CheckOptions, JobOptions):
    """Options of updatehostdb."""


def run(invocation: Invocation) -> int:
    """Runs the job; again if another job has committed meanwhile, without the look-ups it made."""
    build_run = functools.partial(build, run=new_id())
    for tries_left in reversed(range(_TRIES)):
        try:
            return run_job(invocation, build_run, "updatehostdb")
        except ConflictError as error:
            # The same operation would read the same snapshot again.
            if not tries_left or invocation.options.operation:
                raise
            _LOG.warning("%s; counts again", error)
    raise AssertionError


def build(
    tickets: beam.PCollection[Ticket], options: CheckOptions, run: str = ""
) -> beam.PCollection[Ticket]:
    """Brings the host table up to date; returns the ticket for a next job.

    Args:
        tickets: One ticket.
        options: Options of updatehostdb.
        run: The look-ups of one run are made once in a process, whichever operation makes them.
    """
    operations = tickets | "Begin" >> Begin("updatehostdb")
    pending = operations | "Pending" >> beam.Map(forgets_pending)
    return change_rows(
        operations, "Tablets", (_tablets, _count, ()), {"hosts": Target(HOSTS, _Recount(options, run))},
        (pending,), reads=("state", "hosts", HOST_COUNTS_COMPONENT, "blocklist"),
    )  # fmt: skip


def _tablets(operation: Operation) -> list[TabletItem]:
    return tablet_items(operation, "state", "hosts", phase="updatehostdb")


def _count(item: TabletItem) -> Iterator[tuple[str, Chunk]]:
    table, component = item.operation.table, item.component
    blocklist = read_blocklist(item.operation)
    PROGRESS.add()
    columns = ("key",) if component == "hosts" else _COLUMNS
    rows = table.read(component, [item.tablet], columns).select(columns)
    if component == "state":
        rows = recount_changes(rows)
    rows = rows.filter(~blocklist.blocks_hosts(rows.get_column("key")))
    yield from named_chunks("hosts", rows, HOSTS)


@dataclass(frozen=True)
class _Recount:
    """Makes the resolver of the host table for an operation."""

    options: CheckOptions
    run: str

    def __call__(self, operation: Operation) -> Resolver:
        options, run = self.options, self.run

        def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
            since = oldest_open(operation.manifest(), operation.now)
            rows, wrong = set_right(HOSTS_COLUMNS, rows, RightTimes(operation.now, since))
            counted = recount_hosts(rows, changes)
            # Rows of other keys are not looked up: another range may have them.
            own = counted.filter(pl.col("key").is_in(changes.get_column("key").implode()))
            chosen = to_check(own, operation.now, options)
            lookups = _earlier_lookups(run) if run else {}
            new = chosen.filter(~chosen.is_in(pl.Series(list(lookups), dtype=pl.String).implode()))
            lookups |= look_up(new, options)
            chosen_lookups = {host: lookups[host] for host in chosen if host in lookups}
            checked, counts = checked_hosts(counted, chosen_lookups, operation.now, options)
            hosts = own.select(has_urls().sum()).item()
            counts |= {"counted_hosts": hosts, COUNT: wrong}
            return Resolved(checked, counts={name: n for name, n in counts.items() if n})

        return resolve


@functools.lru_cache(maxsize=2)
def _earlier_lookups(run: str) -> dict[str, str]:
    """Returns the results of look-ups that this process has made for a run."""
    return {}


def look_up(hosts: pl.Series, options: CheckOptions) -> dict[str, str]:
    """Returns the results of looking up hosts (reversed); see ``checked_hosts``.

    A host that is reached by ``connect_to`` or through a proxy is not looked up.
    """
    if not len(hosts):
        return {}
    guard = Guard(options.allow_addresses, options.connect_to, options.allowed_ports)
    addresses, names = Addresses(options, guard), map(from_host_key, hosts)
    direct = [n for n in names if not any(addresses.uses_name(n, (port,)) for port in (80, 443))]
    late = options.lookup_timeout, "timeout"
    with _LOOKING_UP:
        outcomes = look_up_all(
            direct,
            functools.partial(check_host, guard),
            options.resolvers_threads,
            options.lookup_limit,
            late,
        )
    return {host_key(name): result for name, result in outcomes.items()}
