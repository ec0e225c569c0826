"""The package's files, and what each imports, defines, and asks of values."""

import ast
import functools
from collections import defaultdict
from pathlib import Path

import nutbeam.web

# Where the package is: this repository, or where the wheel is installed.
PACKAGE = Path(next(iter(nutbeam.web.__path__))).parent
# An import may only lead to a room further down.
ROOMS = ("pipelines", "transforms", "io", "policy", "web")
FILES = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))


@functools.cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def nodes(path):
    """Returns all nodes of a file's syntax tree."""
    return tuple(ast.walk(parsed(path)))


@functools.cache
def imported(path, top=PACKAGE):
    """Returns the full names of the modules, or of what is in them, that a file imports.

    Text counts, too: ``import_module("nutbeam.io.x")`` imports it, and so does a relative name.
    """
    package = ("nutbeam", *path.relative_to(top).parts[:-1])
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{source}.{alias.name}"
                names |= {name, *_used_below(path, alias.asname or alias.name, name)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= _in_text(node.value)
    return frozenset(names)


def imports_by_made_name(path):
    """Returns the names that a file imports and that are no text, as they are written."""
    calls = [node for node in nodes(path) if isinstance(node, ast.Call) and node.args]
    return [
        ast.unparse(call.args[0])
        for call in calls
        if (dotted(call.func) or [""])[-1] in ("import_module", "__import__")
        and not isinstance(call.args[0], ast.Constant)
    ]


def _used_below(path, alias, full):
    """Yields what a file uses of a folder that it imports: ``from .. import a``, then ``a.b.c``."""
    for words in _dotted_names(path).get(alias, ()):
        yield ".".join([full, *words[1:]])


@functools.cache
def _dotted_names(path):
    """Returns the words of each name with dots in a file, and of what is above it, by the first."""
    names = defaultdict(list)
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and (words := dotted(node)):
            names[words[0]].append(words)
    return names


def _in_text(text):
    words = text.split(".")
    named = len(words) > 2 and words[0] == "nutbeam" and words[1] in ROOMS
    return {text} if named and all(word.isidentifier() for word in words) else set()


def dotted(node):
    """Returns the words of a dotted name: ["a", "b"] of ``a.b``; none of other expressions."""
    if isinstance(node, ast.Attribute):
        above = dotted(node.value)
        return [*above, node.attr] if above else []
    return [node.id] if isinstance(node, ast.Name) else []


def classes_asked(path):
    """Yields the names of the classes that a file asks values whether they are of them.

    By isinstance, issubclass, match, or by the type: ``type(x) is C``, ``type(x).__name__ == "C"``.
    """
    for node in nodes(path):
        if isinstance(node, ast.Call) and dotted(node.func) in (["isinstance"], ["issubclass"]):
            yield from names_in(node.args[1])
        elif isinstance(node, ast.MatchClass):
            yield from names_in(node.cls)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            calls = [
                call for side in sides for call in ast.walk(side) if isinstance(call, ast.Call)
            ]
            if any(dotted(call.func) == ["type"] for call in calls):
                yield from (name for side in sides for name in names_in(side))


def names_in(node):
    """Yields the last words of the names in an expression, and its texts."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif dotted(part):
            yield dotted(part)[-1]


def public_names(path):
    """Yields the names that a module defines at its top, without those that begin with _.

    What it imports is not among them; what it defines under a condition is.
    """
    yield from (name for name in _defined(parsed(path).body) if not name.startswith("_"))


def _defined(body):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            places = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (n.id for p in places for n in ast.walk(p) if isinstance(n, ast.Name))
        else:
            for part in ("body", "handlers", "orelse", "finalbody"):
                yield from _defined(getattr(node, part, ()))


def repeated_names(files, top=PACKAGE):
    """Returns the public names that several files define, and the paths of these below ``top``."""
    places = defaultdict(set)
    for path in files:
        for name in public_names(path):
            places[name].add(str(path.relative_to(top)))
    return {name: sorted(found) for name, found in places.items() if len(found) > 1}
