"""Addresses of batches on the command line: ``TABLE/batches/ID``, as Nutch's users type segments."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from ...io.snapshots.entries import Batch
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.pinned import Snapshot
from ...io.storage.place_addresses import one_spelling
from ...io.table.opening import open_table
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ..base.command import Argument, Invocation

BATCHES = Argument(
    "batches",
    "Batches: TABLE/batches/ID; TABLE/batches means all batches of a table.",
    nargs="*",
)
TARGET = Argument(
    "target",
    "Folder of the web table, or its address: gs://, s3://, hdfs://, bigtable://; also as "
    "TABLE/batches.",
)
_ADDRESS = re.compile(
    r"(?P<table>.+?)/+batches(?:/+(?P<batch>[^/]+))?/*|batches/+(?P<here>[^/]+)/*"
)


@dataclass(frozen=True)
class NamedBatch:
    """A batch of a table in its newest snapshot.

    Attributes:
        address: Address of the table.
        batch: Id of the batch.
        manifest: The newest snapshot.
    """

    address: str
    batch: str
    manifest: Manifest

    @property
    def record(self) -> Batch:
        """Its record in the manifest."""
        return self.manifest.batches[self.batch]

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot, for reading."""
        return Snapshot(self.address, self.manifest.snapshot)


def split_address(word: str) -> tuple[str, str | None]:
    """Returns the address of a table, and the id of a batch or None.

    >>> split_address("mine/batches/1795-ab/"), split_address("mine/batches"), split_address("mine")
    (('mine', '1795-ab'), ('mine', None), ('mine', None))
    >>> split_address("batches/1795-ab"), split_address("gs://b/t/batches/1")
    (('.', '1795-ab'), ('gs://b/t', '1'))
    """
    match = _ADDRESS.fullmatch(word)
    if match is None:
        return word, None
    return (".", match["here"]) if match["here"] else (match["table"], match["batch"])


def named_batches(words: Sequence[str]) -> list[NamedBatch]:
    """Returns the batches that words name, each once; a table means all its batches, oldest first.

    Raises:
        UsageError: There are no words, or one names no batch.
        NoTable: There is no table at an address.
    """
    if not words:
        raise UsageError("expected batches, as TABLE/batches/ID, or a table")
    batches: dict[tuple[str, str], NamedBatch] = {}
    manifests: dict[str, Manifest] = {}
    for word in words:
        address, batch = split_address(word)
        if address not in manifests:
            open_table(address).check_place()
            manifests[address] = newest_manifest(address)
        manifest = manifests[address]
        batch = batch and id_of_batch(manifest, batch)
        if batch and batch not in manifest.batches:
            raise UsageError(
                f"no batch {batch!r} in table {address!r}; {_newest_batches(manifest)}"
            )
        names = [batch] if batch else sorted(manifest.batches)
        if not names:
            raise UsageError(f"table {address!r} has no batches")
        spelling = one_spelling(address)
        batches |= {(spelling, name): NamedBatch(address, name, manifest) for name in names}
    return list(batches.values())


def check_distinct(batches: Sequence[NamedBatch]) -> None:
    """Checks that no batch and its copy in another table are there, where results have their id.

    Raises:
        UsageError: Two batches have the same id.
    """
    tables: dict[str, str] = {}
    for named in batches:
        if (other := tables.setdefault(named.batch, named.address)) != named.address:
            raise UsageError(
                f"batch {named.batch!r} is in tables {other!r} and {named.address!r}: give one"
            )


def target_table(invocation: Invocation) -> Invocation:
    """Returns an invocation whose table may have been typed as TABLE/batches, as Nutch's segments.

    Raises:
        UsageError: It names a batch, or no place of a table.
    """
    word = str(invocation.arguments[TARGET.name])
    address, batch = split_address(word)
    if batch is not None:
        raise UsageError(f"expected a table, or TABLE/batches, got {word!r}")
    open_table(address).check_place()
    return dataclasses.replace(invocation, table=address)


def id_of_batch(manifest: Manifest, name: str) -> str:
    """Returns the id of a batch that a name means: its id, or the segment that it was imported from.

    If several were imported from it, the newest; if none was, the name.
    """
    if not name or name in manifest.batches:
        return name
    imported = [each for each, record in manifest.batches.items() if record.segment == name]
    return max(imported, default=name)


def batch_as_segment(invocation: Invocation) -> Invocation:
    """Returns an invocation whose table may have been typed as TABLE/batches/ID, as Nutch's segments.

    A table in a folder with such a name stays what it is. Names of imported segments become ids.

    Raises:
        UsageError: The option ``batch`` names another batch.
    """
    word, options = str(invocation.table), invocation.options
    address, batch = split_address(word)
    if address == word or not open_table(address).latest_snapshot():
        address, batch = word, None
    if batch and options.batch not in ("", batch):
        raise UsageError(f"--batch {options.batch} and {word!r} are two batches: give one")
    batch = _ids_of(address, batch or options.batch)
    options = dataclasses.replace(options, batch=batch)
    return dataclasses.replace(invocation, table=address, options=options)


def _ids_of(address: str, names: Any) -> Any:
    """Returns the ids of one batch, of several with commas between, or of a tuple of them.

    The table is read only if a name cannot be an id, which has a dash.
    """
    texts = names if isinstance(names, tuple) else [name.strip() for name in names.split(",")]
    if all("-" in name or not name for name in texts) or not open_table(address).latest_snapshot():
        return names
    manifest = newest_manifest(address)
    ids = tuple(id_of_batch(manifest, name) for name in texts)
    return ids if isinstance(names, tuple) else ",".join(ids)


def one_batch(word: str) -> NamedBatch:
    """Returns the batch that a word names.

    Raises:
        UsageError: It names none, or a table with several.
    """
    batches = named_batches([word])
    if len(batches) > 1:
        raise UsageError(
            f"expected one batch, as {split_address(word)[0]}/batches/ID, got {word!r}; "
            f"{_newest_batches(batches[0].manifest)}"
        )
    return batches[0]


def _newest_batches(manifest: Manifest) -> str:
    newest = ", ".join(sorted(manifest.batches)[-3:])
    return f"newest batches: {newest or 'none'}"
