"""The main content of a page, without navigation and what else surrounds it."""

import functools
import logging
from typing import Any


def main_content(utf8: bytes) -> str | None:
    """Returns the text of a page's main part, or None if none is found.

    Args:
        utf8: The page, as HTML in UTF-8.
    """
    try:
        found = _extract()(utf8.decode("utf-8", "replace"), include_comments=False)
    except MemoryError:
        raise
    except Exception:  # whatever a page does to it, the page has its text
        return None
    return " ".join(found.split()) if found else None


@functools.cache
def _extract() -> Any:
    from trafilatura import extract  # takes 0.5 s

    # It logs each page on which it finds nothing: here that is counted.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return extract
