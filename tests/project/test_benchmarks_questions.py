"""The questions by which search is judged, and the sites that are made for them."""

import collections
import importlib
import tomllib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(
    not BENCHMARKS.is_dir(), reason="benchmarks are not part of the wheel"
)


@pytest.fixture
def sites(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("question_pages")


@pytest.fixture
def questions():
    return tomllib.loads((BENCHMARKS / "questions.toml").read_text("utf-8"))["question"]


def test_there_are_150_questions_of_all_kinds(questions):
    kinds = collections.Counter(one.get("kind", "") for one in questions)
    assert kinds == {"": 80, "typing": 30, "language": 20, "list": 20}
    assert len({one["ask"] for one in questions}) == 150
    assert {one.get("site", "docs") for one in questions} == {"docs", "shop", "news"}


@pytest.mark.parametrize("site", ["shop", "news"])
def test_each_question_to_a_site_that_is_made_has_pages_there_which_are_no_lists(
    sites, questions, site
):
    pages = sites.pages_of(site)
    asked = {path for one in questions if one.get("site") == site for path in one["pages"]}
    assert asked <= pages.keys()
    assert not any(sites.LISTS[site].search(path) for path in asked)
    assert sites.pages_of(site) == pages
