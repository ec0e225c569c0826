"""Collects what came of the sources of sitemaps, and writes it in parts."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from ...io.batches.known_hosts import host_tables
from ...io.batches.sitemap_parts import SitemapPart, SitemapParts
from ...policy.components.schema import HOSTS, HostRows, conform_frame, empty, to_frame
from ...policy.sitemaps.open_sources import OpenSources
from ...policy.sitemaps.sitemap_list import NONE_NAMED, OTHERS_NAMED, Sitemap, SitemapList
from ...policy.sitemaps.sitemap_urls import SITEMAP_URLS, SitemapUrlRows
from ...web.engine.tasks import HostRecord
from ...web.urls.row_keys import host_key
from ...web.urls.url_parts import host_of_url
from .sitemap_partitions import sitemap_rows

_ROWS = 100_000
_KEEP_SECONDS = 30.0
_NO_SOURCE = ""  # of URLs that are none
_NOTHING = SitemapPart([], {}, empty(SITEMAP_URLS), empty(HOSTS), sitemap_rows(()))


class SourceResults:
    """What came of the sources of a list of sitemaps.

    Args:
        parts: Writes the parts.
        sitemaps: The list.

    Attributes:
        sources: The sources under way, and their counts.
        elsewhere: Sitemaps of other partitions, and numbers of sitemaps of their roots; any thread
            may append one.
    """

    def __init__(self, parts: SitemapParts, sitemaps: SitemapList) -> None:
        self.sources = OpenSources()
        self.elsewhere: deque[tuple[Sitemap, int]] = deque()
        self._parts, self._sitemaps = parts, sitemaps
        self._rows: list[SitemapUrlRows] = []
        self._done: list[str] = []
        self._named: set[str] = set()  # hosts of sitemaps that the operator has named
        self._kept_hosts: set[str] = set()
        self._written: list[SitemapPart] = []
        self._since = time.monotonic()

    def add(self, sitemap: Sitemap, rows: SitemapUrlRows, counts: Mapping[str, int]) -> None:
        """Adds what a sitemap says; the hosts of given sitemaps become those of seeds."""
        self._rows.append(rows)
        for name, number in counts.items():
            self.sources.count(sitemap.source, name, number)
        if sitemap.by_operator:
            self._named.add(host_key(host_of_url(sitemap.root) or ""))

    def count_lost(self, source: str, reason: str, number: int = 1) -> None:
        """Counts sitemaps that are not requested; may be called in any thread."""
        if reason == NONE_NAMED:
            self.sources.count(source, "without_sitemap", number)
        elif reason not in ("repeated", OTHERS_NAMED):
            self.sources.count(source, f"not_read/{reason}", number)

    def settle(self, ended: list[str]) -> None:
        """Notes the sources that are done; see ``OpenSources.settle``."""
        self._done += self.sources.settle(ended)

    def are_due(self) -> bool:
        """Returns whether sources that are done wait for long."""
        return bool(self._done) and time.monotonic() > self._since + _KEEP_SECONDS

    def are_many(self) -> bool:
        """Returns whether there are many rows."""
        return sum(map(len, self._rows)) >= _ROWS

    def keep(self, records: Iterable[HostRecord]) -> None:
        """Writes what came of the sources that are done, and all rows."""
        hosts = {host_of_url(source.partition(" ")[2]) for source in self._done}
        done = [record for record in records if record.host in hosts]
        self._kept_hosts.update(host_key(record.host) for record in done)
        # The findings about hosts are complete at the end. Only another attempt needs these.
        self._write(pl.concat([empty(HOSTS), *_host_frames(done)]), empty(HOSTS))

    def keep_all(self, records: Iterable[HostRecord]) -> Iterator[SitemapPart]:
        """Writes the rest, and yields the parts: no sitemap is under way any more."""
        for hosts in _host_frames(
            records
        ):  # before the sources, so that they are there if these are
            self._write(hosts.filter(~pl.col("key").is_in(self._kept_hosts)), hosts, final=False)
            yield from self.take_parts()
        self.settle(self.sources.take_ended())
        self._done += [*self.sources.take_open(), _NO_SOURCE]
        self._write(empty(HOSTS), empty(HOSTS))
        yield from self.take_parts()

    def take_parts(self) -> Iterator[SitemapPart]:
        """Yields the parts that were written since the last call."""
        written, self._written = self._written, []
        yield from written

    def _write(self, kept: HostRows, hosts: HostRows, *, final: bool = True) -> None:
        """Writes a part.

        Args:
            kept: HOSTS rows that another attempt needs.
            hosts: HOSTS rows of this attempt.
            final: Whether the sources that are done are part of it.
        """
        part = self._next_part() if final else _NOTHING
        named = sorted(self._named - {""}) if final else []
        self._named -= set(named)
        seeds = conform_frame(pl.DataFrame({"key": named, "seed": [True] * len(named)}), HOSTS)
        self._parts.write(part._replace(hosts=pl.concat([kept, seeds])))
        self._written.append(part._replace(hosts=pl.concat([hosts, seeds])))
        self._since = time.monotonic()

    def _next_part(self) -> SitemapPart:
        rows, self._rows = self._rows, []
        done, self._done = self._done, []
        counts: Counter[str] = Counter()
        for source in done:
            for reason, number in self._sitemaps.take_dropped(source).items():
                self.count_lost(source, reason, number)
            counts.update(self.sources.take_counts(source))
        elsewhere = [self.elsewhere.popleft() for _ in range(len(self.elsewhere))]
        return SitemapPart(
            [source for source in done if source != _NO_SOURCE],
            counts,
            pl.concat([empty(SITEMAP_URLS), *rows]),
            empty(HOSTS),
            sitemap_rows(elsewhere),
        )


def _host_frames(records: Iterable[HostRecord]) -> Iterator[HostRows]:
    """Yields the HOSTS rows of the findings about hosts, in frames of bounded size."""
    for table in host_tables(record for record in records if record.host):
        yield conform_frame(to_frame(table), HOSTS)
