"""All options of updatedb but those of launching it."""

import dataclasses

from ..links import LinkOptions
from .status import UpdateOptions


@dataclasses.dataclass(frozen=True)
class UpdateTableOptions(UpdateOptions, LinkOptions):
    """Options of updating, without those of launching."""

    @property
    def by_merit(self) -> bool:
        """Whether new URLs are admitted by merit; else all are of domains of seeds."""
        return self.scope == "any" and self.domain_budget >= 0 and self.additions_allowed
