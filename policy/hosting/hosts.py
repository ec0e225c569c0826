"""Changes of the host table: findings in pages, numbers of URLs by host, and their merging into its rows."""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from ...web.exchange.status import FETCH_SUCCESS
from ..base.key_columns import host_keys
from ..components.clocks import COUNT, RightTimes, set_right
from ..components.host_rows import SUMMED_COLUMNS
from ..components.schema import (
    HOST_COUNTS,
    HOSTS,
    HOSTS_COLUMNS,
    STATUS_COUNTS,
    URL_COUNTS,
    HostCountRows,
    HostRows,
    PageRows,
    StateRows,
)
from .sketches import add_sketches, sketch_hosts, unite_sketches

HOME = "^[^/]*/$"  # row keys of home pages
# Columns of the state on which the numbers depend.
COUNTED_OF_STATE = ("key", "status", "retries")
_TYPES = pl.Schema(HOST_COUNTS)
# A row's code is twice its status, plus 1 if it has failed. The last two codes stand for unknown
# statuses, which have no count.
_CODES = 2 * (max(STATUS_COUNTS) + 2)

_Matrix = npt.NDArray[np.int64]
ROBOTS = ["robots_origin", "robots_status", "robots_text", "robots_time", "crawl_delay",
          "robots_failing_since", "sitemaps"]  # fmt: skip
_SKETCHES: dict[str, Callable[[Iterable[bytes]], bytes]] = {
    "response_times": add_sketches,
    "linking_domains": unite_sketches,
}
_MERGED = ("key", "seed", "requests", "last_request_time", "backoff_until", *ROBOTS,
           *SUMMED_COLUMNS, *_SKETCHES)  # fmt: skip
_NEWEST = [name for name in HOSTS.names if name not in _MERGED]


def page_findings(pages: PageRows) -> HostRows:
    """Returns HOSTS rows with ``response_times`` and ``homepage``.

    Args:
        pages: PAGES rows with ``key``, ``fetch_status`` and ``response_ms``.
    """
    once = pages.unique("key", keep="first", maintain_order=True)
    return with_homepages(sketch_hosts(once), once.filter(pl.col("fetch_status") == FETCH_SUCCESS))


def with_homepages(hosts: HostRows, pages: pl.DataFrame) -> HostRows:
    """Returns rows of hosts with ``homepage``: the best of the home pages among some pages."""
    home = pages.filter(pl.col("key").str.contains(HOME)).select("key")
    home_pages = home.select(host_keys(home.get_column("key")).alias("key"), homepage="key")
    # The last in order: "https" is better than "http".
    best = home_pages.filter(pl.col("key") != "").group_by("key").agg(pl.col("homepage").max())
    return hosts.join(best, on="key", how="full", coalesce=True)


def count_urls(rows: StateRows) -> HostCountRows:
    """Returns the HOST_COUNTS rows of some rows of the state, in key order.

    URLs without a host, such as those of files, are not counted.

    >>> rows = pl.DataFrame({"key": ["com.a:http/", "com.a:http/x"], "status": [1, 1],
    ...                      "retries": [0, 2]})
    >>> count_urls(rows).select("key", "unfetched", "fetched", "connection_failures").rows()
    [('com.a', 2, 0, 1)]
    """
    return _sum_by_host(*_tally_hosts(rows.get_column("key"), [(1, 0, rows)]))


def changed_counts(old_rows: StateRows, new_rows: StateRows) -> HostCountRows:
    """Returns the differences that changes of rows make, as HOST_COUNTS rows in key order.

    Args:
        old_rows: The rows before, with the columns ``COUNTED_OF_STATE``, in key order.
        new_rows: The rows after. It is faster if they begin with the keys of those before.
    """
    if new_rows.get_column("key")[: len(old_rows)].equals(old_rows.get_column("key")):
        return updated_counts(old_rows, new_rows)
    keys = pl.concat([rows.get_column("key") for rows in (old_rows, new_rows)])
    return _differences(*_tally_hosts(keys, [(-1, 0, old_rows), (1, len(old_rows), new_rows)]))


