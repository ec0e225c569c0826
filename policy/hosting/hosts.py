"""Merges findings about hosts, and changes of their numbers of URLs, into the host table."""

from collections.abc import Callable, Iterable

import polars as pl

from ..components.clocks import COUNT, RightTimes, set_right
from ..components.host_rows import SUMMED_COLUMNS
from ..components.schema import HOSTS, HOSTS_COLUMNS
from .domain_sketch import unite_sketches
from .response_sketch import add_sketches

ROBOTS = ["robots_origin", "robots_status", "robots_text", "robots_time", "crawl_delay",
          "robots_failing_since", "sitemaps"]  # fmt: skip
_SKETCHES: dict[str, Callable[[Iterable[bytes]], bytes]] = {
    "response_times": add_sketches,
    "linking_domains": unite_sketches,
}
_MERGED = ("key", "seed", "requests", "last_request_time", "backoff_until", *ROBOTS,
           *SUMMED_COLUMNS, *_SKETCHES)  # fmt: skip
_NEWEST = [name for name in HOSTS.names if name not in _MERGED]


def merge_hosts(
    rows: pl.DataFrame, findings: pl.DataFrame, now: int
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the host table's rows with the findings merged in, in key order, and counts.

    The newer value of each column is kept, and numbers are added: those of URLs in ``findings`` are
    differences. A host of a seed keeps its mark. The times in the rows determine which row is
    newer, not their order. Impossible times are corrected first; after that, the rows of the table
    are the older ones.

    Args:
        rows: HOSTS rows in key order, at most one per host.
        findings: HOSTS rows for hosts in the same range; if several have the same
            time, the last one is the newest.
        now: Time in ms.
    """
    findings, late = set_right(HOSTS_COLUMNS, findings, RightTimes(now))
    requested = findings.get_column("last_request_time").drop_nulls().to_list()
    since = min(requested, default=now) - 1
    rows, wrong = set_right(HOSTS_COLUMNS, rows, RightTimes(now, since))
    together = pl.concat([rows, findings]).sort("last_request_time", maintain_order=True)
    # The columns of robots.txt belong together: a missing text must not be taken from an older row.
    texts = together.filter(pl.col("robots_time").is_not_null()).sort(
        "robots_time", maintain_order=True
    )
    robots = texts.group_by("key", maintain_order=True).agg(pl.col(ROBOTS).last())
    rest = together.group_by("key", maintain_order=True).agg(
        pl.col("seed").any(),
        pl.col(_NEWEST).drop_nulls().last(),
        pl.col("requests").sum(),
        pl.when(pl.col(SUMMED_COLUMNS).is_not_null().any()).then(pl.col(SUMMED_COLUMNS).sum()),
        pl.col("last_request_time", "backoff_until").max(),
    )
    merged = rest.join(robots, on="key", how="left")
    for name, unite in _SKETCHES.items():
        merged = merged.join(unite_by_host(together, name, unite), on="key", how="left")
    counts = {COUNT: late + wrong} if late + wrong else {}
    return merged.select(*HOSTS.names).sort("key"), counts


def unite_by_host(
    rows: pl.DataFrame, name: str, unite: Callable[[Iterable[bytes]], bytes]
) -> pl.DataFrame:
    """Returns ``key`` and the sketch of each host that has one, united over its rows."""
    sketched_rows = rows.select("key", name).drop_nulls()
    if sketched_rows.is_empty():
        return sketched_rows
    repeated = sketched_rows.get_column("key").is_duplicated()
    many = sketched_rows.filter(repeated).group_by("key").agg(name)
    sketches = [unite(sketches) for sketches in many.get_column(name)]
    united_rows = many.select("key", pl.Series(name, sketches, pl.Binary))
    return pl.concat([sketched_rows.filter(~repeated), united_rows])
