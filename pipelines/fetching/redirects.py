"""Follows redirects within the same fetch, as tasks in the queue of the target's host."""

import dataclasses
import threading
from collections import Counter

import polars as pl

from ...policy.blocklist import Blocklist
from ...policy.scope import Seeds, TargetOptions, judge
from ...web.base.options import option
from ...web.engine.tasks import Task
from ...web.urls.row_keys import host_key_of
from .requested import Requested


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

    Args:
        options: The limits, and the rules for targets, which are the same as in update.
        requested: The pages that the fetch requests.
        seeds: Hosts and domains of the seeds.
        blocklist: The blocklist.

    Attributes:
        counts: ``redirects/`` followed, exceeded, repeated, elsewhere.
    """

    def __init__(
        self, options: RedirectOptions, requested: Requested, seeds: Seeds, blocklist: Blocklist
    ) -> None:
        self._options, self._requested = options, requested
        self._seeds, self._blocklist = seeds, blocklist
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def __call__(self, task: Task, url: str) -> Task | None:
        """Returns the task for the target of a redirect, or None to leave it to a later round."""
        links = pl.DataFrame({"source": [task.key], "distance": [task.distance]})
        targets = pl.Series([url], dtype=pl.String)
        judged = judge(links, targets, "fetcher", self._options, self._seeds)
        key = judged.get_column("key")
        if key.item() is None or self._blocklist.blocks(key).item():
            return None  # update counts the reason
        with self._lock:
            why = self._why_not(task, key.item())
            self.counts[f"redirects/{why or 'followed'}"] += 1
        if why is not None:
            return None
        # As in update: a redirect passes no score, and its target has the same distance.
        return self._requested.follow(key.item(), 0.0, task.distance, task.hops + 1, task.depth)

    def _why_not(self, task: Task, key: str) -> str | None:
        if self._requested.met(key) or self._requested.has(key):
            return "repeated"
        if task.hops >= self._options.redirect_max:
            return "exceeded"
        if host_key_of(key) not in self._requested.hosts:
            return "elsewhere"
        return None if self._requested.meet(key) else "repeated"
