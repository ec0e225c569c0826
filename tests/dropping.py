"""Does things as somebody who may not write everywhere, as root may."""

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65_534


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder that all may read and ``as_nobody`` may not write; tmp_path is root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="nutbeam-test-"))
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_nobody(function: Callable[..., Any], *args: Any) -> Any:
    """Returns what a function returns or raises without root's rights."""
    if os.geteuid() != 0:
        return _outcome(function, *args)
    ours, theirs = os.pipe()
    child = os.fork()  # not a new program: Python itself may lie where only root can read
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(theirs, pickle.dumps(_outcome(function, *args)))
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    return pickle.loads(data)


def _outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return error
