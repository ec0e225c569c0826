"""Reads and writes objects in stores, with fsspec's clients: gcsfs, s3fs, WebHDFS.

On Cloud Storage and S3 an object appears when its upload is complete, so no rename is
needed. On HDFS files are written under a temporary name and renamed. Clients retry failed
requests for a limited time (429, 5xx, lost connections). All errors raised here are an
``OSError`` whose text is one line.
"""

import contextlib
import datetime
import io
import os
import random
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any, cast

from .store_clients import StoreError, StoreName, client_errors, code_of, path_in, store_client_of
from .web_hdfs import write_hdfs_file

# Size of a piece of an upload or a download; an open file for writing uses this much memory.
BLOCK_BYTES = 8 << 20
# A smaller file is read as a whole, with one request.
WHOLE_BYTES = 256 << 10
# Number of attempts to create an object while another process is creating it.
_TRIES = 6
_MARK = "nutbeam-write"
# With these options, clients do not request the size first, and do not read ahead.
_ONE_REQUEST: Mapping[str, Mapping[str, Any]] = {
    "gs": {"concurrency": 1},
    "s3": {"max_concurrency": 1},
    "hdfs": {"cache_type": "none"},
}


def read_object(place: StoreName, start: int | None = None, end: int | None = None) -> bytes:
    """Returns an object's bytes, or those from ``start`` to ``end`` (exclusive)."""
    with client_errors(place):
        more = _ONE_REQUEST[place.scheme]
        return bytes(store_client_of(place).cat_file(path_in(place), start=start, end=end, **more))


def overwrite(place: StoreName, data: bytes) -> None:
    """Replaces a small object; on HDFS readers may see an incomplete file."""
    with client_errors(place):
        client = store_client_of(place)
        if place.scheme == "hdfs":
            write_hdfs_file(client, path_in(place), data)
        else:
            client.pipe_file(path_in(place), data)


def create(place: StoreName, data: bytes) -> bool:
    """Creates an object unless its name is taken; returns whether this call created it.

    It uses ``ifGenerationMatch=0`` on Cloud Storage, ``If-None-Match: *`` on S3, and on HDFS
    a rename, which never replaces a file. If a reply is lost, the client's second attempt
    finds the object of the first attempt. A mark in the object's metadata shows that this
    call created it.
    """
    if place.scheme == "hdfs":
        temporary = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
        overwrite(temporary, data)
        return _rename(temporary, place)
    mark = secrets.token_hex(8)
    client = store_client_of(place)
    arguments = {"metadata" if place.scheme == "gs" else "Metadata": {_MARK: mark}}
    with client_errors(place):
        for tries_left in reversed(range(_TRIES)):
            try:
                client.pipe_file(path_in(place), data, mode="create", **arguments)
                return True
            except Exception as error:  # noqa: BLE001 - after any error the object may be there
                try:
                    stored_mark = _mark_of(place)
                except FileNotFoundError:
                    # S3 replies 409 while another writer creates it; that writer may still fail.
                    if not tries_left or code_of(error) not in (409, 412):
                        raise error from error.__cause__  # the cause has the status
                    time.sleep(random.random() / (tries_left + 1))
                    continue
                except Exception:  # noqa: BLE001 - the first error says why it could not be created
                    raise error from error.__cause__
                return stored_mark == mark
    raise AssertionError


def _mark_of(place: StoreName) -> str | None:
    client, path = store_client_of(place), path_in(place)
    if place.scheme == "gs":
        return dict(client.info(path).get("metadata") or {}).get(_MARK)
    return dict(client.metadata(path, refresh=True)).get(_MARK)


def _rename(temporary: StoreName, place: StoreName) -> bool:
    """Renames a temporary file of HDFS; returns whether the name was free."""
    client, at = store_client_of(place), path_in(temporary)
    with client_errors(place):
        failure: Exception | None = None
        try:
            client.mv(at, path_in(place))
        except Exception as error:  # noqa: BLE001 - an answer may be lost, the file is not
            failure = error
        # The client hides the reply, but the old name shows whether the rename succeeded.
        if not client.exists(at):
            return True
        client.rm_file(at)
        if failure is not None:
            raise failure
    return False


