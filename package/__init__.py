"""nutbeam: the jobs of Apache Nutch, a batch web crawler, as Apache Beam pipelines.

Everything that other programs use is here by name, and loaded when it is first used::

    import nutbeam

    state = nutbeam.read("mine", "state")  # a polars frame

``nutbeam.read`` reads a table. The transforms work in any Beam pipeline, without a table:
``FetchPages``, ``ParsePages``, ``PartitionByHost``, ``TopNPerKey``, ``DedupByHash``,
``RowsToChunks`` and ``ChunksToRows``. ``__version__`` is the version that is installed.
"""

import logging
import os.path

# What type checkers read; at run time _MODULES says the same, and imports nothing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from nutbeam.io.reading.reader import read as read
    from nutbeam.transforms.dedup_by_hash import DedupByHash as DedupByHash
    from nutbeam.transforms.fetch_pages import FetchPages as FetchPages
    from nutbeam.transforms.parse_pages import ParsePages as ParsePages
    from nutbeam.transforms.partition import PartitionByHost as PartitionByHost
    from nutbeam.transforms.rows import ChunksToRows as ChunksToRows
    from nutbeam.transforms.rows import RowsToChunks as RowsToChunks
    from nutbeam.transforms.top_n_per_key import TopNPerKey as TopNPerKey

    __version__: str

_MODULES = {
    "ChunksToRows": "transforms.rows",
    "DedupByHash": "transforms.dedup_by_hash",
    "FetchPages": "transforms.fetch_pages",
    "ParsePages": "transforms.parse_pages",
    "PartitionByHost": "transforms.partition",
    "RowsToChunks": "transforms.rows",
    "TopNPerKey": "transforms.top_n_per_key",
    "read": "io.reading.reader",
}
__all__ = ["__version__", *_MODULES]  # noqa: PLE0604

# Installed, the rooms (io, web, …) are in this folder. In a clone they are beside it.
if not os.path.isdir(os.path.join(__path__[0], "pipelines")):  # noqa: PTH112, PTH118
    __path__.append(os.path.dirname(__path__[0]))  # noqa: PTH120


def _is_shown(record: logging.LogRecord) -> bool:
    """Leaves out what Beam says when it is imported without BigQuery's client: nobody here uses it."""
    return not str(record.msg).startswith("apitools not found")


logging.getLogger().addFilter(_is_shown)


def __getattr__(name: str) -> object:
    """Loads a public name when it is first used (PEP 562)."""
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        value: object = version("nutbeam")
    elif name in _MODULES:
        value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    else:
        public = ", ".join(__all__)
        raise AttributeError(f"module 'nutbeam' has no attribute {name!r}; it has {public}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
