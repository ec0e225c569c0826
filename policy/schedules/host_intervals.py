"""Reads the shortest and longest intervals of hosts, for adaptive schedules."""

import dataclasses

import polars as pl

from ...web.rule_files.rule_files import RuleFile, entries, host_name
from ...web.urls.key_columns import host_keys
from ...web.urls.row_keys import host_key


@dataclasses.dataclass(frozen=True)
class HostIntervals:
    """Bounds of the intervals of some hosts.

    Attributes:
        bounds_of: (host, reversed; shortest, longest interval in s).
    """

    bounds_of: tuple[tuple[str, float, float], ...] = ()

    def of(self, host: str) -> tuple[float, float] | None:
        """Returns the bounds of the intervals of a host (reversed), s; None for the usual ones."""
        for name, shortest, longest in self.bounds_of:
            if name == host:
                return shortest, longest
        return None

    def bounds(
        self, rows: pl.DataFrame, shortest: float, longest: float
    ) -> tuple[pl.Expr, pl.Expr]:
        """Returns the bounds of the interval of each row, s.

        Args:
            rows: Rows with ``key``.
            shortest: Shortest interval of other hosts, s.
            longest: Longest interval of other hosts, s.
        """
        if not self.bounds_of:
            return pl.lit(shortest), pl.lit(longest)
        hosts, names = host_keys(rows.get_column("key")), [name for name, _, _ in self.bounds_of]
        low, high = (
            hosts.replace_strict(
                names,
                [bounds[at] for bounds in self.bounds_of],
                default=usual,
                return_dtype=pl.Float64,
            )
            for at, usual in ((1, shortest), (2, longest))
        )
        return pl.lit(low), pl.lit(high)


def host_intervals(file: RuleFile, shortest: float, longest: float) -> HostIntervals:
    r"""Returns the bounds in a file with lines ``host shortest longest``, in s.

    0 or ``default`` stands for the bound of other hosts. Of equal hosts the last line counts.

    Args:
        file: The file.
        shortest: Shortest interval of other hosts, s.
        longest: Longest interval of other hosts, s.

    Raises:
        ValueError: A line has another form, no host name, or an interval outside those bounds; it
            is quoted.

    Names may be written in Unicode; URLs have them in punycode.

    >>> host_intervals(RuleFile("f", "www.example.com 3600 0\n"), 60, 86_400).bounds_of
    (('com.example.www', 3600.0, 86400.0),)
    """
    bounds_of = {}
    for number, line in entries(file.text):
        name, *parts = line.split()
        host = host_name(name)
        if host is None:
            raise ValueError(f"{file.name}:{number}: expected a host, got {name!r} in {line!r}")
        texts = parts if len(parts) == 2 else ["", ""]  # an empty text is no interval
        low, high = map(_seconds, texts, (shortest, longest))
        if low is None or high is None or not shortest <= low <= high <= longest:
            raise ValueError(
                f"{file.name}:{number}: expected a host, its shortest and its longest interval in "
                f"s, between {shortest} and {longest}, got {line!r}"
            )
        bounds_of[host_key(host)] = (low, high)
    return HostIntervals(tuple((name, *bounds) for name, bounds in bounds_of.items()))


def _seconds(text: str, usual: float) -> float | None:
    """Returns an interval in s; None if the text is none."""
    if text == "default":
        return float(usual)
    try:
        return float(text) or float(usual)
    except ValueError:
        return None
