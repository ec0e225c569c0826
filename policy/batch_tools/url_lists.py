"""Lists of URLs that become a batch: Nutch's freegen."""

import dataclasses
from collections import Counter
from typing import NamedTuple

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.engine.pace import QueueOptions
from ...web.rules.url_rules import CheckedUrlOptions, UrlRules
from ..components.blocklist import Blocklist, drop_blocked
from ..components.rule_counts import count_reasons
from ..components.schema import FETCHLIST, conform_frame
from ..generating.selection import queue_names

PLACE = "place"
# The reason of a line with values after a tab, as lists of seeds have.
WITH_VALUES = "values_after_url"


@dataclass(frozen=True)
class ListRuleOptions(CheckedUrlOptions):
    """Options of the rules for URLs that come from lists, or from other tables."""

    GROUP = "batch tools"

    filter_urls: bool = option(
        False,
        "Leave out URLs that the filters refuse.",
        nutch="freegen -filter, mergedb -filter, mergesegs -filter",
    )
    normalize_urls: bool = option(
        False,
        "Apply the URL rewriting rules. Without it, URLs only get the form that row keys need.",
        nutch="freegen -normalize, mergedb -normalize, mergesegs -normalize",
    )

    @property
    def rules(self) -> UrlRules:
        """The rules: without ``normalize_urls`` no rewriting rules."""
        plain = self.no_normalize or not self.normalize_urls
        return UrlRules(dataclasses.replace(self, no_normalize=plain))

    @property
    def chosen_rules(self) -> UrlRules | None:
        """The rules for URLs of another table; None leaves them as they are."""
        return self.rules if self.filter_urls or self.normalize_urls else None


class ListRules(NamedTuple):
    """How URLs become rows of a fetch list.

    Attributes:
        rules: Normalizes and filters them.
        filters: Whether to filter them.
        blocklist: Names that no batch may have.
        batch: Id of the batch.
        queues: Which hosts share a queue.
        fetch_interval: Interval of the URLs, s.
    """

    rules: UrlRules
    filters: bool
    blocklist: Blocklist
    batch: str
    queues: QueueOptions
    fetch_interval: int


def list_rows(urls: pl.Series, how: ListRules) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns FETCHLIST rows of URLs, with ``place``, whose hash is the slot; and counts.

    As in Nutch, the score is 0: nobody has linked to them. They count as seeds: their distance is 0.

    Args:
        urls: Texts, one per line of a list.
        how: How URLs become rows.
    """
    admitted = how.rules.admit(urls, "inject", filters=how.filters)
    # A parser of URLs would remove the tab, and make the values a part of the URL; or a zero byte.
    with_values, damaged = (
        pl.lit(urls.str.contains(letter, literal=True)) for letter in ("\t", "\0")
    )
    admitted = admitted.with_columns(
        key=pl.when(~with_values, ~damaged).then("key"),
        reason=pl.when(damaged)
        .then(pl.lit("malformed"))
        .when(with_values)
        .then(pl.lit(WITH_VALUES))
        .otherwise("reason"),
    )
    counts = count_reasons(admitted)
    rows, blocked = drop_blocked(admitted.select("key").drop_nulls(), how.blocklist)
    counts.update({"lines": len(urls), **blocked})
    listed = conform_frame(
        rows.with_columns(
            score=pl.lit(0.0, pl.Float32),
            distance=pl.lit(0, pl.Int32),
            fetch_interval=pl.lit(how.fetch_interval, pl.Int32),
        ),
        FETCHLIST,
    )
    places = queue_names(how.batch, rows.get_column("key"), how.queues.queue_mode)
    return listed.drop("slot").with_columns(places.alias(PLACE)), counts


def unique_rows(listed: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns rows in key order, each URL once; and the number of repeated ones."""
    unique = listed.unique("key", keep="first").sort("key")
    repeated = len(listed) - len(unique)
    counts = {"chosen": len(unique)} | ({"duplicate_lines": repeated} if repeated else {})
    return unique, counts
