"""The package's files, and what each imports."""

import ast
from pathlib import Path

import nutbeam.web

# Where the package is: this repository, or where the wheel is installed.
PACKAGE = Path(next(iter(nutbeam.web.__path__))).parent
# An import may only lead to a room further down.
ROOMS = ("pipelines", "transforms", "io", "policy", "web")
FILES = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))


def imported(path, top=PACKAGE):
    """Returns the full names of the modules, or of what is in them, that a file imports."""
    package = ("nutbeam", *path.relative_to(top).parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{source}.{alias.name}" for alias in node.names}
    return names
