"""Options shared by the commands that change a table."""

from ...policy.indexing.index_options import IndexTableOptions
from ...policy.scoring.scoring import BUILT_IN_SCORINGS, ScoringOptions
from ...transforms.wiring.plugin_groups import SCORINGS, scorings_of
from ...web.base.dataclass import dataclass
from ...web.base.joined_options import joined_options
from ...web.base.option_checks import Launch
from ...web.base.options import option
from ...web.plugins.plugins import installed_plugins
from .launch import LaunchOptions


@dataclass(frozen=True)
class JobOptions(LaunchOptions):
    """Options of every job that changes the table."""

    operation: str = option(
        "",
        "Id of the operation. The same id again changes nothing. Without it, a new one is made.",
        pattern=r"[A-Za-z0-9._-]*",
    )
    one_worker_urls: int = option(
        50_000,
        "On a cluster, a phase that works on at most this many URLs is one step on one worker; the "
        "fetch is for all workers. A page of a batch counts as up to 10 URLs. 50 URLs count as one for "
        "generate and for the dedup of a batch, 10 for a dedup of all pages. 0: all is for all workers.",
        minimum=0,
    )


@dataclass(frozen=True)
class BatchOptions(JobOptions):
    """Options of the jobs that work on a batch."""

    GROUP = "job"

    batch: str = option("", "Id of the batch. Without it, the oldest batch that waits.")


@dataclass(frozen=True)
class CheckedScoringOptions(ScoringOptions):
    """Options of scorings, whose files are read before a job starts."""

    def check_setup(self, _: Launch) -> None:
        """Makes the scorings if all are installed here: plug-ins may be on workers only."""
        plugins = set(self.scoring) - set(BUILT_IN_SCORINGS)
        if plugins <= set(installed_plugins(SCORINGS)):
            scorings_of(self)


@joined_options
class CheckedIndexOptions(CheckedScoringOptions, IndexTableOptions):
    """Options of an index, whose filters and writers are opened before a job starts."""

    def check_setup(self, launch: Launch) -> None:
        """Opens the filters and writers of the index, if there is one; sends nothing."""
        if self.index:
            from ...transforms.indexing.index_setup import check_index

            check_index(self, launch.address)
