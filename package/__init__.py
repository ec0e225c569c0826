"""nutbeam: the jobs of Apache Nutch, a batch web crawler, as Apache Beam pipelines.

Everything that other programs use is here by name, and loaded when it is first used::

    import nutbeam

    table = nutbeam.crawl("mine", "https://www.your-site.org/", agent_name="mybot",
                          agent_email="you@your-site.org")
    for page in table.pages():
        print(page.url, page.title)

``nutbeam.crawl`` crawls as the command does and returns a ``Table``; ``nutbeam.open`` opens one. Each
job is a method of it. ``nutbeam.fetch`` and ``nutbeam.parse`` are for single pages. Their errors are
``UserError`` and its subclasses. docs/reference/python.md has all of it.

``nutbeam.read`` reads a table, ``nutbeam.read_chunks`` chunks of its pages, ``nutbeam.read_extracted`` the fields
that rules take from them; ``nutbeam.markdown_of`` makes
Markdown of a page's text and blocks. The transforms work in any Beam pipeline, without a table:
``FetchPages``, ``ParsePages``, ``PartitionByHost``, ``TopNPerKey``, ``DedupByHash``,
``InvertLinks``, ``GraphBlocks``, ``RankIterations``, ``NearPairs``, ``LeadNearPages``,
``JoinByHash``, ``RowsToChunks`` and ``ChunksToRows``. ``__version__`` is the version that is
installed.
"""

import os
import sys

# ``python -m nutbeam`` puts the working folder first on the path. Nothing is imported from there.
_words = (sys.argv[:1], sys.orig_argv[-len(sys.argv) :][:1])
if _words in ((["-m"], [__name__]), (["-m"], [f"-m{__name__}"])) and not sys.flags.safe_path:
    del sys.path[0]

import logging
from types import ModuleType

# What type checkers read; at run time _MODULES says the same, and imports nothing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from nutbeam.io.storage.file_errors import ConflictError as ConflictError
    from nutbeam.io.storage.file_errors import NoTable as NoTable
    from nutbeam.pipelines.api.crawl_table import Table as Table
    from nutbeam.pipelines.api.crawl_table import crawl as crawl
    from nutbeam.pipelines.api.crawl_table import open as open
    from nutbeam.pipelines.api.readers import read as read
    from nutbeam.pipelines.api.readers import read_chunks as read_chunks
    from nutbeam.pipelines.api.results import CrawlResult as CrawlResult
    from nutbeam.pipelines.api.results import JobResult as JobResult
    from nutbeam.pipelines.api.results import NothingFetched as NothingFetched
    from nutbeam.pipelines.api.results import RulesFailed as RulesFailed
    from nutbeam.pipelines.api.single_pages import DocumentContent as DocumentContent
    from nutbeam.pipelines.api.single_pages import FetchedDocument as FetchedDocument
    from nutbeam.pipelines.api.single_pages import NotFetched as NotFetched
    from nutbeam.pipelines.api.single_pages import NotParsed as NotParsed
    from nutbeam.pipelines.api.single_pages import fetch as fetch
    from nutbeam.pipelines.api.single_pages import parse as parse
    from nutbeam.pipelines.api.table_pages import TablePage as TablePage
    from nutbeam.pipelines.views.extracted_reader import read_extracted as read_extracted
    from nutbeam.transforms.dedup_by_hash import DedupByHash as DedupByHash
    from nutbeam.transforms.elements.rows import ChunksToRows as ChunksToRows
    from nutbeam.transforms.elements.rows import RowsToChunks as RowsToChunks
    from nutbeam.transforms.fetch_pages import FetchPages as FetchPages
    from nutbeam.transforms.graph.graph_blocks import GraphBlocks as GraphBlocks
    from nutbeam.transforms.graph.rank_iterations import RankIterations as RankIterations
    from nutbeam.transforms.invert_links import InvertLinks as InvertLinks
    from nutbeam.transforms.join_by_hash import JoinByHash as JoinByHash
    from nutbeam.transforms.near_pages.lead_near_pages import LeadNearPages as LeadNearPages
    from nutbeam.transforms.near_pages.near_pairs import NearPairs as NearPairs
    from nutbeam.transforms.parse_pages import ParsePages as ParsePages
    from nutbeam.transforms.partition import PartitionByHost as PartitionByHost
    from nutbeam.transforms.top_n_per_key import TopNPerKey as TopNPerKey
    from nutbeam.web.base.errors import JobFailed as JobFailed
    from nutbeam.web.base.errors import NothingToDo as NothingToDo
    from nutbeam.web.base.errors import Unavailable as Unavailable
    from nutbeam.web.base.errors import UsageError as UsageError
    from nutbeam.web.base.errors import UserError as UserError
    from nutbeam.web.pages.markdown import markdown_of as markdown_of

    __version__: str

