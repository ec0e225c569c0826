"""Reports of sets of rules after a run: shares of pages with values, warnings, and the record of the run."""

import dataclasses
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...io.reading.extract_runs import last_extract_run, write_extract_run
from ...io.snapshots.manifest import Manifest
from ...io.table.opening import open_table
from ...policy.extracting.rule_figures import (
    COUNT_PREFIX,
    RuleFigures,
    figures_from_record,
    figures_of_rules,
    last_good_figures,
    rule_warnings,
)
from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ...web.base.visible import visible
from ...web.extracting.extract_options import rule_sets_of

if TYPE_CHECKING:
    from ...web.extracting.extraction_rules import RuleSet

_LOG = logging.getLogger("nutbeam.extract")


class RulesReport(NamedTuple):
    """What a set of rules has found in a run, and what of it is strange.

    Attributes:
        rules: Name of the set.
        version: Version of its rules.
        version_before: That of the run before; empty if there was none.
        figures: By rule.
        before: What they are compared with, see ``last_good_figures``.
        warnings: (RULE or RULE.FIELD, what is wrong).
    """

    rules: str
    version: str
    version_before: str
    figures: Mapping[str, RuleFigures]
    before: Mapping[str, RuleFigures]
    warnings: Sequence[tuple[str, str]]

    @property
    def lines(self) -> list[str]:
        """A line for each field: share of pages with a value, of values that did not convert."""
        lines = []
        for name, rule in self.figures.items():
            lines.append(
                f"{name}: {rule.records:,} records of {rule.pages:,} pages{_left_out(rule)}"
            )
            width = max(map(len, rule.fields), default=0)
            for field, figures in rule.fields.items():
                then = (
                    f" (before: {self.before[name].of_field(field).share:.0%})"
                    if name in self.before
                    else ""
                )
                bad = f", {figures.failed_share:.1%} not converted" if figures.failed else ""
                lines.append(
                    f"  {field:{width}} {figures.share:4.0%}{then}{bad}"
                    if rule.pages
                    else f"  {field}"
                )
        return lines

    @property
    def warning_lines(self) -> list[str]:
        """The warnings, with the name of the set."""
        return [f"{self.rules}: {name} {text}" for name, text in self.warnings]

    def record(self) -> dict[str, Any]:
        """Returns the report for JSON."""
        return {
            "rules": self.rules,
            "version": self.version,
            "figures": figures_record(self.figures),
            "warnings": [{"rule": name, "message": text} for name, text in self.warnings],
        }


def figures_record(figures: Mapping[str, RuleFigures]) -> dict[str, Any]:
    """Returns figures for JSON."""
    return {name: dataclasses.asdict(one) for name, one in figures.items()}


def _left_out(rule: RuleFigures) -> str:
    parts = [f"{rule.incomplete:,} without a required field"] * bool(rule.incomplete)
    parts += [f"{rule.ended:,} pages failed or took too long"] * bool(rule.ended)
    return f" ({', '.join(parts)})" if parts else ""


def report_rules(
    address: str, rules: "RuleSet", counts: Mapping[str, int], command: str, *, stored: bool,
    some_pages: bool = False,
) -> RulesReport:  # fmt: skip
    """Compares a run of a set of rules with the run before, and records it in the table.

    Args:
        address: Address of the table.
        rules: The rules.
        counts: Counts of the run.
        command: Name of the command.
        stored: Whether the rows are in the table, so that ``sql`` has a view of them.
        some_pages: Whether the run had only some pages, such as those that have changed: a rule may
            then be for none.
    """
    files = open_table(address).files
    earlier = last_extract_run(files, rules.name)
    try:
        before = figures_from_record(earlier.get("last_good") or {})
    except (TypeError, ValueError, AttributeError, KeyError):
        before = {}
    fields = {rule.name: [field.name for field in rule.fields] for rule in rules.rules}
    figures = figures_of_rules(counts, rules.name, fields)
    compared = {name: rule for name, rule in figures.items() if rule.pages or not some_pages}
    warnings = list(rule_warnings(compared, before))
    report = RulesReport(
        rules.name, rules.version, str(earlier.get("version") or ""), figures, before, warnings
    )
    own = {
        "time": now_ms(),
        "last_good": figures_record(last_good_figures(figures, before)),
        "command": command,
        "text": rules.text,
        "stored_columns": dict(rules.types) if stored else earlier.get("stored_columns"),
    }
    try:
        write_extract_run(files, rules.name, {**report.record(), **own})
    except (UserError, OSError) as error:
        _LOG.warning("the figures of %s are not kept for the next run: %s", rules.name, error)
    return report


def report_stored_rules(
    address: str, paths: tuple[str, ...], counts: Iterable[Mapping[str, int]], command: str
) -> list[RulesReport]:
    """Reports the sets of ``--extract`` after jobs that parse; without pages there is no report.

    Args:
        address: Address of the table.
        paths: The files of rules.
        counts: Counts of the jobs.
        command: Name of the command.
    """
    total: dict[str, int] = {}
    for one in counts:
        for name, number in one.items():
            if name.startswith(COUNT_PREFIX):
                total[name] = total.get(name, 0) + number
    if not total:
        return []
    try:
        rule_sets = rule_sets_of(paths)
    except ValueError as error:  # a file was changed meanwhile
        _LOG.warning("what the rules have found is not reported: %s", error)
        return []
    # These jobs have the pages of their batches, not all of the table.
    return [
        report_rules(address, rules, total, command, stored=True, some_pages=True)
        for rules in rule_sets
    ]


def report_one_job(address: str, manifest: Manifest, options: Any) -> None:
    """Does the same as ``report_job`` for one job."""
    report_job(address, [manifest], options)


def report_job(address: str, manifests: Sequence[Manifest], options: Any) -> None:
    """Prints on standard error what the rules of ``--extract`` have found in jobs that parse."""
    counts, command = [one.counts for one in manifests], manifests[-1].job if manifests else ""
    for report in report_stored_rules(address, options.extract, counts, command):
        for line in (*report.lines, *(f"warning: {text}" for text in report.warning_lines)):
            print(visible(line), file=sys.stderr)
