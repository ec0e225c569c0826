"""Applies limits of single hosts to the rows that generate may choose."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from ...web.base.columns import number_in
from ...web.urls.key_columns import host_keys
from ..components.host_rows import HostSettings
from ..components.schema import MAX_DELAY
from ..expressions.compiler import Expression, value_of
from ..expressions.values import Type
from ..generating.selection import GenerateOptions
from .host_fields import host_fields, host_values

NO_LIMIT = 2**31 - 1


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
    settings: Mapping[str, HostSettings], hosts: pl.DataFrame, expressions: Mapping[str, Expression]
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
        for host, value in zip(hosts.get_column("key"), values, strict=True):
            if value is None:
                continue
            if math.isnan(value):
                bad[name] = bad.get(name, 0) + 1
            elif name == "max_count_expr":
                limit = math.floor(value + 0.5)
                counts[host] = limit if 0 < limit < NO_LIMIT else NO_LIMIT
            elif 0 <= value <= MAX_DELAY * 1000:
                if value:
                    delays[host] = value / 1000
            else:
                bad[name] = bad.get(name, 0) + 1
    for host, own in settings.items():
        if own.max_count is not None:
            counts[host] = own.max_count
        if own.delay is not None:
            delays[host] = own.delay
    boosts = {host: own.boost for host, own in settings.items() if own.boost is not None}
    return HostLimits(counts, delays, boosts, bad)


def with_limits(rows: pl.DataFrame, limits: HostLimits) -> tuple[pl.DataFrame, dict[str, int]]:
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
        delay = _looked_up(hosts, limits.delays, pl.Float64)
        rows = rows.with_columns(delay=pl.coalesce("delay", delay))
    if limits.boosts:
        value = "sort_value" if "sort_value" in rows.columns else "score"
        factor = _looked_up(hosts, limits.boosts, pl.Float64).fill_null(1.0)
        rows = rows.with_columns(sort_value=(pl.col(value) * factor).cast(pl.Float32))
    return rows, {f"bad_values/{name}": number for name, number in limits.bad.items()}


def blocked_hosts(settings: Mapping[str, HostSettings]) -> list[str]:
    """Returns the hosts (reversed) that a setting blocks."""
    return [host for host, own in settings.items() if own.blocked]


def without_blocked_hosts(
    rows: pl.DataFrame, settings: Mapping[str, HostSettings]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns rows without those of blocked hosts, and counts."""
    if not (blocked := blocked_hosts(settings)):
        return rows, {}
    allowed_rows = rows.filter(~host_keys(rows.get_column("key")).is_in(blocked))
    gone = len(rows) - len(allowed_rows)
    return allowed_rows, {"dropped/host_blocked": gone} if gone else {}


def _looked_up(
    hosts: pl.Series, values: Mapping[str, float], dtype: type[pl.DataType]
) -> pl.Series:
    return hosts.replace_strict(
        list(values), list(values.values()), default=None, return_dtype=dtype
    )


def with_own_limits(
    rows: pl.DataFrame, max_counts: Mapping[str, int]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Divides rows by the limit of their host.

    Returns:
        (rows of hosts with the usual limit, rows of hosts without any, others with ``group`` and
        ``most``).
    """
    if not max_counts:
        return rows, rows.clear(), rows.clear()
    hosts = host_keys(rows.get_column("key"))
    most = _looked_up(hosts, max_counts, pl.Int64)
    own = most.is_not_null()
    limited = own & (most < NO_LIMIT).fill_null(False)
    others = rows.with_columns(group=hosts, most=most).filter(limited)
    return rows.filter(~own), rows.filter(own & ~limited), others


def best_of_hosts(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the ``most`` rows of each ``group`` that rank highest.

    >>> rows = pl.DataFrame({"key": ["a", "b", "c"], "rank": [1, 3, 2], "group": ["h"] * 3,
    ...                      "most": [2] * 3})
    >>> best_of_hosts(rows).get_column("key").to_list()
    ['b', 'c']
    """
    order = rows.sort("rank", "key", descending=True)
    return order.filter(number_in("group") < pl.col("most"))
