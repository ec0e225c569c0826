"""The base of the clients for schemes that are not HTTP, and the folders that these list.

The listings are MLSD (RFC 3659), and LIST as of Unix and Windows. The pages are those of Nutch's
plug-ins for file: and ftp:.
"""

import html
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..base.clock import now_ms
from ..base.visible import visible
from ..content.content_type import sniff, type_of_name
from ..exchange.status import Response, moment_of
from ..network.failures import NETWORK_ERRORS, reason_of
from ..urls.percent import name_url


class OtherClient(ABC):
    """Fetches URLs of a scheme, and answers as an HTTP server would; safe to share by threads."""

    @abstractmethod
    def host(self, url: str) -> str:
        """Returns the host of a URL.

        Raises:
            ValueError: It is not of this scheme.
        """

    @abstractmethod
    def address(self, url: str) -> str | None:
        """Returns the first IP address for connections to a URL's host.

        None if ``connect_to`` has the host, or if the host has no allowed address.
        """

    @abstractmethod
    def _fetch(self, response: Response, since: float | None, limit: int) -> None:
        """Fills in the response.

        Args:
            response: The response; only its URL is set.
            since: Time of If-Modified-Since, s since the epoch, or None.
            limit: Limit of the body in bytes; negative: no limit.

        Raises:
            OSError: There is no answer.
            ValueError: The URL cannot be fetched.
        """

    def get(
        self, url: str, headers: Iterable[tuple[str, str]] = (), content_limit: int = -1
    ) -> Response:
        """Fetches a URL once; blocks, and raises nothing.

        Args:
            url: Absolute URL.
            headers: Headers; only If-Modified-Since has an effect.
            content_limit: Limit in bytes; negative: no limit.
        """
        response = Response(url, started=now_ms())
        began = time.monotonic()
        headers = list(headers)
        lines = [f"GET {url}", *(f"{name}: {value}" for name, value in headers), "\r\n"]
        response.request = "\r\n".join(lines)  # in the form of a request's head; none is sent
        fields = {name.lower(): value for name, value in headers}
        try:
            self._fetch(response, moment_of(fields.get("if-modified-since", "")), content_limit)
        except NETWORK_ERRORS as error:
            response.error = reason_of(error)
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response


def type_of(path: bytes, body: bytes) -> str:
    """Returns the MIME type of a file: by its extension, or by its content.

    >>> type_of(b"/a/b.HTML", b""), type_of(b"/a/b", b"%PDF-1.7")
    ('text/html', 'application/pdf')
    """
    return type_of_name(path.rpartition(b"/")[2].decode("latin-1")) or sniff(body, None)


def fill_response(response: Response, status: int, reason: str, *headers: tuple[str, str]) -> None:
    """Fills in the status line and the headers that an HTTP server would send."""
    response.status, response.reason = status, reason
    response.status_line, response.headers = f"{status} {reason}", list(headers)


INDEX_TYPE = "text/html; charset=utf-8"
_MAX_LINE = 4096
# drwxr-xr-x 2 owner group 4096 Jan  1 12:00 name; some servers leave owner or group out.
_UNIX = re.compile(
    rb"([-dl])[-a-zA-Z]{9}[-+.@]?[ ]+[0-9]+[ ]+(?:[^ ]+[ ]+){0,2}([0-9]{1,18})[ ]+"
    rb"([A-Za-z]{3}[ ]+[0-9]{1,2}[ ]+[0-9:]{4,5})[ ](.+)",
    re.DOTALL,
)
# 01-31-26  12:00PM  <DIR>  name
_WINDOWS = re.compile(
    rb"([0-9-]{8,10}[ ]+[0-9]{1,2}:[0-9]{2}(?:[AP]M)?)[ ]+(<DIR>|[0-9]{1,18})[ ]+(.+)", re.DOTALL
)
# No name may contain these: they would change the path, or end the command.
_NO_NAME = re.compile(rb"[\x00\r\n/]")


class Entry(NamedTuple):
    """An entry of a folder.

    Attributes:
        name: Its bytes.
        folder: Whether it is a folder.
        size: Bytes, where they are known.
        changed: Time of the last change, as text.
    """

    name: bytes
    folder: bool = False
    size: int | None = None
    changed: str = ""


