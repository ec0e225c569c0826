"""Finds plug-ins by the entry points that installed packages declare."""

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

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


def installed_plugins(group: PluginGroup) -> dict[str, EntryPoint]:
    """Returns the plug-ins of a group that are installed here, by name."""
    return dict(_entry_points(group.name, tuple(sys.path)))


@functools.cache  # to look reads the metadata of all packages
def _entry_points(group: str, search_path: tuple[str, ...]) -> dict[str, EntryPoint]:
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return {point.name: point for point in points}


def check_plugins(group: PluginGroup, names: Sequence[str], installed: Iterable[str]) -> None:
    """Checks that plug-ins are installed, and that no name is given twice.

    Args:
        group: Their group.
        names: The chosen names.
        installed: The installed names.

    Raises:
        UsageError: A name is unknown or given twice.
    """
    choices = list(dict.fromkeys([*group.built_in, *sorted(installed)]))
    for name in names:
        if name not in choices:
            there = f"there are {', '.join(choices)}" if choices else "there is none"
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
