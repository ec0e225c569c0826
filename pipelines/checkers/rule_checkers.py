"""filterchecker and normalizerchecker: show what the rules for URLs make of single URLs.

filterchecker shows whether the URL filters accept URLs, and which rule decides. normalizerchecker
shows how the URL normalizers change URLs, step by step.
"""

import dataclasses
import sys
from typing import cast

from ...io.batches.seed_lines import hint_for
from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.base.visible import visible
from ...web.normalizers.normalizer_step import SCOPES, Step
from ...web.rules.url_options import FILTERS, NORMALIZERS, UrlOptions
from ...web.rules.url_rules import Scope, UrlRules
from ...web.urls.row_keys import BadUrl
from ..base.command import DONE, CommandParts, Invocation
from .checking import URLS, rules_of, say, say_columns, urls_of


@dataclass(frozen=True)
class FilterCheckOptions(UrlOptions):
    """Options of filterchecker."""

    filter_name: str | None = option(
        None,
        "Check with this filter only; by default with those of --url_filters, --include and "
        "--exclude.",
        choices=FILTERS,
        group="checkers",
    )


def check_filters(invocation: Invocation) -> int:
    """Runs filterchecker: prints + or -, the URL, a tab, and the rule that decides; normalizes nothing."""
    options: FilterCheckOptions = invocation.options
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
            by, rule = exempt.place(verdict.line), exempt.rule(verdict.line, url)
        else:
            reason, by, rule = filters.judge(url)
        record = {
            "url": url, "accepted": reason is None, "reason": reason, "by": by, "rule": rule,
            "file": rules.source_of(by),
        }  # fmt: skip
        columns = [f"{'-' if reason else '+'}{url}", *([f"{by}: {rule}"] if by else [])]
        say_columns(record, columns, invocation.format)
    return DONE


@dataclass(frozen=True)
class NormalizerCheckOptions(UrlOptions):
    """Options of normalizerchecker."""

    GROUP = "checkers"

    normalizer: str | None = option(
        None,
 "Apply this normalizer alone, and once. Without it, those of --url_normalizers.",
        choices=NORMALIZERS,
    )  # fmt: skip
    url_scope: str = option(
        "default", "Where the URLs come from.", choices=SCOPES, nutch="normalizerchecker -scope"
    )


def check_normalizers(invocation: Invocation) -> int:
    """Runs normalizerchecker: prints the normalized form of each URL.

    For a URL that cannot be used it prints an empty line, and the reason on standard error.
    """
    options: NormalizerCheckOptions = invocation.options
    if options.normalizer:
        options = dataclasses.replace(
            options, url_normalizers=(options.normalizer,), url_normalizers_in=()
        )
    rules = rules_of(options)
    scope = cast(Scope, options.url_scope)
    chain = rules.normalizer(scope)
    steps = [step for step in (*chain.steps, *chain.last) if step.name == options.normalizer]
    shown = [_display_name(step, rules) for step in steps or (*chain.steps, *chain.last)]
    print(f"normalizers: {', '.join(shown)}", file=sys.stderr)
    for url in urls_of(invocation.arguments["urls"]):
        normalized, trace = None, []
        reason = None if steps else rules.refusal(url, scope)
        try:
            if steps:
                normalized = steps[0].apply(url)
            elif reason != "url_too_long":  # such a URL is not normalized
                trace = chain.trace(url)
                normalized = None if reason else chain.normalize(url)
        except BadUrl as error:
            reason = error.reason
        record = {
            "url": url, "normalized": normalized, "reason": reason,
            "steps": [{"by": by, "url": after} for by, after in trace],
        }  # fmt: skip
        say(record, [normalized or ""], invocation.format)
        if normalized is None and invocation.format == "text":
            hint = hint_for(str(reason), url)
            print(visible(f"refused, {reason}: {url[:200]!r}{hint}"), file=sys.stderr)
    return DONE


def _display_name(step: Step, rules: UrlRules) -> str:
    """Returns the name of a normalizer, with the name of its rule file."""
    source = rules.sources.get(getattr(step, "file", ""))
    return f"{step.name} ({source})" if source else step.name


FILTERCHECKER = CommandParts(FilterCheckOptions, check_filters, (URLS,))
NORMALIZERCHECKER = CommandParts(NormalizerCheckOptions, check_normalizers, (URLS,))
