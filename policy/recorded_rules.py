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
from .scope import ScopeOptions, TargetOptions
from .traps import DepthOptions, TrapOptions

_RULES = (UrlOptions, ScopeOptions, TrapOptions, DepthOptions)
_NAMES = {field.name for kind in _RULES for field in dataclasses.fields(kind)}
# What is shown of a value: a table may come from a stranger.
_SHOWN_CHARACTERS, _SHOWN_PARTS = 100, 10


def recorded_options(options: Any, *kinds: type) -> dict[str, Any]:
    """Returns the options of some classes that are not the defaults, for JSON.

    >>> recorded_options(ScopeOptions("host"), ScopeOptions)
    {'scope': 'host'}
    """
    fields = {field.name: field.default for kind in kinds for field in dataclasses.fields(kind)}
    values = {name: getattr(options, name, default) for name, default in fields.items()}
    return {n: _for_json(value) for n, value in values.items() if value != fields[n]}


def recorded_rules(options: Any) -> dict[str, Any] | None:
    """Returns the rules for links of a job, for JSON: null is the default. None if it has none."""
    if not isinstance(options, TargetOptions):
        return None
    names = [field.name for kind in _RULES for field in dataclasses.fields(kind)]
    default = dict.fromkeys(name for name in names if hasattr(options, name))
    return default | recorded_options(options, *_RULES)


def following_rules(before: Mapping[str, Any], rules: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the rules that a snapshot records.

    Args:
        before: Those of the snapshot before it.
        rules: ``recorded_rules`` of the job; rules that it does not have stay.

    >>> following_rules({"depth": 2, "scope": "host"}, {"scope": None, "exclude": ["x"]})
    {'depth': 2, 'exclude': ['x']}
    """
    both = {**before, **(rules or {})}
    return {name: value for name, value in both.items() if value is not None}


def missing_rules(before: Mapping[str, Any], options: Any, given: Collection[str]) -> list[str]:
    """Returns the rules of the job before, as on a command line, that a job lacks.

    A rule that is given another value, also an empty one, is not missing.

    Args:
        before: The rules that the table records.
        options: Options of the job.
        given: Names of the options that have a value from the command line, the environment or a
            file.

    >>> missing_rules({"scope": "host", "depth": 2}, TargetOptions(), {"depth"})
    ['--scope host']
    """
    if not isinstance(options, TargetOptions):
        return []
    known = {name for name in _NAMES if hasattr(options, name)}
    lost = {n: value for n, value in before.items() if n in known and n not in given}
    return list(option_words(lost))


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


def _for_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
