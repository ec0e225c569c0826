"""Fixtures that the tests of several folders use."""

import pytest

from nutbeam.io.storage.place_addresses import place_of


@pytest.fixture
def root(address):
    return place_of(address)
