"""The rules of updatedb: its options, and what they choose."""

import dataclasses

import pyarrow as pa

from ...web.base.dataclass import dataclass
from ...web.base.joined_options import joined_options
from ...web.base.options import option
from ..components.page_facts import FactNeeds
from ..components.schema import CHANGES
from ..links import LinkOptions
from ..schedules.reschedule import CheckedScheduleOptions
from ..schedules.visits import Schedule, default_schedule
from ..scoring.scoring import ScoringOptions
from ..scoring.scorings import OPIC, Scorings
from ..traps import BudgetOptions


@joined_options
class UpdateOptions(CheckedScheduleOptions, BudgetOptions, ScoringOptions):
    """Options of updatedb: which URLs it adds, and what it does with pages that failed to parse."""

    GROUP = "updatedb"

    additions_allowed: bool = option(
        True,
        "Add URLs that were found as links. With false, updatedb adds no URLs to the table.",
        nutch="db.update.additions.allowed",
    )
    delete_failed_parse: bool = option(
        False,
        "Set the status db_parse_failed for pages that failed to parse, and schedule them like gone "
        "pages.",
        nutch="parser.delete.failed.parse",
    )


@joined_options
class UpdateTableOptions(UpdateOptions, LinkOptions):
    """Options of updating, without those of launching."""

    @property
    def by_merit(self) -> bool:
        """Whether new URLs are admitted by merit; else all are of domains of seeds."""
        return self.scope == "any" and self.domain_budget >= 0 and self.additions_allowed


@dataclass(frozen=True)
class UpdateRules:
    """The rules of an update.

    Attributes:
        options: Which links count, which URLs are added, intervals and limits.
        scorings: The scorings.
        schedule: Schedules the rows that were visited. Only the step that resolves a range needs
            it, and sets the schedule that the options choose.
        needs: What these rules need to know of pages.
        event_schema: Columns of the events of pages: CHANGES, and what these scorings store in rows.
    """

    options: UpdateTableOptions
    scorings: Scorings = OPIC
    schedule: Schedule = default_schedule
    needs: FactNeeds = dataclasses.field(init=False)
    event_schema: pa.Schema = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        of_documents, of_state = self.scorings.document_columns, self.scorings.row_columns
        needs = FactNeeds(of_documents, of_state, self.options.by_merit)
        event_schema = pa.schema([*CHANGES, *(column.field for column in self.scorings.own)])
        object.__setattr__(self, "needs", needs)
        object.__setattr__(self, "event_schema", event_schema)
