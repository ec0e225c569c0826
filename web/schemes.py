"""Which schemes are crawled, and the clients of those that are not HTTP."""

import dataclasses
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from .options import option

if TYPE_CHECKING:
    from .credentials import Credentials
    from .guard import Guard
    from .http import HttpOptions
    from .response import Response

SCHEMES = ("http", "https", "file", "ftp")
WEB = ("http", "https")
FTP_PORT = 21
# As adapter.split_url: nothing odd may go into a command.
_FTP = re.compile(
    r"ftp://(?:[^/?#@]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?"
    r"(/[\x21\x22\x24-\x3e\x40-\x7e]*)?(?:[?#][\x21-\x7e]*)?",
)


@dataclasses.dataclass(frozen=True)
class SchemeOptions:
    """Which URLs are taken by their scheme."""

    schemes: tuple[str, ...] = option(
        WEB,
        "Schemes of the URLs that are taken: http, https, file and ftp. URLs of file: come from "
        "seeds, and from documents of file: itself, alone.",
        choices=SCHEMES,
        nutch="plugin.includes",
        group="url",
    )

    def __post_init__(self) -> None:
        if not self.schemes:
            raise ValueError(f"schemes must be some of {', '.join(SCHEMES)}, got none")


@dataclasses.dataclass(frozen=True)
class FileOptions(SchemeOptions):
    """What is read of the disk, where ``schemes`` has file."""

    file_roots: tuple[str, ...] = option(
        (),
        "Folders below which URLs of file: are read, nothing else is; on each machine that "
        "fetches its own.",
        group="file",
    )
    file_parent: bool = option(
        False, "A folder's page links to its parent.", nutch="file.crawl.parent", group="file"
    )
    file_redirect_noncanonical: bool = option(
        True,
        "A path with a symbolic link in it redirects to the path without; else it is read as a "
        "page of its own.",
        nutch="file.crawl.redirect_noncanonical",
        group="file",
    )

    def __post_init__(self) -> None:
        for root in self.file_roots:
            if not Path(root).is_absolute():
                absolute = str(Path(root).absolute())
                raise ValueError(f"file_roots must be absolute, got {root!r}: give {absolute!r}")
        if "file" not in self.schemes:
            return
        if os.name != "posix":
            raise ValueError("schemes must be without file on this system, it is not POSIX")
        if not self.file_roots:
            raise ValueError(
                "file_roots must name the folders that may be read where schemes has file: "
                "add --file_roots DIR"
            )


class OtherClient(Protocol):
    """Asks for URLs of a scheme that is not HTTP; safe to share by threads."""

    def get(self, url: str, headers: Iterable[tuple[str, str]], content_limit: int) -> "Response":
        """Asks for a URL once; blocks, and raises nothing."""

    def host(self, url: str) -> str:
        """Returns the host of a URL; ValueError where it is none of this scheme."""

    def address(self, url: str) -> str | None:
        """Returns the first address at which a URL's host is reached, if that matters."""


def other_clients(
    options: "HttpOptions",
    guard: "Guard",
    credentials: "Credentials",
    gate: Callable[[], bool] | None,
) -> dict[str, OtherClient]:
    """Returns the clients of the schemes that are taken and not HTTP, by scheme.

    Args:
        options: What is taken, and its limits.
        guard: Says where connections may go.
        credentials: Have the users of FTP servers.
        gate: Is asked right before each request; False denies it.
    """
    clients: dict[str, OtherClient] = {}
    if "file" in options.schemes:  # late: they know the HTTP client's responses
        from .file_client import FileClient

        clients["file"] = FileClient(
            options.file_roots, options.file_parent, options.file_redirect_noncanonical
        )
    if "ftp" in options.schemes:
        from .ftp_client import FtpClient

        clients["ftp"] = FtpClient(options, guard, credentials, gate)
    return clients


def scheme_of(url: str) -> str:
    """Returns the scheme of a normalized URL.

    >>> scheme_of("ftp://a.example/x"), scheme_of("")
    ('ftp', '')
    """
    scheme, colon, _ = url.partition(":")
    return scheme if colon else ""


def is_web(url: str) -> bool:
    """Returns whether a URL, or an origin, is one of HTTP: of others nobody keeps a robots.txt."""
    return scheme_of(url) in WEB


def split_ftp(url: str) -> tuple[str, int, str]:
    """Returns (host, port, path) of an FTP URL; user info and query are dropped.

    Raises:
        ValueError: It is none.

    >>> split_ftp("ftp://u:p@Ftp.Example.com/a%20b?c")
    ('ftp.example.com', 21, '/a%20b')
    """
    match = _FTP.fullmatch(url)
    port = int(match[2]) if match and match[2] else FTP_PORT
    if match is None or not 0 < port < 65536:
        raise ValueError(f"expected an ftp URL in ASCII, got {url!r}")
    return match[1].lower(), port, match[3] or "/"


def allowed_keys(keys: pl.Series, schemes: Iterable[str]) -> pl.Series:
    """Returns which row keys are of one of the schemes.

    >>> keys = pl.Series(["com.foo:http/", ":file/a", "com.foo:ftp:2121/", "[::1]:https/x:ftp/"])
    >>> allowed_keys(keys, ["http", "https"]).to_list()
    [True, False, False, True]
    """
    taken = set(schemes)
    exact = rf"^(?:\[[^\]]*\]|[^:\[]*):(?:{'|'.join(sorted(taken))})[:/]"
    if not taken.issuperset(WEB):
        return keys.str.contains(exact)
    # Nearly all are of HTTP, and cannot be of another by a glance.
    doubtful = keys.str.starts_with(":") | keys.str.contains(":ftp", literal=True)
    if not doubtful.any():
        return ~doubtful
    return keys.to_frame("key").select(~doubtful | pl.col("key").str.contains(exact)).to_series()
