"""The settings and limits of single hosts, as generate applies them: for commands that explain."""

from typing import Any

import polars as pl

from ...io.reading.host_rows import LARGE, find_hosts
from ...io.rows.small_components import read_host_settings
from ...io.snapshots.manifest import Pinned
from ...policy.components.host_rows import HostSettings
from ...policy.components.schema import HOSTS, empty
from ...policy.generating.selection import GenerateOptions
from ...policy.hosting.host_settings import HostLimits, host_expressions, host_limits_of
from ...web.urls.key_columns import host_keys

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
