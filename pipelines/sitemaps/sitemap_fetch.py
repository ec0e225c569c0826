"""Fetches sitemaps with one engine, and what indexes among them name."""

import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ...io.batches.attempts import Note
from ...io.batches.known_hosts import HostRecords
from ...io.batches.leases import Lease
from ...io.batches.sitemap_parts import SitemapPart, SitemapParts
from ...io.rows.seed_hosts import read_seed_hosts
from ...io.rows.small_components import read_blocklist, read_host_settings
from ...policy.components.host_rows import HostSettings
from ...policy.hosting.host_settings import blocked_hosts, pause_of
from ...policy.sitemaps.sitemap_list import Sitemap, SitemapList, SitemapOptions
from ...policy.sitemaps.sitemap_urls import EntryRules, children_of, judge_sitemap
from ...transforms.fetching import Fetching
from ...transforms.wiring.metrics import Throttling
from ...web.base.dataclass import dataclass
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
from .source_results import SourceResults

# Nutch's number of threads for sitemaps: each may hold a sitemap of 50 MiB.
MOST_THREADS = 8
_SHOWN = 10
_LOG = logging.getLogger("nutbeam.sitemap")


@dataclass(frozen=True)
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
    """A list of sitemaps; yields what came of their sources, as ``SitemapPart``.

    A part is yielded after it was written, so no later attempt requests its sources again. The last
    part has the findings about all hosts.

    Counts: ``requests``, ``sitemaps``, ``entries``, ``without_sitemap`` (hosts), ``dropped/``,
    ``ignored/`` and ``not_read/`` (sitemaps) with a reason.

    Args:
        parts: Writes the parts.
        sitemaps: The sitemaps to begin with, in its list of waiting ones.
        options: Limits, rules, and how to send requests.
        lease: The lease of this attempt.
        earlier_requests: What other attempts, or this one with other lists, have done.
        are_own: Returns a mask of the URLs that are requested here; others go to their partition.
    """

    _engine: Engine

    def __init__(
        self,
        parts: SitemapParts,
        sitemaps: SitemapList,
        options: SitemapFetchOptions,
        lease: Lease,
        earlier_requests: EarlierRequests,
        are_own: Callable[[pl.Series], pl.Series],
    ) -> None:
        super().__init__(
            dataclasses.replace(
                options,
                threads=min(options.threads, MOST_THREADS),
                content_limit=options.sitemap_size_max,
            )
        )
        operation = parts.operation
        self._sitemaps, self._are_own = sitemaps, are_own
        self.requested_until = earlier_requests.requested_until
        self._lease, self._earlier_requests, self._throttling = (
            lease,
            earlier_requests,
            Throttling(),
        )
        self._blocklist = read_blocklist(operation)
        self._settings = read_host_settings(operation)
        self._rules = EntryRules(
            options, read_seed_hosts(operation), self._blocklist, operation.now
        )
        files, none = tuple(operation.files("hosts")), pl.Series([], dtype=pl.String)
        self.known_hosts = self._known = HostRecords(
            operation.table, files, none, earlier_requests.notes
        )
        self._numbers = itertools.count()  # atomic, unlike +=
        self._of: dict[str, Sitemap] = {}
        self._results = SourceResults(parts, sitemaps)
        self._shown = 0

    def requests_so_far(self) -> EarlierRequests:
        """Returns what the next list must know."""
        demands = {host: Note(*demand) for host, demand in self._engine.demands().items()}
        return EarlierRequests(time.monotonic(), {**self._earlier_requests.notes, **demands})

    def tasks(self, engine: Engine) -> Iterator[Task | None]:
        self._engine = engine
        self._lease.note(lambda: {**self._earlier_requests.notes, **engine.demands()})
        while True:
            ended, idle = self._results.sources.take_ended(), engine.is_idle()
            following = self._admit(self._sitemaps.take())
            self._results.settle(ended)
            if self._results.are_due():
                self._lease.check()
                self._results.keep(engine.hosts())
            if idle and not following:
                break
            yield from map(self._task, following)
            yield None  # all tasks so far are queued now

    def _admit(self, sitemaps: Sequence[Sitemap]) -> list[Sitemap]:
        """Returns the sitemaps to request here, and notes that they are under way."""
        own = self._are_own(pl.Series([one.url for one in sitemaps], dtype=pl.String))
        for one in itertools.compress(sitemaps, ~own):
            self._results.elsewhere.append((one, self._sitemaps.files_of(one)))
        admitted = self._drop_blocked([*itertools.compress(sitemaps, own)])
        for one in admitted:
            self._results.sources.begin(one)
        return admitted

    def _drop_blocked(self, sitemaps: Sequence[Sitemap]) -> list[Sitemap]:
        """Returns the sitemaps on hosts that are not blocked, and reads their rows of the host table."""
        hosts = pl.Series([_host_of(one) for one in sitemaps], dtype=pl.String)
        blocked = self._blocklist.blocks_hosts(hosts)
        unwanted = pl.Series(blocked_hosts(self._settings), dtype=pl.String)
        by_settings = hosts.is_in(unwanted.implode()) & ~blocked
        for reason, mask in (("blocked", blocked), ("host_blocked", by_settings)):
            for one in itertools.compress(sitemaps, mask):
                self._results.sources.count(one.source, f"not_read/{reason}")
        allowed = ~(blocked | by_settings)
        self._known.add(hosts.filter(allowed))
        PROGRESS.expect_more(int(allowed.sum()))
        return [*itertools.compress(sitemaps, allowed)]

    def _task(self, sitemap: Sitemap) -> Task:
        key = str(next(self._numbers))
        self._of[key] = sitemap
        own = self._settings.get(_host_of(sitemap)) or HostSettings()
        pause = pause_of(own.threads, own.delay, self.options)
        return Task(sitemap.url, key, hops=sitemap.hops, delay=pause, threads=own.threads)

    def follow(self, task: Task, url: str, new_cookie: bool) -> Hop:
        sitemap = self._of[task.key]
        if self._sitemaps.is_own(sitemap, url):
            return Hop(task.key, repeat_at(task, url, new_cookie))
        target = self._sitemaps.follow_redirect(sitemap, url, task.hops)
        if target is None or not self._admit([target]):
            return Hop()
        return Hop("", self._task(target))

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

    def note_drop(self, task: Task, reason: str) -> None:
        sitemap = self._of.pop(task.key, None)
        if sitemap is not None:
            self._results.count_lost(sitemap.source, reason)
            self._results.sources.end(sitemap)

    def add(self, result: Result) -> Iterator[SitemapPart]:
        """Reads a sitemap."""
        sitemap = self._of.pop(result.task.key)
        self._results.sources.count(sitemap.source, "requests")
        self._read(sitemap, result)
        self._results.sources.end(sitemap)
        if self._results.are_many():
            self._lease.check()
            self._results.keep(self._engine.hosts())
        yield from self._results.take_parts()

    def _read(self, sitemap: Sitemap, result: Result) -> None:
        response, count = result.response, self._results.sources.count
        if result.redirect is not None and result.fetch_status != FETCH_SUCCESS:
            count(sitemap.source, "redirects")
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
        count(sitemap.source, "sitemaps")
        for why, number in content.dropped.items():
            count(sitemap.source, f"dropped/{why}", number)
        for url in children_of(content, sitemap.url):
            self._sitemaps.add_child(sitemap, url)
        rows, counts = judge_sitemap(content, sitemap, self._rules)
        self._results.add(sitemap, rows, counts)

    def end(self) -> Iterator[SitemapPart]:
        self._lease.check()
        yield from self._results.keep_all(self._engine.hosts())

    def _fail(self, sitemap: Sitemap, reason: str) -> None:
        if sitemap.of_host and reason == "http_404":  # nobody has said that there is one
            self._results.sources.count(sitemap.source, "without_sitemap")
            return
        self._results.sources.count(sitemap.source, f"not_read/{reason}")
        self._shown += 1
        if self._shown <= _SHOWN:
            _LOG.warning("sitemap %s is not read: %s", without_login(sitemap.url), reason)


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
