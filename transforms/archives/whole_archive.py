"""What is made of a whole archive, when all its parts are there: the host index, and a package."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.archives.archive_plans import ArchiveFolder
from ...io.archives.host_index_files import host_index_name, host_ranks, write_host_index
from ...io.archives.wacz_files import write_package
from ...io.reading.host_rows import LARGE, host_frames
from ...io.snapshots.pinned import Pinned
from ...io.storage.parquet_files import row_groups
from ...io.storage.place_addresses import place_of
from ...policy.archives.host_index import (
    facts_of_captures,
    facts_of_hosts,
    facts_of_ranks,
    host_index_rows,
)
from ...policy.archives.url_index import url_index_rows
from ...policy.components.archive_rows import CAPTURES, HOST_FACTS
from ...policy.components.schema import to_frame
from ...web.archives.warc_options import INDEX_OF_HOSTS, WarcOptions
from ...web.base.dataclass import dataclass
from ..elements.chunks import Chunk, to_chunks
from ..for_each import Spread
from ..partition import grouped_by_hash
from ..wiring.display import Displayed


@dataclass(frozen=True)
class WholeArchive:
    """An archive, and what is to be made of all of it.

    Attributes:
        pinned: The snapshot of its table.
        folder: Its address.
        options: Its options.
        software: The program and its version.
        now: What counts as now, ms.
    """

    pinned: Pinned
    folder: str
    options: WarcOptions
    software: str
    now: int

    @property
    def archive(self) -> ArchiveFolder:
        """The folder of the archive."""
        return ArchiveFolder(place_of(self.folder))


@dataclasses.dataclass
class CompleteArchive(Displayed):
    """Makes the host index and the package of an archive, if its options want them.

    Input:  one archive.
    Output: none that is used.

    Cost: for the host index, a row of about 100 bytes for each capture and each host crosses a shuffle.
    One worker writes the package.

    Attributes:
        options: The options of the archive.
        partitions: How many workers can share the host index.
    """

    options: WarcOptions
    partitions: int = 1

    def expand(self, archives: beam.PCollection[WholeArchive]) -> beam.PCollection[str]:
        outputs: list[Any] = []
        if INDEX_OF_HOSTS in self.options.warc_indexes:
            outputs.append(archives | "IndexHosts" >> _IndexHosts(self.partitions))
        if self.options.wacz:
            package = beam.FlatMap(_package).with_output_types(str)
            outputs.append(archives | "Package" >> package)
        return outputs | beam.Flatten()


@dataclasses.dataclass
class _IndexHosts(Displayed):
    """Writes the files of the host index."""

    partitions: int

    def expand(self, archives: beam.PCollection[WholeArchive]) -> beam.PCollection[str]:
        listed = beam.FlatMap(_capture_lists).with_output_types(tuple[int, str])
        lists = archives | "Lists" >> listed | "Spread" >> Spread()
        captures = lists | "Captures" >> beam.FlatMap(_capture_facts).with_output_types(Chunk)
        hosts = archives | "Hosts" >> beam.FlatMap(_host_facts).with_output_types(Chunk)
        facts = (captures, hosts) | "Facts" >> beam.Flatten()
        grouped = grouped_by_hash(facts, "surt_host_name", self.partitions)
        write = beam.FlatMap(_write_partition, beam.pvalue.AsSingleton(archives), self.partitions)
        return grouped | "Write" >> write.with_output_types(str)


def _capture_lists(whole: WholeArchive) -> Iterator[tuple[int, str]]:
    for number, captures in enumerate(whole.archive.capture_lists()):
        yield number, str(captures)


def _capture_facts(numbered: tuple[int, str]) -> Iterator[Chunk]:
    for rows in row_groups(place_of(numbered[1]), CAPTURES):
        yield from to_chunks(facts_of_captures(url_index_rows(to_frame(rows))), HOST_FACTS)


def _host_facts(whole: WholeArchive) -> Iterator[Chunk]:
    with whole.pinned.reading():
        for hosts in host_frames(whole.pinned, LARGE):
            yield from to_chunks(facts_of_hosts(hosts), HOST_FACTS)
        yield from to_chunks(facts_of_ranks(host_ranks(whole.pinned)), HOST_FACTS)


def _write_partition(
    grouped: tuple[int, Iterable[Chunk]], whole: WholeArchive, partitions: int
) -> Iterator[str]:
    number, chunks = grouped
    rows = host_index_rows(pl.concat(map(to_frame, chunks)))
    name = host_index_name(number, partitions)
    write_host_index(whole.archive.host_index_of(whole.options.warc_prefix) / name, rows)
    yield name


def _package(whole: WholeArchive) -> Iterator[str]:
    archive, options = whole.archive, whole.options
    path = archive.package_of(options.warc_prefix)
    write_package(archive, path, whole.software, whole.now, options.warc_description)
    yield path.name
