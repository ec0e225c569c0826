"""Which redirects are followed at once, each in the turn of the host that it leads to."""

import dataclasses
import threading
from collections import Counter

import polars as pl

from ...policy.blocklist import Blocklist
from ...policy.scope import Seeds, TargetOptions, judge
from ...web.base.options import option
from ...web.engine.tasks import Task
from ...web.urls.row_keys import host_of
from .asked import Asked


@dataclasses.dataclass(frozen=True)
class RedirectOptions(TargetOptions):
    """How far redirects are followed at once."""

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

    A host that is not in this partition's fetch list may be another worker's,
    so nothing is asked of it. A page of the fetch list is asked for anyway.

    Args:
        options: How far, and which targets are taken: as update takes them.
        asked: What is asked for.
        seeds: Hosts and domains of the seeds.
        blocklist: What was purged and must not come back.

    Attributes:
        counts: ``redirects/`` followed, exceeded, repeated, elsewhere.
    """

    def __init__(
        self, options: RedirectOptions, asked: Asked, seeds: Seeds, blocklist: Blocklist
    ) -> None:
        self._options, self._asked, self._seeds, self._blocklist = options, asked, seeds, blocklist
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def __call__(self, task: Task, url: str) -> Task | None:
        """Returns the task for the target of a redirect, or None to leave it to a later round."""
        links = pl.DataFrame({"source": [task.key]})
        targets = pl.Series([url], dtype=pl.String)
        judged = judge(links, targets, "fetcher", self._options, self._seeds)
        key = judged.get_column("key")
        if key.item() is None or self._blocklist.blocks(key).item():
            return None  # update says why
        with self._lock:
            why = self._why_not(task, key.item())
            self.counts[f"redirects/{why or 'followed'}"] += 1
        if why is not None:
            return None
        # As update has it: a redirect hands on no score, and is no further from the seeds.
        return self._asked.follow(key.item(), 0.0, task.distance, task.hops + 1, task.depth)

    def _why_not(self, task: Task, key: str) -> str | None:
        if self._asked.met(key) or self._asked.has(key):
            return "repeated"
        if task.hops >= self._options.redirect_max:
            return "exceeded"
        if host_of(key) not in self._asked.hosts:
            return "elsewhere"
        return None if self._asked.meet(key) else "repeated"
