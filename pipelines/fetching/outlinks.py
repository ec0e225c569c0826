"""Follows outlinks within the same fetch, as soon as their page is on disk."""

import dataclasses
from collections import Counter

import polars as pl
import pyarrow as pa

from ...policy.components.blocklist import Blocklist
from ...policy.components.schema import to_frame
from ...policy.links import LinkOptions, shares, sum_links
from ...web.base.options import option
from ...web.engine.tasks import Task
from ...web.urls.key_columns import host_keys
from .requested import RequestedPages

_COLUMNS = ["key", "score", "distance", "outlinks", "part_of"]


@dataclasses.dataclass(frozen=True)
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
