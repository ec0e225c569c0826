"""The kinds of index writers, and the choice of one.

Built-in writers are imported when they are used; others are found by the entry points
``nutbeam.index_writers``.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ...policy.components.index_routes import WriterRule
from ...web.base.errors import UsageError
from ...web.plugins.plugins import PluginGroup, load_plugins
from .index_writer import IndexTarget, IndexWriter

# Kind of each built-in writer: its module and class.
BUILT_IN_WRITERS: Mapping[str, tuple[str, str]] = {
    "tantivy": ("tantivy_writer", "TantivyWriter"),
    "jsonl": ("file_writers", "JsonLinesWriter"),
    "csv": ("file_writers", "CsvWriter"),
    "parquet": ("file_writers", "ParquetIndexWriter"),
    "dummy": ("file_writers", "DummyWriter"),
    "opensearch": ("opensearch_writer", "OpenSearchWriter"),
    "elasticsearch": ("opensearch_writer", "ElasticsearchWriter"),
    "solr": ("solr_writer", "SolrWriter"),
}
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
        module, name = BUILT_IN_WRITERS[rule.kind]
        built_in: type[IndexWriter] = getattr(import_module(f".{module}", __package__), name)
        return built_in
    plugin: Any = dict(load_plugins(INDEX_WRITERS, (rule.kind,))).get(rule.kind)
    if not isinstance(plugin, type) or not issubclass(plugin, IndexWriter):
        raise UsageError(f"index writer {rule.kind!r} is not a subclass of IndexWriter")
    return plugin
