"""Guides that promise something name the test of each promise.

A block is a paragraph, a list item or a row of a table. Each one names a test
(``test_x``, ``test_x.py``) itself or by a footnote (``[^name]``, defined at the
end of the page), unless it stands under ``<!-- no claims -->``, which holds up
to the next heading.
"""

import re

import pytest
from here import ROOT

PAGES = (
    "docs/guides/politeness.md",
    "docs/guides/security.md",
    "docs/reference/status.md",
    "docs/reliability.md",
)
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").exists(), reason="docs/ is not part of the wheel"
)
_NAME = re.compile(r"\btest_\w+(?:\.py)?\b")
_NOTE = re.compile(r"^\[\^([\w-]+)\]: ")


def blocks(text):
    """Yields the blocks of a page that make claims."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!-- (?!no claims).*?-->", "", text, flags=re.DOTALL)
    silent = False
    for part in re.split(r"\n\s*\n", text):
        if part.startswith("#"):
            silent = False
            part = part.partition("\n")[2]
        if "<!-- no claims -->" in part:
            silent = True
        if silent or not part.strip() or _NOTE.match(part):
            continue
        if part.startswith("|"):
            yield from part.splitlines()[2:]
        else:
            yield from re.split(r"\n(?=[*-] |\d+\. )", part)


def notes(text):
    """Returns the tests that each footnote names."""
    found = {}
    for part in re.split(r"\n(?=\[\^)", text):
        match = _NOTE.match(part)
        if match:
            found[match[1]] = _NAME.findall(part.partition("\n\n")[0])
    return found


def existing():
    files = list((ROOT / "tests").rglob("test_*.py"))
    names = {path.name for path in files}
    for path in files:
        names |= set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))
    return names


@pytest.mark.parametrize("page", PAGES)
def test_each_claim_names_its_test(page):
    text = (ROOT / page).read_text()
    tests = {name for name, named in notes(text).items() if named}
    bare = [
        block[:100]
        for block in blocks(text)
        if not _NAME.search(block) and not tests & set(re.findall(r"\[\^([\w-]+)\]", block))
    ]
    assert not bare


@pytest.mark.parametrize("page", PAGES)
def test_each_test_that_a_page_names_exists(page):
    text = (ROOT / page).read_text()
    used, defined = set(re.findall(r"\[\^([\w-]+)\](?!:)", text)), set(notes(text))
    assert used == defined
    named = set(_NAME.findall(text))
    assert len(named) >= 5
    assert not named - existing()


def test_a_claim_without_a_test_is_found():
    text = (
        "# A\n\nOne.[^a]\n\n* two\n* three `test_x`\n\n| h |\n|---|\n| four |\n\n[^a]: `test_a`\n"
    )
    assert list(blocks(text)) == ["One.[^a]", "* two", "* three `test_x`", "| four |"]
    assert notes(text) == {"a": ["test_a"]}
    assert list(blocks("# A\n\n<!-- no claims -->\nOne.\n\n# B\n\nTwo.")) == ["Two."]
