"""The options of a job that its snapshot records: those that are not the defaults, and link rules.

A table records the rules for links of its last job. So the next one can say that it lacks a rule that
has kept URLs out.
"""

import dataclasses
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..web.base.visible import visible
from ..web.rules.url_rules import UrlOptions
from ..web.urls.schemes import SchemeOptions
from .scope import ScopeOptions, TrapOptions
from .traps import DepthOptions

# Schemes are what a command can request, such as files of one machine. They choose no links.
_NO_RULES = frozenset(field.name for field in dataclasses.fields(SchemeOptions))
_RULES = (UrlOptions, ScopeOptions, TrapOptions, DepthOptions)
_DEFAULTS = {
    field.name: field.default
    for kind in _RULES
    for field in dataclasses.fields(kind)
    if field.name not in _NO_RULES
}
# What is shown of a value: a table may come from a stranger.
_SHOWN_CHARACTERS, _SHOWN_PARTS = 100, 10


def recorded_options(options: Any, *kinds: type) -> dict[str, Any]:
    """Returns the options of some classes that are not the defaults, for JSON.

    >>> recorded_options(ScopeOptions("host"), ScopeOptions)
    {'scope': 'host'}
    """
    fields = {field.name: field.default for kind in kinds for field in dataclasses.fields(kind)}
    values = {name: getattr(options, name, default) for name, default in fields.items()}
    own = {name: value for name, value in values.items() if value != fields[name]}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in own.items()}


def chosen_options(options: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Returns the recorded options of a class without those that choose no links or texts.

    >>> chosen_options({"scope": "host", "__class__": "of a stranger"}, ScopeOptions)
    {'scope': 'host'}
    """
    names = {field.name for field in dataclasses.fields(kind)} - _NO_RULES
    return {name: value for name, value in options.items() if name in names}


def has_link_rules(options: Any) -> bool:
    """Returns whether options have rules for links: those for seeds have no scope.

    >>> has_link_rules(ScopeOptions()), has_link_rules(UrlOptions())
    (True, False)
    """
    return hasattr(options, "scope")


def recorded_rules(options: Any) -> dict[str, Any] | None:
    """Returns the rules for links of a job, for JSON: null is the default. None if it has none."""
    if not has_link_rules(options):
        return None
    default = dict.fromkeys(name for name in _DEFAULTS if hasattr(options, name))
    recorded = recorded_options(options, *_RULES)
    return default | {name: value for name, value in recorded.items() if name in _DEFAULTS}


def missing_rules(
    previous: Mapping[str, Any], options: Any, set_options: Collection[str]
) -> tuple[list[str], list[str]]:
    """Returns the rules of the job before that a job lacks, and the words that drop them on purpose.

    Both are as on a command line. A rule that is given another value, also an empty one, is not
    missing.

    Args:
        previous: The rules that the table records.
        options: Options of the job, which has rules for links.
        set_options: Names of the options that have a value from the command line, the environment
            or a file.

    >>> from .scope import TargetOptions
    >>> missing_rules({"scope": "host", "exclude": ["/a"], "depth": 2}, TargetOptions(), {"depth"})
    (['--scope host', '--exclude /a'], ['--scope domain', "--exclude ''"])
    """
    lost = {
        name: value
        for name, value in previous.items()
        if name in _DEFAULTS and hasattr(options, name) and name not in set_options
    }
    return list(option_words(lost)), [_dropping(name) for name in lost]


def _dropping(name: str) -> str:
    """Returns an option with its default, as on a command line."""
    default = _DEFAULTS[name]
    if isinstance(default, bool):
        text = str(default).lower()
    else:
        text = ",".join(default) if isinstance(default, tuple) else str(default)
    return f"--{name} {shlex.quote(text)}"


def option_words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yields options as on a command line; long values are cut.

    >>> list(option_words({"no_filter": True, "exclude": ["/a", "b c"]}))
    ['--no_filter', '--exclude /a', "--exclude 'b c'"]
    """
    for name, value in options.items():
        if value is True:
            yield f"--{name}"
            continue
        parts = value if isinstance(value, list) else [value]
        for part in parts[:_SHOWN_PARTS]:
            text = visible(str(part), keep="")
            cut = text[:_SHOWN_CHARACTERS] + "…" if len(text) > _SHOWN_CHARACTERS else text
            yield f"--{name} {shlex.quote(cut)}"
        if len(parts) > _SHOWN_PARTS:
            yield f"{len(parts) - _SHOWN_PARTS:,} more of --{name}"
