"""parse: extracts title, text and links from the pages of a batch.

::

    batch.pages, file by file ─ child processes: title, text, links, signature ─▶ batch.documents
"""

import dataclasses
from collections.abc import Iterator

import apache_beam as beam

from ..io.batches.batches import batch_component
from ..io.snapshots.manifest import Manifest, newest_manifest
from ..io.snapshots.operations import UPKEEP, Operation
from ..policy.components.vocabulary import PARSED_PHASE
from ..policy.parsing.documents import DocumentOptions
from ..policy.recorded_rules import recorded_rules
from ..transforms.operations import Begin, Commit
from ..transforms.parse_pages import PAGE_FILES, PageFile, ParseBatch
from ..transforms.parsing import ParsePagesOptions
from ..transforms.tickets import Ticket
from ..web.base.errors import UserError
from ..web.base.progress import PROGRESS
from .base.command import TABLE, Invocation
from .batch_tools import reparse
from .batch_tools.reparse import batches_to_reparse
from .launch.earlier_jobs import check_done_alike, done_with
from .launch.job import run_each_batch, run_job
from .parse_job_options import ParseJobOptions
from .views.rule_reports import report_job, report_one_job

ARGUMENTS = (TABLE,)
Options = ParseJobOptions


def run(invocation: Invocation) -> int:
    """Parses a batch.

    Raises:
        UserError: The batch was updated without being parsed, or parsed with other options.
    """
    if invocation.options.reparse:
        return _reparse(invocation)
    batch, address = invocation.options.batch, str(invocation.table)
    if batch:
        _check_in_time(address, batch)
        check_done_alike(address, batch, PARSED_PHASE, invocation.options, DocumentOptions)
    return run_job(invocation, build, "parse", after=report_one_job)


def _reparse(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    manifest = newest_manifest(address)
    names = batches_to_reparse(manifest, address, options.batch)
    # Each job is for one of them.
    invocation = dataclasses.replace(invocation, options=dataclasses.replace(options, all=False))
    first = [name for name in names if manifest.batches[name].phase == "fetched"]
    again = [name for name in names if name not in first]
    jobs, manifests = [(first, build), (again, reparse.build)], list[Manifest]()

    def keep_manifest(_: str, made_manifest: Manifest, __: Options) -> None:
        manifests.append(made_manifest)

    code = max(
        run_each_batch(invocation, batches, job, "parse", keep_manifest)
        for batches, job in jobs
        if batches
    )
    report_job(address, manifests, invocation.options)
    return code


def _check_in_time(address: str, batch: str) -> None:
    manifest = newest_manifest(address)
    recorded_batch = manifest.batches.get(batch)
    if recorded_batch is None or recorded_batch.phase != "updated":
        return
    if batch_component(batch, "documents") not in manifest.components:
        raise UserError(
            f"batch {batch!r} is updated, and has no texts: parse works only before updatedb; "
            "parse --reparse makes texts of the bodies that it has"
        )


def build(
    tickets: beam.PCollection[Ticket], options: ParsePagesOptions
) -> beam.PCollection[Ticket]:
    """Parses a fetched batch; the returned ticket is for the next job."""
    operations = tickets | "Begin" >> Begin("parse", needs="fetched", allows=UPKEEP)
    documents = operations | ParseBatch(_files, options)
    return (operations, documents) | Commit(
        reads=("batches/{batch}/pages",),
        phase=PARSED_PHASE,
        whole=(PAGE_FILES,),
        over_purges=True,
        options=done_with(PARSED_PHASE, options, DocumentOptions),
        rules=recorded_rules(options),
    )


def _files(operation: Operation) -> Iterator[PageFile]:
    files = operation.files(batch_component(str(operation.batch), "pages"))
    PROGRESS.start("parse", total=sum(file.rows for file in files))
    yield from (PageFile(operation, file) for file in files)
