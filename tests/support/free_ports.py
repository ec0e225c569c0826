"""Ports that nobody listens on."""

import socket


def free_port() -> int:
    """Returns a port of loopback that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
