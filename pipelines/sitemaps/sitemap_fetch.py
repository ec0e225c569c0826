"""Fetches sitemaps with one engine, and what indexes among them name."""

import dataclasses
import itertools
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ...io.batches.attempts import Note
from ...io.batches.known_hosts import HostRecords, host_tables
from ...io.batches.leases import Lease
from ...io.rows.seed_hosts import read_seed_hosts
from ...io.rows.small_components import read_blocklist, read_host_settings
from ...io.snapshots.operations import Operation
from ...policy.components.host_rows import HostSettings, Seeds
from ...policy.components.schema import HOSTS, conform
from ...policy.hosting.host_settings import blocked_hosts, pause_of
from ...policy.sitemaps.sitemap_list import (
    NONE_NAMED,
    OTHERS_NAMED,
    Sitemap,
    SitemapList,
    SitemapOptions,
)
from ...policy.sitemaps.sitemap_urls import SITEMAP_URLS, EntryRules, children_of, judge_sitemap
from ...transforms.elements.chunks import Chunk, named_chunks
from ...transforms.fetching import Fetching
from ...transforms.wiring.metrics import Throttling
from ...web.base.json_logs import without_login
from ...web.base.progress import PROGRESS
from ...web.content.whole_bodies import WHOLE
from ...web.engine.engine import Engine, FetchOptions
from ...web.engine.host_queue import origin_of
from ...web.engine.tasks import Hop, Result, Task, repeat_at
from ...web.exchange.http_options import HttpOptions
from ...web.exchange.status import FETCH_SUCCESS, PROTOCOL_STATUS_NAMES
from ...web.pages.page import ParseFailed, Source
from ...web.parsers.sitemap_entries import read_sitemap
from ...web.robots.robots import RobotsRules
from ...web.robots.robots_text import absolute_sitemaps
from ...web.urls.row_keys import host_key
from ...web.urls.url_parts import host_of_url

# Nutch's number of threads for sitemaps: each may hold a sitemap of 50 MiB.
MOST_THREADS = 8
_ROWS = 100_000
_SHOWN = 10
_LOG = logging.getLogger("nutbeam.sitemap")


@dataclasses.dataclass(frozen=True)
class SitemapFetchOptions(SitemapOptions, FetchOptions, HttpOptions):
    """Options of fetching sitemaps."""


class EarlierRequests(NamedTuple):
    """Facts about earlier requests to the same hosts.

    Attributes:
        requested_until: Monotonic moment until which the same hosts may have had requests.
        notes: Their delays and pauses.
    """

    requested_until: float
    notes: Mapping[str, Note]


