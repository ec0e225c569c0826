"""Tables in Bigtable: in the emulator, through a proxy, and in a server with written answers."""

import contextlib

import pytest
from bigtable_emulator import Proxy, Replies

from nutbeam.io.bigtable.admin import create_table
from nutbeam.io.bigtable.client import BigtableTable


@pytest.fixture
def address(bigtable, tmp_path):
    made = bigtable.new_address()
    create_table(made, str(tmp_path))
    return made


@pytest.fixture
def table(address):
    with contextlib.closing(BigtableTable(address)) as opened:
        yield opened


@pytest.fixture
def scripted(bigtable):
    """A table in a server whose answers a test writes, and the server."""
    with Replies() as server:
        address = bigtable.new_address(server.host)
        with contextlib.closing(BigtableTable(address)) as table:
            yield table, server


@pytest.fixture
def cut(bigtable, tmp_path):
    """A table that is reached through a proxy, which can cut connections, and the proxy."""
    with Proxy(bigtable.host) as proxy:
        address = bigtable.new_address(proxy.host)
        create_table(address, str(tmp_path))
        with contextlib.closing(BigtableTable(address)) as table:
            yield table, proxy
