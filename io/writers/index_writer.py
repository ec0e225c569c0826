"""The interface of index writers, and the choice of one by its kind.

An ``IndexWriter`` brings documents into an index and deletes them there. The job ``index`` calls
``prepare`` once, ``write`` and ``close`` on workers, and ``finish`` once after its commit. Built-in
writers are imported when they are used; others are found by the entry points
``nutbeam.index_writers``.
"""

import dataclasses
import functools
import importlib
import logging
from collections.abc import Mapping
from typing import Any

import polars as pl

from ...policy.routing.index_route_files import FOREIGN_KINDS
from ...policy.routing.index_routes import IndexRoutes, WriterRule
from ...policy.routing.index_writer_options import IndexWriterOptions, routes_of
from ...web.base.errors import UsageError
from ...web.base.quoting import quoted
from ..parsing.plugins import PluginGroup, installed_plugins, load_plugins
from ..storage.places import Folder
from ..tablets.file_lists import DataFile


@dataclasses.dataclass(frozen=True)
class IndexTarget:
    """The parameters of a writer for one part of the work; can be pickled.

    Attributes:
        index: Name of the index.
        name: Name of the writer.
        parameters: Parameters of the writer, such as an address.
        root: The table, for writers that keep files in it.
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
    root: Folder
    version: int
    operation: str
    full: bool = False
    part: str = ""


REFUSED_DOCUMENTS = pl.Schema({"id": pl.String, "reason": pl.String, "document": pl.String})


@dataclasses.dataclass(frozen=True)
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


class IndexWriter:
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
        known = ", ".join(self.parameters) or "none"
        for name in target.parameters:
            if name not in self.parameters:
                raise UsageError(
                    f"index writer {target.name!r} ({self.kind}) has no parameter {quoted(name)}: "
                    f"there are {known}"
                )
        for name in self.required:
            if not target.parameters.get(name):
                raise UsageError(
                    f"index writer {target.name!r} ({self.kind}) needs the parameter {name!r}: "
                    f"{self.parameters[name]}"
                )

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

    def prepare(self) -> None:
        """Connects to the index, and creates it if it is missing.

        Called before the first part; may be called again.

        Raises:
            UserError: The index cannot be reached or written; one line says why.
        """

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
        raise NotImplementedError

    def close(self) -> WriteResult:
        """Writes the buffered documents at the end of a part; the part is done when it returns."""
        return WriteResult()

    def leaves_earlier(self) -> bool:
        """Returns whether documents of earlier operations stay after ``finish`` of a full rebuild.

        The job deletes them then, by what ``stored`` finds. It may be called before ``prepare``.
        """
        return False

    def finish(self) -> None:
        """Makes the index visible after the commit; called once, or again after a failure."""


# Kind of each built-in writer: its module and class, and the extra that it needs.
BUILT_IN_WRITERS: Mapping[str, tuple[str, str, str]] = {
    "tantivy": ("tantivy_writer", "TantivyWriter", "search"),
    "jsonl": ("file_writers", "JsonLinesWriter", ""),
    "csv": ("file_writers", "CsvWriter", ""),
    "parquet": ("file_writers", "ParquetIndexWriter", ""),
    "dummy": ("file_writers", "DummyWriter", ""),
    "opensearch": ("search_server", "OpenSearchWriter", ""),
    "elasticsearch": ("search_server", "ElasticsearchWriter", ""),
    "solr": ("solr", "SolrWriter", ""),
}
_LOG = logging.getLogger(__name__)
INDEX_WRITERS = PluginGroup("nutbeam.index_writers", "index writer", tuple(BUILT_IN_WRITERS))


def open_writer(rule: WriterRule, target: IndexTarget) -> IndexWriter:
    """Returns the writer that a rule chooses; it sends nothing yet.

    Raises:
        UsageError: There is no such writer, it cannot be imported, or a parameter is wrong.
    """
    return writer_class(rule)(target)


def writer_class(rule: WriterRule) -> type[IndexWriter]:
    """Returns the class of the writer that a rule chooses.

    Raises:
        UsageError: There is no such writer, or it cannot be imported.
    """
    if rule.kind in BUILT_IN_WRITERS:
        return _built_in(rule.kind)
    found: Any = dict(load_plugins(INDEX_WRITERS, (rule.kind,))).get(rule.kind)
    if not isinstance(found, type) or not issubclass(found, IndexWriter):
        raise UsageError(f"index writer {rule.kind!r} is no class derived from IndexWriter")
    return found


def chosen_writers(options: IndexWriterOptions) -> IndexRoutes:
    """Returns the writers that options choose, and which documents each gets.

    Of Nutch's file, writers of a kind that is not here are left out with a warning: it lists all
    writers of Nutch, also those that nobody has chosen there.

    Raises:
        ValueError: A file or a parameter is wrong, or a route names a writer that is not here.
    """
    routes, file = routes_of(options), options.index_writers
    here = installed_plugins(INDEX_WRITERS)
    missing = {
        rule.name: rule.kind
        for rule in routes.writers
        if rule.kind in FOREIGN_KINDS and rule.kind not in here and file.endswith(".xml")
    }
    if not missing:
        return routes
    kinds = ", ".join(f"{name} ({kind})" for name, kind in missing.items())
    try:
        made = routes.without(missing)
    except ValueError as error:
        raise ValueError(f"{file}: {error}: nutbeam has no {kinds}") from None
    _warn_once(f"{file}: left out, since nutbeam has no such index writers: {kinds}")
    return made


@functools.cache
def _warn_once(message: str) -> None:
    _LOG.warning("%s", message)


def _built_in(kind: str) -> type[IndexWriter]:
    module, name, extra = BUILT_IN_WRITERS[kind]
    try:
        made: type[IndexWriter] = getattr(importlib.import_module(f".{module}", __package__), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("nutbeam."):
            raise UsageError(f"this nutbeam has no index writer {kind!r}") from error
        if not extra:
            raise
        raise UsageError(
            f"index writer {kind!r} needs {error.name}: pip install 'nutbeam[{extra}]'"
        ) from error
    return made
