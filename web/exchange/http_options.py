"""The options of requests: of HTTP, and of reading files."""

import logging
import os
import re
from pathlib import Path
from typing import ClassVar

from ..base.agent import AgentOptions, require_agent
from ..base.dataclass import dataclass
from ..base.joined_options import joined_options
from ..base.option_checks import Launch
from ..base.options import option, seconds
from ..network.guard import Guard
from ..network.heads import parse_headers
from ..network.proxy import OPEN, parse_proxy
from ..network.wire import Limits
from ..tls.contexts import tls_context
from ..urls.schemes import SchemeOptions
from .credentials import Credentials, is_open_to_others, load_credentials

HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
# These files are unreadable if truncated: zip archives, and files with an index at the end.
_DOCUMENTS = ("application/pdf", "application/vnd.", "application/msword", "application/epub+zip")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileOptions(SchemeOptions):
    """Options of reading files, used if ``schemes`` includes file."""

    GROUP = "file"

    file_roots: tuple[str, ...] = option(
        (),
        "Folders below which file: URLs are read, and no others; each machine that fetches reads "
        "its own.",
        takes="path",
    )
    file_parent: bool = option(
        False, "A folder's page links to its parent.", nutch="file.crawl.parent"
    )
    file_redirect_noncanonical: bool = option(
        True,
        "A path with a symbolic link redirects to the path without it; if false, it is a page of "
        "its own.",
        nutch="file.crawl.redirect_noncanonical",
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


@joined_options
class HttpOptions(AgentOptions, FileOptions):
    """Options of requests for pages, and of allowed connections."""

    # Who tries a command without the name of an agent sees other mistakes first.
    CHECKED_LAST: ClassVar[bool] = True

    timeout: float = seconds(
        10.0,
        "Longest wait for a connection, or for the next bytes.",
        nutch="http.timeout",
        minimum=0.001,
    )
    http_time_limit: float = seconds(
        60.0, "Longest time for a whole request.", nutch="http.time.limit", minimum=0.001
    )
    # As much of a page as Googlebot takes. Each request under way may need that much memory.
    content_limit: int = option(
        2_097_152,
        "Most bytes of a body that are kept, after decoding; -1: no limit. Nutch keeps 1 MiB.",
        unit="bytes",
        nutch="http.content.limit, file.content.limit, ftp.content.limit",
    )
    document_limit: int = option(
        8_388_608,
        "Like content_limit, for PDF, office documents and e-books, which cannot be read when they "
        "are cut. If content_limit is larger, it applies.",
        unit="bytes",
    )
    accept: str = option(
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept header.",
        nutch="http.accept",
    )
    accept_language: str = option(
        "en-us,en-gb,en;q=0.7,*;q=0.3", "Accept-Language header.", nutch="http.accept.language"
    )
    connect_to: tuple[str, ...] = option(
        (),
        "Connect to another address for a host, as curl's option connect-to: HOST:PORT:ADDRESS:PORT. "
        "HOST must not be empty; *.DOMAIN is the domain and all hosts below it. If the first PORT "
        "is empty, it means any port; if the second one is empty, the port stays.",
    )
    allow_addresses: tuple[str, ...] = option(
        (),
        "CIDR blocks of private or special addresses that may be reached. A block within "
        "::ffff:0:0/96 is the IPv4 block that it maps; wider blocks of IPv6 contain no IPv4 "
        "address.",
    )
    allowed_ports: tuple[str, ...] = option(
        ("80", "443", "8000-8999"),
        "Ports that URLs may name, as PORT or FIRST-LAST; hosts of connect_to may name any. 21 is "
        "FTP's own.",
        takes="number",
    )
    ca_file: str = option(
        "", "File of certificates to trust instead of the bundled ones.", takes="path"
    )
    insecure_host: tuple[str, ...] = option(
        (),
        "Hosts whose certificates are not checked; their pages are marked.",
        nutch="http.tls.certificates.check",
        pattern=r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]",
    )
    min_rate: float = option(
        100.0,
        "Least bytes per second of an answer; slower answers are cut. 0: no limit.",
        unit="bytes/s",
        minimum=0.0,
    )
    min_rate_grace: float = seconds(10.0, "Time for which an answer may be slower than min_rate.")
    http_header: tuple[str, ...] = option(
        (),
        "Header to send with every request, 'Name: value'. It is stored with the pages, so it must "
        "not contain secrets.",
    )
    http_credentials: str = option(
        "",
        "File of user names, passwords and tokens, each for one origin; it must be on each "
        "machine that fetches. Lines: ORIGIN basic USER PASSWORD, ORIGIN digest USER "
        "PASSWORD, ORIGIN bearer TOKEN. An FTP server is ftp://HOST, with basic.",
        nutch="http.auth.file",
        takes="path",
    )
    http_cookies: bool = option(
        False,
        "Keep cookies and send them back. The host table keeps them from fetch to fetch, for 400 "
        "days at most. A redirect that sets a new cookie is followed at once, five in a row at "
        "most, also with redirect_max 0.",
    )
    keep_incomplete: bool = option(
        False,
        "Take answers that broke off, or that were too slow, for pages, with the part that came. They "
        "are marked (column truncated), and not parsed unless skip_truncated is false. Without it "
        "they are failures, unless the document is whole by its own format.",
        nutch="http.partial.truncated",
    )
    http_proxy: str = option(
        "",
        "Proxy for all requests, http://HOST:PORT, except to hosts of connect_to. It resolves "
        "names itself.",
        nutch="http.proxy.host",
    )

    http_client: str = option(
        "asyncio",
        "HTTP client: asyncio uses one thread for all requests, which needs half of the CPU; threads one "
        "thread for each request at a time.",
        choices=("asyncio", "threads"),
    )

    def __post_init__(self) -> None:
        for name in ("accept", "accept_language"):
            if not HEADER_VALUE.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} must be printable ASCII, got {getattr(self, name)!r}")
        guard_of(self)
        parse_headers(self.http_header)
        parse_proxy(self.http_proxy)

    def check_setup(self, launch: Launch) -> None:
        """Reads files; warns of missing folders and missing protection.

        Raises:
            ValueError: Certificates or the agent's name cannot be used.
            UsageError: The credentials cannot be read.
        """
        guard_of(self)
        if not launch.local:
            require_agent(self)
        self._check_ca_file()
        self._check_credentials()
        if self.http_proxy:
            _LOG.warning(OPEN, self.http_proxy)
            if "ftp" in self.schemes:
                _LOG.warning("no proxy is used for FTP: only hosts of connect_to are reached")
        for root in self.file_roots:
            if not Path(root).is_dir():
                _LOG.warning("file_roots: there is no folder %r on this machine", root)
        if self.insecure_host:
            _LOG.warning("certificates are not checked of %s", ", ".join(self.insecure_host))

    def _check_ca_file(self) -> None:
        try:
            if self.ca_file:
                tls_context(self.ca_file)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ValueError(
                f"ca_file must be a file of certificates, got {self.ca_file!r}: {reason}"
            ) from error

    def _check_credentials(self) -> None:
        path, proxy = self.http_credentials, parse_proxy(self.http_proxy)
        if not path:
            return
        credentials = Credentials(load_credentials(path))
        if proxy:
            credentials.proxy_header(*proxy)
        if is_open_to_others(path):
            _LOG.warning("other users may read %s: chmod 600 it", path)


@dataclass(frozen=True)
class WireOptions:
    """The option of what is stored of answers."""

    GROUP = "fetch"

    store_wire: bool = option(
        False,
        "Store each answer as it came, too, for nutbeam warc: its head, its body with all codings, and "
        "the bodies of error pages; and the version of TLS. Coded bodies are stored twice.",
        nutch="store.http.headers",
    )


def limit_of(content_type: str | None) -> str:
    """Returns the name of the option that limits bodies of a content type.

    >>> limit_of("text/html; charset=utf-8"), limit_of("application/pdf"), limit_of(None)
    ('content_limit', 'document_limit', 'content_limit')
    """
    is_document = (content_type or "").strip().lower().startswith(_DOCUMENTS)
    return "document_limit" if is_document else "content_limit"


def limits_of(options: HttpOptions) -> Limits:
    """Returns the limits on each request, from the options."""
    return Limits(
        options.timeout, options.http_time_limit, options.min_rate, options.min_rate_grace
    )


def guard_of(options: HttpOptions) -> Guard:
    """Returns the guard for the options.

    Raises:
        ValueError: An entry of a list cannot be read.
    """
    return Guard(options.allow_addresses, options.connect_to, options.allowed_ports)