class SitemapFetching(Fetching):
    """A list of sitemaps; yields rows for the state (SITEMAP_URLS) and for HOSTS, by component.

    Args:
        operation: The operation.
        sitemaps: The sitemaps to begin with, in its list of waiting ones.
        options: Limits, rules, and how to send requests.
        lease: The lease of this attempt.
        earlier_requests: What other attempts, or this one with other lists, have done.

    Attributes:
        counts: ``requests``, ``sitemaps``, ``entries``, ``without_sitemap`` (hosts),
            ``dropped/``, ``ignored/`` and ``not_read/`` (sitemaps) with a reason.
    """

    _engine: Engine

    def __init__(
        self,
        operation: Operation,
        sitemaps: SitemapList,
        options: SitemapFetchOptions,
        lease: Lease,
        earlier_requests: EarlierRequests,
    ) -> None:
        super().__init__(
            dataclasses.replace(
                options,
                threads=min(options.threads, MOST_THREADS),
                content_limit=options.sitemap_size_max,
            )
        )
        self._operation, self._sitemaps = operation, sitemaps
        self.requested_until = earlier_requests.requested_until
        self._lease, self._earlier_requests, self._throttling = (
            lease,
            earlier_requests,
            Throttling(),
        )
        self._blocklist = read_blocklist(operation)
        self._settings = read_host_settings(operation)
        self._seeds: Seeds = read_seed_hosts(operation)
        files, none = tuple(operation.files("hosts")), pl.Series([], dtype=pl.String)
        self.known_hosts = self._known = HostRecords(
            operation.table, files, none, earlier_requests.notes
        )
        self._numbers = itertools.count()  # atomic, unlike +=
        self._of: dict[str, Sitemap] = {}
        self._rows: list[pl.DataFrame] = []
        self._seed_hosts: set[str] = set()
        self._shown = 0
        self.counts: Counter[str] = Counter()

    def requests_so_far(self) -> EarlierRequests:
        """Returns what the next list must know."""
        demands = {host: Note(*demand) for host, demand in self._engine.demands().items()}
        return EarlierRequests(time.monotonic(), {**self._earlier_requests.notes, **demands})

    def tasks(self, engine: Engine) -> Iterator[Task | None]:
        self._engine = engine
        self._lease.note(lambda: {**self._earlier_requests.notes, **engine.demands()})
        yield from map(self._task, self._drop_blocked(self._sitemaps.take()))
        while True:
            yield None  # all tasks so far are queued now
            idle = engine.is_idle()
            following = self._drop_blocked(self._sitemaps.take())
            if idle and not following:
                break
            yield from map(self._task, following)

    def _drop_blocked(self, sitemaps: Sequence[Sitemap]) -> list[Sitemap]:
        """Returns the sitemaps on hosts that are not blocked, and reads their rows of the host table."""
        hosts = pl.Series([_host_of(one) for one in sitemaps], dtype=pl.String)
        blocked = self._blocklist.blocks_hosts(hosts)
        unwanted = pl.Series(blocked_hosts(self._settings), dtype=pl.String)
        by_settings = hosts.is_in(unwanted.implode())
        self.counts["not_read/blocked"] += int(blocked.sum())
        self.counts["not_read/host_blocked"] += int((by_settings & ~blocked).sum())
        allowed = ~(blocked | by_settings)
        self._known.add(hosts.filter(allowed))
        PROGRESS.expect_more(int(allowed.sum()))
        return [one for one, good in zip(sitemaps, allowed, strict=True) if good]

    def _task(self, sitemap: Sitemap, hops: int = 0) -> Task:
        key = str(next(self._numbers))
        self._of[key] = sitemap
        own = self._settings.get(_host_of(sitemap)) or HostSettings()
        pause = pause_of(own.threads, own.delay, self.options)
        return Task(sitemap.url, key, hops=hops, delay=pause, threads=own.threads)

    def follow(self, task: Task, url: str, new_cookie: bool) -> Hop:
        sitemap = self._of[task.key]
        if self._sitemaps.is_own(sitemap, url):
            return Hop(task.key, repeat_at(task, url, new_cookie))
        target = self._sitemaps.follow_redirect(sitemap, url, task.hops)
        if target is None or not self._drop_blocked([target]):
            return Hop()
        return Hop("", self._task(target, task.hops + 1))

    def screen(self, task: Task, rules: RobotsRules) -> str | None:
        sitemap = self._of[task.key]
        urls = absolute_sitemaps(rules.sitemaps, origin_of(sitemap.url))
        if sitemap.of_host:
            return self._sitemaps.add_of_robots(sitemap, urls)
        self._of[task.key] = self._sitemaps.vouch_for(sitemap, urls)
        return None

    def may_send(self) -> bool:
        return self._lease.may_send()

    def pulse(self, waited: float) -> None:
        self._lease.check()
        self._throttling.total(waited)

    def add(self, result: Result) -> Iterator[tuple[str, Chunk]]:
        """Reads a sitemap."""
        self.counts["requests"] += 1
        sitemap, response = self._of.pop(result.task.key), result.response
        if result.redirect is not None and result.fetch_status != FETCH_SUCCESS:
            self.counts["redirects"] += 1
            return
        if response is None or result.fetch_status != FETCH_SUCCESS:
            self._fail(sitemap, _why(result))
            return
        headers = [(name.lower(), value) for name, value in response.headers]
        source = Source(sitemap.url, response.body, response.header("content-type"), headers)
        most_urls, most_bytes = self.options.sitemap_urls_max, self.options.sitemap_size_max
        try:
            content = read_sitemap(source, most_urls, most_bytes, self.options.sitemap_links)
        except ParseFailed as failed:
            self._fail(sitemap, failed.reason)
            return
        if response.truncated and response.truncated not in WHOLE:
            content.dropped["too_large" if response.truncated == "length" else "cut"] = 1
        self.counts["sitemaps"] += 1
        self.counts.update({f"dropped/{why}": number for why, number in content.dropped.items()})
        for url in children_of(content, sitemap.url):
            self._sitemaps.add_child(sitemap, url)
        if sitemap.by_operator:
            self._seed_hosts.add(host_key(host_of_url(sitemap.root) or ""))
        rules = EntryRules(self.options, self._seeds, self._blocklist, self._operation.now)
        rows, counts = judge_sitemap(content, sitemap, rules)
        self.counts.update(counts)
        self._rows.append(rows)
        if sum(map(len, self._rows)) >= _ROWS:
            yield from self._flush()

    def end(self) -> Iterator[tuple[str, Chunk]]:
        self._lease.check()
        yield from self._flush()
        yield from self._findings()
        self._count_lost()

    def _fail(self, sitemap: Sitemap, reason: str) -> None:
        if sitemap.of_host and reason == "http_404":  # nobody has said that there is one
            self.counts["without_sitemap"] += 1
            return
        self.counts[f"not_read/{reason}"] += 1
        self._shown += 1
        if self._shown <= _SHOWN:
            _LOG.warning("sitemap %s is not read: %s", without_login(sitemap.url), reason)

    def _flush(self) -> Iterator[tuple[str, Chunk]]:
        rows, self._rows = self._rows, []
        if rows:
            yield from named_chunks("state", pl.concat(rows), SITEMAP_URLS)

    def _findings(self) -> Iterator[tuple[str, Chunk]]:
        """Yields what was found about hosts; the hosts of given sitemaps become those of seeds."""
        for table in host_tables(record for record in self._engine.hosts() if record.host):
            yield "hosts", conform(table, HOSTS)
        seeds = sorted(self._seed_hosts - {""})
        seed_rows = pl.DataFrame({"key": seeds, "seed": [True] * len(seeds)})
        yield from named_chunks("hosts", seed_rows, HOSTS)

    def _count_lost(self) -> None:
        for reason, number in (*self._engine.drop_counts.items(), *self._sitemaps.dropped.items()):
            if reason == NONE_NAMED:
                self.counts["without_sitemap"] += number
            elif reason not in ("repeated", OTHERS_NAMED):
                self.counts[f"not_read/{reason}"] += number


def _host_of(sitemap: Sitemap) -> str:
    """Returns the reversed host of a sitemap."""
    return host_key(host_of_url(sitemap.url) or "")


def _why(result: Result) -> str:
    """Returns why there is no sitemap in a result, as a word."""
    response = result.response
    if response is not None and response.status and not 200 <= response.status < 300:
        return f"http_{response.status}"
    if response is not None and response.error:
        return response.error
    name = PROTOCOL_STATUS_NAMES[result.protocol_status]
    return result.message if name == "exception" and result.message.isidentifier() else name
