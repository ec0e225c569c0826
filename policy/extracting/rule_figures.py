"""What rules have found on the pages of a run, and which of them find much less than in the run before."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from .extracted_rows import COUNT_PREFIX

# A share that falls below this part of the share before is a warning, if so many pages are compared.
_LEAST_PART, _LEAST_PAGES = 0.5, 10
_MANY_FAILURES = 0.5


@dataclasses.dataclass(frozen=True)
class FieldFigures:
    """What a field of a rule has found.

    Attributes:
        pages: Pages on which it has a value.
        values: Its values.
        failed: What was found and did not become a value of its type.
    """

    pages: int = 0
    values: int = 0
    failed: int = 0

    @property
    def failed_share(self) -> float:
        """The share of what was found that did not become a value."""
        return self.failed / max(1, self.values + self.failed)


@dataclasses.dataclass(frozen=True)
class RuleFigures:
    """What a rule has found.

    Attributes:
        pages: Pages that it was for.
        records: Records that it has made.
        incomplete: Records that were left out, since they lack a required field.
        ended: Pages that took too long, or ended their process.
        fields: By name.
    """

    pages: int = 0
    records: int = 0
    incomplete: int = 0
    ended: int = 0
    fields: Mapping[str, FieldFigures] = dataclasses.field(default_factory=dict)

    def share(self, field: str) -> float:
        """Returns the share of pages on which a field has a value."""
        return self.fields.get(field, FieldFigures()).pages / max(1, self.pages)


def figures_of_rules(
    counts: Mapping[str, int], rules: str, fields: Mapping[str, list[str]]
) -> dict[str, RuleFigures]:
    """Returns the figures of each rule of a set.

    Args:
        counts: Counts of a run: ``extract/SET/RULE/pages``, ``extract/SET/RULE.FIELD/values`` and so on.
        rules: Name of the set.
        fields: Names of the fields of each rule.

    >>> counts = {"extract/shop/p/pages": 4, "extract/shop/p.price/pages": 3}
    >>> figures_of_rules(counts, "shop", {"p": ["price"]})["p"].share("price")
    0.75
    """
    head = f"{COUNT_PREFIX}{rules}/"

    def number(name: str) -> int:
        return counts.get(f"{head}{name}", 0)

    return {
        rule: RuleFigures(
            *(number(f"{rule}/{what}") for what in ("pages", "records", "incomplete")),
            number(f"{rule}/timeout") + number(f"{rule}/crashed"),
            {
                name: FieldFigures(
                    *(number(f"{rule}.{name}/{what}") for what in ("pages", "values", "failed"))
                )
                for name in names
            },
        )
        for rule, names in fields.items()
    }


def figures_from_record(record: Mapping[str, Any]) -> dict[str, RuleFigures]:
    """Returns figures that were stored as ``dataclasses.asdict`` of each rule."""
    return {
        name: RuleFigures(
            **{**rule, "fields": {key: FieldFigures(**one) for key, one in rule["fields"].items()}}
        )
        for name, rule in record.items()
    }


def rule_warnings(
    now: Mapping[str, RuleFigures], before: Mapping[str, RuleFigures]
) -> Iterator[tuple[str, str]]:
    """Yields (RULE or RULE.FIELD, what is wrong) of rules that find nothing, or much less than before.

    Args:
        now: The figures of a run.
        before: Those of the run before; none in the first run.

    >>> before = {"p": RuleFigures(20, 20, 0, 0, {"price": FieldFigures(20, 20, 0)})}
    >>> now = {"p": RuleFigures(20, 20, 0, 0, {"price": FieldFigures(0, 0, 0)})}
    >>> list(rule_warnings(now, before))
    [('p.price', 'finds nothing on 20 pages; in the run before it had a value on 100 % of them')]
    """
    for name, rule in now.items():
        earlier = before.get(name, RuleFigures())
        if not rule.pages:
            if earlier.pages:
                yield name, f"is for no page; in the run before it was for {earlier.pages:,}"
            continue
        if rule.ended:
            yield name, f"took too long on {rule.ended:,} of {rule.pages:,} pages"
        if not rule.records and earlier.records:
            yield (
                name,
                (
                    f"makes no record of {rule.pages:,} pages; in the run before it made {earlier.records:,} of "
                    f"{earlier.pages:,}"
                ),
            )
        for field, figures in rule.fields.items():
            if text := _field_warning(rule, earlier, field, figures):
                yield f"{name}.{field}", text


def _field_warning(
    rule: RuleFigures, earlier: RuleFigures, field: str, figures: FieldFigures
) -> str:
    share, share_before = rule.share(field), earlier.share(field)
    then = f"in the run before it had a value on {share_before:.0%} of them".replace("%", " %")
    if figures.failed_share > _MANY_FAILURES and _failed_before(earlier, field) <= _MANY_FAILURES:
        return (
            f"finds values of another type: {figures.failed:,} of {figures.values + figures.failed:,} did not "
            "convert"
        )
    if not figures.pages and (share_before or not earlier.pages):
        return f"finds nothing on {rule.pages:,} pages" + (f"; {then}" if earlier.pages else "")
    compared = min(rule.pages, earlier.pages) >= _LEAST_PAGES
    if compared and figures.pages and share < _LEAST_PART * share_before:
        return f"has a value on {share:.0%} of {rule.pages:,} pages; {then}".replace(
            "% of", " % of", 1
        )
    return ""


def _failed_before(earlier: RuleFigures, field: str) -> float:
    return earlier.fields.get(field, FieldFigures()).failed_share
