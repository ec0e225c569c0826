"""The tests themselves: shared code stands once, folders mirror the package's, names are plain.

The name of a test is a sentence about what happens, with a noun as its subject.
"""

import ast
import re
from collections import defaultdict

import pytest
from here import TESTS
from package_files import FILES, PACKAGE, ROOMS

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LINES = 1  # of the body of a function that may stand in several files

# Folders of modules without a folder of tests, folders of tests without a folder of modules, and why.
WITHOUT_TESTS = {
    "policy/base": "statuses and makers of plug-ins: tests of scorings, filters and components use both",
    "io/updating": "it only reads: tests of pipelines/updating run it on batches of a real server",
    "transforms/archives": "tests of pipelines/archives run it on crawls of a real server",
    "transforms/indexing": "tests of pipelines/indexing run it with each writer",
}
WITHOUT_MODULES = dict.fromkeys(
    ("pipelines/upkeep/fsck", "pipelines/upkeep/fsck/bigtable"),
    "their tests are those of the one module pipelines/upkeep/fsck.py",
)

TESTS_IN = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
# Not in the name of a test: noun clauses ("what is …") and words in place of a plain verb ("told").
NOT_IN_NAMES = re.compile(
    r"^test_who_|_what_|_(whoever|nobodys|nobody_elses"
    r"|anew|behind|so_many|told|learnt|asked|brought|hurried|said|looks_whether)(_|$)"
)


def folders(files, top):
    """Returns the folders of files, relative to ``top``."""
    return {path.parent.relative_to(top).as_posix() for path in files}


def is_asked_for(function):
    """Returns whether pytest calls a function, so that its parameters are names of fixtures."""
    return function.name.startswith("test_") or any(
        "fixture" in ast.unparse(decorator) for decorator in function.decorator_list
    )


def own_names(module):
    """Returns the names that a file itself defines; in each file they are something else."""
    found = set()
    for node in module.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = (name for name in ast.walk(node) if isinstance(name, ast.Name))
            found |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return found


def code_of(function, own, file):
    """Returns a function's code, the same whatever names it has for itself and its variables."""
    nodes = [node for part in (function.args, *function.body) for node in ast.walk(part)]
    asked_for, new = is_asked_for(function), {}
    for node in nodes:
        if isinstance(node, ast.arg):
            node.annotation = None
            if not asked_for:
                new.setdefault(node.arg, f"_{len(new)}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            new.setdefault(node.id, f"_{len(new)}")
    for node in nodes:
        attribute = {ast.arg: "arg", ast.Name: "id"}.get(type(node))
        if attribute:
            name = getattr(node, attribute)
            setattr(node, attribute, new.get(name, f"{file}:{name}" if name in own else name))
    return "".join(map(ast.dump, (function.args, *function.body)))


def long_functions(text, file):
    """Yields the name and the code of each function whose body has more than ``LINES`` lines."""
    module = ast.parse(text)
    own = own_names(module)
    for function in module.body:
        if not isinstance(function, FUNCTIONS):
            continue
        if ast.get_docstring(function, clean=False) is not None:
            function.body = function.body[1:]
        if function.body and function.body[-1].end_lineno - function.body[0].lineno >= LINES:
            yield function.name, code_of(function, own, file)


def repeated_functions(folder):
    """Returns the functions below a folder, ``file:name``, whose code stands in several files."""
    places = defaultdict(dict)
    for path in sorted(folder.rglob("*.py")):
        file = str(path.relative_to(folder))
        for name, code in long_functions(path.read_text("utf-8"), file):
            places[code][file] = f"{file}:{name}"
    return [list(found.values()) for found in places.values() if len(found) > 1]


@pytest.mark.long
def test_a_function_that_several_files_need_stands_once():
    """Move a helper to tests/support, a fixture to conftest.py of the folder that has all these files."""
    assert repeated_functions(TESTS) == []


def test_a_repeated_function_is_found_with_any_names(tmp_path):
    short = "def f():\n    return 1\n\n\n"
    texts = {
        "a.py": f'{short}def g(x: int) -> int:\n    """One."""\n    y = x\n    return y + 1\n',
        "b/c.py": f"{short}def h(one):\n    two = one  # one\n\n    return two + 1\n\n\nA = 1\n",
        "b/d.py": f"{short}def g(x, z):\n    y = x\n    return y + 1\n",
        "b/e.py": f"{short}def g(x):\n    y = x\n    return y + 2\n",
    }
    (tmp_path / "b").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert repeated_functions(tmp_path) == [["a.py:g", "b/c.py:h"]]


@pytest.mark.parametrize(
    ("head", "other", "before"),
    [
        ("@pytest.fixture\ndef g(x):", "@pytest.fixture\ndef h(x):", "A = 1\n"),
        ("def test_g(x):", "def test_h(z):", ""),
    ],
    ids=["they name what their files define", "they ask for other fixtures"],
)
def test_functions_that_mean_other_things_are_not_the_same(tmp_path, head, other, before):
    for file, line in (("a.py", head), ("b.py", other)):
        given = line[line.index("(") + 1]
        (tmp_path / file).write_text(f"{before}{line}\n    y = {given}\n    return y + A\n")
    assert repeated_functions(tmp_path) == []


def test_the_folders_of_tests_mirror_those_of_modules():
    modules = folders(FILES, PACKAGE)
    tests = folders((path for room in ROOMS for path in (TESTS / room).rglob("test_*.py")), TESTS)
    assert modules - tests == set(WITHOUT_TESTS)
    assert tests - modules == set(WITHOUT_MODULES)


def unclear_names(folder):
    """Returns the tests below a folder, ``file:name``, whose names have words that names avoid."""
    return [
        f"{path.relative_to(folder)}:{name}"
        for path in sorted(folder.rglob("*.py"))
        for name in TESTS_IN.findall(path.read_text("utf-8"))
        if NOT_IN_NAMES.search(name)
    ]


def test_names_of_tests_are_plain_sentences():
    found = unclear_names(TESTS)
    assert not found, (
        "a name of a test says in a plain sentence what happens, such as "
        f"test_second_generate_changes_nothing: rename {', '.join(found)}"
    )


def test_unclear_names_of_tests_are_found(tmp_path):
    unclear = ("who_comes_second_changes_nothing", "what_is_new_is_read", "rows_are_written_anew")
    plain = ("whole_rows_are_copied", "somewhat_old_rows_stay", "users_that_lag_behindhand_wait")
    lines = (f"def test_{name}():\n    pass\n" for name in (*unclear, *plain))
    (tmp_path / "a.py").write_text("\n\n".join(lines))
    assert unclear_names(tmp_path) == [f"a.py:test_{name}" for name in unclear]
