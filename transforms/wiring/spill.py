"""Spills large chunks to a temporary file between the steps of one process.

Beam's in-process runner holds all encoded elements between two steps in memory, and copies them
about six times. With this module it holds only the file positions of large chunks.
"""

import contextlib
import io
import os
import secrets
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

LEAST = 64 << 10  # bytes; smaller chunks stay in memory
_TOKEN = struct.Struct("<4s8sQQ")
_MARK = b"\0lie"  # no Arrow stream begins with this
_opening = threading.Lock()
_open: "Spill | None" = None
_users = 0


class _Whole:
    """A file whose ``write`` writes everything; ``close`` leaves it open."""

    closed = False

    def __init__(self, file: io.FileIO) -> None:
        self._file = file

    def write(self, data: pa.Buffer) -> int:
        view = memoryview(data)
        size = view.nbytes
        while view:
            view = view[self._file.write(view) :]
        return size

    def flush(self) -> None:
        """Does nothing: nothing is buffered."""

    def close(self) -> None:
        """Does nothing: the file is for the next chunk, too."""


class Spill:
    """A temporary file without a name. The system removes it when the process ends.

    Raises:
        OSError: There is no folder for temporary files.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="nutbeam-", buffering=0)  # noqa: SIM115
        self._lock = threading.Lock()
        self._end = 0
        self._id = secrets.token_bytes(8)
        self._process = os.getpid()

    def put(self, write: Callable[[pa.NativeFile], object]) -> bytes | None:
        """Writes what a function writes, and returns its token; None if the disk is full.

        Args:
            write: Writes to the stream that it is given; called once.
        """
        if os.getpid() != self._process:  # a fork: the file belongs to its parent
            return None
        with self._lock:
            at = self._end
            try:
                self._file.seek(at)
                # Arrow passes its own buffers, so nothing is copied in memory.
                with pa.PythonFile(_Whole(self._file), mode="w") as stream:
                    write(stream)
                self._end = self._file.tell()
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(at)
                return None
            return _TOKEN.pack(_MARK, self._id, at, self._end - at)

    def get(self, token: bytes) -> pa.Buffer:
        """Returns the bytes of a token.

        Raises:
            RuntimeError: The token belongs to another pipeline.
        """
        _, spill, at, size = _TOKEN.unpack(token)
        if spill != self._id:
            raise RuntimeError("a spilled chunk is of a pipeline that has ended")
        data = pa.allocate_buffer(size)
        view = memoryview(data)
        with self._lock:  # all threads share the position in the file
            self._file.seek(at)
            while view:
                read = self._file.readinto(view)
                if not read:
                    raise RuntimeError("a spilled chunk is truncated")
                view = view[read:]
        return data

    def close(self) -> None:
        """Closes the file, which frees its disk space."""
        self._file.close()


@contextlib.contextmanager
def spilling() -> Iterator[None]:
    """Spills large chunks while a pipeline runs; all its steps must be in this process.

    Pipelines that run at the same time share the file, because Beam creates the coders and passes
    no arguments to them. If no file can be created, chunks stay in memory.
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
    """Returns whether a pipeline runs here, with all of its steps in this process."""
    return _users > 0


def spill(write: Callable[[pa.NativeFile], object]) -> bytes | None:
    """Writes large data to the file and returns its token; None if there is no file.

    Args:
        write: Writes the data to a stream.
    """
    return _open.put(write) if _open is not None else None


def restore(encoded: bytes) -> pa.Buffer:
    """Returns the original bytes for the result of ``spill``.

    Raises:
        RuntimeError: The bytes belong to a pipeline that has ended.
    """
    if not encoded.startswith(_MARK):
        return pa.py_buffer(encoded)
    if _open is None:
        raise RuntimeError("a spilled chunk is of a pipeline that has ended")
    return _open.get(encoded)
