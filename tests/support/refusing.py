"""What tests expect of input that is refused."""

from collections.abc import Callable

import pytest


def assert_refused(make: Callable[[], object], message: str) -> None:
    """Asserts that a call raises ValueError with one line that matches a regular expression."""
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
