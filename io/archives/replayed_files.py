"""Reads from WARC files what a replay needs: a list of their pages, and single records."""

from collections import Counter
from collections.abc import Iterator

from ...web.archives.archived_answers import BadAnswer
from ...web.archives.archived_records import ArchivedRecord
from ...web.archives.replayed_records import (
    HEAD_BYTES,
    REPLAYED_KINDS,
    ListedRecord,
    list_record,
)
from ...web.archives.warc_options import WARC_ENDINGS
from ...web.archives.warc_reading import RecordReader
from ..storage.files import names
from ..storage.places import Place
from .archive_reading import RECORD_WINDOW_BYTES, check_archive_file, open_archive, window_of

_ENDINGS = tuple(f".{ending}" for ending in ("warc", *WARC_ENDINGS.values()))


def is_archive_name(name: str) -> bool:
    """Returns whether a name is that of a WARC file.

    >>> is_archive_name("a/b.warc.gz"), is_archive_name("b.cdxj")
    (True, False)
    """
    return name.lower().endswith(_ENDINGS)


def archive_files_in(folder: Place) -> list[Place]:
    """Returns the WARC files in a folder, by name."""
    return [folder / name for name in sorted(names(folder)) if is_archive_name(name)]


def list_records(place: Place, counts: Counter[str]) -> Iterator[ListedRecord]:
    """Yields the pages of a WARC file; damaged records are left out.

    Args:
        place: The file.
        counts: Counts what is damaged, with the names that ``import_warc`` has for it.

    Raises:
        UserError: It is no WARC file, or cannot be read.
    """
    check_archive_file(place)
    with open_archive(place) as file:
        reader = RecordReader(file, most=HEAD_BYTES, kinds=REPLAYED_KINDS, window=window_of(place))
        for record in reader:
            if record.block_is_right is False:
                counts["wrong_digest/block"] += 1
            try:
                listed = list_record(record)
            except BadAnswer as error:
                counts[f"skipped/{error}"] += 1
                continue
            if listed is not None:
                yield listed
        counts.update({f"damaged/{name}": number for name, number in reader.damages.items()})


def find_record(place: Place, offset: int, number: int) -> ArchivedRecord | None:
    """Returns the record with a number in the member at a position; None if it cannot be read.

    Raises:
        UserError: The file cannot be read.
    """
    with open_archive(place) as file:
        reader = RecordReader(file, checks=False, window=RECORD_WINDOW_BYTES)
        return reader.read_at(offset, number)
