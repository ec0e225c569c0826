"""Which values of parameters the short form of the tests takes; the others are long."""

from collections import defaultdict

import pytest


def first(number, values):
    """Returns values as parameters: those after the first ``number`` are for ``make test-long``."""
    return [
        value if n < number else pytest.param(value, marks=pytest.mark.long)
        for n, value in enumerate(values)
    ]


def leave_few(items):
    """Makes variants of tests with the mark ``few`` long, but for a number of them, evenly spread."""
    variants = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("long"):
            variants[item.path, item.name.partition("[")[0]].append(item)
    for some in variants.values():
        (number,) = some[0].get_closest_marker("few").args
        kept = {at * (len(some) - 1) // max(number - 1, 1) for at in range(number)}
        for at, item in enumerate(some):
            if at not in kept:
                item.add_marker("long")
