"""Finds plug-ins by the entry points that installed packages declare."""

import functools
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points

from ...policy.parse_filters import Filter
from ...web.base.errors import UsageError

PARSE_FILTERS = "nutbeam.parse_filters"


def installed_filters() -> dict[str, EntryPoint]:
    """Returns the parse filters that are installed here, by name."""
    found = entry_points(group=PARSE_FILTERS)
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
    return tuple((name, _load(points[name])) for name in names)


def _load(point: EntryPoint) -> Filter:
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UsageError(f"parse filter {point.name!r} cannot be imported: {reason}") from error
    if not callable(loaded):
        raise UsageError(f"parse filter {point.name!r} is no function: {point.value!r}")
    filter_: Filter = loaded
    return filter_
