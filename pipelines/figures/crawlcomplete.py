"""crawlcomplete: counts how many pages of each host or domain are fetched, and how many are not."""

import dataclasses
import functools

from ...policy.figures import by_name
from ...web.base.options import option
from ..base.command import TABLE, Invocation
from .counting import CountOptions, counted_rows, print_counts

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class Options(CountOptions):
    """Options of crawlcomplete."""

    mode: str = option(
        "host", "What pages are counted by.", choices=("host", "domain"),
        nutch="crawlcomplete -mode",
    )  # fmt: skip


def run(invocation: Invocation) -> int:
    counting = functools.partial(by_name, mode=invocation.options.mode)
    return print_counts(invocation, counted_rows(invocation, ("key", "status"), counting))
