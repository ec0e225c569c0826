"""Makes few URLs take the way of many, which are normalized as columns."""

import contextlib
from collections.abc import Iterator

import pytest

from nutbeam.web.normalizers import basic_column
from nutbeam.web.rules import url_rules


@contextlib.contextmanager
def few_urls_as_many() -> Iterator[None]:
    """Normalizes also few URLs as a column, until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(basic_column, "_FEW", 0)
        patch.setattr(url_rules, "FEW", 0)
        yield
