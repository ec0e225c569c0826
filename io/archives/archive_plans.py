"""Plans of an archive: which files of pages each part of a batch has, and what is done already.

The folder ``.nutbeam`` of an archive has its options, a plan for each of its batches, and a receipt for
each part that is complete. A plan is written once, before its parts. So a run that was killed is continued by
the next one: it finds the plan, writes the parts that lack a receipt again, under the same names
and with the same bytes, and no record is there twice.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...web.archives.warc_options import WARC_ENDINGS
from ...web.archives.warc_records import timestamp14
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.table_names import checked_part
from ..storage.files import (
    create_exclusive,
    list_files,
    names,
    overwrite_bytes,
    read_if_there,
    remove_file,
)
from ..storage.places import Place
from ..tablets.file_lists import DataFile

_OWN = ".nutbeam"
_PLAN, _RECEIPT, _INDEX = ".plan.json", ".receipt.json", ".captures.parquet"
_COMPLETE = ".complete"
_OPTIONS, _WHOLE = "options.json", "whole"
_USUAL_BATCH = re.compile(r"[0-9]{9,11}-([0-9a-f]{4,32})")
# Of the bytes of a file of pages, as much comes to one file of the archive, about.
_FULL = 0.8
WET_FOLDER, WAT_FOLDER = "wet", "wat"
_INDEXES, _COLUMNAR, _HOST_INDEX = "indexes", "columnar", "host_index"


@dataclass(frozen=True)
class ArchivePlan:
    """How a batch is written.

    Attributes:
        batch: Id of the batch.
        created: When the batch was created, ms; its files are named after it.
        now: When it was planned, ms: what counts as now in conditions.
        software: What writes it, with its version.
        options: The options that determine the records.
        parts: Paths of the files of pages of each part.
    """

    batch: str
    created: int
    now: int
    software: str
    options: Mapping[str, Any]
    parts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ArchiveFolder:
    """The folder of an archive.

    Attributes:
        place: The folder.
    """

    place: Place

    def options(self) -> dict[str, Any] | None:
        """Returns the options that determine all records of the archive; None: it is new.

        Raises:
            UserError: They are damaged.
        """
        path = self.place / _OWN / _OPTIONS
        return _read_record(path, "options")

    def keep_options(self, options: Mapping[str, Any]) -> None:
        """Writes the options of a new archive, unless another run has done so."""
        data = json.dumps(options, indent=1, default=list).encode()
        create_exclusive(self.place / _OWN / _OPTIONS, data)

    def plan_of(self, batch: str) -> ArchivePlan | None:
        """Returns the plan of a batch, or None.

        Raises:
            UserError: It is damaged.
        """
        path = self._own(batch, _PLAN)
        record = _read_record(path, "plan")
        if record is None:
            return None
        try:
            parts = tuple(tuple(map(str, part)) for part in record["parts"])
            created, now, software = record["created"], record["now"], str(record["software"])
            return ArchivePlan(batch, int(created), int(now), software, record["options"], parts)
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"plan of an archive is damaged: {path}: {error}") from error

    def keep_plan(self, plan: ArchivePlan) -> ArchivePlan:
        """Writes a plan, unless there is one; returns the one that counts."""
        record = {name: value for name, value in vars(plan).items() if name != "batch"}
        data = json.dumps(record, default=dict).encode()
        if create_exclusive(self._own(plan.batch, _PLAN), data):
            return plan
        return self.plan_of(plan.batch) or plan

    def complete_batches(self) -> set[str]:
        """Returns the batches that are complete; it is one request to a store."""
        notes = names(self.place / _OWN)
        return {name.removesuffix(_COMPLETE) for name in notes if name.endswith(_COMPLETE)}

    def cdxj_of(self, plan: ArchivePlan, part: int) -> Place:
        """Returns the place of the CDXJ index of a part."""
        return self.place / _INDEXES / f"{_part_name(plan, part)}.cdxj"

    def url_index_of(self, plan: ArchivePlan, part: int, subset: str) -> Place:
        """Returns the place of the columnar index of a subset of a part."""
        folder = self.place / _COLUMNAR / _crawl(plan) / f"subset={subset}"
        return folder / f"{_part_name(plan, part)}.parquet"

    def end_batch(self, plan: ArchivePlan) -> bool:
        """Notes that a batch is complete; removes what killed processes have left of it.

        Returns:
            Whether it is: all its parts are.
        """
        if any(self.receipt(plan.batch, part) is None for part in range(len(plan.parts))):
            return False
        create_exclusive(self._own(plan.batch, _COMPLETE), b"", durable=False)
        writer = re.escape(_writer(plan.batch))
        starts = rf"{re.escape(plan.batch)}|{re.escape(_start(plan))}-([0-9]{{5,}}-)?{writer}"
        subsets = self.place / _COLUMNAR / _crawl(plan)
        folders = [self.place / name for name in ("", _OWN, _INDEXES, WET_FOLDER, WAT_FOLDER)]
        for folder in (*folders, *(subsets / name for name in subsets.folders_in())):
            for name in names(folder):
                if re.fullmatch(rf"\.({starts})[-.].*\.[0-9a-f]{{16}}", name):
                    remove_file(folder / name)
        return True

    def receipt(self, batch: str, part: int) -> dict[str, Any] | None:
        """Returns what a part has written, its ``files`` and ``counts``; None: it is not complete.

        Raises:
            UserError: It is damaged.
        """
        return _read_record(self._own(f"{batch}-{part:05d}", _RECEIPT), "receipt")

    def keep_receipt(self, batch: str, part: int, receipt: Mapping[str, Any]) -> None:
        """Notes that a part is complete."""
        data = json.dumps(receipt).encode()
        create_exclusive(self._own(f"{batch}-{part:05d}", _RECEIPT), data)

    def capture_list_of(self, batch: str, part: int) -> Place:
        """Returns the place of the list of the captures that a part has written."""
        return self._own(f"{batch}-{part:05d}", _INDEX)

    def complete_parts(self) -> list[str]:
        """Returns the names of the complete parts, sorted; it is one request to a store."""
        notes = set(names(self.place / _OWN))
        starts = (name.removesuffix(_RECEIPT) for name in notes if name.endswith(_RECEIPT))
        return sorted(start for start in starts if start + _INDEX in notes)

    def file_names(self) -> Iterator[str]:
        """Yields the names of the WARC files of all complete parts."""
        for name in self.complete_parts():
            path = self._own(name, _RECEIPT)
            receipt = _read_record(path, "receipt") or {}
            try:
                yield from [checked_part(file["name"]) for file in receipt["files"]]
            except (ValueError, TypeError, KeyError) as error:
                raise UserError(f"receipt of an archive is damaged: {path}: {error}") from error

    def capture_lists(self) -> Iterator[Place]:
        """Yields the lists of captures of all complete parts."""
        for name in self.complete_parts():
            yield self._own(name, _INDEX)

    def capture_bytes(self) -> int:
        """Returns the size of all lists of captures."""
        lists = {f"{name}{_INDEX}" for name in self.complete_parts()}
        files = list_files(self.place / _OWN) if lists else ()
        return sum(file.bytes for file in files if file.path.name in lists)

    def package_of(self, crawl: str) -> Place:
        """Returns the place of the package of the archive (WACZ)."""
        return self.place / f"{crawl}.wacz"

    def host_index_of(self, crawl: str) -> Place:
        """Returns the folder of the host index."""
        return self.place / _HOST_INDEX / f"crawl={crawl}"

    def whole_state(self) -> str:
        """Returns a digest of the complete parts; what is made of all of them is made for it."""
        return hashlib.sha256("\n".join(self.complete_parts()).encode()).hexdigest()

    def is_whole(self) -> bool:
        """Returns whether what is made of all complete parts is there."""
        note = read_if_there(self.place / _OWN / _WHOLE)
        return note is not None and note.decode("ascii", "replace") == self.whole_state()

    def note_whole(self, state: str) -> None:
        """Notes the parts of which everything was made; an empty state: nothing is."""
        if state or self.place.exists():
            overwrite_bytes(self.place / _OWN / _WHOLE, state.encode())

    def _own(self, start: str, ending: str) -> Place:
        return self.place / _OWN / f"{checked_part(start)}{ending}"


def _read_record(path: Place, what: str) -> dict[str, Any] | None:
    data = read_if_there(path)
    try:
        return None if data is None else json_object(data)
    except ValueError as error:
        raise UserError(f"{what} of an archive is damaged: {path}: {error}") from error


def plan_parts(files: Sequence[DataFile], size: int) -> tuple[tuple[str, ...], ...]:
    """Returns the paths of the files of pages of each part: about a file of the archive each.

    >>> files = [DataFile(name, 1, 40) for name in "abc"]
    >>> plan_parts(files, 100), plan_parts([], 100)
    ((('a', 'b'), ('c',)), ((),))
    """
    parts: list[list[str]] = [[]]
    room = most = size * _FULL
    for file in files:
        if parts[-1] and file.bytes > room:
            parts.append([])
            room = most
        parts[-1].append(file.formerly or file.path)
        room -= file.bytes
    return tuple(map(tuple, parts))


def archive_name(plan: ArchivePlan, part: int, serial: int, compression: str) -> str:
    """Returns the name of a file: prefix, time of the batch, serial, and writer.

    The writer is the part of the batch, not the worker: so a worker that writes the part again gives
    its files the same names.

    >>> options = {"warc_prefix": "nutbeam"}
    >>> plan = ArchivePlan("1795883544-665eb295", 1_795_883_544_000, 0, "", options, ())
    >>> archive_name(plan, 2, 0, "gzip")
    'nutbeam-20261128163224-00000-665eb295.00002.warc.gz'
    """
    ending = WARC_ENDINGS[compression]
    return f"{_start(plan)}-{serial:05d}-{_writer(plan.batch)}.{part:05d}.{ending}"


def remove_other_files(
    archive: ArchiveFolder, plan: ArchivePlan, part: int, new_names: Collection[str]
) -> None:
    """Removes the files that an earlier attempt at a part has written, except those of some names."""
    pattern = re.compile(rf"{_file_pattern(plan, f'{part:05d}')}\.warc\.(gz|zst|wet\.gz|wat\.gz)")
    for folder in (archive.place, archive.place / WET_FOLDER, archive.place / WAT_FOLDER):
        for name in names(folder):
            if name not in new_names and pattern.fullmatch(name):
                remove_file(folder / name)


def _crawl(plan: ArchivePlan) -> str:
    return f"crawl={plan.options['warc_prefix']}"


def _start(plan: ArchivePlan) -> str:
    return f"{plan.options['warc_prefix']}-{timestamp14(plan.created)}"


def _part_name(plan: ArchivePlan, part: int) -> str:
    return f"{_start(plan)}-{_writer(plan.batch)}.{part:05d}"


def _file_pattern(plan: ArchivePlan, part: str) -> str:
    """Returns the pattern of the names of the files of a part, without their ending."""
    return rf"{re.escape(_start(plan))}-[0-9]{{5,}}-{re.escape(_writer(plan.batch))}\.{part}"


def _writer(batch: str) -> str:
    """Returns the part of the names of files that is only of a batch."""
    usual = _USUAL_BATCH.fullmatch(batch)
    return usual[1] if usual else batch
