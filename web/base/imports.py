"""Imports: without the working folder on Python's path; libraries that only some options need.

Anyone who can write into the working folder could otherwise run code, and a file ``random.py`` there
would replace Python's own module. ``PYTHONPATH``, installed packages and ``.pth`` files still count.
"""

import functools
import importlib
import logging
import os
from collections.abc import Mapping
from types import ModuleType

from .errors import one_line

# Python's own variable: no working folder for -c and -m, also in processes that Beam starts.
SAFE = {"PYTHONSAFEPATH": "1"}


def safe_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a process, changed so that its Python ignores the working folder.

    An empty part of ``PYTHONPATH``, and ``.``, mean the working folder, too, and are removed.
    To keep a folder there, write its path.

    >>> safe_environment({"PYTHONPATH": ":/plug-ins::./:x"})
    {'PYTHONPATH': '/plug-ins:x', 'PYTHONSAFEPATH': '1'}
    """
    safe = dict(environment) | SAFE
    if "PYTHONPATH" in safe:
        parts = safe["PYTHONPATH"].split(os.pathsep)
        safe["PYTHONPATH"] = os.pathsep.join(
            part for part in parts if os.path.normpath(part) != os.curdir
        )
    return safe


_LOG = logging.getLogger("nutbeam")


def check_library(module: str, option: str, extra: str) -> None:
    """Checks that the library of an option can be imported.

    Raises:
        ValueError: It is not installed, or its import fails; the message says which.
    """
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module.partition(".")[0]:
            raise ValueError(f"{option} needs {error.name}: install nutbeam[{extra}]") from error
        raise ValueError(_failure(module, option, error)) from error
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(_failure(module, option, error)) from error


@functools.cache
def import_library(module: str, option: str) -> ModuleType | None:
    """Returns the library of an option; None if its import fails, which is logged once.

    ``check_library`` has checked it where the command began; a worker may differ.
    """
    try:
        return importlib.import_module(module)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken library may raise anything
        _LOG.warning("%s; the job goes on without it", _failure(module, option, error))
        return None


def _failure(module: str, option: str, error: Exception) -> str:
    reason = one_line(f"{type(error).__name__}: {error}", 200)
    return f"{option} needs {module.partition('.')[0]}, which cannot be imported: {reason}"
