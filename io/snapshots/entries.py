"""Entries of a manifest: batches, and the list of live files of each component; as they are stored."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...policy.components.kinds import present_name
from ...policy.components.vocabulary import PHASES
from ...web.base.dataclass import dataclass
from ..disk.record_checks import MANIFEST_CHECKS, check_fields
from ..tablets.file_lists import Component

DEDUP = "dedup"
# The first two names of ``Batch.taken_in`` have a field of their own in stored records.
_FLAGS = {DEDUP: "deduped", "links": "inverted"}
_CHECKS = {name: MANIFEST_CHECKS[name] for name in ("components", "batches")}


@dataclass(frozen=True)
class Batch:
    """The record of a batch.

    In the manifest ``dedup`` and ``links`` of ``taken_in`` are stored as the fields ``deduped`` and
    ``inverted``, which are true or false. The field ``taken_in`` lists the other names, if it is
    there. Versions that do not know it drop it; then a batch is taken in again.

    Attributes:
        phase: One of ``PHASES``.
        created: Time of its creation, ms.
        partitions: Number of partitions into which generate divided it.
        urls: Number of URLs to fetch.
        blocks_until: Time until which its URLs may be in no other batch, ms.
        updated: Number of the snapshot that its update read; 0 is unknown.
        taken_in: Names of the components of the table that have taken in the batch, such as
            ``links``; and ``dedup``, if its pages were compared with the other pages of the table.
        segment: Name of the segment of Nutch that it was imported from; empty if it was not.
    """

    phase: str
    created: int
    partitions: int
    urls: int
    blocks_until: int
    updated: int = 0
    taken_in: frozenset[str] = frozenset()
    segment: str = ""


class Entries(NamedTuple):
    """Entries that one file has, a manifest or a list of closed batches.

    Attributes:
        batches: By batch id.
        components: Live files by component.
    """

    batches: dict[str, Batch]
    components: dict[str, Component]


def batch_of_component(component: str) -> str | None:
    """Returns the id of the batch that a component belongs to, or None.

    >>> batch_of_component("batches/1-x/pages"), batch_of_component("state")
    ('1-x', None)
    """
    top, _, below = component.partition("/")
    return below.partition("/")[0] if top == "batches" else None


def record_of_entries(
    batches: Mapping[str, Batch], components: Mapping[str, Component]
) -> dict[str, Any]:
    """Returns the stored form of entries."""
    # vars(), not asdict(), for speed: there may be many.
    return {
        "components": {name: vars(files) for name, files in components.items()},
        "batches": {name: _record_of_batch(batch) for name, batch in batches.items()},
    }


def entries_of_record(record: Mapping[str, Any]) -> Entries:
    """Returns the entries in a stored record.

    Raises:
        ValueError: One of them cannot be; or KeyError, TypeError, AttributeError.
    """
    components, batches = record["components"].items(), record["batches"].items()
    entries = Entries(
        {name: _batch_of_record(one) for name, one in batches},
        {present_name(n): from_fields(Component, c) for n, c in components},
    )
    check_fields(entries, _CHECKS)
    phases = {batch.phase for batch in entries.batches.values()}.difference(PHASES)
    if phases:
        raise ValueError(f"a batch is {min(phases)!r}")
    return entries


def _record_of_batch(batch: Batch) -> dict[str, Any]:
    flags = {flag: name in batch.taken_in for name, flag in _FLAGS.items()}
    return vars(batch) | flags | {"taken_in": sorted(batch.taken_in - _FLAGS.keys())}


def _batch_of_record(record: dict[str, Any]) -> Batch:
    flagged = {name for name, flag in _FLAGS.items() if record.get(flag)}
    taken_in = flagged.union(record.get("taken_in", ()))
    batch: Batch = from_fields(Batch, record | {"taken_in": frozenset(taken_in)})
    return batch


def from_fields(kind: type, record: Mapping[str, Any]) -> Any:
    """Returns an object of a dataclass from a record, without names that it does not know."""
    fields = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in record.items() if name in fields})
