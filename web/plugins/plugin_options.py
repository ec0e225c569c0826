"""Options that name plug-ins: the sources of plug-ins in files travel with them to other processes."""

from collections.abc import Mapping
from typing import Any

from ..base.dataclass import dataclass
from ..base.options import options_of
from .plugin_files import is_plugin_file, plugin_sources, put_plugin_sources

_SOURCES = "plugin_sources"  # key in the pickled state


@dataclass(frozen=True)
class PluginOptions:
    """The base of options that may name plug-ins in files.

    A copy of the options in another process finds the files' sources there: they are pickled with
    the options.
    """

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if names := _file_names(self):
            state[_SOURCES] = plugin_sources(names)
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        values = dict(state)
        put_plugin_sources(values.pop(_SOURCES, {}))
        vars(self).update(values)


def _file_names(options: PluginOptions) -> list[str]:
    # Most options name no file; then their declarations are not read.
    if not any(".py:" in text for value in vars(options).values() for text in _texts(value)):
        return []
    return [name for name in plugin_names(options) if is_plugin_file(name)]


def plugin_names(options: object) -> list[str]:
    """Returns all names in options that choose plug-ins; built-in ones, too."""
    declared = (option for option in options_of(type(options)) if option.plugins)
    texts = (text for option in declared for text in _texts(getattr(options, option.name)))
    return [name for text in texts for name in names_in(text)]


def names_in(text: str) -> list[str]:
    """Returns the names of plug-ins in one value: ``NAME``, or ``KEY=NAME+NAME``.

    >>> names_in("inject=./a.py:strip+basic"), names_in("headings")
    (['./a.py:strip', 'basic'], ['headings'])
    """
    key, equals, names = text.partition("=")
    return names.split("+") if equals else [key]


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, tuple):
        return tuple(text for text in value if isinstance(text, str))
    return ()
