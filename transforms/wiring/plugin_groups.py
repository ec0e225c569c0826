"""The kinds of plug-ins, and those that options choose beside the built-in ones."""

import logging

from ...policy.chunking.embeddings import EMBEDDINGS
from ...policy.chunking.tokenizers import TOKENIZERS
from ...policy.indexing.index_filter import BUILT_IN_FILTERS
from ...policy.schedules.reschedule import BUILT_IN_SCHEDULES
from ...policy.scoring.scoring import BUILT_IN_SCORINGS, ScoringOptions
from ...policy.scoring.scorings import Scorings, chosen_scorings
from ...web.pages.parse_options import PARSERS
from ...web.plugins.plugin_options import names_in
from ...web.plugins.plugins import PARSE_FILTERS, PluginGroup, installed_plugins, load_plugins
from ...web.rules.url_options import URL_FILTERS, URL_NORMALIZERS
from ...web.urls.schemes import PROTOCOLS

SCHEDULES = PluginGroup("nutbeam.schedules", "schedule", BUILT_IN_SCHEDULES, "schedule")
INDEX_FILTERS = PluginGroup(
    "nutbeam.index_filters", "index filter", BUILT_IN_FILTERS, "index_filters"
)
SCORINGS = PluginGroup("nutbeam.scorings", "scoring", BUILT_IN_SCORINGS, "scoring")
# Index writers have no option of their own; io/indexing/writer_kinds.py has them.
PLUGIN_GROUPS = (
    *(URL_FILTERS, URL_NORMALIZERS, PROTOCOLS, PARSERS),
    *(PARSE_FILTERS, SCHEDULES, SCORINGS, INDEX_FILTERS, TOKENIZERS, EMBEDDINGS),
)
_LOG = logging.getLogger("nutbeam.plugins")
Chosen = tuple[tuple[PluginGroup, tuple[str, ...]], ...]


def chosen_plugins(options: object) -> Chosen:
    """Returns the names that options choose, by group; built-in ones are left out."""
    return tuple(
        (group, tuple(name for name in names if name not in group.built_in))
        for group, names in _names_by_group(options)
    )


def _names_by_group(options: object) -> Chosen:
    return tuple((group, _names_of(options, group)) for group in PLUGIN_GROUPS)


def _names_of(options: object, group: PluginGroup) -> tuple[str, ...]:
    names = getattr(options, group.option, ()) if group.option else ()
    listed = tuple(filter(None, (names,))) if isinstance(names, str) else tuple(names)
    keyed = getattr(options, group.keyed, ()) if group.keyed else ()
    # One name may stand under several keys, and once in the list.
    others = dict.fromkeys(name for text in keyed for name in names_in(text))
    return (*listed, *(name for name in others if name not in listed))


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
