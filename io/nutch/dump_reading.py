"""Reads dumps of Nutch's databases, piece by piece: plain or packed with gzip."""

import re
from collections.abc import Iterator
from typing import IO

import polars as pl

from ...web.base.errors import UsageError
from ...web.nutch_text.java_dates import UnknownZone
from ...web.nutch_text.text_records import ParsedRecords, TextForm
from ..batches.seed_lines import open_unpacked
from ..storage.file_errors import errors_as
from ..storage.place_addresses import place_of

_PIECE_BYTES = 8 << 20


def read_dump(address: str, form: TextForm, zone: str) -> Iterator[tuple[int, ParsedRecords]]:
    """Yields (number of the first line, records) of the pieces of a dump.

    Args:
        address: Address of the file.
        form: Its form.
        zone: The time zone of its dates; empty: as the dates say.

    Raises:
        UsageError: A date has a time zone that is not clear.
        UserError: The file cannot be read, or its packed data is damaged.
    """
    place = place_of(address)
    with errors_as(f"cannot read {address}"), place.open_for_reading() as file:
        first = 0
        for lines in _pieces(open_unpacked(file), form.start):
            try:
                yield first, form.parse(lines, zone)
            except UnknownZone as error:
                raise UsageError(f"{address}: {error}") from error
            first += len(lines)


def _pieces(stream: IO[bytes], start: str) -> Iterator[pl.Series]:
    """Yields the lines of whole records."""
    begins, rest = re.compile(start), b""
    while data := stream.read(_PIECE_BYTES):
        whole, newline, tail = (rest + data).rpartition(b"\n")
        if not newline:
            rest += data
            continue
        lines = _lines(whole)
        # The last record may go on in the next piece.
        last = next((at for at in range(len(lines) - 1, 0, -1) if begins.search(lines[at])), 0)
        if last:
            yield pl.Series("text", lines[:last], dtype=pl.String)
        rest = "\n".join([*lines[last:], ""]).encode() + tail
    if rest.strip():
        yield pl.Series("text", _lines(rest.removesuffix(b"\n")), dtype=pl.String)


def _lines(data: bytes) -> list[str]:
    """Returns lines; Nutch writes csv in Latin-1, as far as it writes the letters at all."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return [line.removesuffix("\r") for line in text.split("\n")]
