"""clean: deletes pages from an index that are gone, redirects, duplicates or orphans.

``index`` does so, too, for what has changed. This job looks at every page that the index has.
"""

from typing import Any

import apache_beam as beam

from ...policy.indexing.index_options import IndexTableOptions
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ..base.command import TABLE, Invocation
from ..launch.job import run_job
from ..launch.job_options import CheckedIndexOptions, JobOptions
from . import index

ARGUMENTS = (TABLE,)


@dataclass(frozen=True)
class Options(CheckedIndexOptions, JobOptions):
    """Options of clean."""


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "clean")


def build(tickets: beam.PCollection[Ticket], options: IndexTableOptions) -> Any:
    """Deletes from an index; returns the ticket for a next job."""
    return index.build(tickets, options, "clean")
