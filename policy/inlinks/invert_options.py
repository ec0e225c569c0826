"""Options of the link table."""

import dataclasses

from ...web.base.options import option, shared_option
from ..schedules.schedule import ScheduleOptions


@dataclasses.dataclass(frozen=True)
class InvertOptions:
    """Which links are kept in the link table, and for how long."""

    GROUP = "links"

    ignore_internal_links: bool = option(
        False,
        "Leave links between pages of one host out of the link table. A crawl of one site has no "
        "other links.",
        nutch="linkdb.ignore.internal.links",
    )
    ignore_external_links: bool = option(
        False,
        "Leave links between pages of different hosts out of the link table.",
        nutch="linkdb.ignore.external.links",
    )
    max_anchor_length: int = option(
        100,
        "How much of the text of a link is kept.",
        unit="characters",
        nutch="linkdb.max.anchor.length",
        minimum=0,
    )
    max_link_age: int = option(
        0,
        "Drop links that were not found again for longer than this. A link in the newest document "
        "of its page stays. 0 means twice --max_fetch_interval.",
        unit="s",
        minimum=0,
    )

    def __post_init__(self) -> None:
        check = getattr(super(), "__post_init__", None)
        if check is not None:
            check()
        if self.ignore_internal_links and self.ignore_external_links:
            raise ValueError(
                "--ignore_internal_links and --ignore_external_links together leave no link, "
                "got true and true"
            )


@dataclasses.dataclass(frozen=True)
class InvertTableOptions(InvertOptions):
    """Options of inverting links, without those of launching."""

    max_fetch_interval: int = shared_option(ScheduleOptions, "max_fetch_interval")

    @property
    def oldest_ms(self) -> int:
        """The age at which a link that is not seen any more is dropped, ms."""
        return 1000 * (self.max_link_age or 2 * self.max_fetch_interval)


@dataclasses.dataclass(frozen=True)
class BestOptions:
    """How many inlinks of a page are shown and used."""

    GROUP = "links"

    max_inlinks: int = option(
        10_000,
        "How many inlinks of a page are shown: those from the pages with the best scores; among "
        "equal scores, links from other hosts come first.",
        nutch="linkdb.max.inlinks",
        minimum=0,
    )
