"""Checks that a table is whole: manifests, lists, data files; counts leftover files.

``table_checks`` checks rows.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import numpy as np
import polars as pl
import pyarrow as pa

from ...policy.kinds import kind_of
from ...web.base.errors import UserError
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import seen_snapshots
from ..storage.errors import SnapshotTooOld
from ..storage.file_errors import first_line
from ..storage.files import crc32_of, list_files, size_of
from ..storage.formats import NewerFormat
from ..storage.parquet_files import parquet_file
from ..storage.places import Folder, Place, below
from ..table.web_table import WebTable
from ..tablets.file_lists import Component, DataFile, load_files
from .purge import unnamed_files
from .retention import named_files

_CHANGED = "is not what was written: its checksum is another"


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something that is wrong with a table.

    Attributes:
        kind: A word for it: ``manifest``, ``list``, ``missing``, ``size``,
            ``damaged``, ``rows``, ``order``, ``range``, ``overlap``, ``run``,
            ``batch``, ``clock``; in Bigtable ``changes`` and ``cell``, too.
        path: The file, below the table; of a cell COMPONENT/KEY; of manifests in a
            row FIRST to LAST.
        message: What is wrong with it.
        component: Where a data file belongs, or empty.
        newer: Whether a later version wrote it, and no damage.
    """

    kind: str
    path: str
    message: str
    component: str = ""
    newer: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Left:
    """What lies about and does no harm.

    Attributes:
        orphans: Files that no snapshot names: left by jobs that died, or not yet committed.
        orphan_bytes: Their size.
        temporary: Files that were never completed.
        leases: Claims of attempts at fetching, held or not.
        unfinished: Operations that began more than a day ago and never committed.
    """

    orphans: int = 0
    orphan_bytes: int = 0
    temporary: int = 0
    leases: int = 0
    unfinished: tuple[str, ...] = ()

    def __add__(self, other: "Left") -> "Left":
        return Left(
            *(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True))
        )


@dataclasses.dataclass(frozen=True)
class Rows:
    """What was found in the rows of a table in Bigtable; in a folder there are none.

    Attributes:
        problems: What is wrong.
        numbers: How many rows there are, by component, where they were read.
        damaged: Keys of the rows that cannot be read, by component.
        unfinished: Number of a snapshot that is committed and not wholly applied, or None.
    """

    problems: tuple[Problem, ...] = ()
    numbers: Mapping[str, int] = dataclasses.field(default_factory=dict)
    damaged: Mapping[str, tuple[bytes, ...]] = dataclasses.field(default_factory=dict)
    unfinished: int | None = None


def without(error: UserError, path: Place | str) -> str:
    """Returns an error's message without the path and the advice that belong to it."""
    text = str(error).partition(": run nutbeam fsck")[0]
    return text.replace(f": {path}", "").replace(f"{path}: ", "").replace(str(path), "it")


def check_manifests(root: WebTable) -> list[Problem]:
    """Finds manifests that are missing, damaged, of a newer format, or of one number."""
    # In this order: what is pinned or committed meanwhile is known by the time it is looked for.
    seen = max(seen_snapshots(root), default=0)
    problems = _check_names(root)
    newest = root.latest_snapshot()
    known = root.snapshots()
    for number in known:
        try:
            load_manifest(root, number)
        except SnapshotTooOld:
            continue  # deleted since
        except UserError as error:
            text = without(error, root.record_label(number))
            newer = isinstance(error, NewerFormat)
            problems.append(Problem("manifest", root.record_name(number), text, newer=newer))
    first = known[0] if known else max(1, newest)
    accepted = _lost(root, known)
    problems = [p for p in problems if _number(p.path) not in accepted]
    missing = set(range(first, max(newest, seen) + 1)) - set(known) - accepted
    problems += _missing(root, [n for n in missing if n <= newest], "")
    beyond = [n for n in missing if n > newest]
    return problems + list(_missing(root, beyond, ": an operation has read or made {}"))


