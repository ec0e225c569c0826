"""Reads lists of URLs for freegen: each line is a URL, without comments or values."""

import itertools
from collections.abc import Iterator

import polars as pl

from ...web.base.errors import UserError
from ..storage.files import size_of
from ..storage.place_addresses import place_of
from .seed_lines import lines
from .seeds import LINES, SeedSource

_PACKED_TIMES = 10  # by which lists shrink, about


def read_urls(source: SeedSource) -> Iterator[pl.Series]:
    """Yields the lines of a list without blanks around them, at most 100,000 at a time.

    Empty lines are left out.

    Raises:
        UserError: The file cannot be read.
    """
    stripped = (line.strip() for line in _lines(source))
    wanted = (line for line in stripped if line)
    while chunk := list(itertools.islice(wanted, LINES)):
        yield pl.Series("url", chunk, dtype=pl.String)


def _lines(source: SeedSource) -> Iterator[str]:
    if source.path is None:
        yield from source.urls
        return
    try:
        with place_of(source.path).open_for_reading() as file:
            yield from lines(file)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot read URLs {source.path!r}: {reason}") from error


def list_bytes(source: SeedSource) -> int:
    """Returns the size of a list, about; of a packed file that of its content."""
    if source.path is None:
        return sum(map(len, source.urls))
    place = place_of(source.path)
    return (size_of(place) or 0) * (_PACKED_TIMES if place.suffix == ".gz" else 1)
