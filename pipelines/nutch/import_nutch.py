"""import_nutch: takes over the databases and segments of a crawl of Nutch.

::

    crawldb ─ rows ────────────────┐
    segments ─ pages ─▶ batches    ├ by tablet ─ merge: newest rows, which segments were applied ─▶ state'
          └─ which page has a body ┘
    linkdb ─ links ─ by tablet ─ resolve ─▶ links'
    hostdb, seeds ─ hosts ─ by tablet ─ merge ─▶ hosts'
"""

import functools
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import apache_beam as beam

from ...io.nutch.dump_reading import read_dump
from ...io.nutch.nutch_sources import TEXT_FORMS, NutchSources, merge_sources_of
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.operations import Operation
from ...io.storage.place_addresses import place_of
from ...io.table.opening import open_table
from ...io.tablets.resolve import Resolved, Resolver
from ...io.tablets.written import Written
from ...policy.batch_tools.url_lists import ListRuleOptions
from ...policy.components.schema import HOSTS
from ...policy.generating.selection import GenerateOptions
from ...policy.inlinks.edges import LINK_CHANGES, LINKS_COMPONENT, InvertOptions
from ...policy.nutch.imported_rows import NUTCH_STATE, merge_imported
from ...transforms.apply_changes import (
    COUNT_PLACES,
    RESOLVE,
    ApplyChanges,
    Target,
    counting_hosts,
    merge_resolver,
)
from ...transforms.elements.chunks import Chunk
from ...transforms.for_each import REPORTS, ForEach
from ...transforms.operations import Begin, Finish
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ...web.nutch_text.java_dates import check_zone
from ..archives.import_warc import Options as ImportWarcOptions
from ..base.command import DONE, TABLE, Argument, Invocation, gives_record
from ..batch_tools.batch_addresses import id_of_batch
from ..invertlinks import link_resolver
from ..launch.job import run_job
from ..launch.job_options import JobOptions
from ..launch.launch import preflight, workers_elsewhere
from ..launch.table_rooms import RoomOptions
from ..nutch_conf.import_configuration import import_configuration
from .import_parts import NUTCH_PARTS, import_items, import_work
from .imported_segments import batch_of, commit_import, segment_lines, segment_place

ARGUMENTS = (
    TABLE,
    Argument(
        "paths",
        "Folders or files that Nutch wrote: a crawl, its crawldb, linkdb, hostdb or segments, or dumps of them; "
        "local, or gs://, s3://, hdfs://.",
        nargs="*",
    ),
)
_LOG = logging.getLogger("nutbeam.import_nutch")


@dataclass(frozen=True)
class Options(ListRuleOptions, RoomOptions, JobOptions):
    """Options of import_nutch."""

    GROUP = "import"

    time_zone: str = option(
        "",
        "Time zone of the machine that made dumps, such as Europe/Berlin; without it, as their dates "
        "say. SequenceFiles need none.",
    )
    conf: str = option(
        "",
        "Nutch's folder conf: what nutch-site.xml sets becomes nutbeam.toml in the folder --conf_to, with "
        "the files that it names, and what became of each property is shown.",
        takes="path",
    )
    conf_to: str = option(".", "Folder of the new nutbeam.toml.", takes="path")
    part_size: int = shared_option(ImportWarcOptions, "part_size")
    max_anchor_length: int = shared_option(InvertOptions, "max_anchor_length")
    generate_mark_ttl: int = shared_option(GenerateOptions, "generate_mark_ttl")

    def __post_init__(self) -> None:
        check = getattr(super(), "__post_init__", None)
        if check is not None:
            check()
        check_zone(self.time_zone)


def run(invocation: Invocation) -> int:
    options, words = invocation.options, invocation.arguments["paths"]
    if not words and not options.conf:
        raise UsageError("missing argument PATHS: folders of Nutch, or --conf with its folder conf")
    sources = _sources_of(invocation) if words else None
    if options.conf:
        report = import_configuration(options.conf, options.conf_to, invocation.modules)
        if not gives_record(invocation, report.record()):
            print("\n".join(report.lines()))
    if sources is None:
        return DONE
    for _, line in sources.notes:
        _LOG.warning("%s", line)
    make = functools.partial(build, sources=sources)
    return run_job(invocation, make, "import_nutch", after=functools.partial(_report, invocation))


