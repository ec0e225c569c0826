"""The rules by which generate chooses: of single hosts, of URLs today, and as a snapshot records them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import polars as pl

from ...io.reading.host_rows import LARGE, find_hosts
from ...io.rows.seed_hosts import read_seed_hosts
from ...io.rows.small_components import read_host_settings
from ...io.snapshots.pinned import Pinned
from ...policy.base.key_columns import host_keys
from ...policy.components.host_rows import HostSettings
from ...policy.components.schema import HOSTS, empty
from ...policy.generating.selection import GenerateOptions
from ...policy.hosting.host_settings import HostLimits, host_expressions, host_limits_of
from ...policy.scope import TargetOptions, judge_known

_UNSET = HostSettings()


def limits_of_hosts(
    pinned: Pinned, options: GenerateOptions, keys: pl.Series, now: int
) -> HostLimits:
    """Returns the limits of the hosts of some rows at a time (ms); see ``host_limits_of``."""
    expressions = host_expressions(options, now)
    hosts = empty(HOSTS)
    if expressions:  # then a part of the host table is read for each tablet
        needs = {name for expression in expressions.values() for name in expression.needs}
        hosts = find_hosts(pinned, host_keys(keys).unique(), without=LARGE - needs)
    return host_limits_of(read_host_settings(pinned), hosts, expressions)


def settings_of_host(pinned: Pinned, host: str) -> HostSettings:
    """Returns the operator's settings of a host (reversed)."""
    return read_host_settings(pinned).get(host, _UNSET)


def host_limits_record(
    pinned: Pinned, options: GenerateOptions, key: str, now: int
) -> dict[str, Any]:
    """Returns the settings and limits of the host of a row key at a time (ms), for people and JSON.

    Returns:
        ``settings`` of the operator that are set; what generate uses: ``max_count``, ``delay`` (s)
        and ``boost``, or None for the usual.
    """
    keys = pl.Series("key", [key])
    host = host_keys(keys).item()
    own, limits = settings_of_host(pinned, host), limits_of_hosts(pinned, options, keys, now)
    usual = vars(_UNSET)
    settings = {name: value for name, value in vars(own).items() if value != usual[name]}
    settings |= settings.pop("metadata", {})
    return {
        "settings": settings,
        "max_count": limits.max_counts.get(host),
        "delay": limits.delays.get(host),
        "boost": limits.boosts.get(host),
    }


def judge_today(rows: pl.DataFrame, pinned: Pinned, options: Any) -> pl.DataFrame:
    """Returns what today's rules say of rows of the state; see ``judge_known``.

    Args:
        rows: Rows with ``key`` and ``distance``.
        pinned: The operation or export that reads the table.
        options: ``TargetOptions``.
    """
    return judge_known(rows, options, read_seed_hosts(pinned))


# The classes of the options of choosing: a snapshot of generate records those that are not defaults.
CHOOSING = (TargetOptions, GenerateOptions)
_Of = TypeVar("_Of", bound=GenerateOptions)
_FIELDS = {field.name: field for kind in CHOOSING for field in dataclasses.fields(kind)}


def as_recorded(options: _Of, record: Mapping[str, Any]) -> _Of:
    """Returns options with those of a record, and defaults for the others of choosing.

    >>> as_recorded(GenerateOptions(top_n=9), {"min_score": 0.5, "of_later": 1}).min_score
    0.5
    """
    present = [name for name in _FIELDS if hasattr(options, name)]
    recorded_values = {
        n: tuple(v) if isinstance(v, list) else v for n, v in record.items() if n in present
    }
    default = {name: _FIELDS[name].default for name in present}
    # A value of another type is a stranger's.
    right = {n: v for n, v in recorded_values.items() if _is_like(v, default[n])}
    values: dict[str, Any] = default | right
    return dataclasses.replace(options, **values)


def _is_like(value: Any, default: Any) -> bool:
    if isinstance(default, tuple):
        return isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    if isinstance(default, float) or default is None:
        return type(value) in (int, float)
    return type(value) is type(default)
