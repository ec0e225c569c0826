"""Plans and runs the writing of an archive, for the command warc and for crawl."""

import dataclasses
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam

from ...io.archives.archive_plans import ArchiveFolder, ArchivePlan, plan_parts
from ...io.archives.archive_sources import batches_with_pages, created_of
from ...io.archives.host_index_files import remove_host_index
from ...io.batches.batches import batch_component
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.pinned import Snapshot
from ...io.storage.files import names
from ...io.storage.place_addresses import place_of
from ...io.table.opening import open_table
from ...policy.components.vocabulary import PARSED_PHASE, UPDATED_PHASE
from ...transforms.archives.archive_part import ArchivePart
from ...transforms.archives.whole_archive import CompleteArchive, WholeArchive
from ...transforms.archives.write_archive import WriteArchive
from ...transforms.partition import PARTITION_BYTES
from ...transforms.tickets import versions
from ...web.archives.warc_options import INDEX_OF_HOSTS, WarcOptions
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ..launch.launch import launch_args, workers_elsewhere
from ..running.runner import make_pipeline, run_pipeline

_LOG = logging.getLogger("nutbeam.warc")
_CAPTURED_BYTES = 200  # of a capture in the search for revisits
_GROWTH = 4  # of lists of captures, when they are read
_HOST_BYTES = 100  # of a host in the making of the host index


@dataclass(frozen=True)
class ArchiveRun:
    """What a run has written.

    Attributes:
        batches: Batches that it has completed.
        complete: Number of batches that were complete before.
        open: Number of batches that are not complete: a cluster works on them.
        files: Names of the files.
        counts: Records by kind, rows left out by reason.
    """

    batches: tuple[str, ...]
    complete: int
    open: int
    files: tuple[str, ...]
    counts: Counter[str]


def check_folder(
    address: str, folder: str, options: Any, beam_args: Sequence[str], expr: str = ""
) -> str:
    """Returns the address of an archive as workers need it.

    Args:
        address: Address of the table.
        folder: The archive, as the user names it.
        options: ``WarcOptions`` and ``LaunchOptions``.
        beam_args: Arguments for Beam.
        expr: Condition of the pages.

    Raises:
        UsageError: It is in the table, or has other options, or workers on other machines may not
            find it.
    """
    place, table = place_of(folder).absolute(), open_table(address).files
    real, real_table = str(place.resolve()), str(table.resolve())
    if real == real_table or real.startswith(f"{real_table}/"):
        raise UsageError(f"the archive must be outside of the table, got {folder!r}")
    if place.needs_shared_path and workers_elsewhere(beam_args) and not options.shared_path:
        raise UsageError(
            f"the archive {folder!r} is a folder of this machine, which workers may not find: give "
            "--shared_path if they share it, or an address that all can reach"
        )
    place.check_client()
    check_archive(str(place), WarcOptions.of(options), expr)
    return str(place)


def check_archive(folder: str, options: WarcOptions, expr: str) -> None:
    """Checks that an archive, if it is there, has these options.

    Raises:
        UsageError: It has others.
    """
    archived, wanted = ArchiveFolder(place_of(folder)).options(), _options_record(options, expr)
    for name, value in wanted.items() if archived is not None else ():
        if archived is not None and archived.get(name) != value:
            raise UsageError(
                f"the archive {folder!r} has --{name} {_show_value(archived.get(name))}, not "
                f"{_show_value(value)}: give the same options, or another folder"
            )


def _options_record(options: WarcOptions, expr: str) -> dict[str, Any]:
    """Returns options as an archive records them."""
    recorded: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(options)))
    return {**recorded, "expr": expr}


def _show_value(value: Any) -> str:
    return repr(",".join(value) if isinstance(value, list) else value)


