"""Writes a CrawlDb that Nutch opens, and dumps as Nutch's tools write them."""

import contextlib
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, Protocol, cast

import polars as pl

from ...policy.components.schema import STATUS_NAMES
from ...policy.components.vocabulary import datum_text
from ...web.hadoop.datum_writing import CRAWL_DATUM_CLASS, encode_crawl_datums
from ...web.hadoop.sequence_writers import MapFileWriter
from ...web.nutch_text.datum_lines import csv_lines, json_lines
from ...web.nutch_text.datum_text import CSV_HEADING
from ..storage.files import creating
from ..storage.places import Place

_PART = "part-r-00000"


class RecordsWriter(Protocol):
    """Writes records of a CrawlDb, in order of their URLs."""

    def write(self, records: pl.DataFrame) -> None:
        """Adds records: columns of DATUM, ``metadata`` with lists of ``key``, ``kind``, ``value``."""


@contextlib.contextmanager
def crawldb_writer(folder: Place) -> Iterator[RecordsWriter]:
    """Opens the writer of a CrawlDb; its files appear when the block ends without an error."""
    part = folder / "crawldb" / "current" / _PART
    with creating(part / "data") as data, creating(part / "index") as index:
        writer = MapFileWriter(cast(BinaryIO, data), cast(BinaryIO, index), CRAWL_DATUM_CLASS)
        yield _CrawlDb(writer)
        writer.close()


class _CrawlDb:
    def __init__(self, writer: MapFileWriter) -> None:
        self._writer = writer

    def write(self, records: pl.DataFrame) -> None:
        for key, value in encode_crawl_datums(records.rename({"fetch_interval": "interval"})):
            self._writer.append(key, value)


@contextlib.contextmanager
def dump_writer(folder: Place, form: str) -> Iterator[RecordsWriter]:
    """Opens the writer of a dump: ``csv``, ``json`` or ``normal``."""
    with text_part(folder / f"crawldb-{form}") as file:
        if form == "csv":
            file.write(CSV_HEADING + "\n")
        yield _Dump(file, form)


class _Dump:
    def __init__(self, file: io.TextIOBase, form: str) -> None:
        self._file, self._form = file, form

    def write(self, records: pl.DataFrame) -> None:
        self._file.writelines(self._texts(records))

    def _texts(self, records: pl.DataFrame) -> Iterable[str]:
        if self._form == "normal":
            return map(_normal_text, records.iter_rows(named=True))
        make = csv_lines if self._form == "csv" else json_lines
        return (f"{line}\n" for line in make(records, STATUS_NAMES))


def _normal_text(record: Mapping[str, Any]) -> str:
    code = record["status"]
    metadata = [(entry["key"], entry["value"]) for entry in record["metadata"]]
    text = datum_text({**record, "metadata": metadata}, f"{code} ({STATUS_NAMES[code]})")
    return f"{record['url']}\t{text}\n"


@contextlib.contextmanager
def text_part(folder: Place) -> Iterator[io.TextIOWrapper]:
    """Opens the text file of a folder of output, named as Hadoop names it."""
    with (
        creating(folder / _PART) as file,
        io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text,
    ):
        yield text
