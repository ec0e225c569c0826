"""A server of pages below a path, for requests that call it by one of its names."""

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from .loopback_server import LoopbackHandler, LoopbackServer
from .served_address import ServedAddress


class AddressedServer(LoopbackServer):
    """A server of pages.

    Args:
        address: Where they are served, and who may ask.
        handler: Answers requests.

    Raises:
        UsageError: The port is taken, or this machine does not have the address.
    """

    longest_s = 60.0

    def __init__(self, address: ServedAddress, handler: "type[AddressedHandler]") -> None:
        self.address = address
        super().__init__(address.port, handler, address.host)

    @property
    def names(self) -> tuple[str, ...]:
        """The values of Host that name this server."""
        return self.address.names(self.port)

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses that open the pages in a browser, those for other machines first."""
        names = self.address.open_names(self.port)
        return tuple(f"http://{name}{self.address.path}" for name in names)


class AddressedHandler(LoopbackHandler):
    """Answers requests to an ``AddressedServer``."""

    server: Any  # an AddressedServer

    def is_local(self) -> bool:
        """Returns whether the request calls the server by one of its names."""
        return bool(self.server.address.is_named(self.host, self.server.port))

    def do_GET(self) -> None:
        """Answers a request: refuses those for other names, and completes the path of the server."""
        url, base = urlsplit(self.path), self.server.address.path
        if not self.is_local():
            self.refuse(HTTPStatus.MISDIRECTED_REQUEST, "another host")
        elif url.path.startswith(base):
            self.answer(url.path.removeprefix(base), url.query)
        elif f"{url.path}/" == base:
            self.send_text(HTTPStatus.MOVED_PERMANENTLY, "text/plain", "", [("Location", base)])
        else:
            self.refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    do_HEAD = do_GET

    def answer(self, page: str, query: str) -> None:
        """Answers a request for a page.

        Args:
            page: Its path below that of the server.
            query: The query of the URL.
        """
        raise NotImplementedError

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Answers that a request is refused; the answer loads and runs nothing."""
        policy = ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        self.send_text(status, "text/plain", f"{reason}\n", [policy])
