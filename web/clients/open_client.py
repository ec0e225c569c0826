"""Opens the client that the options name."""

from ..exchange.http_options import HttpOptions
from ..network.guard import Guard
from ..network.transport import Gate
from .client_base import ClientBase
from .requests_client import Client


def client_of(
    options: HttpOptions, guard: Guard | None = None, gate: Gate | None = None
) -> ClientBase:
    """Returns the client that the options name; see ``ClientBase``."""
    if options.http_client == "asyncio":
        from .aio_client import AioClient  # late: it takes a while to load

        return AioClient(options, guard, gate)
    return Client(options, guard, gate)
