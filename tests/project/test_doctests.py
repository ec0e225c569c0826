"""Runs the examples in docstrings; pytest's own collector cannot import io/."""

import doctest
import importlib
import pathlib

import pytest

import nutbeam.web
from nutbeam.web.base import json_logs

PACKAGE = pathlib.Path(next(iter(nutbeam.web.__path__))).parent
# By file name: pkgutil does not look into folders without an __init__.py.
MODULES = [
    ".".join(("nutbeam", *path.relative_to(PACKAGE).with_suffix("").parts))
    for room in ("io", "pipelines", "policy", "transforms", "web")
    for path in sorted((PACKAGE / room).rglob("*.py"))
    if path.stem != "__main__"
]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    try:
        assert doctest.testmod(importlib.import_module(name)).failed == 0
    finally:
        json_logs.uninstall()  # one module installs them, for the worker that imports it
