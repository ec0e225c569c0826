"""The tests themselves: code that several files need stands once, and folders mirror the package's."""

import re
from collections import defaultdict

from here import TESTS
from package_files import FILES, PACKAGE, ROOMS

LINES = 3  # of a function that may stand in several files
# A function at the top of a file, up to the next line that is not indented.
FUNCTION = re.compile(r"^def (\w+)(\(.*\n(?:(?:[ )].*)?\n)*)", re.MULTILINE)
DOCSTRING = re.compile(r':\n    """[^"]*"""')
COMMENT = re.compile(r"(^| ) *# .*", re.MULTILINE)

# Folders of modules without a folder of tests, folders of tests without a folder of modules, and why.
WITHOUT_TESTS = {"policy/base": "it only names statuses; tests of policy/components use them all"}
WITHOUT_MODULES = dict.fromkeys(
    ("pipelines/upkeep/fsck", "pipelines/upkeep/fsck/bigtable"),
    "their tests are those of the one module pipelines/upkeep/fsck.py",
)


def folders(files, top):
    """Returns the folders of files, relative to ``top``."""
    return {path.parent.relative_to(top).as_posix() for path in files}


def long_functions(text):
    """Yields the name and the code of each function with more than ``LINES`` lines of code.

    The code is compared as text: to parse all tests takes some seconds.
    """
    for name, source in FUNCTION.findall(text):
        code = COMMENT.sub("", DOCSTRING.sub(":", source, count=1))
        lines = [line for line in code.splitlines() if line]
        if len(lines) > LINES:
            yield name, "\n".join(lines)


def repeated_functions(folder):
    """Returns the files below a folder that have a function of the same name and with the same code."""
    places = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for function in long_functions(path.read_text("utf-8")):
            places[function].append(str(path.relative_to(folder)))
    return {name: paths for (name, _), paths in places.items() if len(paths) > 1}


def test_a_function_that_several_files_need_stands_once():
    """Move a helper to tests/support, a fixture to conftest.py of the folder that has all these files."""
    assert repeated_functions(TESTS) == {}


def test_a_function_that_stands_twice_is_found(tmp_path):
    short = "def f():\n    x = 1\n    return x\n\n\n"
    texts = {
        "a.py": f'{short}def g(x):\n    """One."""\n    y = x\n    y += 1\n    return y\n',
        "b/c.py": f"{short}@fixture\ndef g(x):\n    y = x  # one\n\n    y += 1\n    return y\n\n\nA = 1\n",
        "b/d.py": f"{short}def g(x, z):\n    y = x\n    y += 1\n    return y\n",
    }
    (tmp_path / "b").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert repeated_functions(tmp_path) == {"g": ["a.py", "b/c.py"]}


def test_the_folders_of_tests_mirror_those_of_modules():
    modules = folders(FILES, PACKAGE)
    tests = folders((path for room in ROOMS for path in (TESTS / room).rglob("test_*.py")), TESTS)
    assert modules - tests == set(WITHOUT_TESTS)
    assert tests - modules == set(WITHOUT_MODULES)
