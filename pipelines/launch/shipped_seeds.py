"""Prepares seeds for the workers of a job, which may be on other machines."""

import logging
import sys
from collections.abc import Iterator, Sequence
from typing import IO

from ...io.batches.seed_lines import lines
from ...io.batches.seeds import SeedSource, sources, unread_folders
from ...io.snapshots.operations import Operation, new_id
from ...io.storage.address_kinds import is_place
from ...io.storage.files import creating, size_of
from ...io.storage.place_addresses import place_of
from ...io.table.opening import open_table
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS

_LOG = logging.getLogger("nutbeam.inject")
_SEED_BYTES = 50  # a short URL in a file of seeds


def seed_words(words: Sequence[str], address: str, *, elsewhere: bool = False) -> list[str]:
    """Prepares seeds for workers: makes paths absolute, and copies standard input to a file.

    Args:
        words: URLs, files, folders of files, ``-`` for standard input.
        address: Address of the table.
        elsewhere: Whether workers may be on other machines; then files are copied into the
            table.

    Raises:
        UsageError: A file is missing, is not text, or a folder has no files.
    """
    check_seeds(words)
    for folder in unread_folders([word for word in words if word != "-"]):
        _LOG.warning("folder %r is not read: give it as a seed folder of its own", folder)
    words = [_keep(address, sys.stdin.buffer) if word == "-" else word for word in words]
    if elsewhere:
        return [
            word
            for source in sources(words)
            for word in (source.urls or [_copy(address, str(source.path))])
        ]
    return [str(place_of(word).absolute()) if is_place(word) else word for word in words]


@dataclass(frozen=True)
class SourceItem:
    """A source of seeds, or of URLs, for the operation that reads it."""

    operation: Operation
    source: SeedSource


def source_items(operation: Operation, words: Sequence[str]) -> Iterator[SourceItem]:
    """Yields the sources in prepared words, see ``seed_words``."""
    PROGRESS.start(operation.job, unit="lines")
    yield from (SourceItem(operation, source) for source in sources(words))


def rows_of_seeds(words: Sequence[str]) -> int:
    """Returns about how many seeds there are in prepared words, see ``seed_words``; reads no file."""
    each = sources(words)
    files = sum(size_of(place_of(str(source.path))) or 0 for source in each if not source.urls)
    return sum(len(source.urls) for source in each) + files // _SEED_BYTES


def check_seeds(words: Sequence[str]) -> None:
    """Checks that files of seeds can be read; writes nothing.

    Raises:
        UsageError: A file is missing, is not text, or a folder has no files.
    """
    sources([word for word in words if word != "-"])


def _copy(address: str, path: str) -> str:
    place = place_of(path)
    root = open_table(address).files.absolute()
    # Workers elsewhere find a file in a store, and one in a table that they share.
    if not place.needs_shared_path or str(place).startswith(f"{root}/"):
        return path
    with place.open_for_reading() as file:
        return _keep(address, file)


def _keep(address: str, seeds: IO[bytes]) -> str:
    path = open_table(address).files.absolute() / "seeds" / f"{new_id()}.txt"
    with creating(path) as file:
        # Plain and in UTF-8, so that purge finds names in it.
        file.writelines(line.encode() for line in lines(seeds))
    return str(path)
