"""filterchecker: shows whether the URL filters accept URLs, and which rule decides."""

import dataclasses
import sys

from ...web.base.options import option
from ...web.filters.filter_chain import rule_place
from ...web.rules.url_options import FILTERS, UrlOptions
from ..command_line.command import DONE, Invocation
from ..command_line.url_rules import rules_of
from .checking import URLS, say, urls_of

ARGUMENTS = (URLS,)


@dataclasses.dataclass(frozen=True)
class Options(UrlOptions):
    """Options of filterchecker."""

    filter_name: str | None = option(
        None,
 "Ask this filter alone; none asks those of --url_filters.", choices=FILTERS,
        group="checkers",
    )  # fmt: skip


def run(invocation: Invocation) -> int:
    """Prints each URL after + or -, without normalizing it."""
    options: Options = invocation.options
    if options.filter_name:
        options = dataclasses.replace(options, url_filters=(options.filter_name,))
    rules = rules_of(options)
    exempt = rules.exemptions if options.filter_name else None
    names = [exempt.name] if exempt else [each.name for each in rules.filters.filters]
    shown = [rules.sources.get(name, name) for name in names]
    print(f"filters: {', '.join(shown) or 'none'}", file=sys.stderr)
    for url in urls_of(invocation.arguments["urls"]):
        if exempt:
            verdict = exempt.decide(url)
            reason = None if verdict.accept else "filtered"
            by, rule = rule_place(exempt.name, verdict.line), exempt.rule(verdict.line, url)
        else:
            reason, by, rule = rules.filters.judge(url)
        record = {
            "url": url, "accepted": reason is None, "reason": reason, "by": by, "rule": rule,
            "file": rules.source_of(by),
        }  # fmt: skip
        say(record, [f"{'-' if reason else '+'}{url}"], invocation.format)
    return DONE
