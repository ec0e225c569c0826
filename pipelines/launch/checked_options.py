"""Options of jobs whose checks need more than the options: plug-ins, the writers of an index."""

import dataclasses

from ...io.parsing.plugins import installed_plugins
from ...policy.indexing.index_options import IndexTableOptions
from ...policy.scoring.scoring import BUILT_IN_SCORINGS, ScoringOptions
from ...transforms.wiring.plugin_groups import SCORINGS, scorings_of
from ...web.base.option_checks import Launch


@dataclasses.dataclass(frozen=True)
class CheckedScoringOptions(ScoringOptions):
    """Options of scorings, whose files are read before a job starts."""

    def check_setup(self, _: Launch) -> None:
        """Makes the scorings if all are installed here: plug-ins may be on workers only."""
        plugins = set(self.scoring) - set(BUILT_IN_SCORINGS)
        if plugins <= set(installed_plugins(SCORINGS)):
            scorings_of(self)


@dataclasses.dataclass(frozen=True)
class CheckedIndexOptions(CheckedScoringOptions, IndexTableOptions):
    """Options of an index, whose filters and writers are opened before a job starts."""

    def check_setup(self, launch: Launch) -> None:
        """Opens the filters and writers of the index, if there is one; sends nothing."""
        if self.index:
            from ...transforms.indexing.index_making import check_index  # late: few jobs need it

            check_index(self, launch.address)
