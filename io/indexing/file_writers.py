"""Index writers that write files into a folder: JSON lines, CSV, Parquet, and ``dummy``.

Each operation writes files with new names: ``INDEX-VERSION-PART-NUMBER.jsonl`` with documents, and
``…-deletes.jsonl`` with the URLs of documents to delete. The files, sorted by name, are the history
of the index: a later line about a URL replaces an earlier one. They are written in the folder
``.nutbeam``, and moved when the operation has committed. A full run deletes the files of earlier
ones.
"""

import abc
import contextlib
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ...web.base.errors import UsageError
from ...web.base.wording import quote_value
from ..storage.file_errors import errors_as
from ..storage.files import copy_bytes, creating, list_files, remove_file
from ..storage.place_addresses import place_of
from ..storage.places import Place
from .index_writer import IndexTarget, IndexWriter, WriteResult

_STAGING = ".nutbeam"
_BUFFER = 32 << 20


class FileWriter(IndexWriter):
    """Writes documents into files of a folder. Subclasses define ``encode_documents`` and ``ending``."""

    parameters: Mapping[str, str] = {"path": "Folder of the files: a local one, or one in a store."}
    required = ("path",)

    def __init__(self, target: IndexTarget) -> None:
        super().__init__(target)
        self._folder = place_of(target.parameters["path"])
        self._documents: list[pl.DataFrame] = []
        self._deletes: list[pl.Series] = []
        self._counts = {"added": 0, "deleted": 0}
        self._bytes = self._files = 0

    def address(self) -> str:
        """Returns the folder."""
        return str(self._folder.absolute())

    @property
    @abc.abstractmethod
    def ending(self) -> str:
        """The end of the names of files, without a dot."""

    @abc.abstractmethod
    def encode_documents(self, documents: pl.DataFrame) -> bytes:
        """Returns documents as the content of a file."""

    def encode_deletes(self, ids: pl.Series) -> bytes:
        """Returns the URLs of documents to delete as the content of a file."""
        return self.encode_documents(ids.to_frame("id"))

    def prepare(self) -> None:
        """Checks that the folder can be written."""
        with errors_as(f"index writer {self.target.name!r} cannot write {self._folder}"):
            probe = self._staging / "probe"
            with creating(probe) as file:
                file.write(b"")
            remove_file(probe)

    def write(self, documents: pl.DataFrame, deletes: pl.Series) -> WriteResult:
        """Buffers documents and deletes; writes a file when there are enough."""
        if len(documents):
            if self._documents and documents.schema != self._documents[-1].schema:
                self._flush()
            self._documents.append(documents)
            self._bytes += int(documents.estimated_size())
        if len(deletes):
            self._deletes.append(deletes)
        if self._bytes > _BUFFER:
            self._flush()
        return WriteResult()

    def close(self) -> WriteResult:
        """Writes the buffered documents."""
        self._flush()
        if self._deletes:
            ids = pl.concat(self._deletes).rename("id")
            self._write("-deletes", self.encode_deletes(ids))
            self._counts["deleted"] += len(ids)
        self._deletes = []
        return WriteResult({name: number for name, number in self._counts.items() if number})

    def finish(self) -> None:
        """Moves the files of the operation to their place; repeating it changes nothing."""
        for file in list_files(self._staging):
            if not file.path.name.startswith("."):
                _move(file.path, self._folder / file.path.name)
        if self.target.full:
            for name, version in self._visible():
                if version < self.target.version:
                    remove_file(self._folder / name)
        # A run that was overtaken has left its files.
        self._staging.remove_tree()
        for file in list_files(self._folder / _STAGING):
            older = self._version_of(file.path.name)
            if older is not None and older < self.target.version:
                remove_file(file.path)
        (self._folder / _STAGING).remove_empty_folders()

    @property
    def _start(self) -> str:
        return f"{self.target.index}-"

    @property
    def _staging(self) -> Place:
        own = f"{self._start}{self.target.version:013d}-{self.target.operation}"
        return self._folder / _STAGING / own

    def _visible(self) -> Iterable[tuple[str, int]]:
        for file in list(list_files(self._folder)):
            version = self._version_of(file.path.name)
            if version is not None and file.path.parent == self._folder:
                yield file.path.name, version

    def _version_of(self, name: str) -> int | None:
        """Returns the version in the name of a file of this index; None for other files."""
        pattern = (
            rf"{re.escape(self._start)}(\d{{13}})-[0-9a-f]{{16}}-\d+(-deletes)?\.{self.ending}"
        )
        match = re.fullmatch(pattern, name)
        return int(match[1]) if match else None

    def _flush(self) -> None:
        if self._documents:
            documents = pl.concat(self._documents)
            self._write("", self.encode_documents(documents))
            self._counts["added"] += len(documents)
        self._documents, self._bytes = [], 0

    def _write(self, what: str, data: bytes) -> None:
        target = self.target
        name = f"{self._start}{target.version:013d}-{target.part}-{self._files}{what}.{self.ending}"
        self._files += 1
        with (
            errors_as(f"index writer {target.name!r} cannot write {self._folder}"),
            creating(self._staging / name, durable=True) as file,
        ):
            file.write(data)


