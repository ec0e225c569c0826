"""Patterns of parameters: they take what the command line takes, and refuse what it refuses by its form."""

import re
import subprocess

import pytest

from nutbeam.pipelines.command_line.arguments import command_options
from nutbeam.pipelines.command_line.cli import load
from nutbeam.pipelines.reference_pages.parameter_patterns import parameter_pattern
from nutbeam.pipelines.reference_pages.template_files import NOT_IN_TEMPLATES, TEMPLATES
from nutbeam.web.base.options import default_text, parse_value, value_text

TEXTS = (
    "", " ", "5", "-5", "+5", " 5 ", "1_000", "1__0", "_1", "1.5", ".5", "5.", "1e6", "1e-3", "e6", "0x10", "5 ms",
    "10s", "2d", "1.5h", "10 parsecs", "64Ki", "1 GiB", "5kb", "5 Kib", "5 kk", "true", "False", "ON", "maybe", "none",
    "None", "nonesuch", "host", "Host", "a,b", "a, b", " a ", "a,,b", "rules.py:no_ads", "my_filter", "a b", "a|b",
    "/[0-9]{2,4}/ /a", "http=aiohttp", "text/html=mine", "*/*=x", "x\\,y", "www.a.org", "[::1]", "a.org/b", "$(id)", "ü",
)  # fmt: skip


def declared_options():
    """Returns each option that templates have, once for each pattern."""
    found = {}
    for command in TEMPLATES:
        for option in command_options(load(command)).values():
            if option.name not in NOT_IN_TEMPLATES:
                found.setdefault((parameter_pattern(option), option.name), option)
    return found


def error_of(option, text):
    """Returns why the command line refuses a text; None if it takes it."""
    try:
        parse_value(option, text)
    except ValueError as error:
        return str(error)
    return None


def test_a_pattern_takes_values_and_refuses_other_forms():
    refused = 0
    for (pattern, _), option in declared_options().items():
        choices = [value_text(option, choice) for choice in option.choices]
        for text in (*TEXTS, *choices, default_text(option)):
            error, taken = error_of(option, text), re.fullmatch(pattern, text) is not None
            refused += not taken
            if error is None:
                assert taken, (option.name, pattern, text)
            elif option.type is not tuple and not option.plugins and pattern != ".*":
                too_small = "must be at least" in error or "must be at most" in error
                rounded = option.item is int and "whole number" in error
                assert not taken or too_small or rounded, (option.name, pattern, text)
    assert refused > 1000


def test_other_engines_read_the_patterns_in_the_same_way():
    lines = "\n".join(TEXTS)
    for pattern in {pattern for pattern, _ in declared_options()}:
        done = subprocess.run(
            ["grep", "-E", "-x", "-e", pattern],
            input=lines, capture_output=True, text=True, check=False, env={"LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.stderr == ""
        assert done.stdout.splitlines() == [
            text for text in TEXTS if re.fullmatch(pattern, text, re.ASCII)
        ], pattern


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("server_delay", "500ms", "-1"),
        ("content_limit", "1MiB", "1 mile"),
        ("ignore_external", "true", "yes please"),
        ("agent_name", "mybot", "my bot"),
    ],
)
def test_a_mistake_is_refused(name, good, bad):
    declared = command_options(load("round"))
    name = name if name in declared else "ignore_external_links"
    assert re.fullmatch(parameter_pattern(declared[name]), good)
    assert not re.fullmatch(parameter_pattern(declared[name]), bad)
