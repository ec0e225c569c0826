"""How Dataflow reads the parameters of a template."""

import re


def matches(parameter, text):
    """Returns whether Dataflow takes a text for a parameter: all regexes match all of it."""
    return all(re.fullmatch(regex, text) for regex in parameter.get("regexes", []))
