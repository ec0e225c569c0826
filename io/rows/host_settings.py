"""Reads and writes the operator's settings of hosts."""

import functools
from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from ...policy.components.host_rows import HostSettings, settings_of
from ...policy.components.schema import HOST_SETTINGS, conform, to_frame
from ..snapshots.manifest import Pinned
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..tablets.resolve import write_bases
from ..tablets.written import Written

SETTINGS_COMPONENT = "host_settings"
SettingsByHost = Mapping[str, Mapping[str, str]]


def read_host_settings(pinned: Pinned) -> Mapping[str, HostSettings]:
    """Returns the settings by host (reversed), in the snapshot that ``pinned`` reads."""
    return _settings(pinned.table, _paths(pinned))


def _paths(pinned: Pinned) -> tuple[str, ...]:
    return tuple(file.path for file in pinned.files(SETTINGS_COMPONENT))


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
    paths = _paths(pinned)
    stored_values = _values(pinned.table, paths)
    values_by_host = {host: v for host, v in {**stored_values, **values}.items() if v}
    if values_by_host == stored_values:
        return Written(SETTINGS_COMPONENT, counts={"hosts": len(values)})
    frames = [settings_rows(values_by_host)] if values_by_host else []
    files = write_bases(pinned.table, SETTINGS_COMPONENT, frames) if frames else ()
    return Written(SETTINGS_COMPONENT, files, paths, counts={"hosts": len(values)})
