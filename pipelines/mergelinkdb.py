"""mergelinkdb: adds the links of other tables to the link table.

::

    links of the others ─ normalize, filter ─ by tablet ─ resolve ─▶ links'
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import apache_beam as beam

from ..io.batches.link_sources import read_source_rows
from ..io.rows.small_components import read_blocklist
from ..io.tablets.written import Written
from ..policy.inlinks.edges import LINK_CHANGES, LINKS_COMPONENT
from ..policy.inlinks.link_decisions import drop_blocked_links, drop_outdated_links, merged_links
from ..transforms.apply_changes import Target, change_rows
from ..transforms.elements.chunks import named_chunks
from ..transforms.for_each import REPORTS
from ..transforms.operations import Begin
from ..transforms.tickets import Ticket
from ..web.base.dataclass import dataclass
from ..web.base.options import option
from ..web.base.progress import PROGRESS
from ..web.rules.url_rules import CheckedUrlOptions, UrlRules
from .base.command import TABLE, Argument, Invocation
from .batch_tools.other_tables import OtherTablet, other_readings, other_tablets
from .checkers.checking import rules_of
from .invertlinks import link_resolver
from .launch.job import run_job
from .launch.job_options import JobOptions
from .views.reading_job import Reading

ARGUMENTS = (TABLE, Argument("others", "Tables whose links are merged.", nargs="+"))


@dataclass(frozen=True)
class Options(CheckedUrlOptions, JobOptions):
    """Options of mergelinkdb."""

    GROUP = "links"

    normalize_links: bool = option(
        False, "Normalize the URLs of links.", nutch="mergelinkdb -normalize"
    )
    filter_links: bool = option(
        False, "Leave out links from and to URLs that the filters refuse.",
        nutch="mergelinkdb -filter",
    )  # fmt: skip


def run(invocation: Invocation) -> int:
    readings = other_readings(invocation, skips_missing=False)
    making = functools.partial(build, readings=readings)
    return run_job(invocation, making, "mergelinkdb")


def build(
    tickets: beam.PCollection[Ticket], options: Options, readings: tuple[Reading, ...]
) -> beam.PCollection[Ticket]:
    """Merges the links of other tables; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("mergelinkdb")
    items = functools.partial(other_tablets, readings=readings, component=LINKS_COMPONENT)
    return change_rows(
        operations, "Tablets", (items, _changes, (options,)),
        {LINKS_COMPONENT: Target(LINK_CHANGES, link_resolver)},
        reads=(LINKS_COMPONENT, "blocklist"),
    )  # fmt: skip


def _rules(options: Options) -> UrlRules | None:
    if not options.normalize_links and not options.filter_links:
        return None
    plain = options.no_normalize or not options.normalize_links
    return rules_of(dataclasses.replace(options, no_normalize=plain))


def _changes(item: OtherTablet, options: Options) -> Iterator[Any]:
    rules = _rules(options)
    with item.reading.reading():
        for rows in item.reading.table.scan(LINKS_COMPONENT, item.tablet):
            changes, counts = merged_links(rows, rules, filters=options.filter_links)
            changes, blocked = drop_blocked_links(changes, read_blocklist(item.operation))
            source_rows = read_source_rows(item.operation, changes.get_column("source"))
            changes, outdated = drop_outdated_links(changes, source_rows)
            counts = {**counts, **blocked, **outdated}
            yield beam.pvalue.TaggedOutput(REPORTS, Written(counts=counts))
            yield from named_chunks(LINKS_COMPONENT, changes, LINK_CHANGES)
    PROGRESS.add()
