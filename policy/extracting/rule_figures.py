"""What rules have found on the pages of a run, and which of them find much less than in the run before."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ...web.base.dataclass import dataclass
from ...web.base.wording import format_count

# What the names of counts begin with.
COUNT_PREFIX = "extract/"
# Reason of a page at which rules have ended a process, before the name of their set.
FAULT_PREFIX = "extract_"
# A rule that finds less than this part of what it found before is a warning. It takes at least so many pages to say.
_LEAST_PART, _LEAST_PAGES = 0.5, 10
_MANY_FAILURES = 0.5
# Of a field that some pages have: less than this is the chance that none of a few pages has it.
_LEAST_CHANCE = 0.05


@dataclass(frozen=True)
class FieldFigures:
    """What a field of a rule has found.

    Attributes:
        searched: Pages on which it was searched.
        pages: Those on which it has a value.
        values: Its values.
        failed: What was found and did not become a value of its type.
    """

    searched: int = 0
    pages: int = 0
    values: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        """The share of pages on which it has a value."""
        return self.pages / max(1, self.searched)

    @property
    def failed_share(self) -> float:
        """The share of what was found that did not become a value."""
        return self.failed / max(1, self.values + self.failed)


@dataclass(frozen=True)
class RuleFigures:
    """What a rule has found.

    Attributes:
        pages: Pages that it was for.
        records: Records that it has made.
        incomplete: Records that were left out, since they lack a required field.
        ended: Pages on which it failed, took too long, or ended the process.
        fields: By name.
        cut: Pages that have more records than it makes of a page, or too many elements for its selector.
    """

    pages: int = 0
    records: int = 0
    incomplete: int = 0
    ended: int = 0
    fields: Mapping[str, FieldFigures] = dataclasses.field(default_factory=dict)
    cut: int = 0

    def of_field(self, name: str) -> FieldFigures:
        """Returns the figures of a field; zeros if there are none."""
        return self.fields.get(name, FieldFigures())


def figures_of_rules(
    counts: Mapping[str, int], rules: str, fields: Mapping[str, list[str]]
) -> dict[str, RuleFigures]:
    """Returns the figures of each rule of a set.

    Args:
        counts: Counts of a run: ``extract/SET/RULE/pages``, ``extract/SET/RULE.FIELD/values`` and so on.
        rules: Name of the set.
        fields: Names of the fields of each rule.

    >>> counts = {"extract/shop/p/pages": 4, "extract/shop/p.price/pages": 3}
    >>> figures_of_rules(counts, "shop", {"p": ["price"]})["p"].of_field("price").share
    0.75
    """
    head = f"{COUNT_PREFIX}{rules}/"

    def number(name: str) -> int:
        return counts.get(f"{head}{name}", 0)

    return {
        rule: RuleFigures(
            pages=number(f"{rule}/pages"),
            records=number(f"{rule}/records"),
            incomplete=number(f"{rule}/incomplete"),
            ended=number(f"{rule}/timeout") + number(f"{rule}/crashed"),
            cut=number(f"{rule}/too_many_records") + number(f"{rule}/too_many_elements"),
            fields={
                name: FieldFigures(
                    searched=number(f"{rule}/pages"),
                    pages=number(f"{rule}.{name}/pages"),
                    values=number(f"{rule}.{name}/values"),
                    failed=number(f"{rule}.{name}/failed"),
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


def last_good_figures(
    now: Mapping[str, RuleFigures], before: Mapping[str, RuleFigures]
) -> dict[str, RuleFigures]:
    """Returns what the next run is compared with: of what has found nothing now, the figures before.

    So a rule that finds nothing is a warning in each run, until it finds something or is removed.
    """
    figures = {}
    for name, rule in now.items():
        earlier = before.get(name, RuleFigures())
        fields = {
            field: one
            if one.pages or not earlier.of_field(field).pages
            else earlier.of_field(field)
            for field, one in rule.fields.items()
        }
        pages, records = rule.pages or earlier.pages, rule.records or earlier.records
        figures[name] = dataclasses.replace(rule, pages=pages, records=records, fields=fields)
    return figures


def rule_warnings(
    now: Mapping[str, RuleFigures], before: Mapping[str, RuleFigures]
) -> Iterator[tuple[str, str]]:
    """Yields (RULE or RULE.FIELD, what is wrong) of rules that find nothing, or much less than before.

    Args:
        now: The figures of a run.
        before: Those of ``last_good_figures`` after the run before; none in the first run.

    >>> before = {"p": RuleFigures(20, 20, 0, 0, {"price": FieldFigures(20, 20, 20)})}
    >>> now = {"p": RuleFigures(20, 20, 0, 0, {"price": FieldFigures(20)})}
    >>> list(rule_warnings(now, before))
    [('p.price', 'finds nothing on 20 pages; before, it had a value on 100 % of them')]
    """
    for name, rule in now.items():
        earlier = before.get(name, RuleFigures())
        if not rule.pages:
            if earlier.pages:
                yield (
                    name,
                    f"is for no page; before, it was for {format_count(earlier.pages, 'pages')}",
                )
            continue
        if rule.ended:
            yield (
                name,
                f"failed or took too long on {rule.ended:,} of {format_count(rule.pages, 'pages')}",
            )
        if rule.cut:
            yield (
                name,
                f"makes not all records of {rule.cut:,} of {format_count(rule.pages, 'pages')}: they have too many",
            )
        if not rule.records and earlier.records:
            made = format_count(earlier.records, "records")
            pages = format_count(rule.pages, "pages")
            yield name, f"makes no record of {pages}; before, it made {made}"
        for field, figures in rule.fields.items():
            if text := _field_warning(figures, earlier.of_field(field)):
                yield f"{name}.{field}", text


def _field_warning(now: FieldFigures, before: FieldFigures) -> str:
    searched = format_count(now.searched, "pages")
    then = (
        f"; before, it had a value on {_percent(before.share)} of them" if before.searched else ""
    )
    if now.failed_share > _MANY_FAILURES and before.failed_share <= _MANY_FAILURES:
        tried = now.values + now.failed
        return f"finds values of another type: {now.failed:,} of {tried:,} did not convert"
    if not now.pages and (not before.searched or _is_no_chance(now.searched, before)):
        return f"finds nothing on {searched}{then}"
    compared = min(now.searched, before.searched) >= _LEAST_PAGES
    if compared and now.pages and now.share < _LEAST_PART * before.share:
        return f"has a value on {_percent(now.share)} of {searched}{then}"
    return ""


def _is_no_chance(searched: int, before: FieldFigures) -> bool:
    """Returns whether a field that has no value on some pages would have had one with a share as before.

    >>> rare, usual = FieldFigures(100, 2, 2), FieldFigures(20, 20, 20)
    >>> _is_no_chance(3, rare), _is_no_chance(500, rare), _is_no_chance(1, usual)
    (False, True, True)
    """
    return before.pages > 0 and (1 - before.share) ** searched < _LEAST_CHANCE


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
