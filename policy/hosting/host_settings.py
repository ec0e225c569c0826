"""Settings of single hosts: the lines that set them, limits of batches, and bounds of intervals."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import polars as pl

from ...web.base.columns import number_in
from ...web.base.wording import quote_value
from ...web.engine.pace import FetchOptions
from ...web.rule_files.rule_files import host_name
from ...web.urls.row_keys import BadUrl, host, host_key
from ..base.key_columns import host_keys
from ..components.host_rows import LONGEST_INTERVAL, HostSettings, settings_of
from ..components.schema import MAX_DELAY, HostRows, StateRows
from ..expressions.compiler import Expression, value_of
from ..expressions.values import Type
from ..generating.selection import GenerateOptions
from ..schedules.visits import VisitRows
from .host_fields import host_fields, host_values

NO_LIMIT = 2**31 - 1
Bounds = Mapping[str, tuple[int, int]]


def pause_of(threads: int | None, delay: float | None, usual: FetchOptions) -> float | None:
    """Returns the pause between two requests to a host, in s; None is the usual one.

    Args:
        threads: Threads that its settings say.
        delay: Delay that its settings, or else those of a URL, say.
        usual: The usual threads and pauses.

    >>> usual = FetchOptions(threads_per_host=4, server_delay=5.0, server_min_delay=0.5)
    >>> pause_of(2, None, usual), pause_of(1, None, usual), pause_of(None, None, usual)
    (0.5, 5.0, None)
    """
    if delay is not None or threads is None or max(threads, usual.threads_per_host) == 1:
        return delay
    return usual.server_min_delay if threads > 1 else usual.server_delay


def host_lines(lines: Iterable[tuple[int, str]], name: str) -> dict[str, dict[str, str]]:
    r"""Returns the settings in lines of a file, by host (reversed); ``HOST NAME=VALUE …``.

    A host may be written as a URL. Tabs separate, as in Nutch; if a line has none, spaces do. A
    host without settings loses those that it has.

    Args:
        lines: Numbers of lines, and lines.
        name: Name of the file, for errors.

    Raises:
        ValueError: A line cannot be read, or contradicts itself or another line; it is quoted.

    >>> host_lines([(1, "www.example.com\tdelay=2\tmax_count=50")], "f")
    {'com.example.www': {'delay': '2', 'max_count': '50'}}
    """
    settings_by_host: dict[str, dict[str, str]] = {}
    places: dict[str, tuple[int, str]] = {}
    for number, line in lines:
        words = [word.strip() for word in (line.split("\t") if "\t" in line else line.split())]
        key, where = _host(words[0]), f"{name}:{number}"
        if key is None:
            raise ValueError(f"{where}: expected a host or a URL, got {quote_value(words[0])}")
        values: dict[str, str] = {}
        for word in filter(None, words[1:]):
            setting, equals, value = (part.strip() for part in word.partition("="))
            if not (equals and setting and value):
                raise ValueError(f"{where}: expected NAME=VALUE, got {quote_value(word)}")
            if values.get(setting, value) != value:
                first = f"{setting}={values[setting]}"
                raise ValueError(
                    f"{where}: {quote_value(first)} and {quote_value(word)} contradict each other"
                )
            values[setting] = value
        try:
            settings_of(values)
        except ValueError as error:
            raise ValueError(f"{where}: {error} in {quote_value(line)}") from None
        if key in settings_by_host and settings_by_host[key] != values:
            earlier_line, text = places[key]
            raise ValueError(
                f"{where}: {quote_value(line)} contradicts line {earlier_line}: {quote_value(text)}"
            )
        settings_by_host[key], places[key] = values, (number, line)
    return settings_by_host


def _host(text: str) -> str | None:
    if "://" in text:
        try:
            return host_key(host(text).removesuffix(".")) or None
        except BadUrl:
            return None
    name = host_name(text)
    return None if name is None else host_key(name)


class HostLimits(NamedTuple):
    """Limits by host (reversed); hosts that are not named have the usual ones.

    Attributes:
        max_counts: How many URLs a batch takes at most; ``NO_LIMIT``: any number.
        delays: Pause between two requests, s.
        boosts: Factors of the sort value.
        bad: Number of values of expressions that cannot be used.
    """

    max_counts: Mapping[str, int]
    delays: Mapping[str, float]
    boosts: Mapping[str, float]
    bad: Mapping[str, int]


def host_expressions(options: GenerateOptions, now: int = 0) -> dict[str, Expression]:
    """Returns the compiled expressions over the host table, by name of the option.

    Args:
        options: The expressions.
        now: What ``now()`` is, ms.

    Raises:
        ValueError: One is wrong, or has no number as its value.
    """
    fields, expressions = host_fields(), {}
    for name in ("max_count_expr", "fetch_delay_expr"):
        if text := getattr(options, name):
            expression = value_of(text, fields, now)
            if expression.type is not Type.NUMBER:
                raise ValueError(f"--{name} must be a number for each host, got {text!r}")
            expressions[name] = expression
    return expressions


def host_limits_of(
    settings: Mapping[str, HostSettings], hosts: HostRows, expressions: Mapping[str, Expression]
) -> HostLimits:
    """Returns the limits of hosts: settings have priority over expressions.

    The usual limits apply to a host that is not in the host table, and where an expression has no
    value. A pause of 0 is the usual one, too: a host that is not known yet gets no less.

    Args:
        settings: The operator's settings, by host (reversed).
        hosts: HOSTS rows for the expressions.
        expressions: See ``host_expressions``.
    """
    counts, delays, bad = dict[str, int](), dict[str, float](), dict[str, int]()
    for name, expression in expressions.items():
        values = expression.of(host_values(hosts, expression.needs)).cast(pl.Float64)
        for key, value in zip(hosts.get_column("key"), values, strict=True):
            if value is None:
                continue
            if name == "max_count_expr" and not math.isnan(value):
                limit = math.floor(value + 0.5)
                counts[key] = limit if 0 < limit < NO_LIMIT else NO_LIMIT
            elif 0 <= value <= MAX_DELAY * 1000:
                if value:
                    delays[key] = value / 1000
            else:
                bad[name] = bad.get(name, 0) + 1
    counts |= {key: own.max_count for key, own in settings.items() if own.max_count is not None}
    delays |= {key: own.delay for key, own in settings.items() if own.delay is not None}
    boosts = {key: own.boost for key, own in settings.items() if own.boost is not None}
    return HostLimits(counts, delays, boosts, bad)


def with_limits(rows: StateRows, limits: HostLimits) -> tuple[StateRows, dict[str, int]]:
    """Returns rows with delays and boosted ``sort_value``, and counts.

    The delay that the metadata of a row says has priority.

    Args:
        rows: Rows with ``key``, ``delay``, and ``sort_value`` or ``score``.
        limits: The limits.
    """
    if not (limits.delays or limits.boosts or limits.bad):
        return rows, {}
    hosts = host_keys(rows.get_column("key"))
    if limits.delays:
        delay = hosts.replace_strict(limits.delays, default=None, return_dtype=pl.Float64)
        rows = rows.with_columns(delay=pl.coalesce("delay", delay))
    if limits.boosts:
        value = "sort_value" if "sort_value" in rows.columns else "score"
        factor = hosts.replace_strict(limits.boosts, default=1.0, return_dtype=pl.Float64)
        rows = rows.with_columns(sort_value=(pl.col(value) * factor).cast(pl.Float32))
    return rows, {f"bad_values/{name}": number for name, number in limits.bad.items()}


def blocked_hosts(settings: Mapping[str, HostSettings]) -> list[str]:
    """Returns the hosts (reversed) that a setting blocks."""
    return [key for key, own in settings.items() if own.blocked]


def without_blocked_hosts(
    rows: StateRows, settings: Mapping[str, HostSettings]
) -> tuple[StateRows, dict[str, int]]:
    """Returns rows without those of blocked hosts, and counts."""
    if not (blocked := blocked_hosts(settings)):
        return rows, {}
    allowed_rows = rows.filter(~host_keys(rows.get_column("key")).is_in(blocked))
    gone = len(rows) - len(allowed_rows)
    return allowed_rows, {"dropped/host_blocked": gone} if gone else {}


def with_own_limits(
    rows: StateRows, max_counts: Mapping[str, int]
) -> tuple[StateRows, StateRows, StateRows]:
    """Divides rows by the limit of their host.

    Returns:
        (rows of hosts with the usual limit, rows of hosts without any, others with ``group`` and
        ``most``).
    """
    if not max_counts:
        return rows, rows.clear(), rows.clear()
    hosts = host_keys(rows.get_column("key"))
    most = hosts.replace_strict(max_counts, default=None, return_dtype=pl.Int64)
    own = most.is_not_null()
    limited = own & (most < NO_LIMIT).fill_null(False)
    others = rows.with_columns(group=hosts, most=most).filter(limited)
    return rows.filter(~own), rows.filter(own & ~limited), others


def best_of_hosts(rows: StateRows) -> StateRows:
    """Returns the ``most`` rows of each ``group`` that rank highest.

    >>> rows = pl.DataFrame({"key": ["a", "b", "c"], "rank": [1, 3, 2], "group": ["h"] * 3,
    ...                      "most": [2] * 3})
    >>> best_of_hosts(rows).get_column("key").to_list()
    ['b', 'c']
    """
    order = rows.sort("rank", "key", descending=True)
    return order.filter(number_in("group") < pl.col("most"))


def interval_bounds(settings: Mapping[str, HostSettings]) -> Bounds:
    """Returns (shortest, longest interval in s) by host (reversed), of hosts that have any.

    >>> interval_bounds({"com.a": HostSettings(min_interval=60), "com.b": HostSettings()})
    {'com.a': (60, 2147483647)}
    """
    return {
        key: (own.min_interval or 1, own.max_interval or LONGEST_INTERVAL)
        for key, own in settings.items()
        if own.min_interval is not None or own.max_interval is not None
    }


def within_bounds(visits: VisitRows, bounds: Bounds, longest: int) -> VisitRows:
    """Returns scheduled rows with intervals within the bounds of their hosts, and due accordingly.

    A row with a fixed interval keeps it: it was set for this URL. An interval that a bound changes
    counts from the fetch, even if the schedule has moved the date towards the last change. No page is
    due sooner than its shortest interval after the fetch. The longest interval is not for pages that
    are gone: their intervals grow each time, so that a short one for fresh pages does not repeat
    requests that fail. The shortest is for them, too.

    Args:
        visits: Rows with ``key``, ``visited``, ``gone``, ``fixed_interval``, ``fetch_interval``,
            ``fetch_time`` and ``event.fetch_time``.
        bounds: The bounds.
        longest: The longest interval of all pages, s; it has priority over bounds.
    """
    hosts = host_keys(visits.get_column("key")) if bounds else None
    if hosts is None or not hosts.is_in(list(bounds)).any():
        return visits
    limits = ({key: min(pair[at], longest) for key, pair in bounds.items()} for at in (0, 1))
    low, high = (hosts.replace_strict(of, default=None, return_dtype=pl.Int64) for of in limits)
    interval = pl.col("fetch_interval").cast(pl.Int64)
    free = pl.col("fixed_interval").is_null() & pl.lit(low).is_not_null()
    high_of_visited = pl.when("visited").then(pl.lit(high))  # null is no bound
    bounded = free & (pl.col("visited") | pl.col("gone"))
    within = pl.when(bounded).then(interval.clip(pl.lit(low), high_of_visited)).otherwise(interval)
    fetched = pl.col("event.fetch_time")
    soonest = pl.when(free & pl.col("visited")).then(fetched + pl.lit(low) * 1000)
    return visits.with_columns(
        fetch_interval=within.cast(pl.Int32),
        fetch_time=pl.when(within == interval)
        .then(pl.max_horizontal("fetch_time", soonest))
        .otherwise(fetched + within * 1000),
    )
