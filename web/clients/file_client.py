"""file: URLs, read as Nutch's protocol-file reads them, below folders that the operator names.

Nothing outside of these is read, whatever a URL or a symbolic link says: the
path is followed to where it really leads, and then opened name by name from the
root on, through no symbolic link, so that a link that is made in between has no effect.
"""

import email.utils
import errno
import logging
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator

from ..base.clock import now_ms
from ..content.content_type import sniff, type_of_name
from ..exchange.response import Response
from ..network.failures import UnsendableUrl
from ..urls.percent import path_bytes, path_url
from .index_page import HTML, Entry, index_page

_LOG = logging.getLogger(__name__)
_URL = re.compile(r"file://(?:localhost)?(/[\x21\x22\x24-\x3e\x40-\x7e]*)(?:[?#][\x21-\x7e]*)?")
MAX_ENTRIES = 200_000
_FOLDER = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0)
# Passing through a folder needs no permission to list it.
_PASS = _FOLDER | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_PATH", 0)
_READ = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
)
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_NOT_FOR_US = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO})


class FileClient:
    """Reads files and folders; safe to share by threads.

    Answers are those of an HTTP server: 200, 301 to the folder's own name and
    to where symbolic links lead, 304, 404, and 403 for what may not be read.
    Hard links and mounts within a root are the operator's responsibility.

    Args:
        roots: Folders below which may be read.
        parent: Whether a folder's page links to its parent; that of a root does not.
        canonical: Whether a path with symbolic links in it redirects.
    """

    def __init__(self, roots: Iterable[str], parent: bool = False, canonical: bool = True) -> None:
        self._roots = tuple(os.path.realpath(os.fsencode(root)) for root in roots)
        self._parent, self._canonical = parent, canonical

    def host(self, url: str) -> str:
        """Returns the host: none.

        Raises:
            ValueError: It is no file: URL of this machine.
        """
        if _URL.fullmatch(url) is None:
            raise UnsendableUrl(f"expected a file: URL without a host, got {url!r}")
        return ""

    def address(self, url: str) -> str | None:
        """Returns None: there is no server."""
        return None

    def get(
        self, url: str, headers: Iterable[tuple[str, str]] = (), content_limit: int = -1
    ) -> Response:
        """Reads a file or folder; raises nothing.

        Args:
            url: ``file:///PATH``.
            headers: If-Modified-Since counts.
            content_limit: Bytes; negative for any number.
        """
        response = Response(url, started=now_ms())
        began = time.monotonic()
        response.request = request_text(url, headers)
        try:
            self._read(response, modified_since(headers), content_limit)
        except ValueError:
            response.error = "bad_url"
        except OSError as error:
            if error.errno in _NOT_THERE:
                answer(response, 404, "Not Found")
            elif error.errno in _NOT_FOR_US:
                answer(response, 403, "Forbidden")
            else:
                response.error = "unreachable"
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response

    def _read(self, response: Response, since: float | None, limit: int) -> None:
        match = _URL.fullmatch(response.url)
        if match is None:
            raise UnsendableUrl(response.url)
        path = path_bytes(match[1])
        real = os.path.realpath(path)
        root = self._root_of(real)
        if root is None:
            # The same answer whether it exists or not.
            raise PermissionError(errno.EACCES, "outside of file_roots")
        descriptor = _open_below(root, real)
        try:
            self._take(response, path, real, descriptor, since, limit)
        finally:
            os.close(descriptor)

    def _take(
        self,
        response: Response,
        path: bytes,
        real: bytes,
        descriptor: int,
        since: float | None,
        limit: int,
    ) -> None:
        found = os.fstat(descriptor)
        folder = stat.S_ISDIR(found.st_mode)
        if not folder and not stat.S_ISREG(found.st_mode):
            raise PermissionError(errno.EACCES, "neither a file nor a folder")
        name = real.rstrip(b"/") + b"/" if folder else real
        if path != name and (self._canonical or path.endswith(b"/") != folder):
            target = name if self._canonical else path.rstrip(b"/") + b"/" * folder
            answer(response, 301, "Moved", ("Location", f"file://{path_url(target)}"))
            return
        changed = ("Last-Modified", email.utils.formatdate(int(found.st_mtime), usegmt=True))
        if since is not None and int(found.st_mtime) <= since:
            answer(response, 304, "Not Modified", changed)
            return
        body = self._page(name, descriptor, limit) if folder else _content(descriptor, limit)
        if not folder and 0 <= limit < len(body):
            body, response.truncated = body[:limit], "length"
        kind = HTML if folder else type_of(real, body)
        length = ("Content-Length", str(len(body) if folder else found.st_size))
        answer(response, 200, "OK", ("Content-Type", kind), length, changed)
        response.body = body

    def _root_of(self, real: bytes) -> bytes | None:
        for root in self._roots:
            if real == root or real.startswith(root.rstrip(b"/") + b"/"):
                return root
        return None

    def _page(self, path: bytes, descriptor: int, limit: int) -> bytes:
        parent = self._parent and path.rstrip(b"/") not in (b"", *self._roots)
        page, left_out = index_page(path, _entries(descriptor), parent, limit)
        if left_out:
            _LOG.warning(
                "%d entries of folder %r are left out: its page would be over content_limit",
                *(left_out, os.fsdecode(path)),
            )
        return page


