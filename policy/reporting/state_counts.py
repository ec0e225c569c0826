"""NamedCounts rows of the state part by part: the sums of all parts are the figures of the table.

Each part is read once, and what is kept of it is small: numbers by name, the best pages, and the hosts
that may be among the first of a ranking. A part is a range of keys, so that of its hosts only the first
and the last one can have rows in another part; all others are complete.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.content.bot_walls import BOT_WALL
from ...web.exchange.status import BUSY_STATUSES, EXCEPTION, FAILED, ROBOTS_DENIED
from ...web.robots.robots import FAILING_MS
from ...web.urls.row_keys import from_host_key, shown_url
from ..base.key_columns import host_keys
from ..base.row_status import FETCHED_STATUSES
from ..components.schema import STATUS_NAMES, HostRows, StateRows, Status
from ..components.vocabulary import LIVING, names_of_codes
from ..figures import KEY, NUMBER, UNFETCHED_PAGES, KeyCountRows, by_protocol
from ..schedules.schedule import DAY_MS
from .crawl_figures import DueFigures, HostFigures, NamedCounts, TopPage

HostSumRows: TypeAlias = pl.DataFrame  # a row per host, see ``_count_hosts``
LivingRows: TypeAlias = pl.DataFrame  # ``hash`` of the key, ``document``, see ``count_state``

# What keeps URLs from the crawler: robots.txt, one that fails, 401 and 403, 429, bot walls.
CRAWLER_BLOCKS = ("robots", "robots_failing", "denied", "busy", "walls")
ROBOTS_NEEDED = ("key", "robots_status", "robots_time", "robots_failing_since")
DUE_DAYS = 90
TOP = 20
SAMPLES = 6
_NO_HOSTS = pl.Series("key", [], pl.String)
STATE_NEEDED = (
    *("key", "status", "fetch_time", "last_fetch_time", "http_code", "protocol_status"),
    *("protocol_message", "content_type", "distance", "score", "response_ms", "document"),
    "duplicate_of",
)
NO_NAME = "(none)"
_AGES = ((1, "under a day"), (7, "1 to 7 days"), (30, "7 to 30 days"), (90, "30 to 90 days"),
         (365, "90 days to a year"))  # fmt: skip
_OLDEST, _NEVER = "over a year", "never requested"
# The rankings of hosts, and the column by which hosts are ranked; hosts where it is 0 are left out.
_RANKINGS = {"biggest": "urls", "slowest": "mean_ms", "failing": "failing", "blocking": "blocked"}
_HOST_SUMS = ("urls", "fetched", "gone", "duplicates", "failing", *CRAWLER_BLOCKS,
              "answers", "ms")  # fmt: skip


@dataclass(frozen=True)
class StateCounts:
    """What is kept of rows of the state.

    Attributes:
        rows: Number of rows.
        hosts: Number of hosts; one that is in two parts counts in both.
        counts: Numbers by figure and name: ``figure``, ``key``, ``number``.
        host_rows: Hosts that may be among the first of a ranking.
        edges: The first and the last host of each part.
        pages: The best pages: ``key``, ``score``, ``status``.
        samples: Pages with the smallest hashes: ``key``, ``hash``, ``document``.
        living: All living pages with a text: ``hash``, ``document``.
    """

    rows: int
    hosts: int
    counts: KeyCountRows
    host_rows: HostSumRows
    edges: tuple[str, ...]
    pages: StateRows
    samples: StateRows
    living: LivingRows


def hosts_with_failing_robots(hosts: HostRows) -> pl.Series:
    """Returns the hosts (reversed) of which nothing is requested until their robots.txt is answered.

    Args:
        hosts: Rows of hosts with ``ROBOTS_NEEDED``.

    >>> hosts = pl.DataFrame({"key": ["com.a", "com.b", "com.c"], "robots_status": [503, 429, 200],
    ...                       "robots_time": [9, 9, 9], "robots_failing_since": [8, None, None]})
    >>> hosts_with_failing_robots(hosts).to_list()
    ['com.a', 'com.b']
    """
    since = pl.col("robots_failing_since")
    fails = (pl.col("robots_time") - since < FAILING_MS).fill_null(value=False)
    is_busy = since.is_null() & pl.col("robots_status").is_in(list(BUSY_STATUSES))
    return hosts.filter(fails | is_busy).get_column("key")


def count_state(rows: StateRows, now: int, failing_robots: pl.Series = _NO_HOSTS) -> StateCounts:
    """Returns what is kept of the rows of a range of keys.

    Args:
        rows: Rows of the state with ``STATE_NEEDED``, in any order.
        now: The time that counts as now, ms.
        failing_robots: See ``hosts_with_failing_robots``: their due URLs are kept from the crawler.
    """
    with_host = rows.with_columns(host_keys(rows.get_column("key")).alias("host"))
    is_kept = pl.col("host").is_in(failing_robots.implode()) & (pl.col("fetch_time") <= now)
    with_host = with_host.with_columns(block=_block(is_kept.fill_null(value=False)))
    hosts = _count_hosts(with_host)
    edges = tuple(
        hosts.select(pl.col("host").min().alias("a"), pl.col("host").max().alias("b")).row(0)
    )
    living = (
        rows.lazy()
        .filter(_is_living())
        .select(pl.col("key").hash().alias("hash"), "key", "document")
        .collect()
    )
    return StateCounts(
        rows=len(rows),
        hosts=len(hosts),
        counts=_count_figures(with_host, now),
        host_rows=_keep_candidates(hosts, edges),
        edges=tuple(edge for edge in edges if edge is not None),
        pages=_best_pages(rows.select("key", "score", "status")),
        samples=living.bottom_k(SAMPLES, by=["hash", "key"]),
        living=living.select("hash", pl.col("document").cast(pl.Categorical)),
    )


def sum_state_counts(parts: Sequence[StateCounts]) -> StateCounts:
    """Returns the sums of parts; without parts those of no rows."""
    if not parts:
        return count_state(pl.DataFrame(schema=_NO_ROWS), 0)
    edges = [edge for part in parts for edge in dict.fromkeys(part.edges)]
    keys = dict.fromkeys(edges)
    counts = pl.concat([part.counts for part in parts])
    host_rows = pl.concat([part.host_rows for part in parts])
    return StateCounts(
        rows=sum(part.rows for part in parts),
        hosts=sum(part.hosts for part in parts) - (len(edges) - len(keys)),
        counts=counts.group_by("figure", KEY).agg(pl.col(NUMBER).sum()),
        host_rows=_sum_hosts(host_rows),
        edges=tuple(keys),
        pages=_best_pages(pl.concat([part.pages for part in parts])),
        samples=pl.concat([part.samples for part in parts]).bottom_k(SAMPLES, by=["hash", "key"]),
        living=pl.concat([part.living for part in parts]),
    )


_NO_ROWS = {
    **dict.fromkeys(("key", "protocol_message", "content_type", "document", "duplicate_of"), pl.String),
    **dict.fromkeys(("status", "protocol_status"), pl.UInt8),
    **dict.fromkeys(("fetch_time", "last_fetch_time"), pl.Int64),
    **dict.fromkeys(("distance", "response_ms"), pl.Int32),
    "http_code": pl.UInt16, "score": pl.Float32,
}  # fmt: skip


def _count_figures(rows: StateRows, now: int) -> KeyCountRows:
    """Returns numbers by figure and name; names are made of the few distinct values, not of all rows."""
    status, requested = pl.col("status"), pl.col("last_fetch_time")
    day = pl.col("fetch_time") - now
    # Days are numbered from 1; a time of now or before is day 0.
    due_day = pl.when(day <= 0).then(0).otherwise((day - 1) // DAY_MS + 1).clip(0, DUE_DAYS + 1)
    lazy = rows.lazy()
    figures = {
        "statuses": lazy.select(status),
        "types": lazy.select(pl.col("content_type").drop_nulls()),
        "depths": lazy.select("distance"),
        "due": lazy.select(due_day.cast(pl.Int16)),
        "ages": lazy.filter(_is_living()).select(((now - requested) // DAY_MS).cast(pl.Int32)),
        "guards": lazy.select(_guard().alias("guard").drop_nulls()),
        "blocks": lazy.select(pl.col("block").drop_nulls()),
        "duplicates": lazy.filter(status == int(Status.DB_DUPLICATE)).select("duplicate_of"),
    }
    counted = pl.collect_all(
        [
            frame.select(pl.first().alias(KEY))
            .group_by(KEY)
            .agg(pl.len().cast(pl.Int64).alias(NUMBER))
            for frame in figures.values()
        ]
    )
    answers = by_protocol(rows).filter(pl.col(KEY) != UNFETCHED_PAGES)
    codes = answers.select(pl.lit("codes").alias("figure"), KEY, NUMBER)
    named = [
        frame.select(
            pl.lit(name).alias("figure"), _NAMING.get(name, _as_text)().fill_null(NO_NAME), NUMBER
        )
        for name, frame in zip(figures, counted, strict=True)
    ]
    return pl.concat([*named, codes]).group_by("figure", KEY).agg(pl.col(NUMBER).sum())


def _is_living() -> pl.Expr:
    """Returns whether a row is one of ``pages``: a page with a text."""
    return pl.col("status").is_in(list(LIVING)) & pl.col("document").is_not_null()


def _as_text() -> pl.Expr:
    return pl.col(KEY).cast(pl.String)


def _status_name() -> pl.Expr:
    return names_of_codes(pl.col(KEY), STATUS_NAMES)


def _age_name() -> pl.Expr:
    """Returns the name of an age in days."""
    named: Any = pl.when(pl.col(KEY).is_null()).then(pl.lit(_NEVER))
    for days, label in _AGES:
        named = named.when(pl.col(KEY) < days).then(pl.lit(label))
    name: pl.Expr = named.otherwise(pl.lit(_OLDEST)).alias(KEY)
    return name


_NAMING = {"statuses": _status_name, "ages": _age_name}


def _guard() -> pl.Expr:
    """Returns the guard whose wall answered a URL; null without one."""
    message = pl.col("protocol_message")
    prefix = f"{BOT_WALL}_"
    return pl.when(message.str.starts_with(prefix)).then(message.str.strip_prefix(prefix))


def _block(waits_for_robots: pl.Expr) -> pl.Expr:
    """Returns what keeps a URL from the crawler, one of ``CRAWLER_BLOCKS``; null if nothing does.

    Args:
        waits_for_robots: Whether it is due, and the robots.txt of its host fails.
    """
    code, robots = pl.col("http_code"), pl.col("protocol_status") == ROBOTS_DENIED
    return (
        pl.when(_guard().is_not_null()).then(pl.lit("walls"))
        .when(robots).then(pl.lit("robots"))
        .when(code.is_in([401, 403])).then(pl.lit("denied"))
        .when(code == 429).then(pl.lit("busy"))
        .when(waits_for_robots).then(pl.lit("robots_failing"))
    )  # fmt: skip


def _count_hosts(rows: StateRows) -> HostSumRows:
    """Returns sums by ``host``: ``_HOST_SUMS``, and ``guards``; the rows have ``block``, too."""
    status, asked = pl.col("status"), pl.col("last_fetch_time").is_not_null()
    block, guard, ms = pl.col("block"), pl.col("guard"), pl.col("response_ms")
    failed = pl.col("protocol_status").is_in([EXCEPTION, FAILED])
    named = rows.lazy().with_columns(guard=_guard())
    return named.group_by("host").agg(
        urls=pl.len(),
        fetched=status.is_in(list(FETCHED_STATUSES)).sum(),
        gone=(status == int(Status.DB_GONE)).sum(),
        duplicates=(status == int(Status.DB_DUPLICATE)).sum(),
        failing=(asked & failed).sum(),
        **{name: (block == name).sum() for name in CRAWLER_BLOCKS},
        answers=ms.count(),
        ms=ms.cast(pl.Int64).sum(),
        guards=guard.drop_nulls().unique(),
    ).with_columns(pl.col(name).cast(pl.Int64) for name in _HOST_SUMS).collect()  # fmt: skip


def _sum_hosts(rows: HostSumRows) -> HostSumRows:
    sums = (pl.col(name).sum() for name in _HOST_SUMS)
    return rows.group_by("host").agg(*sums, pl.col("guards").list.explode().drop_nulls().unique())


def _with_ranks(hosts: HostSumRows) -> HostSumRows:
    return hosts.with_columns(
        blocked=pl.sum_horizontal(CRAWLER_BLOCKS),
        mean_ms=pl.when(pl.col("answers") > 0).then(pl.col("ms") / pl.col("answers")),
    )


def _keep_candidates(hosts: HostSumRows, edges: Sequence[str | None]) -> HostSumRows:
    """Returns the hosts that may be among the first of a ranking of the whole table."""
    kept = [
        *(ranked_hosts(hosts, name).select(hosts.columns) for name in _RANKINGS),
        hosts.filter(pl.col("host").is_in([edge for edge in edges if edge is not None])),
    ]
    return pl.concat(kept).unique("host", maintain_order=True)


def ranked_hosts(hosts: HostSumRows, ranking: str) -> HostSumRows:
    """Returns the first hosts of a ranking, with ``mean_ms`` and ``blocked``."""
    column = _RANKINGS[ranking]
    ranked = _with_ranks(hosts).filter(pl.col(column).fill_null(0) > 0)
    return ranked.sort(column, "host", descending=[True, False]).head(TOP)


def host_figures(hosts: HostSumRows, ranking: str) -> tuple[HostFigures, ...]:
    """Returns the first hosts of a ranking as figures."""
    return tuple(
        HostFigures(
            from_host_key(row["host"]), row["urls"], row["fetched"], row["gone"], row["duplicates"],
            row["failing"], row["robots"], row["robots_failing"], row["denied"], row["busy"], row["walls"],
            tuple(sorted(row["guards"] or ())), row["mean_ms"],
        )
        for row in ranked_hosts(hosts, ranking).iter_rows(named=True)
    )  # fmt: skip


def _best_pages(rows: StateRows) -> StateRows:
    """Returns the rows with the highest scores, as ``readdb --top`` orders them."""
    scored = rows.filter(pl.col("score").is_not_nan())
    # Few rows are sorted: those that are as good as the last of the best.
    least = scored.get_column("score").top_k(TOP).min()
    scored = scored.filter(pl.col("score") >= least) if least is not None else scored
    return scored.sort("score", "key", descending=[True, False]).head(TOP)


def top_pages(rows: StateRows) -> tuple[TopPage, ...]:
    """Returns the best pages as figures."""
    return tuple(
        TopPage(shown_url(key), score, STATUS_NAMES.get(status, str(status)))
        for key, score, status in rows.select("key", "score", "status").iter_rows()
    )


def counts_by_name(counts: KeyCountRows, figure: str) -> NamedCounts:
    """Returns the numbers of a figure by name, the largest first."""
    rows = counts.filter(pl.col("figure") == figure).sort(NUMBER, KEY, descending=[True, False])
    return dict(rows.select(KEY, NUMBER).iter_rows())


def media_types(counts: NamedCounts) -> NamedCounts:
    """Returns numbers by media type, of those by Content-Type as servers send it.

    >>> media_types({"text/html": 2, "Text/HTML; charset=utf-8": 3, "": 1})
    {'text/html': 5, '(none)': 1}
    """
    types = dict[str, int]()
    for content_type, number in counts.items():
        name = content_type.partition(";")[0].strip().lower() or NO_NAME
        types[name] = types.get(name, 0) + number
    return dict(sorted(types.items(), key=lambda item: (-item[1], item[0])))


def in_number_order(counts: NamedCounts) -> NamedCounts:
    """Returns numbers by a number, in its order, those without one last.

    >>> list(in_number_order({"10": 1, "9": 1, "(none)": 1}))
    ['9', '10', '(none)']
    """
    return dict(sorted(counts.items(), key=lambda item: (not item[0].isdigit(), item[0].zfill(12))))


def ages_in_order(counts: NamedCounts) -> NamedCounts:
    """Returns numbers by age, the youngest first."""
    names = [*(name for _, name in _AGES), _OLDEST, _NEVER]
    return {name: counts[name] for name in names if name in counts}


def due_figures(counts: Mapping[str, int]) -> DueFigures:
    """Returns when URLs are due, of numbers by day: 0 is now.

    >>> due_figures({"0": 4, "1": 2, "91": 3, "(none)": 1}).days[:2]
    (2, 0)
    """
    days = tuple(counts.get(str(day), 0) for day in range(1, DUE_DAYS + 1))
    return DueFigures(
        counts.get("0", 0), days, counts.get(str(DUE_DAYS + 1), 0), counts.get(NO_NAME, 0)
    )
