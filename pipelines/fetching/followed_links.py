"""Follows redirects and outlinks within the same fetch, each page once.

A redirect becomes a task in the queue of the target's host. An outlink becomes one as soon as its page
is on disk.
"""

import functools
import threading
from collections import Counter

import polars as pl
import pyarrow as pa

from ...policy.base.key_columns import host_keys
from ...policy.components.blocklist import Blocklist
from ...policy.components.host_rows import Seeds
from ...policy.components.schema import to_frame
from ...policy.links import LinkOptions, shares, sum_links
from ...policy.scope import TargetOptions, judge
from ...web.base.joined_options import joined_options
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ...web.engine.tasks import MOST_REPEATS, Hop, Task, repeat_at
from ...web.rules.url_rules import UrlRules
from ...web.urls.row_keys import from_key, host_key, host_key_of
from ...web.urls.schemes import scheme_of
from ...web.urls.url_parts import host_of_url


class RequestedPages:
    """The pages that a partition's fetch requests, each once; safe to use in any thread.

    A host that is not in the partition's fetch list may belong to another worker, so no
    request is sent to it.

    Args:
        rows: FETCHLIST rows of the partition.
        have: PAGES rows of earlier attempts: ``key``, ``depth``.
    """

    def __init__(self, rows: pl.DataFrame, have: pl.DataFrame) -> None:
        self._keys = rows.get_column("key")
        self._have = frozenset(have.get_column("key"))
        self._waits = _waits(rows)
        self._depths = dict(have.filter(pl.col("depth") > 0).select("key", "depth").iter_rows())
        self._met: set[str] = set()
        self._lock = threading.Lock()
        if len(have):  # these are not in the fetch list
            PROGRESS.expect_more(len(have.join(rows, on="key", how="anti")))

    @functools.cached_property
    def _fetch_list_keys(self) -> frozenset[str]:
        return frozenset(self._keys)

    @functools.cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts of the fetch list, reversed."""
        return frozenset(host_keys(self._keys).unique())

    def meet(self, key: str) -> bool:
        """Marks a page as met; returns whether it is new and not in the fetch list."""
        with self._lock:
            if key in self._fetch_list_keys or key in self._met:
                return False
            self._met.add(key)
            return True

    def was_met(self, key: str) -> bool:
        """Returns whether a page was met before, or is in the fetch list."""
        return key in self._fetch_list_keys or key in self._met

    def has(self, key: str) -> bool:
        """Returns whether an earlier attempt has a page."""
        return key in self._have

    def depth(self, key: str) -> int:
        """Returns how many links this fetch has followed to reach a page."""
        return self._depths.get(key, 0)

    def wait(self, key: str) -> tuple[float | None, str | None]:
        """Returns (delay, address) of a page's host in the fetch list."""
        return self._waits.get(host_key_of(key), (None, None))

    def follow(self, key: str, score: float, distance: int, hops: int = 0, depth: int = 0) -> Task:
        """Returns the task for a page that is not in the fetch list, and counts it as expected."""
        if depth:
            self._depths[key] = depth
        PROGRESS.expect_more(1)
        delay, address = self.wait(key)
        return Task(
            from_key(key), key, score, distance,
            hops=hops, depth=depth, delay=delay, address=address,
        )  # fmt: skip


def _waits(rows: pl.DataFrame) -> dict[str, tuple[float | None, str | None]]:
    """Returns (delay, address) of the hosts (reversed) that have one.

    If the pages of a host differ, the delay of the best page counts.
    """
    host_rows = rows.filter(pl.col("delay").is_not_null() | pl.col("address").is_not_null())
    host_rows = host_rows.with_columns(host=host_keys(host_rows.get_column("key")))
    first = host_rows.sort("score", "key", descending=[True, False]).group_by("host")
    waits = first.agg(pl.col("delay").drop_nulls().first(), pl.col("address").first())
    return {host: (delay, address) for host, delay, address in waits.iter_rows()}


# How many redirects in a row are followed at once where each has set a new cookie.
_MOST_WITH_COOKIES = 5


@joined_options
class RedirectOptions(TargetOptions):
    """Limits of following redirects within the same fetch."""

    redirect_max: int = option(
        0,
        "How many redirects in a row are followed at once, while they lead to hosts that the "
        "same worker fetches in this batch anyway; all others become URLs of a later round.",
        nutch="http.redirect.max",
        minimum=0,
        maximum=20,
        group="fetch",
    )


