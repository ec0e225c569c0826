"""The glossary has the words that the page on architecture builds on."""

import re

import pytest
from here import ROOT

GLOSSARY, ARCHITECTURE = ROOT / "docs/glossary.md", ROOT / "docs/architecture.md"
pytestmark = pytest.mark.skipif(not GLOSSARY.exists(), reason="docs/ is not part of the wheel")
ENTRY = re.compile(r"^\*\*([\w -]+)\*\*: (.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)


def entries():
    return ENTRY.findall(GLOSSARY.read_text("utf-8"))


def test_words_that_architecture_lists_are_in_the_glossary():
    (listed,) = re.findall(r"^\*\*Words\.\*\* The \[glossary\][^:]+:(.+?)\.$",
                           ARCHITECTURE.read_text("utf-8"), re.MULTILINE | re.DOTALL)  # fmt: skip
    words = [" ".join(word.split()) for word in listed.split(",")]
    assert len(words) > 25
    assert [word for word in words if word not in dict(entries())] == []


def test_words_are_in_order_once_and_explained_in_a_few_sentences():
    words = [word for word, _ in entries()]
    assert words == sorted(set(words))
    assert len(words) > 50
    long = [word for word, text in entries() if len(re.findall(r"[.)](?:\s|\Z)", text)) > 5]
    assert long == []


def test_modules_that_it_names_exist():
    named = re.findall(r"`((?:io|pipelines|policy|transforms|web)/[\w/.]*)`", GLOSSARY.read_text())
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_functions_that_architecture_names_for_rules_are_in_their_modules():
    (rules,) = re.findall(
        r"^## Where a rule is\n\n(.+?)\n\n", ARCHITECTURE.read_text(), re.MULTILINE | re.DOTALL
    )
    named = re.findall(r"`(\w+)` in `([\w/]+\.py)`", rules)
    assert len(named) > 8
    missing = [pair for pair in named if f"def {pair[0]}(" not in (ROOT / pair[1]).read_text()]
    assert missing == []
