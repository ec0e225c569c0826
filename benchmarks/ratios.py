"""Finds the ratios in what benchmarks print, and those that are worse than in the last run."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

# By "table number, row, column", since a row may be in several tables of one benchmark. A place ends with
# ``LARGER`` if a larger ratio is better.
Ratios: TypeAlias = dict[str, float]

LARGER = " (larger is better)"
WORSE = 0.15  # by which a ratio may change
_RULE = re.compile(r" +-+(?:  -+)*")
# Heads of columns with ratios; not "rows / s" and "of that start, s".
_IS_RATIO = re.compile(r"ratio|x \S|gain$|of (?!it )(?!.*, s$)|.* / (?!s\b)")
# Words of a ratio, or of its row or table, that is better the larger it is.
_OF_SPEED = re.compile(r"\bx |speed|gain|of bare|of data|of the best|this / |/s\b|per (?:CPU )?s")
_OF_MEMORY = re.compile(r"memory|MB")


class Regression(NamedTuple):
    """A ratio that is worse than in the last run.

    Attributes:
        command: The benchmark.
        place: Table, row and column.
        last: The ratio in the last run.
        now: The ratio now.
    """

    command: str
    place: str
    last: float
    now: float

    def __str__(self) -> str:
        return f"{self.command}: {self.place}: {self.last:g} before, {self.now:g} now"


def ratios_of(output: str) -> Ratios:
    """Returns the ratios in the tables that a benchmark prints.

    >>> ratios_of("t\\n  work   ours  ratio\\n  -----  ----  -----\\n  CPU s     3    1.5")
    {'1, CPU s, ratio': 1.5}
    """
    ratios: Ratios = {}
    lines = output.splitlines()
    rules = [number for number, line in enumerate(lines) if _RULE.fullmatch(line)]
    for table, number in enumerate(rules, 1):
        spans = [match.span() for match in re.finditer("-+", lines[number])]
        heads = [lines[number - 1][start:end].strip() for start, end in spans]
        title = lines[number - 2] if number > 1 else ""
        for line in lines[number + 1 :]:
            if not line.startswith("  "):
                break
            row, *cells = (line[start:end].strip() for start, end in spans)
            for column, value in _ratios_in(heads, cells):
                words = f"{title}|{heads[0]}|{row}|{column}"
                of_memory = _OF_MEMORY.search(f"{heads[0]}|{row}")
                larger = LARGER if _OF_SPEED.search(words) and not of_memory else ""
                ratios[f"{table}, {row}, {column}{larger}"] = value
    return ratios


def _ratios_in(heads: list[str], cells: list[str]) -> Iterator[tuple[str, float]]:
    """Yields heads and values of the ratios in a row; a head that comes again gets a number."""
    for at, cell in enumerate(cells, 1):
        value = re.fullmatch(r"\d[\d,]*(?:\.\d+)?", cell)
        if value and _IS_RATIO.match(heads[at]) and (number := float(cell.replace(",", ""))):
            again = heads[1:at].count(heads[at])
            yield heads[at] + (f" {again + 1}" if again else ""), number


def regressions(
    last: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]]
) -> list[Regression]:
    """Returns the ratios that are worse by more than ``WORSE``, by benchmark and place.

    Args:
        last: The ratios of the last run, by command; see ``ratios_of``.
        now: Those of this run; commands and places that were not in the last run do not count.
    """
    return [
        Regression(command, place, last[command][place], ratio)
        for command, ratios in now.items()
        for place, ratio in ratios.items()
        if _change(place, last.get(command, {}).get(place, ratio), ratio) > 1 + WORSE
    ]


def _change(place: str, last: float, now: float) -> float:
    """Returns how many times as bad a ratio is now."""
    return last / now if place.endswith(LARGER) else now / last
