"""The root of a snapshot: ``TABLE/manifest/00000042.json`` and its file lists.

A manifest names one Parquet list of live files per component (``state``,
``hosts``, ``batches/ID/pages`` …) and says in which phase each batch is. It is
created exclusively, so of two writers one wins and the other sees it.
"""

import contextlib
import dataclasses
import functools
import json
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from ..web.errors import UserError
from .bigtable_root import BigtableRoot
from .commit import create_exclusive
from .files import cure, file_version, names, new_name, read_bytes, versions, write_bytes
from .places import Place, Remote, Root, root_of

# 2: a tablet may have runs on its base. Format 1 is read as it is: it has none.
FORMAT = 2
PHASES = ("generated", "fetched", "parsed", "updated")


@dataclasses.dataclass(frozen=True)
class DataFile:
    """One immutable data file, as its writer describes it and lists keep it.

    Attributes:
        path: Below the table's folder.
        rows: How many rows it holds.
        bytes: Its size on disk.
        first: Smallest row key, or None where rows are not in key order.
        last: Largest row key.
        base: Path of the file that this one is a run on; None for a base.
        partition: Number of the partition that wrote it.
        order: Its place among the files of a component that have no key order;
            of a run the snapshot that it made: the newest one's rows count.
        fresh: How many rows of a run neither its base nor older runs have.
        min_fetch_time: Zone map: earliest due time, ms.
        max_fetch_time: Zone map: latest due time, ms.
        max_score: Zone map: best score.
        statuses: Zone map: one bit per status that occurs.
        formerly: Path of the file whose place it has taken: rows of the state
            that name that one mean this one. None where there was no other.
        crc32: Checksum of the whole file; None where nobody has made one.
    """

    path: str
    rows: int
    bytes: int
    first: str | None = None
    last: str | None = None
    base: str | None = None
    partition: int = 0
    order: int = 0
    min_fetch_time: int | None = None
    max_fetch_time: int | None = None
    max_score: float | None = None
    statuses: int | None = None
    fresh: int | None = None
    formerly: str | None = None
    crc32: int | None = None

    @property
    def live_rows(self) -> int:
        """How many rows it adds to the component; a run's others supersede what is below."""
        return self.rows if self.base is None else self.fresh or 0


