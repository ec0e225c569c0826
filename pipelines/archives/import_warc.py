"""import_warc: makes a batch of the pages in WARC files, as if a fetch had fetched them.

::

    files ─ parts ─ records ─▶ batches/ID/pages ─┐
                       └ captures ─ by URL, by digest ─ the newest, revisits with bodies ─▶ pages
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import apache_beam as beam

from ...io.archives.archive_reading import ARCHIVE_ENDINGS, check_archive_file
from ...io.archives.record_index import read_record_index
from ...io.snapshots.entries import Batch
from ...io.snapshots.operations import Operation
from ...io.storage.file_errors import errors_as
from ...io.storage.files import size_of
from ...io.storage.place_addresses import place_of
from ...io.storage.places import Place
from ...io.tablets.written import Written
from ...policy.batch_tools.url_lists import ListRuleOptions
from ...policy.generating.selection import GenerateOptions
from ...transforms.archives.import_archives import IMPORT_PARTS, ImportArchives
from ...transforms.archives.imported_parts import ImportPart, ImportRules
from ...transforms.operations import Begin, Commit
from ...transforms.partition import PARTITION_BYTES
from ...transforms.tickets import Ticket
from ...web.archive_reading.archived_answers import BodyLimits
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ...web.base.progress import PROGRESS
from ...web.exchange.http_options import HttpOptions, WireOptions
from ..base.command import TABLE, Argument, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions
from ..launch.launch import preflight, workers_elsewhere
from ..launch.table_rooms import RoomOptions

ARGUMENTS = (
    TABLE,
    Argument(
        "files",
        "WARC files, or folders of them: local, or gs://, s3://, hdfs://; gzip, zstd or neither. With "
        "--index the folder that the names in the index are relative to.",
        nargs="+",
    ),
)
_CAPTURE_BYTES = 2_000  # of an archive for one capture, at least
_SHUFFLED_BYTES = 200  # of a capture
# Records that are read by one worker: their number, and the bytes from the first to the last.
_GROUP_RECORDS, _GROUP_BYTES = 2_000, 64 << 20


@dataclass(frozen=True)
class Options(ListRuleOptions, WireOptions, RoomOptions, JobOptions):
    """Options of import_warc."""

    GROUP = "import"

    index: str = option(
        "",
        "Read only the records that an index names, each by its range: a CDXJ or CDX file, or a file of the "
        "columnar URL index (.parquet, with warc_filename, warc_record_offset, warc_record_length).",
        takes="path",
    )
    part_size: int = option(
        64 << 20, "Size of the parts of a file that workers share.", unit="bytes", minimum=1 << 16
    )
    content_limit: int = shared_option(HttpOptions, "content_limit")
    document_limit: int = shared_option(HttpOptions, "document_limit")
    generate_mark_ttl: int = shared_option(GenerateOptions, "generate_mark_ttl")


class FilePlan(NamedTuple):
    """What is read of a file.

    Attributes:
        archive: Address of the file.
        size: Its size, bytes; with ``records`` that of the records.
        records: Positions and lengths of records, 0: unknown; none: the whole file.
    """

    archive: str
    size: int
    records: tuple[tuple[int, int], ...] = ()


def run(invocation: Invocation) -> int:
    options, words = invocation.options, invocation.arguments["files"]
    preflight(str(invocation.table), options, invocation.beam_args)
    elsewhere = workers_elsewhere(invocation.beam_args) and not options.shared_path
    places = [place_of(word).absolute() for word in words]
    for place in places:
        if elsewhere and place.needs_shared_path:
            raise UsageError(
                f"archive {str(place)!r} is on this machine, which workers may not find: give "
                "--shared_path if they share it, or an address that all can reach"
            )
    bad_lines = 0
    if not options.index:
        plans = list(_whole_plans(places))
    else:
        records, bad_lines = read_record_index(place_of(options.index))
        plans = list(_indexed_plans(places, records))
    build_import = functools.partial(build, plans=tuple(plans), bad_lines=bad_lines)
    return run_job(invocation, build_import, "import_warc")


def build(
    tickets: beam.PCollection[Ticket],
    options: Options,
    plans: Sequence[FilePlan],
    bad_lines: int = 0,
) -> beam.PCollection[Ticket]:
    """Makes a batch of the pages in archives; the returned ticket contains its id, or is idle.

    Args:
        tickets: One ticket.
        options: The options.
        plans: What to read.
        bad_lines: Number of lines of an index that name no record, to be counted.
    """
    operations = tickets | "Begin" >> Begin("import_warc", needs="", allows=("compact",))
    rules = ImportRules(
        options.rules, options.filter_urls,
        BodyLimits(options.content_limit, options.document_limit), options.store_wire,
    )  # fmt: skip
    captures = sum(plan.size for plan in plans) // _CAPTURE_BYTES
    written = operations | "Import" >> ImportArchives(
        functools.partial(_parts, plans=plans, size=options.part_size),
        rules,
        1 + captures * _SHUFFLED_BYTES // PARTITION_BYTES,
    )
    counts = {"damaged/bad_index_line": bad_lines} if bad_lines else {}
    report = beam.Map(lambda _: Written(counts=counts)).with_output_types(Written)
    index = operations | "Index" >> report
    return (operations, written, index) | Commit(
        reads=("blocklist", "batches"),
        opens=functools.partial(open_imported_batch, options=options),
        whole=(IMPORT_PARTS,),
    )


def _whole_plans(places: Sequence[Place]) -> Iterator[FilePlan]:
    """Yields the files that words name, each once; those of a folder have one of the usual endings."""
    named = dict[str, Place]()
    for place in places:
        with errors_as(f"cannot read archive {str(place)!r}"):
            files = place.files_in()
        if files != [place]:
            files = [file for file in files if file.name.endswith(ARCHIVE_ENDINGS)]
            if not files:
                raise UsageError(
                    f"no file in {str(place)!r} ends with {', '.join(ARCHIVE_ENDINGS[:3])}"
                )
        named |= {str(file): file for file in files}
    for address, file in named.items():
        check_archive_file(file)
        yield FilePlan(address, size_of(file) or 0)


def _indexed_plans(
    places: Sequence[Place], records: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[FilePlan]:
    """Yields the records that an index names."""
    if len(places) != 1:
        raise UsageError(
            "with --index give one folder, to which the names in the index are relative, got "
            f"{len(places)} words"
        )
    for name, positions in records.items():
        file = places[0] / name
        if size_of(file) is None:
            raise UsageError(f"the index names {name!r}, which is not in {str(places[0])!r}")
        size = sum(length or _CAPTURE_BYTES for _, length in positions)
        yield FilePlan(str(file), size, tuple(positions))


def _parts(operation: Operation, plans: Sequence[FilePlan], size: int) -> Iterator[ImportPart]:
    PROGRESS.start("import_warc", unit="pages")
    number = 0
    for plan in plans:
        if plan.records:
            for group in _groups(plan.records):
                yield ImportPart(operation, number, plan.archive, records=group)
                number += 1
        else:
            for start in range(0, max(plan.size, 1), size):
                yield ImportPart(operation, number, plan.archive, start, size)
                number += 1


def _groups(records: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    group, size = list[tuple[int, int]](), 0
    for offset, length in records:
        if group and (len(group) == _GROUP_RECORDS or size > _GROUP_BYTES):
            yield tuple(group)
            group, size = [], 0
        group.append((offset, length))
        size += length
    if group:
        yield tuple(group)


def open_imported_batch(
    operation: Operation, counts: dict[str, int], options: Options
) -> Batch | None:
    """Returns the record of the new batch; None if no page was found."""
    if not counts.get("pages"):
        return None
    return Batch(
        phase="fetched",
        created=operation.now,
        partitions=1,
        urls=counts["pages"],
        blocks_until=operation.now + options.generate_mark_ttl * 1000,
    )
