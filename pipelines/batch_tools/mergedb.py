"""mergedb: merges the URLs of other tables into a table.

::

    state of the others ─ normalize, filter ─ by tablet ─ the newest row of each URL ─▶ state'
                                 └─ hosts of seeds ─ by tablet ─ merge ─▶ hosts'
"""

import dataclasses
import functools
import logging
from collections.abc import Iterator
from typing import Any

import apache_beam as beam

from ...io.rows.small_components import read_blocklist
from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.operations import Operation
from ...io.storage.file_errors import NoTable
from ...io.table.opening import open_table
from ...io.tablets.resolve import Resolver, resolving
from ...io.tablets.tablets import Tablet, tablets
from ...io.tablets.written import Written
from ...policy.batch_tools.merged_rows import (
    MergeRules,
    arriving_rows,
    hosts_of_seed_rows,
    merge_state_rows,
)
from ...policy.batch_tools.url_lists import ListRuleOptions
from ...policy.components.schema import HOSTS, STATE
from ...transforms.apply_changes import (
    COUNT_PLACES,
    RESOLVE,
    ApplyChanges,
    Target,
    counting_hosts,
    merge_resolver,
)
from ...transforms.elements.chunks import Chunk, named_chunks
from ...transforms.for_each import ForEach
from ...transforms.operations import Begin, Commit, Ticket
from ...web.base.errors import UsageError
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Argument, Invocation
from ..launch.job import JobOptions, run_job
from ..launch.launch import preflight
from ..views.reading_job import Reading

ARGUMENTS = (TABLE, Argument("others", "Tables whose URLs are merged into it.", nargs="+"))
_LOG = logging.getLogger("nutbeam.mergedb")
_COUNTS = "counts"


@dataclasses.dataclass(frozen=True)
class Options(ListRuleOptions, JobOptions):
    """Options of mergedb."""


@dataclasses.dataclass(frozen=True)
class OtherRows:
    """A tablet of the state of another table."""

    operation: Operation
    reading: Reading
    tablet: Tablet


def run(invocation: Invocation) -> int:
    readings, address = [], str(invocation.table)
    for other in dict.fromkeys(invocation.arguments["others"]):
        if open_table(other).worker_address() == open_table(address).worker_address():
            raise UsageError(f"a table is not merged with itself: {other!r}")
        preflight(other, invocation.options, invocation.beam_args)
        open_table(other).check_place()
        try:
            snapshot = newest_manifest(other).snapshot
        except NoTable as error:  # Nutch leaves out what is not there, too
            _LOG.warning("left out: %s", error)
            continue
        readings.append(Reading(open_table(other).worker_address(), "", snapshot))
    if not readings:
        raise UsageError(
            f"none of the tables is there: {', '.join(invocation.arguments['others'])}"
        )
    making = functools.partial(build, readings=tuple(readings))
    return run_job(invocation, making, "mergedb")


def build(
    tickets: beam.PCollection[Ticket], options: Options, readings: tuple[Reading, ...]
) -> beam.PCollection[Ticket]:
    """Merges the rows of other tables; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("mergedb")
    changes = operations | "Tablets" >> ForEach(
        functools.partial(_items, readings=readings), _changes, (options,), tuple[str, Chunk],
        outputs=(_COUNTS,), step="Tablets", reports=_COUNTS,
    )  # fmt: skip
    targets = {
        "state": Target(STATE, _resolver, COUNT_PLACES), "hosts": Target(HOSTS, merge_resolver),
    }  # fmt: skip
    written = (operations, changes["main"]) | ApplyChanges(targets)
    return (operations, written, changes[_COUNTS]) | Commit(
        reads=("state", "hosts", "blocklist"), whole=("Tablets", RESOLVE)
    )


def _items(operation: Operation, readings: tuple[Reading, ...]) -> Iterator[OtherRows]:
    items = [
        OtherRows(operation, reading, tablet)
        for reading in readings
        for tablet in tablets(reading.files("state"))
    ]
    PROGRESS.start("mergedb", total=len(items), unit="tablets")
    yield from items


def _changes(item: OtherRows, options: Options) -> Iterator[Any]:
    applies = options.filter_urls or options.normalize_urls
    how = MergeRules(
        options.rules if applies else None, options.filter_urls, read_blocklist(item.operation),
        item.operation.manifest().batches.keys(),
    )  # fmt: skip
    with item.reading.reading():
        for frame in item.reading.table.scan("state", item.tablet):
            rows, counts = arriving_rows(frame, how)
            yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts))
            yield from named_chunks("state", rows, STATE)
            yield from named_chunks("hosts", hosts_of_seed_rows(rows), HOSTS)
    PROGRESS.add()


def _resolver(_: Operation) -> Resolver:
    return counting_hosts(resolving(merge_state_rows))
