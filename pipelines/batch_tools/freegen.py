"""freegen: makes a batch of a list of URLs, whether or not the table knows them.

::

    lines ─ normalize ─ filter ─ host's partition ─ each URL once ─▶ batches/ID/fetchlist
"""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.batches.batches import batch_component, write_file
from ...io.batches.seeds import sources
from ...io.batches.url_lists import list_bytes, read_urls
from ...io.rows.small_components import read_blocklist
from ...io.snapshots.entries import Batch
from ...io.snapshots.operations import Operation
from ...io.storage.files import remove_file
from ...io.storage.place_addresses import place_of
from ...io.tablets.written import Written
from ...policy.batch_tools.url_lists import (
    PLACE,
    ListRuleOptions,
    ListRules,
    list_rows,
    unique_rows,
)
from ...policy.components.schema import FETCHLIST, conform, to_frame
from ...policy.generating.selection import GenerateOptions
from ...policy.schedules.schedule import ScheduleOptions
from ...transforms.elements.chunks import Chunk, to_chunks
from ...transforms.for_each import ForEach
from ...transforms.operations import Begin, Commit
from ...transforms.partition import GroupByHost
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.errors import NothingToDo
from ...web.base.options import shared_option
from ...web.base.progress import PROGRESS
from ...web.engine.pace import QueueOptions
from ..base.command import Argument, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions
from ..launch.launch import preflight, workers_elsewhere
from ..launch.shipped_seeds import SourceItem, seed_words, source_items
from .batch_addresses import TARGET, target_table

ARGUMENTS = (
    Argument("list", "File or folder of URLs, one per line; or - for standard input."),
    TARGET,
)
# Largest size of a file of the fetch list; a shuffle groups its rows.
_FILE_BYTES = 32 << 20
_COUNTS = "counts"


@dataclass(frozen=True)
class Options(ListRuleOptions, QueueOptions, JobOptions):
    """Options of freegen."""

    num_fetchers: int = shared_option(GenerateOptions, "num_fetchers", default=1)
    generate_mark_ttl: int = shared_option(GenerateOptions, "generate_mark_ttl")
    fetch_interval: int = shared_option(ScheduleOptions, "fetch_interval")


def run(invocation: Invocation) -> int:
    invocation = target_table(invocation)
    address = str(invocation.table)
    preflight(address, invocation.options, invocation.beam_args)
    elsewhere = workers_elsewhere(invocation.beam_args)
    word = invocation.arguments["list"]
    words = seed_words([word], address, elsewhere=elsewhere)
    if not any(len(urls) for source in sources(words) for urls in read_urls(source)):
        if word == "-":  # its lines were copied into the table, which may not be there
            remove_file(place_of(words[0]))
        raise NothingToDo(f"nothing to do: no URL in the list {word!r}")
    return run_job(invocation, functools.partial(build, words=tuple(words)), "freegen")


def build(
    tickets: beam.PCollection[Ticket], options: Options, words: Sequence[str]
) -> beam.PCollection[Ticket]:
    """Makes a batch of the URLs in lists; the returned ticket contains its id, or is idle."""
    operations = tickets | "Begin" >> Begin("freegen", needs="", allows=("compact",))
    read = operations | "Lists" >> ForEach(
        functools.partial(source_items, words=words), _rows, (options,), Chunk,
        outputs=(_COUNTS,), step="Lists", reports=_COUNTS,
    )  # fmt: skip
    count_files = beam.Map(_files, words, options.num_fetchers).with_output_types(int)
    files = beam.pvalue.AsSingleton(operations | "Files" >> count_files)
    # The same URL comes to the same file, so it is there once.
    grouped = read["main"] | GroupByHost(
        options.num_fetchers, PLACE, slot="slot", files=files, key="key", drop=(PLACE,)
    )
    write = beam.Map(_write, beam.pvalue.AsSingleton(operations), files)
    fetchlists = grouped | "Write" >> write.with_output_types(Written)
    return (operations, fetchlists, read[_COUNTS]) | Commit(
        reads=("blocklist", "batches"),
        opens=functools.partial(open_batch, options=options),
        whole=("Lists",),
    )


def _rows(item: SourceItem, options: Options) -> Iterator[Any]:
    how = ListRules(
        options.rules, options.filter_urls, read_blocklist(item.operation),
        str(item.operation.batch), options, options.fetch_interval,
    )  # fmt: skip
    for urls in read_urls(item.source):
        rows, counts = list_rows(urls, how)
        PROGRESS.add(counts["lines"])
        yield beam.pvalue.TaggedOutput(_COUNTS, Written(counts=counts))
        yield from to_chunks(rows)


def _files(operation: Operation, words: Sequence[str], partitions: int) -> int:
    """Returns the number of files per partition that keeps each file small."""
    if operation.idle:
        return 1
    total = sum(list_bytes(source) for source in sources(words))
    return max(1, math.ceil(2 * total / partitions / _FILE_BYTES))


def _write(part: tuple[int, Iterable[Chunk]], operation: Operation, files: int) -> Written:
    number, chunks = part
    rows, counts = unique_rows(pl.concat(to_frame(chunk) for chunk in chunks))
    file = write_file(
        operation.table, str(operation.batch), "fetchlist", [conform(rows, FETCHLIST)],
        partition=number // files, order=number,
    )  # fmt: skip
    return Written(batch_component(str(operation.batch), "fetchlist"), (file,), counts=counts)


def open_batch(operation: Operation, counts: dict[str, int], options: Options) -> Batch | None:
    """Returns the record of the new batch; None if no URL was accepted."""
    if not counts.get("chosen"):
        return None
    return Batch(
        phase="generated",
        created=operation.now,
        partitions=options.num_fetchers,
        urls=counts["chosen"],
        blocks_until=operation.now + options.generate_mark_ttl * 1000,
    )
