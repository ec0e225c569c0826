"""Fixtures of tests of URLs and pages."""

import pytest
from html_trees import TREES, parser_with

from nutbeam.web.normalizers import basic
from nutbeam.web.rules import url_rules


@pytest.fixture(scope="module")
def few_urls_count_as_many():
    """Normalizes also few URLs as a column, as many are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(basic, "_FEW", 0)
        patch.setattr(url_rules, "FEW", 0)
        yield


@pytest.fixture(params=TREES)
def page(request, monkeypatch):
    """Parses pages as they are, and flattened as hazardous ones are."""
    return parser_with(request.param, monkeypatch)
