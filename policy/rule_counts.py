"""How often each rule of the URL filters refused a URL: counts beside those by reason."""

import dataclasses
import pathlib
from collections import Counter
from collections.abc import Mapping

import polars as pl

from ..web.filters.verdicts import FILTERED, TIMEOUT
from ..web.options import option

# So many rules are counted; a file may have a hundred thousand.
MOST_RULES = 50
FAMILIES = (FILTERED, TIMEOUT)
OTHERS = "other_rules"


@dataclasses.dataclass(frozen=True)
class RuleCountOptions:
    """Whether rules are counted."""

    count_by_rule: bool = option(
        False,
        "Count what URL filters refuse by rule, too, as filtered/FILE:LINE; "
        f"the {MOST_RULES} rules that refuse most, the others together.",
        group="job",
    )


def by_rule(judged: pl.DataFrame) -> dict[str, int]:
    """Returns how many URLs each rule refused.

    Args:
        judged: ``reason`` and maybe ``by``, as ``UrlRules.admit`` has them.

    >>> judged = {"reason": ["filtered", None, "filtered"], "by": ["/etc/a.txt:3", None, "/etc/a.txt:3"]}
    >>> by_rule(pl.DataFrame(judged, schema_overrides={"by": pl.String}))
    {'filtered/a.txt:3': 2}
    """
    if "by" not in judged.columns:
        return {}
    refused = judged.select("reason", "by").drop_nulls()
    counts: Counter[str] = Counter()
    for reason, by, number in refused.group_by("reason", "by").len().iter_rows():
        counts[_name(reason, by)] += number
    return capped(counts)


def rules_by_row(judged: pl.DataFrame) -> dict[int, str]:
    """Returns the name under which a rule is counted by the number of each row that it refused."""
    if "by" not in judged.columns:
        return {}
    refused = judged.select("reason", "by").with_row_index("row").drop_nulls()
    return {row: _name(reason, by) for row, reason, by in refused.iter_rows()}


def _name(reason: str, by: str) -> str:
    return f"{reason}/{pathlib.PurePath(by).name}"


def capped(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts in which rules beyond the ``MOST_RULES`` that refused most are one.

    >>> capped({"dropped/filtered": 9, "filtered/a.txt:3": 9})
    {'dropped/filtered': 9, 'filtered/a.txt:3': 9}
    """
    rules = {name: n for name, n in counts.items() if is_of_rule(name)}
    if len(rules) <= MOST_RULES:
        return dict(counts)
    order = sorted(rules, key=lambda name: (name.endswith(OTHERS), -rules[name], name))
    total = Counter({name: n for name, n in counts.items() if name not in set(order[MOST_RULES:])})
    for name in order[MOST_RULES:]:
        total[f"{name.partition('/')[0]}/{OTHERS}"] += rules[name]
    return dict(sorted(total.items()))


def is_of_rule(name: str) -> bool:
    """Tells whether a count is one of a rule."""
    return name.startswith(tuple(f"{family}/" for family in FAMILIES))
