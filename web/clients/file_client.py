"""Reads file: URLs as Nutch's protocol-file does, below folders that the operator chooses.

Nothing outside of these folders is read. First, the symbolic links of a path are resolved. Then the
resolved path is opened one name at a time from the root, without following symbolic links. So a
link that is created in between has no effect.
"""

import email.utils
import errno
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator

from ..exchange.status import Response
from ..network.failures import UnsendableUrl
from ..urls.percent import path_bytes, path_url
from .other_clients import INDEX_TYPE, Entry, OtherClient, fill_response, index_page, type_of

_LOG = logging.getLogger(__name__)
_URL = re.compile(r"file://(?:localhost)?(/[\x21\x22\x24-\x3e\x40-\x7e]*)(?:[?#][\x21-\x7e]*)?")
_MAX_ENTRIES = 200_000
# Not every system has each of the flags, and O_RDONLY is 0.
_FOLDER, _NOFOLLOW, _PATH, _NONBLOCK, _NOCTTY = (
    getattr(os, f"O_{name}", 0) for name in ("DIRECTORY", "NOFOLLOW", "PATH", "NONBLOCK", "NOCTTY")
)
# Passing through a folder requires no permission to list it.
_PASS = _FOLDER | _NOFOLLOW | _PATH
_READ = _NOFOLLOW | _NONBLOCK | _NOCTTY
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO})


class FileClient(OtherClient):
    """Reads files and folders.

    Responses are those of an HTTP server: 200, 301 to the name of a folder and to the target of
    symbolic links, 304, 404, and 403 for files that must not be read.
    Hard links and mounts within a root are the operator's responsibility.

    Args:
        roots: Folders whose content may be read.
        parent: Whether a folder's page links to its parent; that of a root does not.
        canonical: Whether a path with symbolic links in it redirects.
    """

    def __init__(self, roots: Iterable[str], parent: bool = False, canonical: bool = True) -> None:
        self._roots = tuple(os.path.realpath(os.fsencode(root)) for root in roots)
        self._parent, self._canonical = parent, canonical

    def host(self, url: str) -> str:
        """Returns the host: none; see ``OtherClient``."""
        _path_of(url)
        return ""

    def address(self, url: str) -> str | None:
        """Returns None: there is no server."""
        return None

    def _fetch(self, response: Response, since: float | None, limit: int) -> None:
        try:
            path = path_bytes(_path_of(response.url))
        except ValueError as error:
            raise UnsendableUrl(str(error)) from error
        real = os.path.realpath(path)
        try:
            descriptor = _open_below(self._root_of(real), real)
            try:
                mode = os.fstat(descriptor).st_mode
                _check_kind(mode)
                if not self._redirect_if_renamed(response, path, real, stat.S_ISDIR(mode)):
                    self._read(response, real, descriptor, since, limit)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno in _MISSING:
                fill_response(response, 404, "Not Found")
            elif error.errno in _FORBIDDEN:
                fill_response(response, 403, "Forbidden")
            else:
                raise

    def _root_of(self, real: bytes) -> bytes:
        for root in self._roots:
            if real == root or real.startswith(root.rstrip(b"/") + b"/"):
                return root
        # The response must not reveal whether the file exists.
        raise PermissionError(errno.EACCES, "outside of file_roots")

    def _redirect_if_renamed(
        self, response: Response, path: bytes, real: bytes, folder: bool
    ) -> bool:
        """Fills in a redirect if the file has another name; returns whether it has."""
        name = real.rstrip(b"/") + b"/" if folder else real
        if path == name or (not self._canonical and path.endswith(b"/") == folder):
            return False
        target = name if self._canonical else path.rstrip(b"/") + b"/" * folder
        fill_response(response, 301, "Moved", ("Location", f"file://{path_url(target)}"))
        return True

    def _read(
        self, response: Response, real: bytes, descriptor: int, since: float | None, limit: int
    ) -> None:
        file_stat = os.fstat(descriptor)
        changed = ("Last-Modified", email.utils.formatdate(int(file_stat.st_mtime), usegmt=True))
        if since is not None and int(file_stat.st_mtime) <= since:
            fill_response(response, 304, "Not Modified", changed)
            return
        if stat.S_ISDIR(file_stat.st_mode):
            body = self._page(real, descriptor, limit)
            kind, length = INDEX_TYPE, len(body)
        else:
            body = _content(descriptor, limit)
            if 0 <= limit < len(body):
                body, response.truncated = body[:limit], "length"
            kind, length = type_of(real, body), file_stat.st_size
        headers = ("Content-Type", kind), ("Content-Length", str(length)), changed
        fill_response(response, 200, "OK", *headers)
        response.body = body

    def _page(self, real: bytes, descriptor: int, limit: int) -> bytes:
        path = real.rstrip(b"/") + b"/"
        parent = self._parent and path.rstrip(b"/") not in (b"", *self._roots)
        page, left_out = index_page(path, _entries(descriptor), parent, limit)
        if left_out:
            _LOG.warning(
                "%d entries of folder %r are left out: its page would be over content_limit",
                *(left_out, os.fsdecode(path)),
            )
        return page


def _path_of(url: str) -> str:
    match = _URL.fullmatch(url)
    if match is None:
        raise UnsendableUrl(f"expected a file: URL without a host, got {url!r}")
    return match[1]


def _check_kind(mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise PermissionError(errno.EACCES, "neither a file nor a folder")


def _open_below(root: bytes, path: bytes) -> int:
    """Opens a path below a root for reading; follows no symbolic links; returns the descriptor."""
    names = [name for name in path[len(root) :].split(b"/") if name]
    at = os.open(root, _FOLDER)
    try:
        for name in names[:-1]:
            below = os.open(name, _PASS, dir_fd=at)
            os.close(at)
            at = below
        if not names:
            return os.open(b".", _READ, dir_fd=at)
        # Checked before opening, because opening a device may have effects.
        _check_kind(os.stat(names[-1], dir_fd=at, follow_symlinks=False).st_mode)
        return os.open(names[-1], _READ, dir_fd=at)
    finally:
        os.close(at)


def _content(descriptor: int, limit: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(limit + 1 if limit >= 0 else -1)


def _entries(descriptor: int) -> Iterator[Entry]:
    """Yields the files and folders in an open folder, sorted by name; no devices and pipes."""
    names: list[bytes] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if len(names) == _MAX_ENTRIES:
                _LOG.warning("a folder has over %d entries: the others are left out", _MAX_ENTRIES)
                break
            names.append(os.fsencode(entry.name))
    for name in sorted(names):
        try:
            kind = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except OSError:  # it was removed
            continue
        mode = kind.st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
            changed = email.utils.formatdate(int(kind.st_mtime), usegmt=True)
            size = kind.st_size if stat.S_ISREG(mode) else None
            yield Entry(name, stat.S_ISDIR(mode), size, changed)
