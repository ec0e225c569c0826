"""Updates the host table from a scan: numbers of URLs, look-ups of addresses, purging."""

from collections.abc import Mapping

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.options import option, seconds
from ...web.exchange.addresses import FOUND
from ..base.row_status import FETCHED_STATUSES
from ..components.host_rows import SUMMED_COLUMNS, has_urls, urls_of_domains
from ..components.schema import HOSTS, HostRows, StateRows, empty
from .hosts import count_urls, unite_by_host, with_homepages
from .sketches import add_sketches, sketch_hosts

CHECKS = ("none", "new", "known", "failed", "all")


@dataclass(frozen=True)
class HostCheckOptions:
    """Options of looking up the addresses of hosts, and of giving hosts up."""

    GROUP = "hosts"

    check: str = option(
        "none",
        "Which hosts to look up: none, those that were never looked up (new), those whose last "
        "look-up succeeded (known), those whose last look-up failed (failed), or all of these.",
        choices=CHECKS,
        nutch="updatehostdb -checkAll, -checkNew, -checkKnown, -checkFailed",
    )
    recheck_interval: float = seconds(
        86_400.0,
        "Look a host up again after this time; after several failures in a row, after this time "
        "times their number.",
        nutch="hostdb.recheck.interval",
        minimum=0.0,
    )
    failed_hosts_threshold: int = option(
        3,
        "Give a host up when its look-up has failed more often than this in a row; -1 gives up "
        "none. A host of a seed, or with settings, is never given up.",
        nutch="hostdb.purge.failed.hosts.threshold",
        minimum=-1,
    )
    resolvers_threads: int = option(
        25,
        "How many hosts a worker looks up at a time.",
        nutch="hostdb.num.resolvers.threads",
        minimum=1,
        maximum=1_000,
    )
    lookup_timeout: float = seconds(
        10.0, "Longest time of a look-up; then it has failed.", minimum=0.1
    )
    lookup_limit: float = seconds(
        600.0,
        "Stop looking up after this time in each part of the table; the other hosts are looked up "
        "the next time.",
        minimum=1.0,
    )


def recount_changes(rows: StateRows) -> HostRows:
    """Returns the HOSTS rows of some rows of the state: numbers, home pages, response times.

    Args:
        rows: Rows with ``key``, ``status``, ``retries`` and ``response_ms``.
    """
    counts = count_urls(rows)
    living = rows.filter(pl.col("status").is_in(FETCHED_STATUSES))
    host_rows = with_homepages(sketch_hosts(living), living)
    domains = urls_of_domains(counts)
    for more in (counts, domains):
        host_rows = host_rows.join(more, on="key", how="full", coalesce=True)
    return host_rows


def recount_hosts(rows: HostRows, changes: HostRows) -> HostRows:
    """Returns rows of the host table with the numbers of a scan in place of their own.

    Response times count only for a host that has none yet.

    Args:
        rows: HOSTS rows.
        changes: HOSTS rows of all parts of the scan, and an empty one for each known host.
    """
    wide = empty(HOSTS)
    changes = pl.concat([wide, changes], how="diagonal")
    sums = changes.group_by("key").agg(
        pl.col(SUMMED_COLUMNS).fill_null(0).sum(), pl.col("homepage").max()
    )
    times = unite_by_host(changes, "response_times", add_sketches).rename(
        {"response_times": "times"}
    )
    recounted = sums.join(times, on="key", how="left")
    touched = rows.filter(pl.col("key").is_in(sums.get_column("key").implode()))
    others = rows.join(touched, on="key", how="anti")
    counted = recounted.join(
        touched.drop(*SUMMED_COLUMNS, "homepage"), on="key", how="left"
    ).with_columns(
        pl.coalesce("response_times", "times").alias("response_times"),
        pl.col("seed").fill_null(False),
        pl.col("requests").fill_null(0),
    )
    return pl.concat([others, counted.select(HOSTS.names).cast(wide.schema)]).sort("key")


def to_check(rows: HostRows, now: int, options: HostCheckOptions) -> pl.Series:
    """Returns the hosts (reversed) to look up now.

    A host whose look-up has failed is left alone for longer after each failure.

    Args:
        rows: HOSTS rows.
        now: Time in ms.
        options: Which hosts, and how often.
    """
    new, failed = pl.col("dns_time").is_null(), pl.col("dns_failures").fill_null(0) > 0
    wanted = {
        "none": pl.lit(False), "new": new, "known": ~new & ~failed, "failed": failed,
        "all": pl.lit(True),
    }[options.check]  # fmt: skip
    rest = options.recheck_interval * 1000 * pl.max_horizontal(pl.lit(1), "dns_failures")
    due = new | (pl.col("dns_time") + rest <= now)
    # A registered domain with no URL of its own is not requested.
    return rows.filter(wanted & due & has_urls()).get_column("key")


def checked_hosts(
    rows: HostRows, lookup_results: Mapping[str, str], now: int, options: HostCheckOptions
) -> tuple[HostRows, dict[str, int]]:
    """Returns rows of the host table with the results of look-ups, and counts with Nutch's names.

    Args:
        rows: HOSTS rows.
        lookup_results: For each host (reversed) that was looked up ``FOUND``, or why that failed.
        now: Time in ms.
        options: When a host is given up.
    """
    if not lookup_results:
        return rows, {}
    result = pl.col("key").replace_strict(lookup_results, default=None, return_dtype=pl.String)
    has_dns_time, failures = pl.col("dns_time").is_not_null(), pl.col("dns_failures").fill_null(0)
    tried, failed = result.is_not_null(), result != FOUND
    kinds = pl.when(failed).then(
        pl.when(has_dns_time).then(pl.lit("existing_unknown_host")).otherwise(pl.lit("new_unknown_host"))
    ).otherwise(
        pl.when(~has_dns_time).then(pl.lit("new_known_host"))
        .when(failures > 0).then(pl.lit("rediscovered_host"))
        .otherwise(pl.lit("existing_known_host"))
    )  # fmt: skip
    judged = rows.filter(tried).select(kind=kinds, reason=result)
    counts = dict(judged.get_column("kind").value_counts().iter_rows())
    why = judged.filter(pl.col("reason") != FOUND).get_column("reason").value_counts()
    counts |= {f"lookup/{reason}": number for reason, number in why.iter_rows()}
    counts["checked_hosts"] = len(judged)
    after = rows.with_columns(
        dns_failures=pl.when(tried)
        .then(pl.when(failed).then(failures + 1).otherwise(0))
        .otherwise("dns_failures")
        .cast(pl.Int32),
        dns_time=pl.when(tried).then(now).otherwise("dns_time"),
    )
    return _given_up(after, now, options, counts)


def _given_up(
    rows: HostRows, now: int, options: HostCheckOptions, counts: dict[str, int]
) -> tuple[HostRows, dict[str, int]]:
    """Marks hosts that have failed too often as purged, and returns others from it."""
    most = options.failed_hosts_threshold
    is_kept = pl.col("seed") | pl.col("settings").is_not_null()
    gone = (pl.col("dns_failures").fill_null(0) > most) & pl.lit(most >= 0) & ~is_kept
    purged = rows.select((gone & pl.col("purged_since").is_null()).sum()).item()
    rows = rows.with_columns(
        purged_since=pl.when(gone).then(pl.coalesce("purged_since", pl.lit(now)))
    )
    return rows, counts | ({"purged_unknown_host": purged} if purged else {})
