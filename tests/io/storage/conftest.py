"""Fixtures of files and stores."""

import pytest
from flaky_proxy import Proxy

from nutbeam.io.storage.place_addresses import place_of


@pytest.fixture
def proxied(kind, stores, monkeypatch):
    """A proxy before a store's server, and the place of a table that is reached through it."""
    with Proxy(stores.server(kind).url) as proxy:
        for name, value in stores.environ(kind, proxy.url).items():
            monkeypatch.setenv(name, value)
        yield proxy, place_of(stores.address(kind))
