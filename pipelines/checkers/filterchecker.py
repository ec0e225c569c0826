"""filterchecker: shows whether the URL filters accept URLs, and which rule decides."""

import dataclasses
import sys

from ...web.base.options import option
from ...web.filters.filter_chain import rule_place
from ...web.rules.url_options import FILTERS, UrlOptions
from ..base.command import DONE, Invocation
from .checking import URLS, rules_of, say_columns, urls_of

ARGUMENTS = (URLS,)


@dataclasses.dataclass(frozen=True)
class Options(UrlOptions):
    """Options of filterchecker."""

    filter_name: str | None = option(
        None,
        "Check with this filter only; by default with those of --url_filters, --include and "
        "--exclude.",
        choices=FILTERS,
        group="checkers",
    )


def run(invocation: Invocation) -> int:
    """Prints + or -, the URL, a tab, and the rule that decides; does not normalize the URL."""
    options: Options = invocation.options
    if options.filter_name:
        options = dataclasses.replace(
            options, url_filters=(options.filter_name,), include=(), exclude=()
        )
    rules = rules_of(options)
    exempt = rules.exemptions if options.filter_name else None
    filters = rules.link_filters
    names = [exempt.name] if exempt else [each.name for each in filters.filters]
    shown = [rules.sources.get(name, name) for name in names]
    print(f"filters: {', '.join(shown) or 'none'}", file=sys.stderr)
    for url in urls_of(invocation.arguments["urls"]):
        if exempt:
            verdict = exempt.decide(url)
            reason = None if verdict.accept else "filtered"
            by, rule = rule_place(exempt.name, verdict.line), exempt.rule(verdict.line, url)
        else:
            reason, by, rule = filters.judge(url)
        record = {
            "url": url, "accepted": reason is None, "reason": reason, "by": by, "rule": rule,
            "file": rules.source_of(by),
        }  # fmt: skip
        columns = [f"{'-' if reason else '+'}{url}", *([f"{by}: {rule}"] if by else [])]
        say_columns(record, columns, invocation.format)
    return DONE
