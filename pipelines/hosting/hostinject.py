"""hostinject: sets delay, limits, intervals and more of single hosts.

::

    lines ─ settings ─ by tablet ─ replace ─▶ hosts', host_settings'
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.rows.small_components import (
    SETTINGS_COMPONENT,
    SettingsByHost,
    settings_rows,
    write_settings,
)
from ...io.snapshots.operations import Operation
from ...io.tablets.resolve import Resolver, resolving
from ...policy.components.schema import HOST_SETTINGS, HOSTS, empty
from ...policy.hosting.host_settings import host_lines
from ...transforms.apply_changes import Target, change_rows
from ...transforms.elements.chunks import named_chunks
from ...transforms.for_each import REPORTS
from ...transforms.operations import Begin
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.rule_files.rule_files import entries
from ..base.command import TABLE, Argument, Invocation, configuration
from ..launch.job import run_job
from ..launch.job_options import JobOptions

ARGUMENTS = (
    TABLE,
    Argument(
        "file",
        "File with a line per host: HOST NAME=VALUE …; a host alone on its line loses its "
        "settings.",
    ),
)
_MOST = 200_000


@dataclass(frozen=True)
class Options(JobOptions):
    """Options of hostinject."""


def run(invocation: Invocation) -> int:
    values = read_lines(invocation.arguments["file"])
    return run_job(invocation, functools.partial(build, values=values), "hostinject")


def read_lines(path: str) -> SettingsByHost:
    """Returns the settings in a file, by host (reversed).

    Raises:
        UsageError: It cannot be read, or a line is wrong or contradicts another one.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"cannot read {path!r}: {why}") from error
    with configuration():
        values = host_lines(entries(text), path)
    if not 1 <= len(values) <= _MOST:
        raise UsageError(f"expected 1 to {_MOST:,} hosts in {path!r}, got {len(values):,}")
    return values


def build(
    tickets: beam.PCollection[Ticket], options: Options, values: SettingsByHost
) -> beam.PCollection[Ticket]:
    """Replaces the settings of hosts; returns the ticket for a next job."""
    operations = tickets | "Begin" >> Begin("hostinject")
    return change_rows(
        operations, "Settings", (_whole_table, _changes, (values,)),
        {"hosts": Target(HOST_SETTINGS, _resolver)}, reads=("hosts", SETTINGS_COMPONENT),
    )  # fmt: skip


def _whole_table(operation: Operation) -> Iterator[Operation]:
    yield operation


def _changes(operation: Operation, values: SettingsByHost) -> Iterator[Any]:
    yield beam.pvalue.TaggedOutput(REPORTS, write_settings(operation, values))
    yield from named_chunks("hosts", settings_rows(values), HOST_SETTINGS)


def _resolver(_: Operation) -> Resolver:
    return resolving(set_settings)


def set_settings(rows: pl.DataFrame, changes: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns rows of the host table with the settings of some replaced; adds missing hosts."""
    host_rows = rows.drop("settings").join(changes, on="key", how="full", coalesce=True)
    others = ~host_rows.get_column("key").is_in(changes.get_column("key").implode())
    unchanged_keys = host_rows.filter(others)["key"].implode()
    unchanged_rows = rows.filter(rows.get_column("key").is_in(unchanged_keys))
    new = host_rows.filter(~others).select(HOSTS.names).cast(empty(HOSTS).schema)
    new = new.with_columns(pl.col("seed").fill_null(False), pl.col("requests").fill_null(0))
    return pl.concat([unchanged_rows, new]).sort("key"), {}