class Redirects:
    """Decides which redirects are followed; safe to call in any thread.

    A host that is not in this partition's fetch list may belong to another worker,
    so no request is sent to it. A page of the fetch list is requested anyway.

    A page whose redirect leads to its own URL in another spelling, such as one with a session, is
    requested again with that spelling. If cookies are kept, a redirect that sets one is followed.

    Args:
        options: The limits, and the rules for targets, which are the same as in update.
        requested: The pages that the fetch requests.
        seeds: The hosts of seeds.
        blocklist: The blocklist.
        cookies: Whether cookies are kept.

    Attributes:
        counts: ``redirects/`` followed, exceeded, repeated, elsewhere, own_url (requested again).
    """

    def __init__(
        self,
        options: RedirectOptions,
        requested: RequestedPages,
        seeds: Seeds,
        blocklist: Blocklist,
        cookies: bool = False,
    ) -> None:
        self._options, self._requested = options, requested
        self._seeds, self._blocklist = seeds, blocklist
        self._rules = UrlRules(options)
        self._most_repeats = MOST_REPEATS if cookies else 1
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def follow(self, task: Task, url: str, new_cookie: bool) -> Hop:
        """Returns what becomes of the target of a redirect; safe to call in any thread.

        Args:
            task: The page that redirects.
            url: The target.
            new_cookie: Whether the answer has set a new cookie.
        """
        key = self._rules.key_of(url, "fetcher")
        if key is None:
            return Hop()
        if key == task.key:
            return Hop(key, self._repeat_task(task, url, new_cookie))
        most = self._options.redirect_max
        most = max(most, _MOST_WITH_COOKIES) if new_cookie else most
        return Hop(key, self._follow_redirect(task, url, most) if most else None)

    def _repeat_task(self, task: Task, url: str, new_cookie: bool) -> Task | None:
        """Returns the task for a page whose redirect leads to its own URL."""
        if scheme_of(url) not in self._options.schemes or not self._is_reachable(task, url):
            return None
        again = repeat_at(task, url, new_cookie, self._most_repeats)
        if again is not None:
            with self._lock:
                self.counts["redirects/own_url"] += 1
        return again

    def _is_reachable(self, task: Task, url: str) -> bool:
        """Returns whether another spelling of a page's URL has its host.

        A normalizer may map hosts to another one. No page of the table is on such a host.
        """
        host = host_key((host_of_url(url) or "").rstrip("."))
        if host == host_key_of(task.key):
            return True
        names = pl.Series([host], dtype=pl.String)
        return task.address is None and not self._blocklist.blocks_hosts(names).item()

    def _follow_redirect(self, task: Task, url: str, most: int) -> Task | None:
        """Returns the task for the target of a redirect, or None to leave it to a later round."""
        link = {"source": [task.key], "distance": [task.distance], "url": [url]}
        links = pl.DataFrame(link, schema_overrides={"url": pl.String})
        judged = judge(links, "fetcher", self._options, self._seeds)
        key = judged.get_column("key")
        if key.item() is None or self._blocklist.blocks(key).item():
            return None  # update counts the reason
        with self._lock:
            why = self._why_not(task, key.item(), most)
            self.counts[f"redirects/{why or 'followed'}"] += 1
        if why is not None:
            return None
        # As in update: a redirect passes no score, and its target has the same distance.
        return self._requested.follow(key.item(), 0.0, task.distance, task.hops + 1, task.depth)

    def _why_not(self, task: Task, key: str, most: int) -> str | None:
        if self._requested.was_met(key) or self._requested.has(key):
            return "repeated"
        if task.hops >= most:
            return "exceeded"
        if host_key_of(key) not in self._requested.hosts:
            return "elsewhere"
        return None if self._requested.meet(key) else "repeated"


_COLUMNS = ["key", "score", "distance", "outlinks", "part_of"]


@joined_options
class OutlinkOptions(LinkOptions):
    """Limits of following outlinks within the same fetch."""

    GROUP = "fetch"

    parse_while_fetching: bool = option(
        False,
        "Parse pages while others are fetched; false makes parse a phase of its own.",
        nutch="fetcher.parse",
    )
    follow_outlinks_depth: int = option(
        -1,
        "Follow outlinks within the same fetch down to this depth, while they lead to hosts that "
        "the same worker fetches in this batch anyway; 0 or -1: none. Needs "
        "parse_while_fetching.",
        nutch="fetcher.follow.outlinks.depth",
        minimum=-1,
        maximum=1_000,
    )
    follow_outlinks_num_links: int = option(
        4,
        "Sets how many links of a page are followed: the first ones on the page. For links to depth "
        "d, the number is follow_outlinks_num_links * follow_outlinks_depth_divisor / d, rounded "
        "down. By default it is 8 for a page of the batch (d = 1), and 4 for each page to which "
        "its links lead (d = 2).",
        nutch="fetcher.follow.outlinks.num.links",
        minimum=0,
    )
    follow_outlinks_depth_divisor: int = option(
        2,
        "Factor in the formula of follow_outlinks_num_links.",
        nutch="fetcher.follow.outlinks.depth.divisor",
        minimum=1,
    )
    follow_outlinks_ignore_external: bool = option(
        True,
        "Follow within the same fetch only links to the page's own host.",
        nutch="fetcher.follow.outlinks.ignore.external",
    )

    def __post_init__(self) -> None:
        if self.follow_outlinks_depth > 0 and not self.parse_while_fetching:
            raise ValueError(
                "--follow_outlinks_depth needs --parse_while_fetching, as links come from "
                f"parsing, got {self.follow_outlinks_depth}"
            )