def _missing(root: WebTable, numbers: list[int], why: str) -> Iterator[Problem]:
    """Says which manifests are missing; three or more in a row in one line."""
    for first, last in runs(numbers):
        names = [root.record_name(number) for number in range(first, last + 1)]
        if len(names) > 2:
            path = f"{names[0]} to {PurePosixPath(names[-1]).name}"
            yield Problem("manifest", path, "are missing" + why.format("them"))
        else:
            text = "is missing" + why.format("it")
            yield from (Problem("manifest", name, text) for name in names)


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Returns numbers as runs without gaps, each by its first and last one.

    >>> runs([7, 1, 2, 3])
    [(1, 3), (7, 7)]
    """
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _check_names(root: WebTable) -> list[Problem]:
    """Finds manifests of one number in a folder."""
    problems = []
    names = [
        f.path.name for f in list_files(root / "manifest") if f.path.parent == root / "manifest"
    ]
    numbers = [int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()]
    for number, times in sorted(Counter(numbers).items()):
        if times > 1:
            same = [n for n in sorted(names) if n[:-5].isdigit() and int(n[:-5]) == number]
            text = f"{times} manifests have the number {number}: {', '.join(same)}"
            problems.append(Problem("manifest", root.record_name(number), text))
    return problems


def _lost(root: WebTable, known: list[int]) -> set[int]:
    """Returns the numbers of manifests of which a repair has said that they are lost."""
    for number in reversed(known):
        try:
            manifest = load_manifest(root, number)
        except UserError:
            return set()  # the newest counts: it is what a repair has written
        return set(manifest.lost)
    return set()


def _number(path: str) -> int:
    return int(PurePosixPath(path).stem)


def check_lists(root: WebTable, manifest: Manifest) -> list[Problem]:
    """Finds lists of a snapshot that are missing or damaged, or differ from its totals."""
    problems = []
    for name, component in manifest.components.items():
        text = list_problem(root, component)
        if text:
            problems.append(Problem("list", component.list, text, name))
    return problems


def list_problem(root: Folder, component: Component) -> str:
    """Returns what is wrong with a list; empty if nothing is."""
    path = root / component.list
    if size_of(path) is None:
        return "is missing"
    if component.crc32 not in (None, crc32_of(path)):
        return _CHANGED
    try:
        files = load_files(root, component)
    except UserError as error:
        return without(error, path)
    found = (len(files), sum(f.live_rows for f in files), sum(f.bytes for f in files))
    wanted = (component.files, component.rows, component.bytes)
    if found != wanted:
        return f"names {found[0]} files with {found[1]} rows, the manifest {wanted[0]} with {wanted[1]}"
    return ""


def check_file(root: Folder, component: str, file: DataFile, quick: bool = False) -> Problem | None:
    """Looks whether a data file is what its description says.

    Args:
        root: The table's folder.
        component: Where it belongs.
        file: The description.
        quick: Only size, end and number of rows; else all of it is read, and
            its checksum compared.
    """
    size = size_of(root / file.path)
    if size is None:
        return Problem("missing", file.path, "is missing", component)
    if size != file.bytes:
        text = f"has {size:,} bytes, should have {file.bytes:,}"
        return Problem("size", file.path, text, component)
    if not quick and file.crc32 not in (None, crc32_of(root / file.path)):
        return Problem("damaged", file.path, _CHANGED, component)
    kind = kind_of(component)
    try:
        rows, keys = _verify(root / file.path, quick)
    except UserError as error:
        return Problem("damaged", file.path, without(error, root / file.path), component)
    if rows != file.rows:
        text = f"has {rows:,} rows, should have {file.rows:,}"
        return Problem("rows", file.path, text, component)
    if keys is None or not len(keys) or file.first is None:
        return None
    found = (keys.min(), keys.max())
    if found != (file.first, file.last):
        text = f"has keys from {found[0]!r} to {found[1]!r}, should be from {file.first!r}"
        return Problem("range", file.path, text, component)
    if kind.in_order and not keys.is_sorted():
        return Problem("order", file.path, "its rows are not in key order", component)
    if kind.in_tablets and keys.n_unique() < len(keys):
        return Problem("order", file.path, "has a key twice", component)
    return None


def _verify(path: Place, quick: bool = False) -> tuple[int, pl.Series | None]:
    """Reads the keys of a Parquet file; returns (rows, keys or None).

    Raises:
        UserError: It is not whole.
    """
    try:
        with parquet_file(path) as opened:
            if quick:
                return opened.metadata.num_rows, None
            if "key" not in opened.schema_arrow.names:
                return opened.metadata.num_rows, None
            groups = range(opened.num_row_groups)
            tables = [opened.read_row_group(group, columns=["key"]) for group in groups]
            keys = [table["key"].cast(pa.large_string()) for table in tables]
            joined = pa.chunked_array([c for k in keys for c in k.chunks], pa.large_string())
            series = pl.from_arrow(joined)
            assert isinstance(series, pl.Series)
            return opened.metadata.num_rows, series
    except (OSError, pa.ArrowException, ValueError) as error:
        raise UserError(first_line(error)[:200]) from error


def left_over(root: WebTable) -> Left:
    """Counts what lies about."""
    manifests = []
    for number in root.snapshots():
        try:
            manifests.append(load_manifest(root, number))
        except UserError:
            continue
    named: set[str] = set()
    for manifest in manifests:
        for component in manifest.components.values():
            try:
                named |= named_files(root, [Manifest(components={"": component})])
            except UserError:
                named.add(component.list)
    named |= root.needed_files()
    orphans = list(unnamed_files(root.files, named, np.inf))
    temporary = [found for found in orphans if found.path.name.startswith(".")]
    claims = [f for f in list_files(root / "batches") if f.path.suffix == ".claim"]
    rest = [found for found in orphans if not found.path.name.startswith(".")]
    return Left(len(rest), sum(f.bytes for f in rest), len(temporary), len(claims))


def described(root: Folder, component: str, path: Place) -> DataFile:
    """Returns the description of a whole Parquet file, as far as the file itself has it.

    Raises:
        UserError: It is not whole.
    """
    rows, keys = _verify(path)
    size = size_of(path)
    return DataFile(
        path=below(root, path),
        rows=rows,
        bytes=size or 0,
        first=_text(keys.min()) if keys is not None and len(keys) else None,
        last=_text(keys.max()) if keys is not None and len(keys) else None,
        crc32=crc32_of(path),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