def _move(path: Place, to: Place) -> None:
    """Moves a file; another process may have moved it already."""
    with contextlib.suppress(FileNotFoundError):
        copy_bytes(path, to)
        remove_file(path)


class JsonLinesWriter(FileWriter):
    """Writes a JSON object per document."""

    kind = "jsonl"
    ending = "jsonl"

    def encode_documents(self, documents: pl.DataFrame) -> bytes:
        lines = io.BytesIO()  # a large document is in memory as few times as possible
        for row in documents.iter_rows(named=True):
            fields = {name: value for name, value in row.items() if value is not None}
            lines.write(json.dumps(fields, ensure_ascii=False).encode())
            lines.write(b"\n")
        return lines.getvalue()


class CsvWriter(FileWriter):
    """Writes chosen fields of documents as CSV; Nutch's indexer-csv."""

    kind = "csv"
    ending = "csv"
    parameters: Mapping[str, str] = {
        **FileWriter.parameters,
        "fields": "Names of the fields, separated by commas; id,title,content by default.",
        "separator": "Character between two values; a comma by default.",
        "valuesep": "Text between the values of a field with several; | by default.",
        "header": "Whether the first line has the names: true (by default) or false.",
        "charset": "Charset of the files; UTF-8 by default. What it does not have becomes ?.",
        "quotechar": 'Character around values that need it; " by default.',
        "escapechar": "Character before a quotechar in a value; by default the quotechar itself.",
        "maxfieldlength": "Longest value, characters; 0: any (by default).",
        "maxfieldvalues": "Most values of a field with several; 0: all (by default).",
    }

    def __init__(self, target: IndexTarget) -> None:
        super().__init__(target)
        parameters = {name: value for name, value in target.parameters.items() if value != ""}
        self._fields = [
            name for name in parameters.get("fields", "id,title,content").split(",") if name
        ]
        self._values, self._charset = (
            parameters.get("valuesep", "|"),
            parameters.get("charset", "utf-8"),
        )
        quote = _character(parameters, "quotechar", '"')
        escape = _character(parameters, "escapechar", quote)
        self._format: dict[str, Any] = {
            "delimiter": _character(parameters, "separator", ","), "quotechar": quote,
            "doublequote": escape == quote, "escapechar": None if escape == quote else escape,
        }  # fmt: skip
        self._header = self.choice_parameter("header", ("true", "false")) == "true"
        self._longest = self.int_parameter("maxfieldlength", 0) or None
        self._most = self.int_parameter("maxfieldvalues", 0) or None
        try:
            "".encode(self._charset)
        except LookupError:
            raise UsageError(f"charset must be known, got {quote_value(self._charset)}") from None

    def encode_documents(self, documents: pl.DataFrame) -> bytes:
        return self._lines(self._fields, documents)

    def encode_deletes(self, ids: pl.Series) -> bytes:
        return self._lines(["id"], ids.to_frame("id"))

    def _lines(self, fields: list[str], documents: pl.DataFrame) -> bytes:
        sink = io.StringIO()
        writer = csv.writer(sink, lineterminator="\n", **self._format)
        if self._header:
            writer.writerow(fields)
        for row in documents.iter_rows(named=True):
            writer.writerow([self._text(row.get(name)) for name in fields])
        return sink.getvalue().encode(self._charset, "replace")

    def _text(self, value: Any) -> str:
        if value is None:
            return ""
        values = value[: self._most] if isinstance(value, list) else [value]
        return self._values.join(str(one)[: self._longest] for one in values)


def _character(parameters: Mapping[str, str], name: str, default: str) -> str:
    value = parameters.get(name, default)
    if len(value) != 1:
        raise UsageError(f"{name} must be one character, got {quote_value(value)}")
    return value


class ParquetIndexWriter(FileWriter):
    """Writes documents as Parquet, a column per field."""

    kind = "parquet"
    ending = "parquet"

    def encode_documents(self, documents: pl.DataFrame) -> bytes:
        sink = io.BytesIO()
        documents.with_columns(pl.col(pl.Null).cast(pl.String)).write_parquet(sink)
        return sink.getvalue()


class DummyWriter(FileWriter):
    """Writes ``add URL`` and ``delete URL``, a line for each document (Nutch's indexer-dummy)."""

    kind = "dummy"
    ending = "txt"
    parameters: Mapping[str, str] = {
        **FileWriter.parameters,
        "delete": "Whether deletes are written, too: true (by default) or false.",
    }

    def __init__(self, target: IndexTarget) -> None:
        super().__init__(target)
        self._writes_deletes = self.choice_parameter("delete", ("true", "false")) == "true"

    def write(self, documents: pl.DataFrame, deletes: pl.Series) -> WriteResult:
        """Buffers documents, and deletes if they are wanted."""
        return super().write(documents, deletes if self._writes_deletes else deletes[:0])

    def encode_documents(self, documents: pl.DataFrame) -> bytes:
        return "".join(f"add\t{url}\n" for url in documents.get_column("id")).encode()

    def encode_deletes(self, ids: pl.Series) -> bytes:
        return "".join(f"delete\t{url}\n" for url in ids).encode()
