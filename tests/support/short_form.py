"""Which values of a parameter the short form of the tests takes; the others are long."""

import pytest


def first(number, values):
    """Returns values as parameters: those after the first ``number`` are for ``make test-long``."""
    return [
        value if n < number else pytest.param(value, marks=pytest.mark.long)
        for n, value in enumerate(values)
    ]
