"""Imports Beam without its connectors to other stores, which nutbeam does not use.

``import apache_beam`` imports its connectors to MongoDB, BigQuery, Pub/Sub and more, and their libraries: a
quarter of its time, more where Google's clients are installed. Here each gets a placeholder instead.
A program that asks for one later, in whatever way, gets the real one::

    with deferred_connectors():
        import apache_beam as beam
    beam.io.ReadFromAvro  # imports the connectors
"""

import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

TRIED = ("2.72", "2.73", "2.74", "2.75", "2.76", "2.77")
# Beam imports the names that each of them lists, ``from ... import *``, into the first package.
PACKAGES = ("apache_beam.io", "apache_beam.io.gcp")
CONNECTORS = (
    *("apache_beam.io.avroio", "apache_beam.io.mongodbio", "apache_beam.io.parquetio"),
    *("apache_beam.io.tfrecordio", "apache_beam.io.gcp.bigquery", "apache_beam.io.gcp.pubsub"),
)
# Beam imports them whole, and uses them only in functions.
LIBRARIES = ("httplib2", "yaml")
_finding = threading.RLock()
_found = False


@contextlib.contextmanager
def deferred_connectors() -> Iterator[None]:
    """Defers the connectors of a Beam that the block imports, if this version was tried."""
    if "apache_beam" in sys.modules:
        yield
        return
    finder = _Placeholders()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        finder.remove()
        for package in PACKAGES:
            if package in sys.modules:
                vars(sys.modules[package])["__getattr__"] = functools.partial(_find, package)


class _Placeholders:
    """A finder (``sys.meta_path``) and loader of placeholders."""

    def __init__(self) -> None:
        self._modules: dict[str, ModuleType] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in self._modules or name not in (*CONNECTORS, *LIBRARIES) or not _was_tried():
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type]  # a loader needs no base class

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self._modules[spec.name] = module = ModuleType(spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = functools.partial(self._real_value, module.__name__)
        if module.__name__ in CONNECTORS:
            vars(module)["__all__"] = []  # for ``import *``

    def _real_value(self, name: str, wanted: str) -> Any:
        """Returns a value of the real module; imports that first."""
        if wanted == "__path__" and name in CONNECTORS:
            raise AttributeError(wanted)  # Python asks before each ``from ... import``
        self._remove(name)
        return getattr(importlib.import_module(name), wanted)

    def remove(self) -> None:
        """Removes the placeholders that are left from where an import would find them."""
        for name in self._modules:
            self._remove(name)

    def _remove(self, name: str) -> None:
        package, _, last = name.rpartition(".")
        for names, key in ((sys.modules, name), (vars(sys.modules.get(package, self)), last)):
            if names.get(key) is self._modules[name]:
                del names[key]


@functools.cache
def _was_tried() -> bool:
    from importlib.metadata import version  # late: not all commands import Beam

    return ".".join(version("apache-beam").split(".")[:2]) in TRIED


def _find(package: str, name: str) -> Any:
    """Returns a name of a package that it has once the connectors are imported; imports them (PEP 562)."""
    global _found
    with _finding:
        if not _found and (name == "__all__" or not name.startswith("__")):
            _found = True
            names_of_io = vars(sys.modules[PACKAGES[0]])
            for connector in CONNECTORS:
                with contextlib.suppress(ImportError):  # as Beam does
                    module = importlib.import_module(connector)
                    names_of_io.update((each, getattr(module, each)) for each in module.__all__)
    try:
        return vars(sys.modules[package])[name]
    except KeyError:
        raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
