"""mergedb: merges the URLs of other tables into a table.

::

    state of the others ─ normalize, filter ─ by tablet ─ the newest row of each URL ─▶ state'
                                 └─ hosts of seeds ─ by tablet ─ merge ─▶ hosts'
"""

import functools
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batches import keys_left_out
from ...io.rows.small_components import read_blocklist
from ...io.snapshots.operations import Operation
from ...io.tablets.resolve import Resolver, resolving
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
from ...transforms.operations import Begin, Commit
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Argument, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions
from ..views.reading_job import Reading
from .other_tables import OtherTablet, other_readings, other_tablets

ARGUMENTS = (TABLE, Argument("others", "Tables whose URLs are merged into it.", nargs="+"))
_COUNTS = "counts"


@dataclass(frozen=True)
class Options(ListRuleOptions, JobOptions):
    """Options of mergedb."""


def run(invocation: Invocation) -> int:
    # Nutch leaves out what is not there, too.
    readings = other_readings(invocation, skips_missing=True)
    making = functools.partial(build, readings=readings)
    return run_job(invocation, making, "mergedb")


def build(
    tickets: beam.PCollection[Ticket], options: Options, readings: tuple[Reading, ...]
) -> beam.PCollection[Ticket]:
    """Merges the rows of other tables; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("mergedb")
    changes = operations | "Tablets" >> ForEach(
        functools.partial(other_tablets, readings=readings, component="state"),
        _changes, (options,), tuple[str, Chunk],
        outputs=(_COUNTS,), step="Tablets", reports=_COUNTS,
    )  # fmt: skip
    targets = {
        "state": Target(STATE, _resolver, COUNT_PLACES), "hosts": Target(HOSTS, merge_resolver),
    }  # fmt: skip
    written = (operations, changes["main"]) | ApplyChanges(targets)
    return (operations, written, changes[_COUNTS]) | Commit(
        reads=("state", "hosts", "blocklist"), whole=("Tablets", RESOLVE)
    )


def _changes(item: OtherTablet, options: Options) -> Iterator[Any]:
    manifest, files = item.operation.manifest(), item.operation.table.files
    how = MergeRules(
        options.chosen_rules, options.filter_urls, read_blocklist(item.operation),
        manifest.batches.keys(),
    )  # fmt: skip
    with item.reading.reading():
        for frame in item.reading.table.scan("state", item.tablet):
            left_out = pl.col("key").is_in(keys_left_out(files, manifest, frame).implode())
            frame = frame.with_columns(pl.when(~left_out).then("batch_id"))
            rows, counts = arriving_rows(frame, how)
            yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts))
            yield from named_chunks("state", rows, STATE)
            yield from named_chunks("hosts", hosts_of_seed_rows(rows), HOSTS)
    PROGRESS.add()


def _resolver(_: Operation) -> Resolver:
    return counting_hosts(resolving(merge_state_rows))
