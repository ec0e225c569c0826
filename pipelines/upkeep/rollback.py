"""rollback: a new snapshot whose content is that of an older one. Nothing is deleted."""

import dataclasses

from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.operations import new_id
from ...io.upkeep.rollback import roll_back
from ...web.base.errors import UsageError
from ...web.base.options import option
from ..command_line.command import TABLE, Invocation
from ..launch.job import describe, report

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of rollback."""

    to: int = option(0, "Number of the snapshot to go back to; see history.", group="rollback")
    past_purge: bool = option(
        False,
        "Go back behind a purge, too: what it took out comes back, but stays barred.",
        group="rollback",
    )
    operation: str = option(
        "",
        "Id of the operation. The same id again changes nothing; none makes a new one.",
        pattern=r"[A-Za-z0-9._-]*",
        group="job",
    )

    def __post_init__(self) -> None:
        if self.to < 0:
            raise ValueError(f"--to must be the number of a snapshot, got {self.to!r}")


def run(invocation: Invocation) -> int:
    options, table = invocation.options, str(invocation.table)
    manifest = newest_manifest(table)
    if options.to == 0:
        raise UsageError("--to must say to which snapshot; nutbeam history lists them")
    if options.to == manifest.snapshot:
        raise UsageError(f"snapshot {options.to} is the newest: there is nothing to go back to")
    made = roll_back(
        table, options.to, f"{options.operation or new_id()}.rollback", options.past_purge
    )
    report(invocation, {**describe(made), "restores": made.restores})
    return 0
