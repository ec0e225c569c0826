"""The interface of index writers.

An ``IndexWriter`` brings documents into an index and deletes them there. The job ``index`` calls
``prepare`` once, ``write`` and ``close`` on workers, and ``finish`` once after its commit.
"""

import abc
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.wording import quote_value
from ..table.web_table import WebTable
from ..tablets.file_lists import DataFile

# Documents for a call of ``write`` that only deletes some.
NO_DOCUMENTS = pl.DataFrame(schema={"id": pl.String})


@dataclass(frozen=True)
class IndexTarget:
    """The parameters of a writer for one part of the work; can be pickled.

    Attributes:
        index: Name of the index.
        name: Name of the writer.
        parameters: Parameters of the writer, such as an address.
        table: The table, for writers that keep files in it.
        version: Number of the operation: its time, ms. Later operations have larger numbers, so
            servers take it as the external version of a document.
        operation: Id of the operation.
        full: Whether the index is built from the beginning: what it had before must vanish when
            ``finish`` is called, and not earlier.
        part: Name of the part of the work, the same in each attempt; empty in ``prepare`` and
            ``finish``.
    """

    index: str
    name: str
    parameters: Mapping[str, str]
    table: WebTable
    version: int
    operation: str
    full: bool = False
    part: str = ""


REFUSED_DOCUMENTS = pl.Schema({"id": pl.String, "reason": pl.String, "document": pl.String})


@dataclass(frozen=True)
class WriteResult:
    """What a writer has done.

    Attributes:
        counts: Numbers by reason, such as ``{"added": 5, "deleted": 1, "refused": 1}``.
        refused: Documents that are refused for good: ``id``, ``reason`` and ``document`` (JSON).
        files: Files in the table that the commit adds to the index.
    """

    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    refused: pl.DataFrame = dataclasses.field(
        default_factory=lambda: pl.DataFrame(schema=REFUSED_DOCUMENTS)
    )
    files: tuple[DataFile, ...] = ()


class IndexWriter(abc.ABC):
    """A writer of an index. Subclasses define ``write``, and the rest as they need.

    Each part of the work makes its own writer, on a worker. A part that failed is repeated from
    its beginning, perhaps while its first attempt still runs; so what a writer does must be
    harmless when it is repeated.

    Attributes:
        kind: Its kind, as in ``--writer``.
        parameters: Its parameters, with their meaning.
        required: The parameters that it needs.
        component: Kind of the component of the table that its ``files`` belong to, such as
            ``shards``; empty if it writes none. A purge takes a URL out of the component itself,
            so such a writer does not get deletes of purged URLs.

    Raises:
        UsageError: A parameter is unknown, or a required one is missing.
    """

    kind: str = ""
    parameters: Mapping[str, str] = {}
    required: tuple[str, ...] = ()
    component: str = ""

    def __init__(self, target: IndexTarget) -> None:
        self.target = target
        names = ", ".join(self.parameters) or "none"
        for name in target.parameters:
            if name not in self.parameters:
                raise UsageError(
                    f"index writer {target.name!r} ({self.kind}) has no parameter {quote_value(name)}: "
                    f"there are {names}"
                )
        for name in self.required:
            if not target.parameters.get(name):
                raise UsageError(
                    f"index writer {target.name!r} ({self.kind}) needs the parameter {name!r}: "
                    f"{self.parameters[name]}"
                )

    def choice_parameter(self, name: str, choices: tuple[str, ...]) -> str:
        """Returns the value of a parameter; without one the first choice.

        Raises:
            UsageError: It is none of the choices.
        """
        value = self.target.parameters.get(name) or choices[0]
        if value not in choices:
            raise self._wrong(name, f"one of {', '.join(choices)}", value)
        return value

    def number_parameter(
        self, name: str, default: float, least: float = 0, most: float = 1e15
    ) -> float:
        """Returns the value of a parameter that is a number.

        Raises:
            UsageError: It is none, or too small or too large.
        """
        text = self.target.parameters.get(name) or str(default)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            limit = f"to {most:g}" if most < 1e15 else "on"
            raise self._wrong(name, f"a number from {least:g} {limit}", text)
        return value

    def int_parameter(self, name: str, default: int, least: int = 0, most: int = 10**15) -> int:
        """Returns the value of a parameter that is a whole number.

        Raises:
            UsageError: It is none, or too small or too large.
        """
        value = self.number_parameter(name, default, least, most)
        if value != int(value):
            raise self._wrong(name, "a whole number", str(value))
        return int(value)

    def _wrong(self, name: str, wanted: str, value: str) -> UsageError:
        writer = f"index writer {self.target.name!r} ({self.kind})"
        return UsageError(f"{writer}: {name} must be {wanted}, got {quote_value(value)}")

    def address(self) -> str:
        """Returns where the index is; empty if the writer cannot say. It sends nothing."""
        return ""

    def mark(self) -> str:
        """Returns an id of the index that another one at its address does not have.

        Empty: the writer cannot say. It may be called before ``prepare``.
        """
        return ""

    def is_empty(self) -> bool:
        """Returns whether the index has no documents; False if the writer cannot say.

        It may be called before ``prepare``.
        """
        return False

    def prepare(self) -> None:  # noqa: B027 - a writer may need nothing
        """Connects to the index, and creates it if it is missing.

        Called before the first part; may be called again.

        Raises:
            UserError: The index cannot be reached or written; one line says why.
        """

    @abc.abstractmethod
    def write(self, documents: pl.DataFrame, deletes: pl.Series) -> WriteResult:
        """Writes documents, and deletes others.

        Args:
            documents: A document per row: ``id`` (its URL) and fields: texts, numbers, times
                (ms), Booleans, lists of texts. A document does not have fields that are null.
                At most some thousand rows and some MB, unless a single document is larger.
            deletes: URLs of documents to delete. None of them is in ``documents``.

        Returns:
            What was done in this call; a writer that buffers reports it later, by ``close``.

        Raises:
            UserError: The writer cannot go on, for a reason that is not in the documents.
        """

    def close(self) -> WriteResult:
        """Writes the buffered documents at the end of a part; the part is done when it returns."""
        return WriteResult()

    def leaves_earlier(self) -> bool:
        """Returns whether documents of earlier operations stay after ``finish`` of a full rebuild.

        If so, the job deletes the documents that ``stored_documents`` yields and that were not sent. May be
        called before ``prepare``.
        """
        return False

    def finish(self) -> None:  # noqa: B027 - as prepare
        """Makes the index visible after the commit; called once, or again after a failure."""


@runtime_checkable
class StoredIndex(Protocol):
    """A writer whose index can be read back, which ``solrdedup`` needs.

    Attributes:
        component: As in ``IndexWriter``: if it is not empty, the files of a result of ``remove``
            must be committed.
    """

    component: str

    def stored_documents(self) -> Iterator[pl.DataFrame]:
        """Yields the documents that searches find: STORED rows."""

    def remove(self, documents: pl.DataFrame) -> WriteResult:
        """Deletes documents that ``stored_documents`` has yielded."""