def index_page(
    path: bytes, entries: Iterable[Entry], parent: bool = False, limit: int = -1
) -> tuple[bytes, int]:
    """Returns a page that links to the entries of a folder.

    Args:
        path: Of the folder, for the title.
        entries: Its entries.
        parent: Whether to link to the folder above.
        limit: Most bytes of the page; negative: no limit. Whole entries
            are left out at the end.

    Returns:
        (the page in UTF-8, how many entries were left out).

    >>> page, _ = index_page(b"/a/", [Entry(b"<b>", folder=True)])
    >>> page.split(b"<pre>")[1].splitlines()[1].decode()
    "<a href='%3Cb%3E/'>&lt;b&gt;/</a>\\t-\\t-"
    """
    title = f"Index of {_display_form(path)}"
    head = (
        f"<html><head><title>{title}</title></head>\n<body><h1>{title}</h1><pre>\n"
        + ("<a href='../'>../</a>\t-\t-\n" if parent else "")
    ).encode()
    end = b"</pre></body></html>\n"
    lines, size, left_out = [head], len(head) + len(end), 0
    for entry in entries:
        slash = "/" if entry.folder else ""
        length = "-" if entry.size is None or entry.folder else str(entry.size)
        line = (
            f"<a href='{html.escape(name_url(entry.name))}{slash}'>{_display_form(entry.name)}{slash}</a>"
            f"\t{_display_form(entry.changed.encode()) or '-'}\t{length}\n"
        ).encode()
        if left_out or 0 <= limit < size + len(line):
            left_out += 1
            continue
        lines.append(line)
        size += len(line)
    return b"".join([*lines, end]), left_out


def _display_form(name: bytes) -> str:
    return html.escape(visible(name.decode("utf-8", "replace"), keep=""))


def read_mlsd(data: bytes) -> Iterator[Entry]:
    """Yields the entries of an MLSD listing; other lines are skipped.

    >>> list(read_mlsd(b"type=dir;modify=20260102030405; a b\\r\\ntype=cdir; .\\r\\n"))
    [Entry(name=b'a b', folder=True, size=None, changed='20260102030405')]
    """
    for line in _lines(data):
        facts, space, name = line.partition(b" ")
        parts = (fact.partition(b"=") for fact in facts.split(b";"))
        fact_values = {fact.lower(): value for fact, _, value in parts}
        kind = fact_values.get(b"type", b"").lower()
        if not space or not _is_name(name) or kind in (b"cdir", b"pdir", b""):
            continue
        digits, changed = (
            fact_values.get(b"size", b""),
            fact_values.get(b"modify", b"").decode("latin-1"),
        )
        size = int(digits) if digits.isdigit() and len(digits) <= 18 else None
        yield Entry(name, kind == b"dir", size, changed)


def read_list(data: bytes) -> Iterator[Entry]:
    """Yields the entries of a LIST listing; other lines are skipped.

    >>> line = b"lrwxrwxrwx 1 ftp ftp 7 Jan  1  2026 a -> b c"
    >>> list(read_list(line))
    [Entry(name=b'a', folder=False, size=7, changed='Jan  1  2026')]
    """
    for line in _lines(data):
        unix = _UNIX.fullmatch(line)
        windows = None if unix else _WINDOWS.fullmatch(line)
        if unix:
            name = unix[4].partition(b" -> ")[0] if unix[1] == b"l" else unix[4]
            entry = Entry(name, unix[1] == b"d", int(unix[2]), unix[3].decode())
        elif windows:
            folder = windows[2] == b"<DIR>"
            size = None if folder else int(windows[2])
            entry = Entry(windows[3], folder, size, windows[1].decode())
        else:
            continue
        if _is_name(entry.name):
            yield entry


def _lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if end - start <= _MAX_LINE:
            yield data[start:end].removesuffix(b"\r")
        start = end + 1


def _is_name(name: bytes) -> bool:
    return name not in (b"", b".", b"..") and not _NO_NAME.search(name)