def most_at(depth: int, options: OutlinkOptions) -> int:
    """Returns the limit of links to follow per page, if they lead to a depth.

    >>> [most_at(depth, OutlinkOptions()) for depth in (1, 2, 3, 8, 9)]
    [8, 4, 2, 1, 0]
    """
    return options.follow_outlinks_num_links * options.follow_outlinks_depth_divisor // depth


class Outlinks:
    """Decides which outlinks of parsed pages are followed; not safe for several threads.

    If an earlier attempt died, its pages must be added first, in the order in which it wrote
    them. Then the decisions are the same.

    Args:
        options: The limits.
        requested: The pages that the fetch requests.
        blocklist: The blocklist.

    Attributes:
        counts: ``outlinks/`` followed, exceeded (more than a page's share), repeated,
            external (another host than the page's), elsewhere (not this partition's),
            too_deep.
    """

    def __init__(
        self, options: OutlinkOptions, requested: RequestedPages, blocklist: Blocklist
    ) -> None:
        self._options, self._requested, self._blocklist = options, requested, blocklist
        self._tasks: list[Task] = []
        self.counts: Counter[str] = Counter()

    def add(self, documents: pa.Table) -> None:
        """Decides on the links of documents (DOCUMENTS rows) whose pages are on disk."""
        most = self._options.follow_outlinks_depth
        frame = to_frame(documents.select(_COLUMNS))
        frame = frame.filter(pl.col("part_of").is_null()).drop("part_of")  # only fetched pages
        depths = [self._requested.depth(key) + 1 for key in frame.get_column("key")]
        frame = frame.with_columns(depth=pl.Series(depths, dtype=pl.Int64))
        frame = frame.filter((pl.col("depth") <= most) & (pl.col("outlinks").list.len() > 0))
        if not len(frame):
            return
        shared, too_deep = shares(frame, self._options)
        if too_deep:
            self.counts["outlinks/too_deep"] += too_deep
        worth = {key: (score, at) for key, score, at in sum_links(shared).iter_rows()}
        places_left: dict[str, int] = {}
        for source, key, depth, why in self._judge_links(frame).iter_rows():
            places_left.setdefault(source, most_at(depth, self._options))
            if key in worth:
                why = why or self._why_not(key, places_left[source])
                self.counts[f"outlinks/{why or 'followed'}"] += 1
                if why is None:
                    places_left[source] -= 1
                    if not self._requested.has(key):
                        score, distance = worth[key]
                        self._tasks.append(
                            self._requested.follow(key, score, distance, depth=depth)
                        )

    def _judge_links(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns a row per link: source, key, depth, and the reason if it is not followed."""
        key = pl.col("outlinks").list.eval(pl.element().struct.field("key"))
        links = frame.select(pl.col("key").alias("source"), key.alias("key"), "depth")
        links = links.explode("key")
        links = links.filter(~self._blocklist.blocks(links.get_column("key")))
        hosts = host_keys(links.get_column("key"))
        external = pl.lit(False)
        if self._options.follow_outlinks_ignore_external:
            external = pl.lit(hosts != host_keys(links.get_column("source")))
        ours = hosts.is_in(pl.Series(list(self._requested.hosts), dtype=pl.String).implode())
        why = pl.when(external).then(pl.lit("external")).when(~ours).then(pl.lit("elsewhere"))
        return links.with_columns(why=why)

    def _why_not(self, key: str, places_left: int) -> str | None:
        if self._requested.was_met(key):
            return "repeated"
        if places_left <= 0:
            return "exceeded"
        return None if self._requested.meet(key) else "repeated"

    def take(self) -> list[Task]:
        """Returns the tasks since the last call."""
        tasks, self._tasks = self._tasks, []
        return tasks
