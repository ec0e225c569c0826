"""Opens files of archives, on this machine or in a store, to read records or parts of them."""

import contextlib
from collections.abc import Iterator
from typing import IO

from ...web.archive_reading.warc_reading import check_beginning
from ...web.archives.warc_options import WARC_ENDINGS
from ...web.base.errors import UsageError
from ..storage.file_errors import errors_as
from ..storage.places import Place

WARC_FILE_ENDINGS = tuple(f".{ending}" for ending in ("warc", *WARC_ENDINGS.values()))
# Those of files of WARC records that are derived from others, too.
ARCHIVE_ENDINGS = (*WARC_FILE_ENDINGS, ".wat.gz", ".wet.gz")
# Bytes that a store is asked for at a time.
_WINDOW_BYTES = 8 << 20
# The same for one record whose length is not known.
RECORD_WINDOW_BYTES = 1 << 17


@contextlib.contextmanager
def open_archive(place: Place) -> Iterator[IO[bytes]]:
    """Opens a file of an archive; the file can seek.

    Raises:
        UserError: It cannot be read; also if that fails in the block.
    """
    with (
        errors_as(f"cannot read archive {str(place)!r}"),
        place.open_parts(place.size_and_version()[0]) as file,
    ):
        yield file


def check_archive_file(place: Place) -> None:
    """Checks that a file is a WARC file.

    Raises:
        UsageError: It is none.
        UserError: It cannot be read.
    """
    with open_archive(place) as file:
        check_open_archive(place, file)


def check_open_archive(place: Place, file: IO[bytes]) -> None:
    """Does the same as ``check_archive_file`` for an open file, or for one in a package."""
    try:
        check_beginning(file, is_named=place.name.lower().endswith(ARCHIVE_ENDINGS))
    except ValueError as error:
        raise UsageError(f"archive {str(place)!r} {error}") from error


def window_of(place: Place) -> int:
    """Returns how many bytes of a file to read at a time."""
    return 1 << 20 if place.has_cheap_seeks else _WINDOW_BYTES
