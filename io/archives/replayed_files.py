"""Reads from WARC files what a replay needs: a list of their pages, and single records."""

from collections import Counter
from collections.abc import Iterator

from ...web.archive_reading.archived_answers import BadAnswer
from ...web.archive_reading.archived_records import ArchivedRecord
from ...web.archive_reading.warc_reading import RecordReader
from ...web.replay.replayed_records import (
    HEAD_BYTES,
    REPLAYED_KINDS,
    ListedRecord,
    list_record,
)
from .archive_reading import RECORD_WINDOW_BYTES, check_open_archive, window_of
from .packaged_archives import ArchiveFile


def list_records(archive: ArchiveFile, counts: Counter[str]) -> Iterator[ListedRecord]:
    """Yields the pages of a WARC file; damaged records are left out.

    Args:
        archive: The file.
        counts: Counts what is damaged, with the names that ``import_warc`` has for it.

    Raises:
        UserError: It is no WARC file, or cannot be read.
    """
    with archive.open() as file:
        check_open_archive(archive.place, file)
        window = window_of(archive.place)
        reader = RecordReader(file, most=HEAD_BYTES, kinds=REPLAYED_KINDS, window=window)
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


def find_record(archive: ArchiveFile, offset: int, number: int) -> ArchivedRecord | None:
    """Returns the record with a number in the member at a position; None if it cannot be read.

    Raises:
        UserError: The file cannot be read.
    """
    with archive.open() as file:
        reader = RecordReader(file, checks=False, window=RECORD_WINDOW_BYTES)
        return reader.read_at(offset, number)
