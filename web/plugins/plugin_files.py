"""Plug-ins in files: their sources, which travel with options to other processes, and their modules.

A plug-in file is named ``PATH.py:NAME``. Its source is read where the command starts. In each process
it becomes a module of its own, whose name comes from the path and the source.
"""

import contextlib
import hashlib
import linecache
import re
import sys
import threading
import traceback
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..base.errors import UsageError, one_line
from ..base.visible import visible

# The name of a plug-in: of an installed one, or of one in a file.
PLUGIN_FORM = "a name, or PATH.py:NAME for a plug-in in a file"
PLUGIN_NAME = r"[A-Za-z0-9_.-]+|[^,]+\.py:[A-Za-z_][A-Za-z0-9_]*"
_FILE_NAME = re.compile(r"(.+\.py):([A-Za-z_][A-Za-z0-9_]*)", re.DOTALL)
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_MODULE = "nutbeam_plugin_"
_LONGEST_SOURCE = 120
_sources: dict[str, bytes] = {}  # by path as it was typed
_loading = threading.RLock()


def is_plugin_file(name: str) -> bool:
    """Returns whether a name is that of a plug-in in a file.

    >>> is_plugin_file("./price.py:price"), is_plugin_file("price")
    (True, False)
    """
    return _FILE_NAME.fullmatch(name) is not None


def plugin_label(name: str) -> str:
    """Returns the name of a plug-in in counts: of one in a file its file and its name.

    >>> plugin_label("./rules/price.py:price"), plugin_label("headings")
    ('price.price', 'headings')
    """
    match = _FILE_NAME.fullmatch(name)
    return f"{_ODD.sub('_', Path(match[1]).stem)}.{match[2]}" if match else name


def read_plugin_files(names: Iterable[str]) -> None:
    """Reads the files of plug-ins again, as a command does when it starts.

    Args:
        names: Names of plug-ins; only those in files count.

    Raises:
        UsageError: A file cannot be read.
    """
    for path in _paths(names):
        _sources[path] = _read(path)


def plugin_sources(names: Iterable[str]) -> dict[str, bytes]:
    """Returns the sources of plug-ins in files, by path, to send them to another process.

    A file that cannot be read is left out: the use of its plug-in says why.
    """
    for path in _paths(names):
        if path not in _sources:
            with contextlib.suppress(UsageError):
                _sources[path] = _read(path)
    return {path: _sources[path] for path in _paths(names) if path in _sources}


def put_plugin_sources(sources: Mapping[str, bytes]) -> None:
    """Stores sources that came from another process."""
    _sources.update(sources)


def load_plugin_file(name: str, what: str) -> Any:
    """Returns the object of a plug-in in a file; the file runs once per process and content.

    Args:
        name: ``PATH.py:NAME``.
        what: What the plug-in is, for messages.

    Raises:
        UsageError: The file cannot be read, fails, or does not define the name.
    """
    match = _FILE_NAME.fullmatch(name)
    assert match is not None
    path, attribute = match.groups()
    if path not in _sources:
        _sources[path] = _read(path)
    module = _load_module(path, _sources[path], what)
    if not hasattr(module, attribute):
        raise UsageError(f"{what}: {path!r} defines no {attribute!r}")
    return getattr(module, attribute)


def fault_line(error: BaseException, function: object) -> str:
    """Returns where in a plug-in's own code an exception was raised, as ``FILE:LINE``.

    The source of that line follows, if it is known. Empty if no frame of the exception is in the
    plug-in's module or package.

    Args:
        error: The exception, as it was raised.
        function: The plug-in.
    """
    module = str(getattr(function, "__module__", "") or type(function).__module__)
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == module.partition(".")[0]:
            source = linecache.getline(frame.f_code.co_filename, line).strip()[:_LONGEST_SOURCE]
            place = f"{Path(frame.f_code.co_filename).name}:{line}: {source}".removesuffix(": ")
    return place


def fault_text(error: BaseException, function: object) -> str:
    """Returns what a plug-in raised, and where, as one line without control characters."""
    place = fault_line(error, function)
    try:
        text = one_line(f"{type(error).__name__}: {error}", 200)
    except Exception:  # noqa: BLE001 - its text is the plug-in's own code
        text = type(error).__name__
    return visible(f"{text} ({place})" if place else text)


def place_of_code(plugin: object) -> str:
    """Returns the module of a plug-in, or its file, as messages name them."""
    name = str(getattr(plugin, "__module__", "") or type(plugin).__module__)
    return f"file {sys.modules[name].__file__}" if name.startswith(_MODULE) else f"module {name}"


def _paths(names: Iterable[str]) -> list[str]:
    matches = (_FILE_NAME.fullmatch(name) for name in names)
    return list(dict.fromkeys(match[1] for match in matches if match))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the plug-in file {path!r} cannot be read: {reason}") from error


def _load_module(path: str, source: bytes, what: str) -> types.ModuleType:
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape") + b"\0" + source).hexdigest()
    name = f"{_MODULE}{_ODD.sub('_', Path(path).stem)}_{digest[:16]}"
    with _loading:
        if name in sys.modules:
            return sys.modules[name]
        module = types.ModuleType(name)
        module.__file__ = path
        sys.modules[name] = module
        try:
            code = compile(source, path, "exec", dont_inherit=True)
            # Tracebacks show the source, also where there is no such file.
            text = source.decode("utf-8", "replace")
            linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
            exec(code, module.__dict__)  # noqa: S102 - the operator names the file
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise UsageError(f"{what} cannot be imported: {_import_fault(error, path)}") from error
        return module


def _import_fault(error: BaseException, path: str) -> str:
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == path:
            line = number
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    reason = one_line(f"{type(error).__name__}: {text}", 200)
    return f"{path}:{line}: {reason}" if line else f"{path}: {reason}"