def write_archive(
    address: str,
    folder: str,
    options: Any,
    beam_args: Sequence[str],
    batches: Sequence[str] = (),
    expr: str = "",
) -> ArchiveRun:
    """Writes what an archive lacks of a table: new batches, and parts that a killed run left out.

    Args:
        address: Address of the table.
        folder: The archive, see ``check_folder``.
        options: ``WarcOptions`` and ``LaunchOptions``.
        beam_args: Arguments for Beam.
        batches: Ids of the batches; without them all that have pages.
        expr: Condition of the pages.

    Raises:
        UsageError: A batch has no pages, or the archive has it with other options.
    """
    archive, manifest = ArchiveFolder(place_of(folder)), newest_manifest(address)
    own_options = WarcOptions.of(options)
    chosen = choose_batches(manifest, batches, own_options)
    recorded = _options_record(own_options, expr)
    if chosen:
        archive.keep_options(recorded)
        check_archive(folder, own_options, expr)
    complete = archive.complete_batches()
    earlier_plans = {batch: archive.plan_of(batch) for batch in chosen if batch not in complete}
    pinned = Snapshot(open_table(address).worker_address(), manifest.snapshot)
    plans = [
        plan or _new_plan(archive, pinned, batch, recorded, own_options)
        for batch, plan in earlier_plans.items()
    ]
    parts = list(_open_parts(archive, pinned, folder, plans, own_options))
    if parts:
        archive.note_whole("")
        rows = sum(file.rows for batch in earlier_plans for file in _pages_of(pinned, batch))
        size = rows * _CAPTURED_BYTES + archive.capture_bytes() * _GROWTH
        step = WriteArchive(folder, options.warc_revisits, 1 + size // PARTITION_BYTES)
        pipeline = make_pipeline([*launch_args(options, beam_args), *beam_args])
        pipeline | "Parts" >> beam.Create(parts).with_output_types(ArchivePart) | step
        run_pipeline(pipeline)
    ended = tuple(plan.batch for plan in plans if archive.end_batch(plan))
    return _report(archive, parts, ended, len(chosen))


def choose_batches(manifest: Manifest, wanted: Sequence[str], options: WarcOptions) -> list[str]:
    """Returns the batches to write, the oldest first.

    Raises:
        UsageError: A wanted one has no pages, or is not parsed although options need it.
    """
    there = batches_with_pages(manifest)
    for batch in wanted:
        if batch not in there:
            record = manifest.batches.get(batch)
            why = f"it is {record.phase}" if record else "there is no such batch"
            raise UsageError(f"--batch {batch!r} has no pages: {why}")
    chosen = []
    for batch in [name for name in there if not wanted or name in wanted]:
        record = manifest.batches.get(batch)
        if options.needs_documents and record and record.phase not in (PARSED_PHASE, UPDATED_PHASE):
            line = f"batch {batch} is not parsed: it is left out (--include_parse_text, _data)"
            if wanted:
                raise UsageError(line)
            _LOG.warning("%s", line)
            continue
        chosen.append(batch)
    return chosen


def round_archiver(
    address: str, folder: str, options: Any, beam_args: Sequence[str]
) -> Callable[..., None]:
    """Returns a function that writes what an archive lacks.

    With ``complete`` it also makes what is made of the whole archive.

    Args:
        address: Address of the table.
        folder: The archive, as the user names it.
        options: ``WarcOptions`` and ``LaunchOptions``.
        beam_args: Arguments for Beam.

    Raises:
        UsageError: See ``check_folder``.
    """
    place = check_folder(address, folder, options, beam_args)

    def write(*, complete: bool = False) -> None:
        run = write_archive(address, place, options, beam_args)
        if complete and not run.open:
            complete_archive(address, place, options, beam_args)

    return write


def complete_archive(address: str, folder: str, options: Any, beam_args: Sequence[str]) -> bool:
    """Makes what is made of a whole archive, unless it is there; returns whether it had to.

    Args:
        address: Address of the table.
        folder: The archive, see ``check_folder``.
        options: ``WarcOptions`` and ``LaunchOptions``.
        beam_args: Arguments for Beam.
    """
    archive, own_options = ArchiveFolder(place_of(folder)), WarcOptions.of(options)
    state = archive.whole_state()
    if not own_options.whole_archive or not archive.complete_parts() or archive.is_whole():
        return False
    pinned = Snapshot(open_table(address).worker_address(), newest_manifest(address).snapshot)
    hosts_folder = archive.host_index_of(own_options.warc_prefix)
    remove_host_index(hosts_folder)
    hosts = sum(file.live_rows for file in pinned.files("hosts"))
    size = hosts * _HOST_BYTES + archive.capture_bytes() * _GROWTH
    step = CompleteArchive(own_options, 1 + size // PARTITION_BYTES)
    whole = WholeArchive(pinned, folder, own_options, _software(), now_ms())
    pipeline = make_pipeline([*launch_args(options, beam_args), *beam_args])
    pipeline | "Archive" >> beam.Create([whole]).with_output_types(WholeArchive) | step
    run_pipeline(pipeline)
    package = archive.package_of(own_options.warc_prefix)
    lacks_package = own_options.wacz and not package.exists()
    lacks_hosts = INDEX_OF_HOSTS in own_options.warc_indexes and not names(hosts_folder)
    if not (lacks_package or lacks_hosts):  # else a cluster works on it
        archive.note_whole(state)
    return True


def _software() -> str:
    return "/".join(versions()[1])


def _new_plan(
    archive: ArchiveFolder,
    pinned: Snapshot,
    batch: str,
    recorded: dict[str, Any],
    options: WarcOptions,
) -> ArchivePlan:
    parts = plan_parts(_pages_of(pinned, batch), options.warc_size)
    created = created_of(pinned.manifest(), batch)
    return archive.keep_plan(ArchivePlan(batch, created, now_ms(), _software(), recorded, parts))


def _pages_of(pinned: Snapshot, batch: str) -> list[Any]:
    return pinned.files(batch_component(batch, "pages"))


def _open_parts(
    archive: ArchiveFolder,
    pinned: Snapshot,
    folder: str,
    plans: Sequence[ArchivePlan],
    options: WarcOptions,
) -> Iterator[ArchivePart]:
    """Yields the parts that are not complete."""
    number = 0
    for plan in plans:
        for part, files in enumerate(plan.parts):
            if archive.receipt(plan.batch, part) is None:
                slim = dataclasses.replace(plan, parts=())
                yield ArchivePart(pinned, folder, slim, part, files, number, options)
                number += 1


def _report(
    archive: ArchiveFolder, parts: Sequence[ArchivePart], ended: tuple[str, ...], chosen: int
) -> ArchiveRun:
    counts, files = Counter[str](), list[str]()
    for part in parts:
        receipt = archive.receipt(part.plan.batch, part.part)
        if receipt is not None:
            counts.update(receipt["counts"])
            files += [file["name"] for file in receipt["files"]]
    worked_on = {part.plan.batch for part in parts}
    new = tuple(batch for batch in ended if batch in worked_on)
    return ArchiveRun(new, chosen - len(worked_on), len(worked_on) - len(new), tuple(files), counts)
