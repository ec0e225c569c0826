"""The clients of the schemes that are not HTTP."""

from collections.abc import Iterable
from typing import Protocol

from ..exchange.credentials import Credentials
from ..exchange.http_options import HttpOptions
from ..exchange.response import Response
from ..network.guard import Guard
from ..network.transport import Gate


class OtherClient(Protocol):
    """Fetches URLs of a scheme that is not HTTP; safe to share by threads."""

    def get(self, url: str, headers: Iterable[tuple[str, str]], content_limit: int) -> Response:
        """Fetches a URL once; blocks, and raises nothing."""

    def host(self, url: str) -> str:
        """Returns the host of a URL; ValueError if it is not of this scheme."""

    def address(self, url: str) -> str | None:
        """Returns the first address at which a URL's host is reached, if that matters."""


def other_clients(
    options: HttpOptions, guard: Guard, credentials: Credentials, gate: Gate | None
) -> dict[str, OtherClient]:
    """Returns the clients of the schemes that are taken and not HTTP, by scheme.

    Args:
        options: Schemes and limits.
        guard: Says where connections may go.
        credentials: Users of FTP servers.
        gate: Called right before each request; False denies it.
    """
    clients: dict[str, OtherClient] = {}
    if "file" in options.schemes:  # late: few want them
        from .file_client import FileClient

        clients["file"] = FileClient(
            options.file_roots, options.file_parent, options.file_redirect_noncanonical
        )
    if "ftp" in options.schemes:
        from .ftp_client import FtpClient

        clients["ftp"] = FtpClient(options, guard, credentials, gate)
    return clients
