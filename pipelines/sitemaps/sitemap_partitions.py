"""Divides sitemaps into partitions by their site, and makes rows of them for the way there.

All hosts of a registered domain, or of a name below which unrelated parties have names, are in one
partition. So most redirects and sitemaps of robots.txt stay in it.
"""

import dataclasses
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ...io.snapshots.operations import Operation
from ...policy.base.hash_buckets import hash_buckets
from ...policy.components.schema import TEXT, to_frame
from ...policy.sitemaps.sitemap_list import Sitemap, SitemapList, SitemapOptions
from ...transforms.elements.chunks import Chunk
from ...web.base.columns import each_once
from ...web.base.dataclass import dataclass
from ...web.urls.domains import suffix_and_domain
from ...web.urls.url_parts import host_of_url

# The steps of the turns.
TURNS = ("Sitemaps", "OtherSites", "LastSites")
_MOST_PARTITIONS = 1_000_000
_LEASES = 10 * _MOST_PARTITIONS  # of an operation
# The sitemaps to begin with: as they are given, or the origin of a host.
STARTS = pa.schema([("url", TEXT), ("is_given", pa.bool_())])
# Sitemaps that another partition has met; ``files``: see ``SitemapList.take_over``.
ELSEWHERE_ROWS = pa.schema(
    [
        *(("url", TEXT), ("root", TEXT), ("places", pa.list_(TEXT)), ("depth", pa.int32())),
        *(("of_host", pa.bool_()), ("by_operator", pa.bool_()), ("vouching", pa.list_(TEXT))),
        *(("hops", pa.int32()), ("files", pa.int64())),
    ]
)


def partitions_of_urls(urls: pl.Series, partitions: int) -> pl.Series:
    """Returns the number of the partition of each URL; 0 for what is no URL."""
    if partitions == 1:
        return pl.Series([0], dtype=pl.UInt32).new_from_index(0, len(urls))
    return hash_buckets(each_once(urls, _site), partitions)


def _site(url: str) -> str:
    host = (host_of_url(url) or "").removesuffix(".")
    return suffix_and_domain(host, private=True)[1] if host else ""


def split_by_partition(rows: pl.DataFrame, partitions: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """Divides rows with the column ``url`` by partition; they keep their order."""
    numbers = partitions_of_urls(rows.get_column("url"), partitions)
    for (number,), part in rows.group_by(numbers.alias("_part"), maintain_order=True):
        yield int(str(number)), part


@dataclass(frozen=True)
class SitemapPartition:
    """Sites whose sitemaps one engine requests in a turn.

    Attributes:
        operation: The operation.
        turn: Number of the turn, from 0.
        partitions: Number of partitions; with one, all sites are in it.
        number: Number of this partition.
    """

    operation: Operation
    turn: int
    partitions: int
    number: int

    @property
    def name(self) -> int:
        """Number of the partition among those of all turns."""
        return self.turn * _MOST_PARTITIONS + self.number

    @property
    def lease(self) -> int:
        """Number of its lease."""
        if self.turn == 0 and self.partitions == 1:
            return 0
        return zlib.crc32(self.operation.id.encode()) * _LEASES + _LEASES + self.name

    def excludes(self, lease: int) -> bool:
        """Returns whether nobody may hold a lease at the same time.

        Others of the same turn have other sites. All others may have the same: those of another
        operation, which may have another number of partitions, and those of an earlier turn.
        """
        if lease // _LEASES != self.lease // _LEASES:
            return True
        return lease % _LEASES // _MOST_PARTITIONS < self.turn

    def are_own(self, urls: pl.Series) -> pl.Series:
        """Returns a mask of the URLs whose sites are in this partition."""
        return partitions_of_urls(urls, self.partitions) == self.number

    def split_elsewhere(self, rows: pl.DataFrame) -> Iterator[tuple[tuple[int, int], pl.DataFrame]]:
        """Yields rows of ELSEWHERE_ROWS by (number of partitions, partition) of the next turn."""
        partitions = 1 if self.turn + 2 == len(TURNS) else self.partitions
        for number, part in split_by_partition(rows, partitions):
            yield (partitions, number), part


def rules_text(options: SitemapOptions) -> str:
    """Returns the options by which URLs of sitemaps are judged, as a text."""
    fields = dataclasses.fields(SitemapOptions)
    return repr({field.name: getattr(options, field.name) for field in fields})


def sitemap_rows(sitemaps: Iterable[tuple[Sitemap, int]]) -> pl.DataFrame:
    """Returns ELSEWHERE_ROWS rows of sitemaps, and the numbers of sitemaps of their roots."""
    records = [{**dataclasses.asdict(one), "files": files} for one, files in sitemaps]
    return to_frame(pa.Table.from_pylist(records, schema=ELSEWHERE_ROWS))


def lists_of_sitemaps(
    chunks: Iterable[Chunk], options: SitemapOptions, done: frozenset[str], at_once: int
) -> Iterator[SitemapList]:
    """Yields lists of sitemaps to begin with, each of some hosts.

    Args:
        chunks: Of STARTS or of ELSEWHERE_ROWS.
        options: Limits.
        done: See ``SitemapList``.
        at_once: Largest number of hosts of a list, or of sitemaps that others have met.
    """
    sitemaps, number = SitemapList(options, done), 0
    for chunk in chunks:
        for row in chunk.to_pylist():
            if number == at_once:
                yield sitemaps
                sitemaps, number = SitemapList(options, done), 0
            number += not row.get("is_given", False)
            _add(sitemaps, row)
    yield sitemaps


def _add(sitemaps: SitemapList, row: dict[str, Any]) -> None:
    if "is_given" not in row:
        files = row.pop("files")
        lists = {name: tuple(row[name]) for name in ("places", "vouching")}
        sitemaps.take_over(Sitemap(**{**row, **lists}), files)
    elif row["is_given"]:
        sitemaps.add_given([row["url"]])
    else:
        sitemaps.add_host(row["url"])
