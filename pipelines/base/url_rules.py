"""Makes the URL rules of a command from its options."""

import logging

from ...web.rules.url_rules import UrlOptions, UrlRules
from .command import configuration

_LOG = logging.getLogger(__name__)


def rules_of(options: UrlOptions) -> UrlRules:
    """Returns the URL rules for options; logs rules in rule files that have no effect.

    Raises:
        UsageError: A file is missing, or has a rule that cannot be used.
    """
    from ...web.rules.rule_warnings import warnings_of

    with configuration():
        rules = UrlRules(options)
        for warning in warnings_of(rules):
            _LOG.warning(warning)
    return rules
