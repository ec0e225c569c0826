"""What metrics say about a table: its counts since it exists, and its newest snapshot."""

import dataclasses
from collections.abc import Mapping

from ...web.base.dataclass import dataclass


@dataclass(frozen=True)
class TableFigures:
    """Figures of a table.

    Attributes:
        snapshot: Number of the newest snapshot; 0 is a table without one.
        committed: When it was committed, s since 1970; 0 is unknown.
        counts: Sums of the counts of all snapshots that the table has had, by (job, name).
        commits: Number of these snapshots by job.
        last_commits: The time that counted as now for the last one of each job, ms.
        last_pages: When the last fetch with pages was committed, s; 0 is unknown.
        urls: Number of URLs by the name of their status.
        hosts: Number of hosts with URLs.
        batches: (number, their URLs) by the phase that batches have reached.
        sizes: (files, rows, bytes) by component, as users see it.
    """

    snapshot: int = 0
    committed: float = 0.0
    counts: Mapping[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    commits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    last_commits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    last_pages: float = 0.0
    urls: Mapping[str, int] = dataclasses.field(default_factory=dict)
    hosts: int = 0
    batches: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