def updated_counts(old_rows: StateRows, new_rows: StateRows) -> HostCountRows:
    """Returns the same as ``changed_counts`` for rows after that begin with the keys of those before.

    Of most rows only a link was found: their hosts are not looked for.
    """
    old_rows, new_rows = old_rows.select(COUNTED_OF_STATE), new_rows.select(COUNTED_OF_STATE)
    rows_of_known, new = new_rows[: len(old_rows)], new_rows[len(old_rows) :]
    differ = _codes(old_rows) != _codes(rows_of_known)
    old_rows, new_rows = old_rows.filter(differ), pl.concat([rows_of_known.filter(differ), new])
    return _differences(
        *_tally_hosts(new_rows.get_column("key"), [(-1, 0, old_rows), (1, 0, new_rows)])
    )


def _differences(hosts: pl.Series, numbers: _Matrix) -> HostCountRows:
    counted = _sum_by_host(hosts, numbers)
    return counted.filter(pl.any_horizontal(pl.col(URL_COUNTS) != 0))


def _codes(rows: StateRows) -> pl.Series:
    """Returns a code of each row: twice its status, plus 1 if it has failed."""
    status, failed = rows.get_column("status"), rows.get_column("retries").fill_null(0) != 0
    return status.fill_null(0).cast(pl.Int16) * 2 + failed


def _tally_hosts(
    keys: pl.Series, parts: Iterable[tuple[int, int, StateRows]]
) -> tuple[pl.Series, _Matrix]:
    """Returns (hosts, numbers of their rows by code).

    A host whose keys are not adjacent appears several times in the result.

    Args:
        keys: Keys of rows.
        parts: Rows to count, each time (1 or -1, the index of the first in ``keys``, the rows).
    """
    hosts = host_keys(keys)
    run = hosts.rle_id()
    firsts, run_numbers = hosts.filter(run.diff().fill_null(1) != 0), run.to_numpy()
    numbers = np.zeros((len(firsts), _CODES), dtype=np.int64)
    for sign, first, rows in parts:
        runs = run_numbers[first : first + len(rows)]
        at = runs * np.int64(_CODES) + np.minimum(_codes(rows).to_numpy(), _CODES - 1)
        numbers += sign * np.bincount(at, minlength=numbers.size).reshape(numbers.shape)
    return firsts, numbers


def _sum_by_host(hosts: pl.Series, numbers: _Matrix) -> HostCountRows:
    """Returns the sums of what ``_tally_hosts`` returns, as HOST_COUNTS rows in key order."""
    order = hosts.arg_sort()
    hosts, numbers = hosts.gather(order), numbers[order.to_numpy()]
    firsts = (hosts.rle_id().diff().fill_null(1) != 0).arg_true()
    if len(firsts) < len(hosts):
        hosts, numbers = hosts.gather(firsts), np.add.reduceat(numbers, firsts.to_numpy())
    columns = {name: numbers[:, 2 * code] + numbers[:, 2 * code + 1]
               for code, name in STATUS_COUNTS.items()}  # fmt: skip
    failed = numbers[:, 1::2].sum(axis=1)
    counted = pl.DataFrame({"key": hosts, **columns, "connection_failures": failed})
    return counted.filter(pl.col("key") != "").select(HOST_COUNTS.names).cast(_TYPES)


def merge_hosts(rows: HostRows, findings: HostRows, now: int) -> tuple[HostRows, dict[str, int]]:
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


def unite_by_host(rows: HostRows, name: str, unite: Callable[[Iterable[bytes]], bytes]) -> HostRows:
    """Returns ``key`` and the sketch of each host that has one, united over its rows."""
    sketched_rows = rows.select("key", name).drop_nulls()
    if sketched_rows.is_empty():
        return sketched_rows
    repeated = sketched_rows.get_column("key").is_duplicated()
    many = sketched_rows.filter(repeated).group_by("key").agg(name)
    sketches = [unite(sketches) for sketches in many.get_column(name)]
    united_rows = many.select("key", pl.Series(name, sketches, pl.Binary))
    return pl.concat([sketched_rows.filter(~repeated), united_rows])
