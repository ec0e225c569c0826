"""The option that names files of rules; the rules travel with the options to other processes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.dataclass import dataclass
from ..base.option_checks import Launch
from ..base.options import option
from ..plugins.plugin_options import PluginOptions

if TYPE_CHECKING:
    from .extraction_rules import RuleSet

_SETS = "rule_sets"  # key in the pickled state
_sent_sets: "dict[str, RuleSet]" = {}  # by path, in a process to which they were sent


@dataclass(frozen=True)
class ExtractOptions(PluginOptions):
    """Options of rules by which fields are taken from pages.

    A copy of the options in another process finds the rules there: they are pickled with the options.
    """

    GROUP = "parse"

    extract: tuple[str, ...] = option(
        (),
        "Files of rules (toml): take fields from pages by them, while these are parsed, and store them; see "
        "the guide on extracting.",
        takes="path",
    )

    def check_setup(self, _: Launch) -> None:
        """Reads the files of rules."""
        rule_sets_of(self.extract)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if self.extract:
            state[_SETS] = {one: _rule_set_at(one) for one in self.extract}
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        values = dict(state)
        _sent_sets.update(values.pop(_SETS, {}))
        super().__setstate__(values)


def rule_sets_of(paths: tuple[str, ...]) -> "list[RuleSet]":
    """Returns the sets of rules in files.

    Raises:
        ValueError: A file cannot be read, a rule is wrong, or two sets have one name.
    """
    sets = [_rule_set_at(path) for path in paths]
    for number, rule_set in enumerate(sets):
        if rule_set.name in {other.name for other in sets[:number]}:
            raise ValueError(
                f"{paths[number]}: the set {rule_set.name!r} is there twice: begin one of the files with "
                'name = "another_name"'
            )
    return sets


def _rule_set_at(path: str) -> "RuleSet":
    from .rule_reader import read_extraction_file  # late: it loads what parses HTML

    return _sent_sets.get(path) or read_extraction_file(path)