def _open_below(root: bytes, path: bytes) -> int:
    """Opens a path below a root for reading, through no symbolic link; returns the descriptor."""
    names = [name for name in path[len(root) :].split(b"/") if name]
    at = os.open(root, _FOLDER)
    try:
        for name in names[:-1]:
            below = os.open(name, _PASS, dir_fd=at)
            os.close(at)
            at = below
        if not names:
            return os.open(b".", _READ, dir_fd=at)
        kind = os.stat(names[-1], dir_fd=at, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # to open a device may do something
            raise PermissionError(errno.EACCES, "neither a file nor a folder")
        return os.open(names[-1], _READ, dir_fd=at)
    finally:
        os.close(at)


def _content(descriptor: int, limit: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(limit + 1 if limit >= 0 else -1)


def _entries(descriptor: int) -> Iterator[Entry]:
    """Yields what lies in an open folder, by name; neither devices nor pipes."""
    names: list[bytes] = []
    with os.scandir(descriptor) as found:
        for entry in found:
            if len(names) == MAX_ENTRIES:
                _LOG.warning("a folder has over %d entries: the others are left out", MAX_ENTRIES)
                break
            names.append(os.fsencode(entry.name))
    for name in sorted(names):
        try:
            kind = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except OSError:  # it is gone
            continue
        mode = kind.st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
            changed = email.utils.formatdate(int(kind.st_mtime), usegmt=True)
            size = kind.st_size if stat.S_ISREG(mode) else None
            yield Entry(name, stat.S_ISDIR(mode), size, changed)


def type_of(path: bytes, body: bytes) -> str:
    """Returns the MIME type of a file: by its extension, or by its content.

    >>> type_of(b"/a/b.HTML", b""), type_of(b"/a/b", b"%PDF-1.7")
    ('text/html', 'application/pdf')
    """
    return type_of_name(path.rpartition(b"/")[2].decode("latin-1")) or sniff(body, None)


def request_text(url: str, headers: Iterable[tuple[str, str]]) -> str:
    """Returns text in the form of a request's head, where no request is sent."""
    lines = [f"GET {url}", *(f"{name}: {value}" for name, value in headers), "\r\n"]
    return "\r\n".join(lines)


def modified_since(headers: Iterable[tuple[str, str]]) -> float | None:
    """Returns the seconds of If-Modified-Since, if there is a date."""
    for name, value in headers:
        if name.lower() == "if-modified-since":
            try:
                return email.utils.parsedate_to_datetime(value).timestamp()
            except (ValueError, OverflowError):
                return None
    return None


def answer(response: Response, status: int, reason: str, *headers: tuple[str, str]) -> None:
    """Fills in the response that a server would send."""
    response.status, response.reason = status, reason
    response.status_line, response.headers = f"{status} {reason}", list(headers)
