"""The kinds of index writers, and the choice of one.

Built-in writers are imported when they are used; others are found by the entry points
``nutbeam.index_writers``.
"""

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ...policy.components.index_routes import WriterRule
from ...web.base.errors import JobFailed, UsageError, UserError
from ...web.base.wording import quote_value
from ...web.plugins.plugin_files import fault_text, place_of_code
from ...web.plugins.plugins import PluginGroup, load_plugins
from .index_writer import IndexTarget, IndexWriter, WriteResult

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
# What index calls of a writer, and what it must return.
_CALLED = {"prepare": None, "write": WriteResult, "close": WriteResult, "finish": None}
INDEX_WRITERS = PluginGroup("nutbeam.index_writers", "index writer", tuple(BUILT_IN_WRITERS))


def open_writer(rule: WriterRule, target: IndexTarget) -> IndexWriter:
    """Returns the writer that a rule chooses; it sends nothing yet.

    Raises:
        UsageError: There is no such writer, it cannot be imported or made, or a parameter is wrong.
    """
    make = writer_class(rule)
    if rule.kind in BUILT_IN_WRITERS:
        return make(target)
    what = f"index writer {rule.name!r} of {place_of_code(make)}"
    try:
        writer = make(target)
    except UserError:
        raise
    except Exception as error:
        raise UsageError(f"{what} cannot be made: {fault_text(error, make)}") from error
    for name, result in _CALLED.items():
        call = functools.partial(_call_plugin, what, getattr(writer, name), result)
        setattr(writer, name, call)
    return writer


def _call_plugin(what: str, method: Callable[..., Any], result: type | None, *words: Any) -> Any:
    """Calls a method of a writer of users; a fault names the writer, and the line of its code.

    Args:
        what: What the writer is, for messages.
        method: The method.
        result: The class of its result; None if the result has no meaning.
        words: Its arguments.

    Raises:
        JobFailed: It fails, or has another result.
    """
    try:
        done = method(*words)
    except (UserError, MemoryError):
        raise
    except Exception as error:
        raise JobFailed(f"{what}: {fault_text(error, method)}") from error
    if result is not None and not isinstance(done, result):
        name, got = method.__name__, quote_value(done)
        raise JobFailed(f"{what}: {name} must return a {result.__name__}, got {got}")
    return done


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
