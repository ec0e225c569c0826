"""The batches that an import makes of segments: their ids, their phases, the commit, what is reported."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...io.nutch.nutch_sources import NutchSources
from ...io.nutch.segment_files import was_parsed
from ...io.snapshots.commit import CommitTerms, commit
from ...io.snapshots.entries import Batch
from ...io.snapshots.manifest import Manifest
from ...io.snapshots.operations import Operation
from ...io.tablets.written import Written, sum_counts
from ...policy.components.vocabulary import (
    FETCHED_PHASE,
    GENERATED_PHASE,
    PARSED_PHASE,
    PHASES,
    UPDATED_PHASE,
)
from ...policy.inlinks.edges import LINKS_COMPONENT
from ...policy.nutch.imported_rows import applied_count, waiting_count
from ...web.base.wording import format_count
from ..launch.job_reports import batches_of_segments

_READS = frozenset({"state", "hosts", LINKS_COMPONENT, "blocklist", "batches"})
_OF_SEGMENTS = "segments/"


def batch_of(operation_batch: str, segment: int) -> str:
    """Returns the id of the batch of a segment; ids are in the order of the segments.

    >>> batch_of("1795253105-c7b1e588", 1)
    '1795253105-c7b1e5880001'
    """
    return f"{operation_batch}{segment:04x}"


def segment_place(segment: int) -> str:
    """Returns the name under which a resolver gives the outcome of a segment."""
    return f"{segment}/outcome"


def urls_count(segment: int) -> str:
    """Returns the name of the count of URLs of a segment."""
    return f"segments/{segment}/urls"


def commit_import(
    operation: Operation,
    written: list[Written],
    _: list[Any],
    *,
    sources: NutchSources,
    ttl: int,
) -> Manifest:
    """Commits an import, with a batch for each segment that has URLs.

    Args:
        operation: The import.
        written: Reports of its workers.
        sources: What was read.
        ttl: Time for which the URLs of batches that are not updated are in no other batch, s.
    """
    counts = sum_counts(part.counts for part in written)
    records = dict[str, Batch]()
    has_texts = {file.segment for file in sources.files if file.kind == "parse_data"}
    for number, (name, parts) in enumerate(sources.segments.items()):
        urls = counts.get(urls_count(number), 0)
        applied = counts.get(applied_count(number), 0)
        if not urls:
            continue
        phase = FETCHED_PHASE if "crawl_fetch" in parts else GENERATED_PHASE
        if was_parsed(parts):
            if applied > counts.get(waiting_count(number), 0):
                phase = UPDATED_PHASE
            elif phase == FETCHED_PHASE and name in has_texts:
                phase = PARSED_PHASE
        records[batch_of(str(operation.batch), number)] = Batch(
            phase, operation.now, 1, urls, operation.now + ttl * 1000,
            updated=operation.snapshot if phase == UPDATED_PHASE else 0, segment=name,
        )  # fmt: skip
    counts = {name: n for name, n in counts.items() if not name.startswith(_OF_SEGMENTS)}
    if records:
        counts["segments"] = len(records)
    files = [
        Written(part.component, part.files, part.replaced, tidies=part.tidies)
        for part in written
        if _belongs(part, records)
    ]
    return commit(operation, [*files, Written(counts=counts)], CommitTerms(_READS, others=records))


def _belongs(part: Written, records: Mapping[str, Batch]) -> bool:
    """Returns whether files are committed: documents and the outcome of a batch as its phase says."""
    folder, _, rest = part.component.partition("/")
    if folder != "batches":
        return bool(part.component)
    batch, _, kind = rest.partition("/")
    first = {"documents": PARSED_PHASE, "outcome": UPDATED_PHASE}.get(kind, GENERATED_PHASE)
    return batch in records and PHASES.index(records[batch].phase) >= PHASES.index(first)


def segment_lines(manifest: Manifest) -> Iterator[str]:
    """Yields a line for each segment that an import has made a batch of."""
    for segment, name in batches_of_segments(manifest).items():
        batch = manifest.batches[name]
        urls = format_count(batch.urls, "URLs")
        yield f"segment {segment} is batch {name}: {batch.phase}, {urls}"