FILE_LIST = {
    "path": pl.String, "rows": pl.Int64, "bytes": pl.Int64, "first": pl.String,
    "last": pl.String, "base": pl.String, "partition": pl.Int32, "order": pl.Int64,
    "min_fetch_time": pl.Int64, "max_fetch_time": pl.Int64, "max_score": pl.Float64, "statuses": pl.Int64,
    "fresh": pl.Int64, "formerly": pl.String, "crc32": pl.Int64,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Component:
    """A list of live files.

    Attributes:
        list: Path of the list; a new name whenever it changes.
        files: How many there are.
        rows: How many rows they have together; none is counted twice.
        bytes: Their size.
        content: The list at the last change of what the rows say, where files
            were only folded since; None is this one.
        crc32: Checksum of the list; None where nobody has made one.
    """

    list: str
    files: int
    rows: int
    bytes: int
    content: str | None = None
    crc32: int | None = None

    @property
    def identity(self) -> str:
        """The same as long as all rows are the same, in whatever files they lie."""
        return self.content or self.list


class SnapshotTooOld(UserError):
    """What the snapshot says was deleted: its retention is over, or newer rows took the place."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """What is known of a batch: the phase that it has reached, and its making.

    Attributes:
        phase: One of ``PHASES``.
        created: ms.
        partitions: Into how many partitions generate dealt its slots.
        urls: How many URLs it was going to fetch.
        blocks_until: When its generate mark expires, ms.
        deduped: Whether its pages were compared with the others of the table.
    """

    phase: str
    created: int
    partitions: int
    urls: int
    blocks_until: int
    deduped: bool = False


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One snapshot of a table.

    Attributes:
        snapshot: Its number; 0 is the table before its first commit.
        operation: Id of the operation that made it.
        job: Which job that was.
        batch: Which batch it worked on, or None.
        time: When, ms.
        counts: What the operation reports, summed over committed files.
        components: Live files by component.
        batches: By batch id.
        restores: Number of the snapshot that this one went back to, or None:
            what lies between the two is no longer part of the table's past.
        lost: Numbers of snapshots whose manifests are gone or damaged, and
            that nobody is to look for.
    """

    snapshot: int = 0
    operation: str = ""
    job: str = ""
    batch: str | None = None
    time: int = 0
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    components: Mapping[str, Component] = dataclasses.field(default_factory=dict)
    batches: Mapping[str, Batch] = dataclasses.field(default_factory=dict)
    restores: int | None = None
    lost: tuple[int, ...] = ()

    def open_batches(self, now: int) -> list[str]:
        """Returns the batches that are not yet updated and still block their URLs."""
        return sorted(
            name
            for name, batch in self.batches.items()
            if batch.phase != "updated" and batch.blocks_until > now
        )

    def without_dedup(self) -> list[str]:
        """Returns the batches whose pages are in the table but were not compared yet."""
        waiting = {n: b for n, b in self.batches.items() if b.phase == "updated" and not b.deduped}
        return sorted(waiting, key=lambda name: (waiting[name].created, name))


class NewerFormat(UserError):
    """A later version of nutbeam has written what is to be read."""


def manifest_path(root: Root, snapshot: int) -> Place:
    return root / "manifest" / f"{snapshot:08d}.json"


# Of each table in a store the versions of its manifests, as they were listed last: a manifest
# is asked for behind a listing, and need not be looked at again.
_LISTED: dict[Place, Mapping[str, str]] = {}


def snapshots(root: Root) -> list[int]:
    """Returns the numbers of the snapshots that have a manifest, in order.

    Raises:
        UserError: The folder, or Bigtable, cannot be read.
    """
    if isinstance(root, BigtableRoot):
        return root.log.snapshots()
    folder = root / "manifest"
    if isinstance(folder, Remote):
        found = versions(folder, f"table {root}")
        _LISTED[root] = found
    else:
        found = dict.fromkeys(names(folder, f"table {root}"), "")
    return sorted({int(n[:-5]) for n in found if n.endswith(".json") and n[:-5].isdigit()})


def latest_snapshot(root: Root) -> int:
    """Returns the number of the newest snapshot, 0 where there is none; see ``snapshots``."""
    if isinstance(root, BigtableRoot):
        return root.log.pin()
    return max(snapshots(root), default=0)


def settled_snapshot(root: Root) -> int:
    """Returns the number of the newest snapshot; finishes first one that was only begun.

    To be called by who is going to change the table: what such a commit has
    changed cannot be read before.
    """
    if isinstance(root, BigtableRoot):
        return root.log.roll_forward().snapshot
    return latest_snapshot(root)


def lineage(root: Root, since: int = 0) -> Iterator[Manifest]:
    """Yields the table's past: the newest snapshot, the one it was made from, and so on.

    What a rollback has gone back behind is left out, and so is what has expired.

    Args:
        root: The table's folder.
        since: Number of the snapshot at which to stop; it is not yielded.

    Raises:
        UserError: One of the manifests is missing or damaged.
    """
    known = snapshots(root)
    number, lost = max(known, default=0), set[int]()
    while known and number > since and number >= known[0]:
        if number in lost:
            number -= 1
            continue
        manifest = load_manifest(root, number)
        yield manifest
        lost.update(manifest.lost)
        number = number - 1 if manifest.restores is None else manifest.restores


def undone_by(root: Root, snapshot: int) -> int | None:
    """Returns the number of the snapshot that has gone back behind another one, or None."""
    for manifest in lineage(root, snapshot):
        if manifest.restores is not None and manifest.restores < snapshot:
            return manifest.snapshot
    return None


def load_manifest(root: Root, snapshot: int, pinned: "Pinned | None" = None) -> Manifest:
    """Reads one snapshot's manifest.

    Args:
        root: The table's folder.
        snapshot: Number of the snapshot.
        pinned: What reads this one snapshot alone, if it does.

    Raises:
        UserError: It is missing, damaged, or of a newer format.
    """
    if snapshot == 0:
        return Manifest()
    if isinstance(root, BigtableRoot):
        # A table may be dropped and made anew: only who has pinned it knows that it is the same.
        return _pinned_record(root, snapshot, pinned) if pinned else _record(root, snapshot)
    path = manifest_path(root, snapshot)
    version: Hashable = pinned
    if not isinstance(path, Remote):
        version = file_version(path)
        if not version:
            check_kept(root, snapshot)
    elif pinned is None:
        version = _LISTED.get(root, {}).get(path.name) or file_version(path)
    try:
        return _parse_manifest(path, version)
    except UserError:
        if isinstance(path, Remote):
            check_kept(root, snapshot)
        raise


def check_kept(root: Root, snapshot: int) -> None:
    """Sees whether a snapshot that was pinned is still there.

    Raises:
        SnapshotTooOld: It was deleted.
    """
    if not snapshot or snapshot >= latest_snapshot(root):
        return
    if isinstance(root, BigtableRoot):
        kept = snapshot in snapshots(root)
    else:
        kept = bool(file_version(manifest_path(root, snapshot)))
    if not kept:
        raise SnapshotTooOld(
            f"snapshot too old: {snapshot} of table {root} was deleted by compact "
            "(--snapshot_retention): run it again"
        )


@functools.lru_cache(maxsize=64)
def _pinned_record(root: BigtableRoot, snapshot: int, pinned: Hashable) -> Manifest:
    return _record(root, snapshot)


def _record(root: BigtableRoot, snapshot: int) -> Manifest:
    try:
        data = root.log.record(snapshot)
    except UserError:
        check_kept(root, snapshot)
        raise
    return _parsed(data, snapshot, f"snapshot {snapshot} of {root}", "")


@functools.lru_cache(maxsize=256)
def _parse_manifest(path: Place, version: Hashable) -> Manifest:
    return _parsed(read_bytes(path), int(path.stem), str(path), cure(path))


def _parsed(data: bytes, snapshot: int, called: str, cured: str) -> Manifest:
    try:
        record = json.loads(data)
        if record["format"] > FORMAT:
            raise NewerFormat(
                f"{called} has format {record['format']!r}, this version reads up to {FORMAT}: "
                "upgrade nutbeam"
            )
        if record.pop("digest", None) not in (None, _digest(record)):
            raise ValueError("its digest is of another content")
        manifest = _from_record(record)
        if manifest.snapshot != snapshot:
            raise ValueError(f"it is snapshot {manifest.snapshot!r}")
        return manifest
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"manifest is damaged: {called}: {_short(error)}{cured}") from error