_MODULES = {
    "ChunksToRows": "transforms.elements.rows",
    "ConflictError": "io.storage.file_errors",
    "CrawlResult": "pipelines.api.results",
    "DedupByHash": "transforms.dedup_by_hash",
    "DocumentContent": "pipelines.api.single_pages",
    "FetchPages": "transforms.fetch_pages",
    "FetchedDocument": "pipelines.api.single_pages",
    "GraphBlocks": "transforms.graph.graph_blocks",
    "InvertLinks": "transforms.invert_links",
    "JobFailed": "web.base.errors",
    "JobResult": "pipelines.api.results",
    "JoinByHash": "transforms.join_by_hash",
    "LeadNearPages": "transforms.near_pages.lead_near_pages",
    "NearPairs": "transforms.near_pages.near_pairs",
    "NoTable": "io.storage.file_errors",
    "NotFetched": "pipelines.api.single_pages",
    "NotParsed": "pipelines.api.single_pages",
    "NothingFetched": "pipelines.api.results",
    "NothingToDo": "web.base.errors",
    "ParsePages": "transforms.parse_pages",
    "PartitionByHost": "transforms.partition",
    "RankIterations": "transforms.graph.rank_iterations",
    "RowsToChunks": "transforms.elements.rows",
    "RulesFailed": "pipelines.api.results",
    "Table": "pipelines.api.crawl_table",
    "TablePage": "pipelines.api.table_pages",
    "TopNPerKey": "transforms.top_n_per_key",
    "Unavailable": "web.base.errors",
    "UsageError": "web.base.errors",
    "UserError": "web.base.errors",
    "crawl": "pipelines.api.crawl_table",
    "fetch": "pipelines.api.single_pages",
    "markdown_of": "web.pages.markdown",
    "open": "pipelines.api.crawl_table",
    "parse": "pipelines.api.single_pages",
    "read": "pipelines.api.readers",
    "read_chunks": "pipelines.api.readers",
    "read_extracted": "pipelines.views.extracted_reader",
}
__all__ = ["__version__", *_MODULES]  # noqa: PLE0604

# Installed, the rooms (io, web, …) are in this folder. In a clone they are beside it.
if not os.path.isdir(os.path.join(__path__[0], "pipelines")):  # noqa: PTH112, PTH118
    __path__.append(os.path.dirname(__path__[0]))  # noqa: PTH120

# Polars' allocator gives free memory back to the system after half a second. A job soon needs it
# again, and each page that it asks for costs time: a tenth of updatedb's. Polars reads this as it
# is loaded.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:5000,muzzy_decay_ms:5000")

# What Beam logs when it is imported without Google's clients: a table in gs:// says itself what it
# needs, and nobody here uses BigQuery. The table in pipelines/running/beam_internals.py has this
# change, too. It is made here because it must come before Beam is imported.
_NOT_SHOWN = ("apitools not found", "Failed to import GCSFileSystem")


def _is_shown(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_NOT_SHOWN)


for _logger in (None, "apache_beam.io.filesystems"):
    logging.getLogger(_logger).addFilter(_is_shown)


def __getattr__(name: str) -> object:
    """Loads a public name when it is first used (PEP 562)."""
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        value: object = version("nutbeam")
    elif name in _MODULES:
        value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    else:
        raise AttributeError(f"module 'nutbeam' has no attribute {name!r}{_advice_on(name)}")
    globals()[name] = value
    return value


def _advice_on(name: str) -> str:
    """Returns which public name may be meant, or all of them; nothing for names that tools look for."""
    if name.startswith("_"):
        return ""
    from nutbeam.pipelines.base.suggestions import suggestion

    return suggestion(name, __all__) or f"; it has {', '.join(__all__)}"


def __dir__() -> list[str]:
    return sorted(__all__)


def _transform(name: str) -> object:
    """Returns a transform by name, for ``from nutbeam.transforms import PartitionByHost``."""
    if _MODULES.get(name, "").startswith("transforms."):
        return __getattr__(name)
    names = ", ".join(each for each, where in _MODULES.items() if where.startswith("transforms."))
    raise AttributeError(f"module 'nutbeam.transforms' has no attribute {name!r}; it has {names}")


def _add_transforms() -> None:
    """Makes the module ``nutbeam.transforms``, because its folder has no ``__init__.py``."""
    from importlib.machinery import ModuleSpec

    name = f"{__name__}.transforms"
    module = ModuleType(name, "The transforms; each is in a module of its own.")
    folders = [os.path.join(folder, "transforms") for folder in __path__]  # noqa: PTH118
    spec = ModuleSpec(name, None, is_package=True)
    module.__path__, module.__spec__, spec.submodule_search_locations = folders, spec, folders
    module.__getattr__ = _transform  # type: ignore[method-assign]
    sys.modules[name] = module
    globals()["transforms"] = module


_add_transforms()
