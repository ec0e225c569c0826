"""What a place is: a folder or file, on this machine or in a store.

``LocalPlace`` and ``StorePlace`` implement it; ``place_addresses.py`` makes the place for an address.
"""

import abc
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import IO, Any, ClassVar, NamedTuple, Protocol, Self

from ...web.base.dataclass import dataclass


class Place(abc.ABC):
    """A folder or file, on this machine or in a store.

    Its names are those of ``pathlib``. The other methods raise an ``OSError`` if a file or folder is
    missing or cannot be reached, unless they say otherwise; ``files.py`` has the same with errors
    for users.
    """

    # Whether other machines find it only if they share a folder with this one.
    needs_shared_path: ClassVar[bool]
    # Whether polars, pyarrow and DuckDB open it by its name.
    opens_by_name: ClassVar[bool]
    # Whether reading a part of a file is cheap; in a store each part costs a request.
    has_cheap_seeks: ClassVar[bool]
    # Whether files may get lost, so that markers show which ones were made.
    may_lose_files: ClassVar[bool]
    # Shortest time between two writes of the same name, s.
    write_interval: ClassVar[float]
    # Time between two checks whether a file exists, s.
    look_interval: ClassVar[float]
    # Advice on a place of seeds that does not exist, after an error; it may be empty.
    hint_if_missing: ClassVar[str]

    # Names: they need no request.

    @abc.abstractmethod
    def __truediv__(self, name: str | PurePosixPath) -> Self: ...

    @abc.abstractmethod
    def __lt__(self, other: Any, /) -> bool: ...

    @property
    @abc.abstractmethod
    def name(self) -> str: ...

    @property
    @abc.abstractmethod
    def stem(self) -> str: ...

    @property
    @abc.abstractmethod
    def suffix(self) -> str: ...

    @property
    @abc.abstractmethod
    def parent(self) -> Self: ...

    @property
    @abc.abstractmethod
    def parents(self) -> Sequence[Self]: ...

    @abc.abstractmethod
    def with_name(self, name: str) -> Self: ...

    @abc.abstractmethod
    def with_suffix(self, suffix: str) -> Self: ...

    @abc.abstractmethod
    def relative_to(self, other: Any, /) -> PurePosixPath: ...

    def absolute(self) -> Self:
        """Returns the absolute form, which is valid in any working folder."""
        return self

    def resolve(self) -> Self:
        """Returns the absolute form, without links."""
        return self

    # Folders.

    def note_table(self) -> None:
        """Records that this is the folder of a table, so that no link leads out of it."""
        return

    def make_folder(self) -> None:
        """Makes the folder and those above it, unless it is there; a store has none to make."""
        return

    def missing_folders(self) -> list[Path]:
        """Returns those of the folder and the folders above it that do not exist; none in a store."""
        return []

    def is_symlink(self) -> bool:
        """Returns whether it is a symbolic link."""
        return False

    def odd_entries(self) -> list[tuple["Place", str]]:
        """Returns what is no regular file in the folder, and its kind, such as ``a FIFO``."""
        return []

    @abc.abstractmethod
    def exists(self) -> bool:
        """Returns whether the folder or file exists."""

    @abc.abstractmethod
    def names_and_versions(self) -> dict[str, str]:
        """Returns the names in the folder and, in a store, each object's version.

        There are none if there is no such folder.
        """

    @abc.abstractmethod
    def names_if_reached(self) -> list[str]:
        """Returns the names in the folder of a table; checks that its store answers."""

    @abc.abstractmethod
    def files_in(self) -> list[Self]:
        """Returns the files directly in the folder, in order; for a file, the file alone."""

    def check_readable_twice(self) -> None:
        """Checks that it is no FIFO, device or socket: they can be read once, if at all."""
        return

    @abc.abstractmethod
    def folders_in(self) -> list[str]:
        """Returns the folders directly in the folder, in order; for a file, none."""

    @abc.abstractmethod
    def files_below(self) -> Iterator["Found"]:
        """Yields all files below the folder, hidden files included; none if there is no folder.

        Only regular files are listed, and no link is followed, except a moved folder of a table.
        """

    @abc.abstractmethod
    def remove_tree(self) -> None:
        """Removes the folder and its content; skips files that cannot be removed."""

    def empty_folders(self, changed_before: float) -> Iterator[str]:
        """Yields the names of the folders in the folder that have no files; stores have none.

        Args:
            changed_before: Time of the store's clock, s. A folder that was changed later is left out,
                because another process may be about to write there.
        """
        return iter(())

    @abc.abstractmethod
    def remove_empty_folders(self) -> None:
        """Removes the folder and those below it that are empty; leaves what cannot be removed."""

    # Reading a file.

    @abc.abstractmethod
    def read_whole(self, most: int) -> bytes:
        """Returns the whole file; on this machine a file of a table has at most ``most`` bytes."""

    @abc.abstractmethod
    def open_for_reading(self) -> IO[bytes]:
        """Opens the file for reading from its beginning to its end."""

    @abc.abstractmethod
    def open_parts(self, size: int) -> IO[bytes]:
        """Opens the file, of a known size in bytes, for reading parts of it."""

    @abc.abstractmethod
    def parquet_source(self) -> tuple[Any, int]:
        """Returns (what pyarrow reads a Parquet file from, its size in bytes)."""

    def check_repeated_texts(self) -> None:
        """Checks that the rows of a Parquet file do not fill the memory; in a store it does not.

        Raises:
            ValueError: It repeats long texts, or is damaged.
        """
        return

    @abc.abstractmethod
    def size_and_version(self) -> tuple[int, str]:
        """Returns (size in bytes, a value that differs between two files of the same name)."""

    @abc.abstractmethod
    def version(self, known_version: Hashable = None) -> Hashable:
        """Returns a version of the file; None if there is no file.

        Files are never changed, but a table may be removed and created again.

        Args:
            known_version: A version that the caller knows, or None; for a file in a store it is enough,
                because another would cost a request.
        """

    # Writing a file.

    @abc.abstractmethod
    def create(self, data: bytes, *, durable: bool) -> bool:
        """Creates the file with its content, unless the name is taken; returns whether it did.

        On this machine it writes a temporary file, calls fsync if ``durable``, then ``os.link``,
        which fails if the name is taken. No reader ever sees an incomplete file, and a crash leaves
        at most the temporary file. For stores see ``stores.create``.
        """

    def check_exclusive(self) -> None:
        """Checks that names in the folder are created only once; called before it gets a table.

        Some stores that speak S3's protocol ignore ``If-None-Match``: two commits could
        overwrite each other, unnoticed.

        Raises:
            UserError: The store replaces existing objects.
        """
        return

    @abc.abstractmethod
    def open_new(self, *, durable: bool, named: bool = True) -> AbstractContextManager[IO[bytes]]:
        """Opens a new file for writing; it appears when the block ends without an error.

        Args:
            durable: Whether its content is on disk before it appears.
            named: Whether its name is on disk, too, when the block has ended, if ``durable``; else
                ``sync_names`` of its folder does that for several files at once.
        """

    def sync_names(self) -> None:
        """Waits until the names in the folder are on disk; in a store they always are."""
        return

    @abc.abstractmethod
    def overwrite(self, data: bytes) -> None:
        """Replaces a small file."""

    @abc.abstractmethod
    def remove(self) -> None:
        """Removes the file."""

    # Its disk, times, and the client.

    def disk_room(self) -> "DiskRoom | None":
        """Returns the room of the disk that has the folder, or would have it; None in a store."""
        return None

    @abc.abstractmethod
    def measure_time(self) -> float:
        """Returns the time of the store's clock, s since the epoch, by writing this file."""

    def limit_after(self, time: float) -> float:
        """Returns the time below which times of files count as not later than ``time``, s."""
        return time

    def redate(self, now: float) -> bool:
        """Sets the time of a file that is dated in the future to ``now``; returns whether it did."""
        return False

    def check_client(self) -> None:
        """Checks that the client of a store is installed here.

        Raises:
            UserError: A package or the credentials are missing.
        """
        return


@dataclass(frozen=True)
class Found:
    """A file in a folder.

    Attributes:
        path: Its place.
        bytes: Its size.
        changed: When it was last written, s, by the store's clock.
    """

    path: Place
    bytes: int
    changed: float


class DiskRoom(NamedTuple):
    """The room of a disk: what it has in all, and what this user may still write.

    Attributes:
        total: Its size, bytes.
        free: Free bytes.
        total_files: How many files it can have (inodes); 0 if their number has no limit of its own.
        free_files: How many more files fit.
    """

    total: int
    free: int
    total_files: int = 0
    free_files: int = 0


class Folder(Protocol):
    """The folder of a table's files: ``folder / name`` is the place of a file."""

    def __truediv__(self, name: str | PurePosixPath, /) -> Place: ...
