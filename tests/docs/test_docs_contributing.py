"""A newcomer who follows CONTRIBUTING.md gets what it promises: each walk-through is walked.

Files are written and changes made in a copy of the package, which the commands then use.
"""

import os
import re
import shutil

import pytest
from guide_blocks import run_as_typed
from here import ROOT

PAGE = ROOT / "CONTRIBUTING.md"
ROOMS = ("io", "pipelines", "policy", "transforms", "web")
TEXT = PAGE.read_text("utf-8") if PAGE.exists() else ""
pytestmark = pytest.mark.skipif(not TEXT, reason="CONTRIBUTING.md is not part of the wheel")
BLOCK = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NEW = {
    "A URL filter",
    "A URL normalizer",
    "A parser",
    "An export format",
    "An index writer",
    "A job",
    "A column of the state",
    "A component of the table",
}


def walks():
    """Yields (title, [(language, path, text)]) of each section that a reader follows."""
    for section in TEXT.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        if title in NEW:
            yield title, [(m[1], m[2], m[3]) for m in BLOCK.finditer(section)]


def plain(line):
    """Returns a line without the borders of tables."""
    return " ".join(re.sub(r"[\u2500-\u257f]+", " ", line).split())


def apply_diff(text, diff):
    """Returns a text with a change made: lines with - and context must be there, once.

    >>> apply_diff("a\\nb\\n", " a\\n-b\\n+c\\n")
    'a\\nc\\n'
    """
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the file"
    return text.replace(old, new)


def test_a_change_that_fits_nowhere_is_found():
    assert apply_diff("a\nb\n", " a\n-b\n+c\n") == "a\nc\n"
    with pytest.raises(AssertionError, match="0 times"):
        apply_diff("a\nb\n", " b\n+c\n-a\n")


def test_all_walks_are_followed():
    assert {title for title, _ in walks()} == NEW


@pytest.mark.long
@pytest.mark.parametrize(("title", "blocks"), [pytest.param(*walk, id=walk[0]) for walk in walks()])
@pytest.mark.few(3)
def test_a_walk_leads_where_it_says(title, blocks, tmp_path, monkeypatch):
    package = tmp_path / "copy" / "nutbeam"
    for source, target in (("package", ""), *((room, room) for room in (*ROOMS, "tests"))):
        ignored = shutil.ignore_patterns("*.pyc.*")  # files that Python is writing
        shutil.copytree(ROOT / source, package / target, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", package)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent)]))
    new = []
    for language, name, text in blocks:
        if language == "python":
            assert not (package / name).exists()
            (package / name).write_text(text)
            new.append("nutbeam." + name.removesuffix(".py").replace("/", "."))
        elif language == "diff":
            (package / name).write_text(apply_diff((package / name).read_text(), text))
    typed = "".join(text for language, _, text in blocks if language == "bash")
    doctests = "".join(
        f"\npython -c 'import doctest, importlib as i; "
        f'm = i.import_module("{name}"); print("doctests failed:", doctest.testmod(m).failed)\''
        for name in new
    )
    printed = [plain(line) for line in run_as_typed(typed + doctests, package).splitlines()]
    expected = [
        line for language, _, text in blocks if language == "text" for line in text.splitlines()
    ]
    missing = [line for line in expected if plain(line) not in printed]
    assert not missing, printed
    assert printed.count("doctests failed: 0") == len(new)
