"""Fixtures that the tests of several folders use."""

import pytest

from nutbeam.io.storage.places import place_of


@pytest.fixture
def root(address):
    return place_of(address)
