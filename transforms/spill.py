"""A file that chunks lie in on their way between the steps of one process.

Beam's in-process runner holds all that passes between two steps, encoded, and
copies it some six times. With this it holds the places of what is large.
"""

import contextlib
import os
import secrets
import struct
import tempfile
import threading
from collections.abc import Iterator

import pyarrow as pa

LEAST = 64 << 10  # bytes; what is smaller goes along with its element
_TOKEN = struct.Struct("<4s8sQQ")
_MARK = b"\0lie"  # no Arrow stream begins with this
_opening = threading.Lock()
_open: "Spill | None" = None
_users = 0


class Spill:
    """A temporary file without a name, which ends with its process, however that ends.

    Raises:
        OSError: There is no folder for it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="nutbeam-", buffering=0)  # noqa: SIM115
        self._lock = threading.Lock()
        self._end = 0
        self._id = secrets.token_bytes(8)
        self._process = os.getpid()

    def put(self, data: pa.Buffer) -> bytes | None:
        """Keeps bytes and returns their token; None where the disk takes no more."""
        if os.getpid() != self._process:  # a fork: the file is its parent's
            return None
        with self._lock:
            at, view = self._end, memoryview(data)
            try:
                self._file.seek(at)
                while view:
                    view = view[self._file.write(view) :]
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(at)
                return None
            self._end = at + data.size
        return _TOKEN.pack(_MARK, self._id, at, data.size)

    def get(self, token: bytes) -> pa.Buffer:
        """Returns bytes that were kept.

        Raises:
            RuntimeError: They were kept for another pipeline.
        """
        _, spill, at, size = _TOKEN.unpack(token)
        if spill != self._id:
            raise RuntimeError("a chunk was kept for a pipeline that has ended")
        data = pa.allocate_buffer(size)
        view = memoryview(data)
        with self._lock:  # a file has one place at a time
            self._file.seek(at)
            while view:
                read = self._file.readinto(view)
                if not read:
                    raise RuntimeError("a chunk that was kept is cut off")
                view = view[read:]
        return data

    def close(self) -> None:
        """Gives the disk back."""
        self._file.close()


@contextlib.contextmanager
def spilling() -> Iterator[None]:
    """Keeps large chunks in a file while a pipeline runs whose steps are all in this process.

    Pipelines that run at once share it: Beam makes the coders, and tells them nothing.
    Where no file can be made, chunks stay in memory.
    """
    global _open, _users
    with _opening:
        if _open is None:
            with contextlib.suppress(OSError):
                _open = Spill()
        _users += 1
    try:
        yield
    finally:
        with _opening:
            _users -= 1
            if not _users and _open is not None:
                _open.close()
                _open = None


def is_open() -> bool:
    """Returns whether a pipeline runs all of whose steps are in this process."""
    return _users > 0


def put_away(data: pa.Buffer) -> bytes:
    """Returns what stands for bytes: a token where they were put into the file, or themselves."""
    token = _open.put(data) if _open is not None and data.size >= LEAST else None
    return data.to_pybytes() if token is None else token


def brought(encoded: bytes) -> pa.Buffer:
    """Returns the bytes that ``put_away`` was given.

    Raises:
        RuntimeError: They were kept for a pipeline that has ended.
    """
    if not encoded.startswith(_MARK):
        return pa.py_buffer(encoded)
    if _open is None:
        raise RuntimeError("a chunk was kept for a pipeline that has ended")
    return _open.get(encoded)