def store_manifest(
    root: Root, manifest: Manifest, changes: Mapping[str, Iterable[str]] | None = None
) -> bool:
    """Commits a snapshot.

    Args:
        root: The table.
        manifest: The snapshot.
        changes: Paths of files of changes, by component, that the commit brings into
            the rows; of a table whose rows are in Bigtable.

    Returns:
        False if its number was taken by somebody else.
    """
    record = {"format": FORMAT} | vars(manifest)
    for name in ("components", "batches"):
        # vars(), not asdict(): their number grows with the batches, and a round is short.
        record[name] = {key: vars(value) for key, value in record[name].items()}
    record["digest"] = _digest(record)  # a bit that flips may leave good JSON
    data = json.dumps(record).encode()
    if isinstance(root, BigtableRoot):
        return root.store(manifest.snapshot, data, changes or {})
    return create_exclusive(manifest_path(root, manifest.snapshot), data)


def _digest(record: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(record).encode()):08x}"


def load_files(root: Root, component: Component | None) -> list[DataFile]:
    """Returns the live files of a component, tablets in key order.

    Raises:
        UserError: The list is missing or damaged.
    """
    if component is None:
        return []
    path = root / component.list
    # Asking a store takes a request, and the name of a list is never used again.
    version = () if isinstance(path, Remote) else file_version(path)
    return list(_parse_files(path, version))


@functools.lru_cache(maxsize=64)
def _parse_files(path: Place, version: Hashable) -> tuple[DataFile, ...]:
    data = read_bytes(path)
    try:
        rows = pl.read_parquet(data)
        known = [field.name for field in dataclasses.fields(DataFile)]
        files = [
            DataFile(**row) for row in rows.select(*(set(known) & set(rows.columns))).to_dicts()
        ]
    except (pl.exceptions.PolarsError, TypeError, OSError) as error:
        raise UserError(f"file list is damaged: {path}: {_short(error)}{cure(path)}") from error
    return tuple(sorted(files, key=lambda file: (file.first or "", file.partition, file.order)))


def store_files(root: Root, name: str, files: Iterable[DataFile]) -> Component:
    """Writes the list of a component's live files under a new name."""
    files = list(files)
    path = PurePosixPath("manifest") / "lists" / f"{name.replace('/', '.')}-{new_name()}"
    data = _to_parquet(pl.DataFrame([dataclasses.asdict(f) for f in files], schema=FILE_LIST))
    write_bytes(root / path, data)
    rows, size = sum(file.live_rows for file in files), sum(file.bytes for file in files)
    return Component(str(path), len(files), rows, size, crc32=zlib.crc32(data))


def _to_parquet(rows: pl.DataFrame) -> bytes:
    import io

    sink = io.BytesIO()
    rows.write_parquet(sink, compression="zstd")
    return sink.getvalue()


def _from_record(record: dict[str, Any]) -> Manifest:
    fields = {field.name for field in dataclasses.fields(Manifest)}
    known = {name: value for name, value in record.items() if name in fields}
    known["components"] = {n: _known(Component, c) for n, c in record["components"].items()}
    known["batches"] = {n: _known(Batch, b) for n, b in record["batches"].items()}
    known["lost"] = tuple(record.get("lost") or ())
    return Manifest(**known)


def _known(kind: type, record: dict[str, Any]) -> Any:
    fields = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in record.items() if name in fields})


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


class Pinned:
    """What reads one snapshot of a table: an operation, or an export.

    Attributes:
        table: The table's address.
        snapshot: Number of the snapshot.
    """

    table: str
    snapshot: int

    @property
    def root(self) -> Root:
        """Where the table is; of one in Bigtable the rows are those of the snapshot."""
        root = root_of(self.table)
        return root.at(self.snapshot) if isinstance(root, BigtableRoot) else root

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Says of a file that is missing whether that is because the snapshot is too old."""
        try:
            yield
        except UserError:
            check_kept(self.root, self.snapshot)
            raise

    def manifest(self) -> Manifest:
        """Returns the snapshot that is read."""
        return load_manifest(self.root, self.snapshot, self)

    def files(self, component: str) -> list[DataFile]:
        """Returns the live files of a component in the snapshot that is read."""
        return load_files(self.root, self.manifest().components.get(component))