@contextlib.contextmanager
def open_new(place: StoreName) -> Iterator[IO[bytes]]:
    """Opens a new object for writing; it appears when the block ends without an error."""
    target = place
    if place.scheme == "hdfs":
        target = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    upload = _Upload(target)
    try:
        yield cast("IO[bytes]", upload)
        upload.complete()
    except BaseException:
        upload.discard()
        raise
    if target != place and not _rename(target, place):
        raise StoreError("the name is taken")


class _Upload(io.RawIOBase):
    """An object that is being written: one request if it is small, else in pieces.

    A small one is not written through fsspec's file: that takes two requests, and does not
    retry when an answer is lost.
    """

    def __init__(self, target: StoreName) -> None:
        self._target, self._written = target, 0
        self._small = bytearray()
        self._file: Any = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        with client_errors(self._target):
            if self._file is None and len(self._small) + size <= BLOCK_BYTES:
                self._small += data
            else:
                if self._file is None:
                    self._file = store_client_of(self._target).open(
                        path_in(self._target), "wb", block_size=BLOCK_BYTES
                    )
                    self._file.write(bytes(self._small))
                    self._small.clear()
                self._file.write(data)
        self._written += size
        return size

    def complete(self) -> None:
        if self._file is None:
            overwrite(self._target, bytes(self._small))
        else:
            with client_errors(self._target):
                self._file.close()

    def discard(self) -> None:
        """Ends the upload without an object."""
        if self._file is None:
            return
        with contextlib.suppress(Exception):
            self._file.discard()
        self._file.closed = True  # else the garbage collector would complete it
        if self._target.scheme == "hdfs":
            with contextlib.suppress(Exception):
                store_client_of(self._target).rm_file(path_in(self._target))


def open_object(place: StoreName) -> IO[bytes]:
    """Opens an object for reading from its beginning to its end."""
    return io.BufferedReader(_Ranges(place, stat(place)[0]), BLOCK_BYTES)


def seekable(place: StoreName) -> tuple[IO[bytes], int]:
    """Opens an object for reading parts of it, a small one at once; returns its size, too."""
    start = _start_of(place)
    if len(start) < WHOLE_BYTES:
        return io.BytesIO(start), len(start)
    size = stat(place)[0]
    return ranges(place, size), size


def ranges(place: StoreName, size: int) -> IO[bytes]:
    """Opens an object of a known size for reading parts of it; opening sends no request."""
    return cast("IO[bytes]", _Ranges(place, size))


def _start_of(place: StoreName) -> bytes:
    """Returns the first ``WHOLE_BYTES`` bytes, with one request: a small object as a whole."""
    if place.scheme == "hdfs":  # its client always requests the size first
        size = stat(place)[0]
        return read_object(place, 0, min(size, WHOLE_BYTES)) if size else b""
    try:
        return read_object(place, 0, WHOLE_BYTES)
    except StoreError as error:
        if code_of(error) == 416 or "not satisfiable" in str(error):  # the object is empty
            return b""
        raise


class _Ranges(io.RawIOBase):
    """An object for reading; each read is one request."""

    def __init__(self, place: StoreName, size: int) -> None:
        self._place, self._size, self._at = place, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._size, self._at + size)
        if end <= self._at:
            return b""
        data = read_object(self._place, self._at, end)
        self._at += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def stat(place: StoreName) -> tuple[int, str]:
    """Returns (size in bytes, version) of an object; its version changes with its content."""
    with client_errors(place):
        entry = store_client_of(place).info(path_in(place))
    if entry.get("type") == "directory":
        raise FileNotFoundError(str(place))
    return int(entry["size"]), _version(entry)