def _sources_of(invocation: Invocation) -> NutchSources:
    """Returns what the paths hold, with a note for each segment that the table has already.

    Raises:
        UsageError: A path has nothing of Nutch, or a dump's time zone is not clear.
    """
    options, words = invocation.options, invocation.arguments["paths"]
    preflight(str(invocation.table), options, invocation.beam_args)
    elsewhere = workers_elsewhere(invocation.beam_args) and not options.shared_path
    places = [place_of(word).absolute().resolve() for word in words]
    for place in places:
        if elsewhere and place.needs_shared_path:
            raise UsageError(
                f"{str(place)!r} is on this machine, which workers may not find: give --shared_path if "
                "they share it, or an address that all can reach"
            )
    sources = merge_sources_of(places)
    for form, file in {
        file.form: file for file in sources.files if file.form in TEXT_FORMS
    }.items():
        # A time zone that is not clear ends it before anything is written.
        next(read_dump(file.address, TEXT_FORMS[form], options.time_zone), None)
    if not options.operation:  # else the same import again changes nothing
        sources.notes.extend(("", line) for line in _lines_on_known_segments(invocation, sources))
    return sources


def _lines_on_known_segments(invocation: Invocation, sources: NutchSources) -> Iterator[str]:
    """Yields a line for each segment with the name of one that was imported into the table before."""
    address = str(invocation.table)
    if not open_table(address).latest_snapshot():
        return
    manifest = newest_manifest(address)
    for name in sources.segments:
        if (batch := id_of_batch(manifest, name)) != name:
            yield (
                f"segment {name} is imported again, as one more batch: it is batch {batch} already; "
                "name only the databases and the new segments to import no segment twice"
            )


def _report(invocation: Invocation, address: str, manifest: Manifest, _: Options) -> None:
    if invocation.format == "text":
        for line in segment_lines(manifest):
            print(line)


def build(
    tickets: beam.PCollection[Ticket], options: Options, sources: NutchSources
) -> beam.PCollection[Ticket]:
    """Imports files of Nutch; the returned ticket is for the next job.

    Args:
        tickets: One ticket.
        options: The options.
        sources: What to read.
    """
    operations = tickets | "Begin" >> Begin("import_nutch", needs="")
    read = operations | NUTCH_PARTS >> ForEach(
        functools.partial(import_items, sources=sources, options=options), import_work, (options,),
        tuple[str, Chunk], outputs=(REPORTS,), step=NUTCH_PARTS, reports=REPORTS, at_once=True,
    )  # fmt: skip
    kinds = {file.kind for file in sources.files}
    resolver = functools.partial(_resolver, finds_applied="crawldb" in kinds)
    places = {
        segment_place(n): f"batches/{batch_of('{batch}', n)}/outcome"
        for n in range(len(sources.segments))
    }
    targets = {
        "state": Target(NUTCH_STATE, resolver, {**COUNT_PLACES, **places}),
        "hosts": Target(HOSTS, merge_resolver),
        LINKS_COMPONENT: Target(LINK_CHANGES, link_resolver),
    }
    written = (operations, read["main"]) | ApplyChanges(targets)
    notes = Counter(f"left_out/{reason}" for reason, _ in sources.notes if reason)
    report = beam.Map(lambda _: Written(counts=dict(notes))).with_output_types(Written)
    counted = operations | "Notes" >> report
    commit = functools.partial(commit_import, sources=sources, ttl=options.generate_mark_ttl)
    return (operations, written, read[REPORTS], counted) | Finish(
        commit, whole=(NUTCH_PARTS, RESOLVE)
    )


def _resolver(_: Operation, finds_applied: bool) -> Resolver:
    def resolve(rows: Any, changes: Any) -> Resolved:
        merged, outcomes, counts = merge_imported(rows, changes, finds_applied=finds_applied)
        extra = {segment_place(number): outcome for number, outcome in outcomes.items()}
        return Resolved(merged, extra, counts)

    return counting_hosts(resolve)
