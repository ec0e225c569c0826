"""Limits the number of names of counts, for rules of URL filters and content types."""

import pathlib
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.filters.verdicts import EXCLUDED, FILTER_TIMEOUT, FILTERED, NOT_INCLUDED

JudgedRows: TypeAlias = pl.DataFrame  # ``key`` and ``reason`` of ``UrlRules.admit``, perhaps ``by``
# Number of rules with a count of their own; a file may have a hundred thousand rules.
MOST_RULES = 50
RULE_FAMILIES = (EXCLUDED, FILTERED, NOT_INCLUDED, FILTER_TIMEOUT)
OTHERS = "other_rules"
# The same limit holds for types without a parser: servers invent them.
_TYPES, OTHER_TYPES = "no_parser/", "no_parser/other"


@dataclass(frozen=True)
class RuleCountOptions:
    """Options of counting rules."""

    count_by_rule: bool = option(
        False,
        "Also count the URLs that each rule of URL filters refuses, as filtered/FILE:LINE: "
        f"the {MOST_RULES} rules that refuse most, and the sum of the others.",
        group="job",
    )


def count_reasons(judged: JudgedRows, prefix: str = "dropped/") -> Counter[str]:
    """Returns the number of rows with each reason, under the prefix and the reason.

    >>> count_reasons(pl.DataFrame({"reason": ["scheme", None, "scheme"]}))
    Counter({'dropped/scheme': 2})
    """
    reasons = judged.get_column("reason").drop_nulls().value_counts()
    return Counter({f"{prefix}{reason}": number for reason, number in reasons.iter_rows()})


def by_rule(judged: JudgedRows) -> dict[str, int]:
    """Returns the number of URLs that each rule refused.

    Args:
        judged: Rows of ``UrlRules.admit``, with ``reason`` and perhaps ``by``.

    >>> judged = {"reason": ["filtered", None, "filtered"], "by": ["/etc/a.txt:3", None, "/etc/a.txt:3"]}
    >>> by_rule(pl.DataFrame(judged, schema_overrides={"by": pl.String}))
    {'filtered/a.txt:3': 2}
    """
    if "by" not in judged.columns:
        return {}
    refused = _of_rules(judged.select("reason", "by")).drop_nulls()
    counts: Counter[str] = Counter()
    for reason, by, number in refused.group_by("reason", "by").len().iter_rows():
        counts[_name(reason, by)] += number
    return cap_rule_counts(counts)


def rules_by_row(judged: JudgedRows) -> dict[int, str]:
    """Returns the count's name of the rule that refused a row, by row number."""
    if "by" not in judged.columns:
        return {}
    refused = _of_rules(judged.select("reason", "by").with_row_index("row")).drop_nulls()
    return {row: _name(reason, by) for row, reason, by in refused.iter_rows()}


def _of_rules(judged: JudgedRows) -> JudgedRows:
    """Leaves out faults of plug-ins, which no rule decides."""
    return judged.filter(pl.col("reason").is_in(RULE_FAMILIES))


def _name(reason: str, by: str) -> str:
    return f"{reason}/{pathlib.PurePath(by).name}"


def cap_rule_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts with a sum for all rules except the ``MOST_RULES`` most frequent ones.

    The same limit applies to content types without a parser.

    >>> cap_rule_counts({"dropped/filtered": 9, "filtered/a.txt:3": 9})
    {'dropped/filtered': 9, 'filtered/a.txt:3': 9}
    """
    rules = [name for name in counts if is_of_rule(name)]
    types = [name for name in counts if name.startswith(_TYPES)]
    others = {name: f"{name.partition('/')[0]}/{OTHERS}" for name in _beyond(rules, counts)}
    others |= dict.fromkeys(_beyond(types, counts), OTHER_TYPES)
    if not others:
        return dict(counts)
    total = Counter[str]()
    for name, n in counts.items():
        total[others.get(name, name)] += n
    return dict(sorted(total.items()))


def _beyond(names: list[str], counts: Mapping[str, int]) -> list[str]:
    """Returns the names that are not among the most frequent ones."""
    if len(names) <= MOST_RULES:
        return []
    rest = (OTHERS, OTHER_TYPES)
    return sorted(names, key=lambda name: (name.endswith(rest), -counts[name], name))[MOST_RULES:]


def is_of_rule(name: str) -> bool:
    """Returns whether a count belongs to a rule."""
    return name.startswith(tuple(f"{family}/" for family in RULE_FAMILIES))
