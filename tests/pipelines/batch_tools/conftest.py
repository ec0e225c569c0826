"""Fixtures of the tests of batch tools."""

import pytest


@pytest.fixture
def out(backend):
    """The address of a table that does not exist yet, on the back end under test."""
    made = str(backend.fresh())
    yield made
    backend.remove(made)
