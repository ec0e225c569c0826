"""``nutbeam.read`` and ``nutbeam.read_chunks``, with errors in words of Python. They import no Beam."""

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..views import reader
from .calls import calling

_Reader = TypeVar("_Reader", bound=Callable[..., Any])


def _in_python(function: _Reader) -> _Reader:
    """Returns a function that reads a table, with errors of the documented tree, in words of Python."""

    @functools.wraps(function)
    def read_table(table: Any, *args: Any, **keywords: Any) -> Any:
        with calling(os.fspath(table) if isinstance(table, os.PathLike) else table):
            return function(table, *args, **keywords)

    return cast(_Reader, read_table)


read = _in_python(reader.read)
read_chunks = _in_python(reader.read_chunks)
