"""Follows redirects within the same fetch, as tasks in the queue of the target's host."""

import dataclasses
import threading
from collections import Counter

import polars as pl

from ...policy.components.blocklist import Blocklist
from ...policy.components.host_rows import Seeds
from ...policy.scope import TargetOptions, judge
from ...web.base.options import option
from ...web.engine.tasks import MOST_REPEATS, Hop, Task, repeat_at
from ...web.rules.url_rules import UrlRules
from ...web.urls.row_keys import host_key, host_key_of
from ...web.urls.schemes import scheme_of
from ...web.urls.url_parts import host_of_url
from .requested import RequestedPages

# How many redirects in a row are followed at once where each has set a new cookie.
_MOST_WITH_COOKIES = 5


@dataclasses.dataclass(frozen=True)
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
        seeds: Hosts and domains of the seeds.
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
