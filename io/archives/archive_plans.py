"""Plans of an archive: which files of pages each part of a batch has, and what is done already.

The folder ``.nutbeam`` of an archive has a plan for each of its batches, and a receipt for each part
that is complete. A plan is written once, before its parts. So a run that was killed is continued by
the next one: it finds the plan, writes the parts that lack a receipt again, under the same names
and with the same bytes, and no record is there twice.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...web.archives.warc_options import WARC_ENDINGS
from ...web.archives.warc_records import timestamp14
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..disk.table_names import checked_part
from ..storage.files import create_exclusive, names, read_if_there, remove_file
from ..storage.places import Place
from ..tablets.file_lists import DataFile

_OWN = ".nutbeam"
_PLAN, _RECEIPT, _INDEX = ".plan.json", ".receipt.json", ".captures.parquet"
_COMPLETE = ".complete"
_USUAL_BATCH = re.compile(r"[0-9]{9,11}-([0-9a-f]{4,32})")
# Of the bytes of a file of pages, as much comes to one file of the archive, about.
_FULL = 0.8


@dataclasses.dataclass(frozen=True)
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


@dataclasses.dataclass(frozen=True)
class ArchiveFolder:
    """The folder of an archive.

    Attributes:
        place: The folder.
    """

    place: Place

    def plan_of(self, batch: str) -> ArchivePlan | None:
        """Returns the plan of a batch, or None.

        Raises:
            UserError: It is damaged.
        """
        path = self._own(batch, _PLAN)
        data = read_if_there(path)
        if data is None:
            return None
        try:
            record = json_object(data)
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

    def complete_batches(self, options: Mapping[str, Any]) -> set[str]:
        """Returns the batches that are complete, with some options; it is one request to a store."""
        ending = f".{_hash(options)}{_COMPLETE}"
        notes = names(self.place / _OWN)
        return {name.removesuffix(ending) for name in notes if name.endswith(ending)}

    def cdxj_of(self, plan: ArchivePlan, part: int) -> Place:
        """Returns the place of the CDXJ index of a part."""
        start = f"{plan.options['warc_prefix']}-{timestamp14(plan.created)}"
        return self.place / "indexes" / f"{start}-{_writer(plan.batch)}.{part:05d}.cdxj"

    def end_batch(self, plan: ArchivePlan) -> bool:
        """Notes that a batch is complete; removes what killed processes have left of it.

        Returns:
            Whether it is: all its parts are.
        """
        if any(self.receipt(plan.batch, part) is None for part in range(len(plan.parts))):
            return False
        path = self._own(plan.batch, f".{_hash(plan.options)}{_COMPLETE}")
        create_exclusive(path, b"", durable=False)
        starts = f"{re.escape(plan.batch)}|.+-{re.escape(_writer(plan.batch))}"
        for folder in (self.place, self.place / _OWN):
            for name in names(folder):
                if re.fullmatch(rf"\.({starts})[-.].*\.[0-9a-f]{{16}}", name):
                    remove_file(folder / name)
        return True

    def receipt(self, batch: str, part: int) -> dict[str, Any] | None:
        """Returns what a part has written, its ``files`` and ``counts``; None: it is not complete.

        Raises:
            UserError: It is damaged.
        """
        path = self._own(f"{batch}-{part:05d}", _RECEIPT)
        data = read_if_there(path)
        try:
            return None if data is None else json_object(data)
        except ValueError as error:
            raise UserError(f"receipt of an archive is damaged: {path}: {error}") from error

    def keep_receipt(self, batch: str, part: int, receipt: Mapping[str, Any]) -> None:
        """Notes that a part is complete."""
        data = json.dumps(receipt).encode()
        create_exclusive(self._own(f"{batch}-{part:05d}", _RECEIPT), data)

    def index_of(self, batch: str, part: int) -> Place:
        """Returns the place of the list of the captures that a part has written."""
        return self._own(f"{batch}-{part:05d}", _INDEX)

    def indexes(self) -> Iterator[Place]:
        """Yields the lists of captures of all complete parts."""
        notes = set(names(self.place / _OWN))
        for name in sorted(notes):
            start = name.removesuffix(_RECEIPT)
            if name != start and start + _INDEX in notes:
                yield self.place / _OWN / f"{start}{_INDEX}"

    def _own(self, start: str, ending: str) -> Place:
        return self.place / _OWN / f"{checked_part(start)}{ending}"


def _hash(options: Mapping[str, Any]) -> str:
    data = json.dumps(options, sort_keys=True, default=list).encode()
    return hashlib.sha256(data).hexdigest()[:12]


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


def archive_name(prefix: str, plan: ArchivePlan, part: int, serial: int, compression: str) -> str:
    """Returns the name of a file: prefix, time of the batch, serial, and writer.

    The writer is the part of the batch, not the worker: so a worker that writes the part again gives
    its files the same names.

    >>> plan = ArchivePlan("1795883544-665eb295", 1_795_883_544_000, 0, "", {}, ())
    >>> archive_name("nutbeam", plan, 2, 0, "gzip")
    'nutbeam-20261128163224-00000-665eb295.00002.warc.gz'
    """
    start = f"{prefix}-{timestamp14(plan.created)}-{serial:05d}"
    return f"{start}-{_writer(plan.batch)}.{part:05d}.{WARC_ENDINGS[compression]}"


def remove_other_files(folder: Place, plan: ArchivePlan, part: int, kept: Collection[str]) -> None:
    """Removes the files that an earlier attempt at a part has written, except those of some names."""
    pattern = re.compile(
        rf".+-[0-9]{{14}}-[0-9]{{5}}-{re.escape(_writer(plan.batch))}\.{part:05d}\.warc\.\w+"
    )
    for name in names(folder):
        if name not in kept and pattern.fullmatch(name):
            remove_file(folder / name)


def _writer(batch: str) -> str:
    """Returns the part of the names of files that is only of a batch."""
    usual = _USUAL_BATCH.fullmatch(batch)
    return usual[1] if usual else batch
