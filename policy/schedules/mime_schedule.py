"""The schedule ``mime_adaptive``: the adaptive schedule with rates per content type."""

import dataclasses
import re

import polars as pl

from ...web.rule_files.rule_files import RuleFile, entries
from .adaptive_schedule import adapt
from .host_intervals import HostIntervals
from .visits import ScheduleContext

# As in Nutch's adaptive-mimetypes.txt.
SHIPPED_RATES = RuleFile(
    "adaptive-mimetypes.txt",
    "text/html\t0.2\t0.2\napplication/xhtml+xml\t0.2\t0.2\napplication/pdf\t0.1\t0.4\n",
)
# Tokens of RFC 9110.
_TYPE = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+", re.ASCII)


@dataclasses.dataclass(frozen=True)
class MimeAdaptiveSchedule:
    """The schedule ``mime_adaptive``.

    Attributes:
        hosts: Shortest and longest intervals of some hosts.
        rates: (content type in lower case, inc_rate, dec_rate).
    """

    hosts: HostIntervals
    rates: tuple[tuple[str, float, float], ...]

    def __call__(self, visits: pl.DataFrame, context: ScheduleContext) -> pl.DataFrame:
        """Sets intervals by the rates of the content type, or else by those of the options."""
        options = context.options
        content_type = pl.coalesce("event.content_type", "content_type")
        mime = content_type.str.split_exact(";", 1).struct.field("field_0").str.strip_chars()
        visits = visits.with_columns(mime=mime.str.to_lowercase())
        names = [name for name, _, _ in self.rates]
        inc, dec = (
            pl.col("mime").replace_strict(
                names, [rate[at] for rate in self.rates], default=usual, return_dtype=pl.Float64
            )
            for at, usual in ((1, options.inc_rate), (2, options.dec_rate))
        )
        return adapt(visits, context, self.hosts, inc, dec).drop("mime")


def mime_rates(file: RuleFile) -> tuple[tuple[str, float, float], ...]:
    r"""Returns (content type, inc_rate, dec_rate) of each line; of equal types the last counts.

    Raises:
        ValueError: A line is not a type and two rates with tabs between; it is quoted.

    >>> mime_rates(RuleFile("rates", "# types\nText/HTML\t0.1\t0.3\n"))
    (('text/html', 0.1, 0.3),)
    """
    rates_of = {}
    for number, line in entries(file.text):
        name, *rates = (part.strip() for part in line.split("\t"))
        try:
            inc, dec = map(float, rates)
        except ValueError:
            inc = dec = -1.0
        if not _TYPE.fullmatch(name):
            raise ValueError(
                f"{file.name}:{number}: expected a content type such as text/html, without "
                f"parameters, got {name!r} in {line!r}"
            )
        # NaN is not between any numbers.
        if not (0 <= inc < float("inf") and 0 <= dec <= 1):
            raise ValueError(
                f"{file.name}:{number}: expected a content type, an inc_rate of at least 0 and a "
                f"dec_rate from 0 to 1, with tabs between, got {line!r}"
            )
        rates_of[name.lower()] = (inc, dec)
    return tuple((name, *rates) for name, rates in rates_of.items())
