"""Tests that run with each HTTP client: those with the fixture ``each_client``."""

from nutbeam.web.clients import aio_client
from nutbeam.web.exchange import http_options

CLIENTS = ("asyncio", "threads")
chosen = CLIENTS[0]
opened = []


def HttpOptions(**options):
    """Returns options, of the client whose turn it is if they name none."""
    return http_options.HttpOptions(**{"http_client": chosen} | options)


def Client(*args, **kwargs):
    """Returns the client that the options name; it is closed after the test."""
    opened.append(aio_client.client_of(*args, **kwargs))
    return opened[-1]


def close_all():
    """Closes what was opened."""
    while opened:
        opened.pop().close()
