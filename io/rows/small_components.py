"""Components that each process reads once, as a whole, or writes as a whole.

They are the blocklist, the operator's settings of hosts, and numbers of URLs of hosts and domains. A job that changes rows of the state writes the differences that
this makes in the numbers of URLs of hosts: files of ``host_counts``, in the same commit. The next
``updatedb`` adds them to the host table. Until then readers add them.
"""

import functools
from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from ...policy.components.blocklist import Blocklist, blocklist_of
from ...policy.components.host_rows import (
    HostSettings,
    host_changes,
    settings_of,
    sum_host_counts,
    urls_of_domains,
)
from ...policy.components.schema import (
    BLOCKLIST,
    HOST_COUNTS,
    HOST_SETTINGS,
    HOSTS,
    HostRows,
    conform,
    empty,
    to_frame,
)
from ..snapshots.pinned import Pinned
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..tablets.resolve import write_bases
from ..tablets.written import Written

SETTINGS_COMPONENT = "host_settings"
SettingsByHost = Mapping[str, Mapping[str, str]]
BLOCKLIST_COMPONENT = "blocklist"
HOST_COUNTS_COMPONENT = "host_counts"


def _paths(pinned: Pinned, component: str) -> tuple[str, ...]:
    return tuple(file.path for file in pinned.files(component))


def read_host_settings(pinned: Pinned) -> Mapping[str, HostSettings]:
    """Returns the settings by host (reversed), in the snapshot that ``pinned`` reads."""
    return _settings(pinned.table, _paths(pinned, SETTINGS_COMPONENT))


@functools.lru_cache(maxsize=4)
def _settings(root: Folder, paths: tuple[str, ...]) -> Mapping[str, HostSettings]:
    return {host: settings_of(values) for host, values in _values(root, paths).items()}


def _values(root: Folder, paths: tuple[str, ...]) -> dict[str, dict[str, str]]:
    if not paths:
        return {}
    rows = collect(scan([root / path for path in paths], HOST_SETTINGS))
    table = conform(rows, HOST_SETTINGS)
    return {
        key: dict(pairs)
        for key, pairs in zip(table["key"].to_pylist(), table["settings"].to_pylist(), strict=True)
        if pairs
    }


def settings_rows(values: SettingsByHost) -> pl.DataFrame:
    """Returns HOST_SETTINGS rows in key order; of a host without settings null."""
    records = [
        {"key": host, "settings": sorted(settings.items()) or None}
        for host, settings in sorted(values.items())
    ]
    return to_frame(pa.Table.from_pylist(records, schema=HOST_SETTINGS))


def write_settings(pinned: Pinned, values: SettingsByHost) -> Written:
    """Writes the settings of a table with those of some hosts replaced."""
    paths = _paths(pinned, SETTINGS_COMPONENT)
    stored_values = _values(pinned.table, paths)
    values_by_host = {host: v for host, v in {**stored_values, **values}.items() if v}
    if values_by_host == stored_values:
        return Written(SETTINGS_COMPONENT, counts={"hosts": len(values)})
    frames = [settings_rows(values_by_host)] if values_by_host else []
    files = write_bases(pinned.table, SETTINGS_COMPONENT, frames) if frames else ()
    return Written(SETTINGS_COMPONENT, files, paths, counts={"hosts": len(values)})


def read_blocklist(pinned: Pinned) -> Blocklist:
    """Returns the blocklist in the snapshot that ``pinned`` reads."""
    return _blocklist(pinned.table, _paths(pinned, BLOCKLIST_COMPONENT))


@functools.lru_cache(maxsize=4)
def _blocklist(root: Folder, paths: tuple[str, ...]) -> Blocklist:
    if not paths:
        return Blocklist()
    return blocklist_of(collect(scan([root / path for path in paths], BLOCKLIST)))


def pending_counts(pinned: Pinned) -> pl.DataFrame:
    """Returns the HOST_COUNTS rows that are not in the host table yet, one per host."""
    return _pending(pinned.table, _paths(pinned, HOST_COUNTS_COMPONENT))


@functools.lru_cache(maxsize=2)
def _pending(root: Folder, paths: tuple[str, ...]) -> pl.DataFrame:
    frames = (collect(scan([root / path], HOST_COUNTS)) for path in paths)
    return sum_host_counts(frames)


@functools.lru_cache(maxsize=2)
def _pending_domain_urls(pinned: Pinned) -> pl.DataFrame:
    """Returns ``key`` and ``domain_urls`` of registered domains that ``pending_counts`` adds."""
    return urls_of_domains(pending_counts(pinned))


def read_domain_urls(pinned: Pinned, domains: pl.Series) -> HostRows:
    """Reads ``key`` and present ``domain_urls`` of domains (reversed)."""
    if not len(domains):
        return empty(HOSTS).select("key", "domain_urls")
    columns = ("key", "domain_urls")
    rows = pinned.find_rows("hosts", domains, columns).select(columns)
    pending = _pending_domain_urls(pinned).filter(pl.col("key").is_in(domains.implode()))
    return pl.concat([rows, pending]).group_by("key").agg(pl.col("domain_urls").sum())


@functools.lru_cache(maxsize=2)
def pending_changes(pinned: Pinned) -> pl.DataFrame:
    """Returns HOSTS rows, in key order, that add what ``pending_counts`` returns."""
    return host_changes(pending_counts(pinned))


def forgets_pending(pinned: Pinned) -> Written:
    """Returns the part of a commit that removes the pending differences after they were added."""
    return Written(HOST_COUNTS_COMPONENT, replaced=_paths(pinned, HOST_COUNTS_COMPONENT))
