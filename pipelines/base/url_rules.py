"""Makes the URL rules of a command from its options."""

from ...web.rules.rule_warnings import checked_rules
from ...web.rules.url_rules import UrlOptions, UrlRules
from .command import configuration


def rules_of(options: UrlOptions) -> UrlRules:
    """Returns the URL rules for options; logs rules in rule files that have no effect.

    Raises:
        UsageError: A file is missing, or has a rule that cannot be used.
    """
    with configuration():
        return checked_rules(options)
