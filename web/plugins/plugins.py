"""Finds plug-ins: by the entry points that installed packages declare, or in files."""

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.errors import UsageError, one_line
from .plugin_files import fault_text, is_plugin_file, load_plugin_file, plugin_label

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class PluginGroup(NamedTuple):
    """A kind of plug-in; each is a function or a class.

    Attributes:
        name: The group of entry points.
        kind: What one is called in messages.
        built_in: Names that need no plug-in.
        option: Name of the option that chooses them; empty if none does so alone.
        keyed: Name of an option that chooses them with a key, as ``KEY=NAME+NAME``; may be empty.
    """

    name: str
    kind: str
    built_in: tuple[str, ...] = ()
    option: str = ""
    keyed: str = ""


PARSE_FILTERS = PluginGroup("nutbeam.parse_filters", "parse filter", option="parse_filters")


def installed_plugins(group: PluginGroup) -> "dict[str, EntryPoint]":
    """Returns the plug-ins of a group that are installed here, by name."""
    points = _entry_points(tuple(sys.path)).select(group=group.name)
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


@functools.cache  # to look reads the metadata of all packages
def _entry_points(search_path: tuple[str, ...]) -> Any:
    from importlib.metadata import entry_points  # most processes use no plug-in

    return entry_points()


def check_plugins(group: PluginGroup, names: Sequence[str], installed: Iterable[str]) -> None:
    """Checks that plug-ins are installed or in files, and that no name is given twice.

    Args:
        group: Their group.
        names: The chosen names.
        installed: The installed names.

    Raises:
        UsageError: A name is unknown or given twice.
    """
    choices = list(dict.fromkeys([*group.built_in, *sorted(installed)]))
    labels = [plugin_label(name) for name in names]
    for name, label in zip(names, labels, strict=True):
        if name not in choices and not is_plugin_file(name):
            there = f"there are {', '.join(choices)}" if choices else "there is none"
            hint = "; a plug-in in a file is PATH.py:NAME" if "/" in name or ".py" in name else ""
            raise UsageError(f"no {group.kind} {name!r} is installed: {there}{hint}")
        if labels.count(label) > 1:
            raise UsageError(
                _clash(group, [names[at] for at, each in enumerate(labels) if each == label])
            )


def _clash(group: PluginGroup, names: Sequence[str]) -> str:
    """Returns why names with one label are refused: it is one plug-in, or counts would mix them."""
    if len({Path(name) for name in names}) == 1:
        return f"{group.kind} {names[0]!r} is given twice"
    listed = " and ".join(map(repr, names))
    return f"{group.kind}s {listed} would both be counted as {plugin_label(names[0])}: rename one"


def load_plugins(
    group: PluginGroup, names: tuple[str, ...]
) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Imports plug-ins, once per process; returns (name, function) in the given order.

    Raises:
        UsageError: A plug-in is unknown, its package or file cannot be imported, or its class
            lacks a method.
    """
    if not names:
        return ()
    in_files = all(is_plugin_file(name) for name in names)
    check_plugins(group, names, () if in_files else installed_plugins(group))
    return tuple((name, _load(group, name)) for name in names)


def load_plugin(group: PluginGroup, name: str) -> Callable[..., Any]:
    """Imports one plug-in; see ``load_plugins``."""
    ((_, function),) = load_plugins(group, (name,))
    return function


def _load(group: PluginGroup, name: str) -> Callable[..., Any]:
    if is_plugin_file(name):
        what = f"{group.kind} {name!r}"
        return _checked(load_plugin_file(name, what), name, what)
    return _load_installed(group, name)


@functools.cache
def _load_installed(group: PluginGroup, name: str) -> Callable[..., Any]:
    point, what = installed_plugins(group)[name], f"{group.kind} {name!r}"
    points = _entry_points(tuple(sys.path)).select(group=group.name, name=name)
    packages = sorted({each.dist.name for each in points if each.dist})
    if len(packages) > 1:
        raise UsageError(f"{what} is in the packages {' and '.join(packages)}: uninstall one")
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise UsageError(f"{what} cannot be imported: {reason}") from error
    return _checked(loaded, point.value, what)


def _checked(loaded: Any, place: str, what: str) -> Callable[..., Any]:
    if not callable(loaded):
        raise UsageError(f"{what} is no function: {place!r}")
    if lacking := sorted(getattr(loaded, "__abstractmethods__", ())):
        raise UsageError(f"{what}: the class {place!r} lacks {', '.join(lacking)}")
    function: Callable[..., Any] = loaded
    return function


def forget_plugins() -> None:
    """Forgets the installed plug-ins that were imported, so that they are imported again."""
    _load_installed.cache_clear()


def callable_plugin(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Returns a function, or the object of a class, which must then be callable.

    Args:
        function: A plug-in that is called with data.
        what: What it is, for messages.

    Raises:
        UsageError: The object cannot be made, or is not callable.
    """
    if not isinstance(function, type):
        return function
    try:
        made = function()
    except (Exception, SystemExit) as error:
        raise UsageError(f"{what} cannot be made: {fault_text(error, function)}") from error
    if not callable(made):
        raise UsageError(f"{what} is a class without a method __call__: {function.__name__!r}")
    return made
