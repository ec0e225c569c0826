"""Imports libraries that are installed only for some options."""

import functools
import importlib
import logging
from types import ModuleType

from ..base.errors import one_line

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
