"""normalizerchecker: shows how the URL normalizers change URLs, step by step."""

import dataclasses
import sys
from typing import cast

from ...io.batches.seed_lines import hint_for
from ...web.base.options import option
from ...web.base.visible import visible
from ...web.normalizers.normalizer_step import SCOPES, Step
from ...web.rules.url_options import NORMALIZERS, UrlOptions
from ...web.rules.url_rules import Scope, UrlRules
from ...web.urls.row_keys import BadUrl
from ..base.command import DONE, Invocation
from .checking import URLS, rules_of, say, urls_of

ARGUMENTS = (URLS,)


@dataclasses.dataclass(frozen=True)
class Options(UrlOptions):
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


def run(invocation: Invocation) -> int:
    """Prints the normalized form of each URL.

    For a URL that cannot be used it prints an empty line, and the reason on standard error.
    """
    options: Options = invocation.options
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