def names(place: StoreName, *, folders: bool = True) -> dict[str, str]:
    """Returns the version of each object directly below a place, by its name.

    Args:
        place: The place; it need not exist.
        folders: Whether to include folders: names that are only a prefix of other names.

    Raises:
        NotADirectoryError: The place is an object itself, and nothing is below it.
    """
    path = path_in(place).rstrip("/")
    with client_errors(place):
        try:
            entries = store_client_of(place).ls(path or "/", detail=True)
        except FileNotFoundError:
            return {}
    if [e["name"].rstrip("/") for e in entries if e["type"] == "file"] == [path]:
        raise NotADirectoryError(str(place))
    return {
        entry["name"].rstrip("/").rpartition("/")[2]: _version(entry)
        for entry in entries
        # Web consoles create an object "FOLDER/": it is the folder itself.
        if entry["name"].rstrip("/") != path and (folders or entry["type"] == "file")
    }


def measure_time(place: StoreName) -> float:
    """Returns the time of the store's clock, s since the epoch, by writing an object for a moment."""
    overwrite(place, b"-")
    try:
        with client_errors(place):
            return _time(store_client_of(place).info(path_in(place)))
    finally:
        remove(place)


def tree(place: StoreName) -> dict[str, tuple[int, float]]:
    """Returns (size in bytes, time of writing in s) of all objects below a place, by name.

    Names are relative to the place. For a multipart upload, S3 has the time of its start.
    """
    above = path_in(place).rstrip("/")
    with client_errors(place):
        try:
            entries = store_client_of(place).find(above or "/", detail=True)
        except FileNotFoundError:
            return {}
        return {
            path.removeprefix(f"{above}/"): (int(entry["size"]), _time(entry))
            for path, entry in sorted(entries.items())
            # Web consoles create an object "FOLDER/": it is the folder itself.
            if entry["type"] == "file" and path != above and not path.endswith("/")
        }


def _time(entry: Mapping[str, Any]) -> float:
    """Returns when an object was written, from its client's description."""
    if "modificationTime" in entry:  # HDFS, ms
        return int(entry["modificationTime"]) / 1000
    written = entry.get("LastModified") or entry.get("mtime")  # S3; Cloud Storage
    if not isinstance(written, datetime.datetime):
        raise StoreError("the store does not say when files were written")
    return written.timestamp()


def _version(entry: Mapping[str, Any]) -> str:
    """Returns a value that changes with an object's content, from its client's description."""
    parts = (entry.get(n) for n in ("generation", "ETag", "fileId", "modificationTime"))
    return " ".join(str(part).strip('"') for part in parts if part is not None)


def check_reach(place: StoreName) -> None:
    """Checks that the store answers and that its bucket exists.

    Raises:
        StoreError: The store does not answer, or the bucket does not exist.
    """
    with client_errors(place):
        try:
            store_client_of(place).ls("/" if place.scheme == "hdfs" else place.netloc, detail=True)
        except FileNotFoundError as error:
            raise StoreError(f"there is no bucket {place.netloc!r}") from error


def remove(place: StoreName) -> None:
    """Removes one object."""
    with client_errors(place), contextlib.suppress(FileNotFoundError):
        store_client_of(place).rm_file(path_in(place))


def remove_tree(place: StoreName) -> None:
    """Removes all objects below a place, except those that cannot be removed."""
    with contextlib.suppress(OSError), client_errors(place):
        store_client_of(place).rm(path_in(place), recursive=True)


def remove_empty_folders(place: StoreName) -> None:
    """Removes a folder of HDFS and those below it that are empty; other stores have none."""
    if place.scheme != "hdfs":
        return
    with contextlib.suppress(OSError), client_errors(place):
        entries = store_client_of(place).ls(path_in(place), detail=True)
        for entry in entries:
            if entry["type"] == "directory":
                remove_empty_folders(place / entry["name"].rstrip("/").rpartition("/")[2])
        if all(entry["type"] == "directory" for entry in entries):
            store_client_of(place).rm(path_in(place), recursive=False)  # refused if it is not empty
