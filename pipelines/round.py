"""round: one round of a crawl as one pipeline: generate, fetch, parse, updatedb, dedup.

It is for schedulers and templates. When the pipeline runs, a worker finds in the table
the number of the round, and whether an open batch must be finished first.
"""

from typing import Any

import apache_beam as beam

from ..io.snapshots.operations import new_id, pinned_operation
from ..transforms.operations import Ticket
from .base.command import TABLE, Invocation
from .base.live import live_view
from .crawl import RoundOptions, build_crawl, finish, warn_of_missing_rules
from .launch.heartbeat import beating_heart
from .launch.job import check_launch, prepare, report
from .launch.runner import manifests_of_launch, manifests_of_others, run_over_conflicts, waits

ARGUMENTS = (TABLE,)


Options = RoundOptions


def build(tickets: beam.PCollection[Ticket], options: RoundOptions) -> Any:
    """Builds one round; a worker finds its number when the pipeline runs."""
    return build_crawl(tickets, options, rounds=1)


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    check_launch(invocation, begins_table=False)
    warn_of_missing_rules(invocation, options)
    launched = options.operation or new_id()
    pipeline = prepare(Ticket(address, launched), build, options, invocation.beam_args, "round")
    with beating_heart(invocation, launched) as heart:
        with live_view(invocation.progress):
            run_over_conflicts(pipeline, address, launched)
        if not waits(pipeline):
            return report(invocation, {"job": "round", "operation": launched, "submitted": True})
        pinned = pinned_operation(address, f"{launched}.crawl")
        manifests = manifests_of_launch(address, launched, pinned.snapshot) if pinned else []
        others = manifests_of_others(address, launched)
        return heart.ends_with(*finish(invocation, manifests, others))
