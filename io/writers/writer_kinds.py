"""The kinds of index writers, and the choice of one.

Built-in writers are imported when they are used; others are found by the entry points
``nutbeam.index_writers``.
"""

import functools
import importlib
import logging
from collections.abc import Mapping
from typing import Any

from ...policy.components.index_routes import IndexRoutes, WriterRule
from ...policy.routing.index_route_files import FOREIGN_KINDS
from ...policy.routing.index_table_options import IndexWriterOptions, routes_of
from ...web.base.errors import UsageError
from ..parsing.plugins import PluginGroup, installed_plugins, load_plugins
from .index_writer import IndexTarget, IndexWriter

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
    plugin: Any = dict(load_plugins(INDEX_WRITERS, (rule.kind,))).get(rule.kind)
    if not isinstance(plugin, type) or not issubclass(plugin, IndexWriter):
        raise UsageError(f"index writer {rule.kind!r} is not a subclass of IndexWriter")
    return plugin


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
        usable_routes = routes.drop_writers(missing)
    except ValueError as error:
        raise ValueError(f"{file}: {error}: nutbeam has no {kinds}") from None
    _warn_once(f"{file}: left out, since nutbeam has no such index writers: {kinds}")
    return usable_routes


@functools.cache
def _warn_once(message: str) -> None:
    _LOG.warning("%s", message)


def _built_in(kind: str) -> type[IndexWriter]:
    module, name, extra = BUILT_IN_WRITERS[kind]
    try:
        writer: type[IndexWriter] = getattr(
            importlib.import_module(f".{module}", __package__), name
        )
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("nutbeam."):
            raise UsageError(f"this nutbeam has no index writer {kind!r}") from error
        if not extra:
            raise
        raise UsageError(
            f"index writer {kind!r} needs {error.name}: pip install 'nutbeam[{extra}]'"
        ) from error
    return writer
