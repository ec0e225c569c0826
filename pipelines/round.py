"""round: one round of a crawl as one pipeline: generate, fetch, parse, updatedb, dedup.

For schedulers and templates: which round it is, and whether an open batch is
to be finished first, a worker reads off the table when the pipeline runs.
"""

import dataclasses
from typing import Any

import apache_beam as beam

from ..io.snapshots.manifest import newest_manifest
from ..io.snapshots.operations import find, new_id
from ..transforms.operations import Ticket
from .command_line.command import TABLE, Invocation
from .command_line.live import live_view
from .crawl import RoundOptions, build_crawl, end_of, made_by
from .launch.job import check, prepare, report, warn_of_clocks
from .launch.launch import preflight
from .launch.runner import run_pipeline, waits
from .views.summary import print_summary

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class Options(RoundOptions):
    """Options of round."""


def build(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    """Builds one round, whichever it is when the pipeline runs."""
    return build_crawl(tickets, options, rounds=1)


def run(invocation: Invocation) -> int:
    table, options = str(invocation.table), invocation.options
    check(options)
    preflight(table, options, invocation.beam_args)
    newest_manifest(table)
    warn_of_clocks(table, options)
    launched = options.operation or new_id()
    pipeline = prepare(Ticket(table, launched), build, options, invocation.beam_args, "round")
    with live_view(invocation.progress):
        run_pipeline(pipeline)
    if not waits(pipeline):
        report(invocation, {"job": "round", "operation": launched, "submitted": True})
        return 0
    pinned = find(table, f"{launched}.crawl")
    made = made_by(table, launched, pinned.snapshot) if pinned else []
    print_summary(invocation, made)
    return end_of(table, made)
