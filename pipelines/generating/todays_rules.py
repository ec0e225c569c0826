"""Judges rows of the state by today's rules: filterdb's verdict, for filterdb and generate."""

from typing import Any

import polars as pl

from ...io.rows.small_components import read_seeds_hosts, seed_files
from ...io.snapshots.manifest import Pinned
from ...policy.generating.selection import GenerateOptions, refused_today
from ...policy.scope import judge_known


def judge_today(rows: pl.DataFrame, pinned: Pinned, options: Any) -> pl.DataFrame:
    """Returns what today's rules say of rows of the state; see ``judge_known``.

    Args:
        rows: Rows with ``key`` and ``distance``.
        pinned: The operation or export that reads the table.
        options: ``TargetOptions``.
    """
    return judge_known(rows, options, read_seeds_hosts(pinned.table, seed_files(pinned)))


def refusals_today(rows: pl.DataFrame, judged: pl.DataFrame, options: GenerateOptions) -> pl.Series:
    """Returns the reason why today's rules leave out each row, or null; see ``refused_today``."""
    return refused_today(
        rows.get_column("key"), judged, filter=options.filter, normalize=options.normalize
    )
