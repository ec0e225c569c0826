"""Packaging: the root of this repository stands for the package ``nutbeam``.

``io/table/web_table.py`` installs as ``nutbeam.io.table.web_table``, and ``package/__init__.py``
as ``nutbeam/__init__.py``. No other folder here has an ``__init__.py``; one in ``io/`` would hide
Python's own ``io`` from any tool that puts the root on its path, and stop Python from starting.
"""

from setuptools import find_namespace_packages, setup

ROOMS = ("io", "pipelines", "policy", "transforms", "web")
FOLDERS = find_namespace_packages(
    include=[f"{room}{below}" for room in ROOMS for below in ("", ".*")],
    exclude=["*.__pycache__"],
)

setup(
    packages=["nutbeam", *(f"nutbeam.{folder}" for folder in FOLDERS)],
    package_dir={"nutbeam": "package", **{f"nutbeam.{room}": room for room in ROOMS}},
    package_data={
        "nutbeam": ["py.typed"],
        "nutbeam.pipelines.as_in_nutch": ["*.toml", "*.txt"],
        "nutbeam.pipelines.command_line": ["*.toml", "*.txt"],
        "nutbeam.pipelines.nutch_conf": ["*.toml", "*.txt"],
        "nutbeam.pipelines.command_line.profiles": ["*.toml"],
        "nutbeam.pipelines.base": ["*.css"],
        "nutbeam.pipelines.searching": ["*.css", "*.js", "*.json", "*.svg"],
        "nutbeam.pipelines.running": ["*.toml"],
        "nutbeam.pipelines.reporting": ["*.css"],
        "nutbeam.pipelines.watching": ["*.css", "*.js"],
        "nutbeam.web.html": ["*.toml"],
        "nutbeam.web.rules": ["*.txt", "*.xml"],
        "nutbeam.web.pages": ["*.txt"],
        "nutbeam.web.structured": ["*.toml"],
        "nutbeam.web.values": ["*.toml", "*.txt"],
        "nutbeam.policy.components": ["*.toml"],
        "nutbeam.policy.metrics": ["*.toml"],
    },
)
