"""normalizerchecker: what the URL normalizers make of URLs, and which of them does it."""

import dataclasses
import sys
from typing import cast

from ..web.normalizers.steps import SCOPES
from ..web.options import option
from ..web.rules import Scope, UrlRules
from ..web.url_options import NORMALIZERS, UrlOptions
from ..web.urls import BadUrl
from .checking import URLS, say, urls_of
from .command import DONE, Invocation, configuration

ARGUMENTS = (URLS,)


@dataclasses.dataclass(frozen=True)
class Options(UrlOptions):
    """Options of normalizerchecker."""

    normalizer: str | None = option(
        None,
 "Apply this normalizer alone, and once; none applies those of --url_normalizers.",
        choices=NORMALIZERS, group="checkers",
    )  # fmt: skip
    url_scope: str = option(
        "default", "Where the URLs come from.", choices=SCOPES, group="checkers"
    )


def run(invocation: Invocation) -> int:
    """Prints each URL normalized, or an empty line where it cannot be used."""
    options: Options = invocation.options
    if options.normalizer:
        options = dataclasses.replace(
            options, url_normalizers=(options.normalizer,), url_normalizers_in=()
        )
    with configuration():
        rules = UrlRules(options)
    scope = cast(Scope, options.url_scope)
    chain = rules.normalizer(scope)
    steps = [step for step in (*chain.steps, *chain.last) if step.name == options.normalizer]
    names = [step.name for step in steps or (*chain.steps, *chain.last)]
    print(f"normalizers: {', '.join(names)}", file=sys.stderr)
    for url in urls_of(invocation.arguments["urls"]):
        normalized, trace = None, []
        reason = None if steps else rules.refusal(url, scope)
        try:
            if steps:
                normalized = steps[0].apply(url)
            elif reason != "url_too_long":  # what it is not even tried on
                trace = chain.trace(url)
                normalized = None if reason else chain.normalize(url)
        except BadUrl as error:
            reason = error.reason
        record = {
            "url": url, "normalized": normalized, "reason": reason,
            "steps": [{"by": by, "url": after} for by, after in trace],
        }  # fmt: skip
        say(record, normalized or "", invocation.format)
    return DONE
