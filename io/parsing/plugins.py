"""Finds plug-ins by the entry points that installed packages declare."""

import functools
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from ...policy.indexing.index_options import BUILT_IN_FILTERS
from ...policy.schedules.built_in import BUILT_IN_SCHEDULES
from ...policy.scoring.scoring_options import BUILT_IN_SCORINGS, ScoringOptions
from ...policy.scoring.scorings import Scorings, chosen_scorings
from ...web.base.errors import UsageError, one_line


class PluginGroup(NamedTuple):
    """A kind of plug-in; each is a function or a class.

    Attributes:
        name: The group of entry points.
        kind: What one is called in messages.
        built_in: Names that need no plug-in.
        option: Name of the option that chooses them; empty if none does so alone.
    """

    name: str
    kind: str
    built_in: tuple[str, ...] = ()
    option: str = ""


PARSE_FILTERS = PluginGroup("nutbeam.parse_filters", "parse filter", option="parse_filters")
SCHEDULES = PluginGroup("nutbeam.schedules", "schedule", BUILT_IN_SCHEDULES, "schedule")
INDEX_FILTERS = PluginGroup(
    "nutbeam.index_filters", "index filter", BUILT_IN_FILTERS, "index_filters"
)
SCORINGS = PluginGroup("nutbeam.scorings", "scoring", BUILT_IN_SCORINGS, "scoring")
_GROUPS = (PARSE_FILTERS, SCHEDULES, INDEX_FILTERS, SCORINGS)
_LOG = logging.getLogger("nutbeam.plugins")
Chosen = tuple[tuple[PluginGroup, tuple[str, ...]], ...]


def chosen_plugins(options: object) -> Chosen:
    """Returns the names that options choose, by group; built-in ones are left out."""
    return tuple(
        (group, tuple(name for name in names if name not in group.built_in))
        for group, names in _chosen(options)
    )


def _chosen(options: object) -> Chosen:
    values = ((group, getattr(options, group.option, ())) for group in _GROUPS)
    return tuple((group, (names,) if isinstance(names, str) else names) for group, names in values)


def installed_plugins(group: PluginGroup) -> dict[str, EntryPoint]:
    """Returns the plug-ins of a group that are installed here, by name."""
    return dict(_installed(group.name, tuple(sys.path)))


@functools.cache  # to look reads the metadata of all packages
def _installed(group: str, search_path: tuple[str, ...]) -> dict[str, EntryPoint]:
    found = entry_points(group=group)
    return {point.name: point for point in sorted(found, key=lambda point: point.name)}


def warn_of_hidden(options: object) -> None:
    """Warns of installed plug-ins that have the name of a chosen built-in component."""
    for group, names in _chosen(options):
        if ours := [name for name in names if name in group.built_in]:
            for name in sorted({*ours} & {*installed_plugins(group)}):
                _LOG.warning(
                    "%s %r is the built-in one; the plug-in of that name is not used: rename it",
                    group.kind, name,
                )  # fmt: skip


def check_plugins(group: PluginGroup, names: Sequence[str], known: Iterable[str]) -> None:
    """Checks that plug-ins are installed, and that no name is given twice.

    Args:
        group: Their group.
        names: The chosen names.
        known: The installed names.

    Raises:
        UsageError: A name is unknown or given twice.
    """
    known = list(dict.fromkeys([*group.built_in, *sorted(known)]))
    for name in names:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there is none"
            raise UsageError(f"no {group.kind} {name!r} is installed: {there}")
        if names.count(name) > 1:
            raise UsageError(f"{group.kind} {name!r} is given twice")


@functools.cache
def load_plugins(
    group: PluginGroup, names: tuple[str, ...]
) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Imports plug-ins, once per process; returns (name, function) in the given order.

    Raises:
        UsageError: A plug-in is unknown, its package cannot be imported, or its class lacks a
            method.
    """
    if not names:
        return ()
    points = installed_plugins(group)
    check_plugins(group, names, points)
    return tuple((name, _load(group, points[name])) for name in names)


def scorings_of(options: ScoringOptions) -> Scorings:
    """Returns the scorings that options choose; their files are read again if they have changed.

    Raises:
        UsageError: A scoring is unknown, or cannot be imported.
        ValueError: A scoring lacks an option, or cannot read its file.
    """
    names = tuple(name for name in options.scoring if name not in BUILT_IN_SCORINGS)
    return chosen_scorings(options, dict(load_plugins(SCORINGS, names)))


def _load(group: PluginGroup, point: EntryPoint) -> Callable[..., Any]:
    what = f"{group.kind} {point.name!r}"
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise UsageError(f"{what} cannot be imported: {reason}") from error
    if not callable(loaded):
        raise UsageError(f"{what} is no function: {point.value!r}")
    if lacking := sorted(getattr(loaded, "__abstractmethods__", ())):
        raise UsageError(f"{what}: the class {point.value!r} lacks {', '.join(lacking)}")
    function: Callable[..., Any] = loaded
    return function
