"""rollback: makes a snapshot with the content of an older one; deletes nothing."""

from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.operations import new_id
from ...io.table.opening import open_table
from ...io.upkeep.rollback import roll_back
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option, shared_option
from ..base.command import TABLE, Invocation
from ..launch.heartbeat import settle_failures
from ..launch.job_options import JobOptions
from ..launch.job_reports import job_record, report

ARGUMENTS = (TABLE,)


@dataclass(frozen=True)
class Options:
    """Options of rollback."""

    to: int = option(0, "Number of the snapshot to go back to; see history.", minimum=0)
    past_purge: bool = option(
        False,
        "Go back to a snapshot before a purge, too: purged rows come back, but stay in the "
        "blocklist.",
    )
    operation: str = shared_option(JobOptions, "operation")


def run(invocation: Invocation) -> int:
    options, address, began = invocation.options, str(invocation.table), now_ms()
    manifest = newest_manifest(address)
    if options.to == 0:
        raise UsageError("--to must be the number of a snapshot; nutbeam history lists them")
    if options.to == manifest.snapshot:
        raise UsageError(f"snapshot {options.to} is the newest: there is nothing to go back to")
    restored = roll_back(
        address, options.to, f"{options.operation or new_id()}.rollback", options.past_purge
    )
    settle_failures(open_table(address).files, began)
    return report(
        invocation,
        {**job_record(restored, address), "restores": restored.restores},
    )
