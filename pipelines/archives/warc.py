"""warc: writes what was fetched into WARC files.

::

    files of pages ─ hash ─ which bodies were there before ─┐
    files of pages, documents, host findings ───────────────┴─ records ─▶ files of the archive
"""

from ...policy.components.schema import PAGES_COLUMNS
from ...policy.conditions import wanted_rows
from ...web.archives.warc_options import INDEX_OF_HOSTS, WarcOptions
from ...web.base.dataclass import dataclass
from ...web.base.option_checks import Launch
from ...web.base.options import option
from ...web.base.wording import format_count
from ..base.command import (
    DONE,
    NOTHING_TO_DO,
    TABLE,
    Argument,
    Invocation,
    configuration,
    gives_record,
)
from ..launch.launch import LaunchOptions, preflight
from .archiving import ArchiveRun, check_folder, complete_archive, write_archive

ARGUMENTS = (
    TABLE,
    Argument("archive", "Folder of the WARC files: a local one, or gs://, s3://, hdfs://."),
)


@dataclass(frozen=True)
class Options(WarcOptions, LaunchOptions):
    """Options of warc."""

    batch: tuple[str, ...] = option(
        (), "Ids of the batches to write; without it all that have pages.", group="warc"
    )

    expr: str = option(
        "",
        'Write only answers for which this expression is true, such as "http_code == 200". Its names '
        "are the columns of batch_pages in the data dictionary.",
        group="warc",
    )

    def check_setup(self, _: Launch) -> None:
        """Compiles the expression, whose names are the columns of ``batch_pages``."""
        wanted_rows(self.expr, PAGES_COLUMNS)


def run(invocation: Invocation) -> int:
    options, address = invocation.options, str(invocation.table)
    with configuration():
        options.check_setup(Launch(address))
    preflight(address, options, invocation.beam_args)
    name, beam_args = invocation.arguments["archive"], invocation.beam_args
    folder = check_folder(address, name, options, beam_args, options.expr)
    done = write_archive(address, folder, options, beam_args, options.batch, options.expr)
    completed = not done.open and complete_archive(address, folder, options, beam_args)
    if not gives_record(invocation, {**vars(done), "archive": folder}):
        print("\n".join(archive_lines(done, name)))
        if completed:
            products = [
                *(["host index"] * (INDEX_OF_HOSTS in options.warc_indexes)),
                *(["package"] * options.wacz),
            ]
            print(f"{' and '.join(products)} of {name} written")
    return DONE if done.batches or done.open or completed else NOTHING_TO_DO


def archive_lines(done: ArchiveRun, folder: str) -> list[str]:
    """Returns what a run has written, as lines of text."""
    if done.open:
        return [
            f"a cluster writes {done.open} batches into {folder}: the same command says when it is done"
        ]
    if not done.batches:
        return [f"nothing to write: {folder} lacks none of {done.complete:,} batches"]
    counts = dict(done.counts)
    size, files = counts.pop("bytes", 0), counts.pop("files", 0)
    what = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
    place = f"{format_count(files, 'files')} of {format_count(size, 'bytes')} in {folder}"
    batches = len(done.batches)
    return [f"warc: {what}", f"{batches} batch{'es' * (batches != 1)} in {place}"]
