"""Places on this machine."""

import contextlib
import errno
import functools
import os
import secrets
import shutil
import stat
from collections.abc import Hashable, Iterator
from pathlib import Path, PosixPath
from typing import IO

from ..disk import regular_files
from ..disk.parquet_growth import check_dictionaries
from ..disk.regular_files import (
    NotRegular,
    check_links,
    is_link_free,
    kind_of_entry,
    open_for_reading,
    stat_file,
)
from .places import DiskRoom, Found, Place


class LocalPlace(PosixPath, Place):
    """A folder or file on this machine: a path, with the methods of a place."""

    needs_shared_path = opens_by_name = has_cheap_seeks = may_lose_files = True
    write_interval = 0.0
    look_interval = 1.0
    # What lacks http:// is taken for a folder of this machine.
    hint_if_missing = "; a URL begins with http:// or https://"

    # Folders.

    note_table = regular_files.note_table

    def make_folder(self) -> None:
        check_links(self)
        self.mkdir(parents=True, exist_ok=True)

    def missing_folders(self) -> list[Path]:
        return [path for path in (self, *self.parents) if not path.exists()]

    def odd_entries(self) -> list[tuple[Place, str]]:
        kinds = ((path, kind_of_entry(path)) for path in sorted(self.glob("*")))
        return [(path, kind) for path, kind in kinds if kind]

    def names_and_versions(self) -> dict[str, str]:
        try:
            check_links(self)
            # A path for each name would take three times as long, and a table has many manifests.
            return dict.fromkeys(os.listdir(self), "")  # noqa: PTH208
        except FileNotFoundError:
            return {}

    def names_if_reached(self) -> list[str]:
        return [entry.name for entry in self.iterdir()] if self.exists() else []

    def files_in(self) -> list["LocalPlace"]:
        if not self.is_dir():
            return [self]
        return sorted(path for path in self.iterdir() if path.is_file())

    def check_readable_twice(self) -> None:
        mode = self.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise NotRegular("it is no regular file: give - to read standard input")

    def folders_in(self) -> list[str]:
        inside = self.iterdir() if self.is_dir() else ()
        return sorted(str(path) for path in inside if path.is_dir())

    def files_below(self) -> Iterator[Found]:
        if is_link_free(self):
            yield from self._files_below()

    def _files_below(self) -> Iterator[Found]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for path in sorted(self.iterdir()):
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    facts = path.lstat()
                    if stat.S_ISDIR(facts.st_mode):
                        yield from path._files_below()
                    elif stat.S_ISREG(facts.st_mode):
                        yield Found(path, facts.st_size, facts.st_mtime)

    def remove_tree(self) -> None:
        if is_link_free(self):
            shutil.rmtree(self, ignore_errors=True)

    def empty_folders(self, changed_before: float) -> Iterator[str]:
        with contextlib.suppress(OSError):  # another process has removed it
            for path in self.iterdir() if is_link_free(self) else ():
                inside = [path, *path.rglob("*")]
                if all(one._is_folder() and one.stat().st_mtime < changed_before for one in inside):
                    yield path.name

    def remove_empty_folders(self) -> None:
        with contextlib.suppress(OSError):
            check_links(self)
            for path in self.iterdir():
                if path._is_folder():
                    path.remove_empty_folders()
            self.rmdir()

    def _is_folder(self) -> bool:
        return self.is_dir() and not self.is_symlink()

    # Reading a file.

    open_for_reading = regular_files.open_for_reading

    def read_whole(self, most: int) -> bytes:
        return regular_files.read_whole(self, most)

    def open_parts(self, size: int) -> IO[bytes]:
        return self.open_for_reading()

    def parquet_source(self) -> tuple[Path, int]:
        return self, stat_file(self).st_size

    def check_repeated_texts(self) -> None:
        facts = stat_file(self)
        _check_texts(self, facts.st_size, facts.st_mtime_ns)

    def size_and_version(self) -> tuple[int, str]:
        facts = stat_file(self)
        return facts.st_size, f"{facts.st_ino} {facts.st_mtime_ns}"

    def version(self, known_version: Hashable = None) -> Hashable:
        with contextlib.suppress(OSError):
            return self.size_and_version()
        return None

    # Writing a file.

    def create(self, data: bytes, *, durable: bool) -> bool:
        self.parent.make_folder()
        with self._temporary_beside() as temporary:
            temporary.write_bytes(data)
            if durable:
                temporary._sync()
            created = self._link_to(temporary)
        if durable:
            self.parent.sync_names()
        return created

    def _link_to(self, temporary: Path) -> bool:
        try:
            os.link(temporary, self)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise OSError("the file system has no hard links") from error
            raise
        return True

    @contextlib.contextmanager
    def open_new(self, *, durable: bool, named: bool = True) -> Iterator[IO[bytes]]:
        self.parent.make_folder()
        with self._temporary_beside() as temporary:
            with temporary.open("wb") as file:
                yield file
            if durable:
                temporary._sync()
            temporary.rename(self)
            if durable and named:
                self.parent.sync_names()

    def sync_names(self) -> None:
        self._sync()

    def overwrite(self, data: bytes) -> None:
        """Replaces a small file atomically; a crash of the machine may lose the new content."""
        check_links(self.parent)
        with self._temporary_beside() as temporary:
            temporary.write_bytes(data)
            temporary.replace(self)

    def remove(self) -> None:
        self.unlink()

    @contextlib.contextmanager
    def _temporary_beside(self) -> Iterator["LocalPlace"]:
        """Yields a name in the same folder; removes the file at the end."""
        temporary = self.with_name(f".{self.name}.{secrets.token_hex(8)}")
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _sync(self) -> None:
        """Calls fsync on a file, or on a folder so that its names are on disk."""
        descriptor = os.open(self, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    # Its disk, and times.

    def disk_room(self) -> DiskRoom | None:
        for path in (self, *self.absolute().parents):
            with contextlib.suppress(OSError):  # it does not exist yet
                disk = os.statvfs(path)
                return DiskRoom(
                    disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize,
                    disk.f_files, disk.f_favail,
                )  # fmt: skip
        return None

    def measure_time(self) -> float:
        self.parent.make_folder()
        with self._temporary_beside() as temporary:
            temporary.touch()
            return temporary.stat().st_mtime

    def redate(self, now: float) -> bool:
        with contextlib.suppress(OSError):  # another process has removed it
            # A file with another name elsewhere, as backups with hard links have, is left alone.
            if stat_file(self).st_nlink == 1:
                os.utime(self, (now, now), follow_symlinks=False)
                return True
        return False


@functools.lru_cache(maxsize=16_384)
def _check_texts(path: Path, size: int, changed_ns: int) -> None:
    """Checks a file once: it stays as it is while its size and time do."""
    with open_for_reading(path) as file:
        check_dictionaries(file, size)
