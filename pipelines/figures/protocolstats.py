"""protocolstats: counts the URLs of each HTTP code."""

import dataclasses

from ...policy.figures import by_protocol
from ..base.command import TABLE, Invocation
from .counting import CountOptions, counted_rows, print_counts

ARGUMENTS = (TABLE,)
_COLUMNS = ("http_code", "protocol_status", "last_fetch_time")


@dataclasses.dataclass(frozen=True)
class Options(CountOptions):
    """Options of protocolstats."""


def run(invocation: Invocation) -> int:
    return print_counts(invocation, counted_rows(invocation, _COLUMNS, by_protocol))
