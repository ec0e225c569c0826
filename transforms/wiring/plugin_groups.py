"""The plug-ins that options choose, beside the built-in schedules, index filters and scorings."""

import logging

from ...io.parsing.plugins import PARSE_FILTERS, PluginGroup, installed_plugins, load_plugins
from ...policy.indexing.index_filter import BUILT_IN_FILTERS
from ...policy.schedules.reschedule import BUILT_IN_SCHEDULES
from ...policy.scoring.scoring import BUILT_IN_SCORINGS, ScoringOptions
from ...policy.scoring.scorings import Scorings, chosen_scorings

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
        for group, names in _names_by_group(options)
    )


def _names_by_group(options: object) -> Chosen:
    values = ((group, getattr(options, group.option, ())) for group in _GROUPS)
    return tuple((group, (names,) if isinstance(names, str) else names) for group, names in values)


def warn_of_hidden(options: object) -> None:
    """Warns of installed plug-ins that have the name of a chosen built-in component."""
    for group, names in _names_by_group(options):
        if ours := [name for name in names if name in group.built_in]:
            for name in sorted({*ours} & {*installed_plugins(group)}):
                _LOG.warning(
                    "%s %r is the built-in one; the plug-in of that name is not used: rename it",
                    group.kind, name,
                )  # fmt: skip


def scorings_of(options: ScoringOptions) -> Scorings:
    """Returns the scorings that options choose; their files are read again if they have changed.

    Raises:
        UsageError: A scoring is unknown, or cannot be imported.
        ValueError: A scoring lacks an option, or cannot read its file.
    """
    names = tuple(name for name in options.scoring if name not in BUILT_IN_SCORINGS)
    return chosen_scorings(options, dict(load_plugins(SCORINGS, names)))
