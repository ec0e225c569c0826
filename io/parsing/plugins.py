"""Finds plug-ins by the entry points that installed packages declare."""

import functools
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ...policy.parse_filters import Filter
from ...policy.scoring.scoring_options import BUILT_IN, ScoringOptions
from ...policy.scoring.scorings import MakeScoring, Scorings, chosen_scorings
from ...web.base.errors import UsageError

PARSE_FILTERS = "nutbeam.parse_filters"
SCORINGS = "nutbeam.scorings"


def installed_filters() -> dict[str, EntryPoint]:
    """Returns the parse filters that are installed here, by name."""
    return _installed(PARSE_FILTERS)


def installed_scorings() -> dict[str, EntryPoint]:
    """Returns the scorings of plug-ins that are installed here, by name."""
    return _installed(SCORINGS)


def _installed(group: str) -> dict[str, EntryPoint]:
    found = entry_points(group=group)
    return {point.name: point for point in sorted(found, key=lambda point: point.name)}


def check_filters(names: Sequence[str], known: Iterable[str]) -> None:
    """Checks that parse filters are installed, and that no name is given twice.

    Args:
        names: The chosen names.
        known: The installed names.

    Raises:
        UsageError: A name is unknown or given twice.
    """
    known = sorted(known)
    for name in names:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there is none"
            raise UsageError(f"no parse filter {name!r} is installed: {there}")
        if names.count(name) > 1:
            raise UsageError(f"parse filter {name!r} is given twice")


def check_scorings(names: Sequence[str], known: Iterable[str]) -> None:
    """Checks that scorings are built in or installed.

    Args:
        names: The chosen names.
        known: The installed names.

    Raises:
        UsageError: A name is unknown.
    """
    there = list(dict.fromkeys([*BUILT_IN, *sorted(known)]))
    for name in names:
        if name not in there:
            raise UsageError(f"there is no scoring {name!r}: there are {', '.join(there)}")


@functools.cache
def load_filters(names: tuple[str, ...]) -> tuple[tuple[str, Filter], ...]:
    """Imports parse filters, once per process; returns (name, filter) in the given order.

    Raises:
        UsageError: A filter is unknown, or its package cannot be imported.
    """
    if not names:
        return ()
    points = installed_filters()
    check_filters(names, points)
    return tuple((name, _load(points[name], "parse filter")) for name in names)


@functools.cache
def load_scorings(names: tuple[str, ...]) -> tuple[tuple[str, MakeScoring], ...]:
    """Imports scorings of plug-ins, once per process; returns (name, scoring) of these.

    Raises:
        UsageError: A scoring is unknown, or its package cannot be imported.
    """
    if set(names) <= set(BUILT_IN):
        return ()
    points = installed_scorings()
    check_scorings(names, points)
    return tuple((name, _load(points[name], "scoring")) for name in names if name not in BUILT_IN)


def scorings_of(options: ScoringOptions) -> Scorings:
    """Returns the scorings that options choose; their files are read again if they have changed.

    Raises:
        UsageError: A scoring is unknown, or cannot be imported.
        ValueError: A scoring lacks an option, or cannot read its file.
    """
    return chosen_scorings(options, dict(load_scorings(options.scoring)))


def _load(point: EntryPoint, kind: str) -> Any:
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UsageError(f"{kind} {point.name!r} cannot be imported: {reason}") from error
    if not callable(loaded):
        raise UsageError(f"{kind} {point.name!r} is no function: {point.value!r}")
    return loaded
