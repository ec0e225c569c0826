"""A file that chunks lie in on their way between the steps of one process.

Beam's in-process runner holds all that passes between two steps, encoded, and
copies it some six times. With this it holds the places of what is large.
"""

import contextlib
import mmap
import struct
import tempfile
import threading
from collections.abc import Iterator

import pyarrow as pa

LEAST = 64 << 10  # bytes; what is smaller goes along with its element
_TOKEN = struct.Struct("<4sQQ")
_MARK = b"\0lie"  # no Arrow stream begins with this
_opening = threading.Lock()
_open: "Spill | None" = None
_users = 0


class Spill:
    """A temporary file without a name, which ends with its process, however that ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="nutbeam-", buffering=0)  # noqa: SIM115
        self._lock = threading.Lock()
        self._end = 0

    def put(self, data: pa.Buffer) -> bytes | None:
        """Keeps bytes and returns their token; None where the disk takes no more."""
        with self._lock:
            at, view = self._end, memoryview(data)
            try:
                self._file.seek(at)
                while view:
                    view = view[self._file.write(view) :]
            except OSError:
                return None
            self._end = -(-(at + data.size) // mmap.ALLOCATIONGRANULARITY)
            self._end *= mmap.ALLOCATIONGRANULARITY
        return _TOKEN.pack(_MARK, at, data.size)

    def get(self, token: bytes) -> pa.Buffer:
        """Returns bytes that were kept, not copied: they outlast the file's end."""
        _, at, size = _TOKEN.unpack(token)
        return pa.py_buffer(
            mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ, offset=at)
        )

    def close(self) -> None:
        """Gives the disk back, but for what is still looked at."""
        self._file.close()


@contextlib.contextmanager
def spilling() -> Iterator[None]:
    """Keeps large chunks in a file while a pipeline runs whose steps are all in this process.

    Pipelines that run at once share it: Beam makes the coders, and tells them nothing.
    """
    global _open, _users
    with _opening:
        _open, _users = _open or Spill(), _users + 1
    try:
        yield
    finally:
        with _opening:
            _users -= 1
            if not _users:
                _open.close()
                _open = None


def is_open() -> bool:
    """Returns whether a pipeline runs all of whose steps are in this process."""
    return _open is not None


def put_away(data: pa.Buffer) -> bytes:
    """Returns what stands for bytes: a token where they were put into the file, or themselves."""
    token = _open.put(data) if _open is not None and data.size >= LEAST else None
    return data.to_pybytes() if token is None else token


def brought(encoded: bytes) -> pa.Buffer:
    """Returns the bytes that ``put_away`` was given."""
    if _open is None or not encoded.startswith(_MARK):
        return pa.py_buffer(encoded)
    return _open.get(encoded)
