"""Extracts the main content of a page, without navigation and other surrounding parts."""

import functools
import logging
from collections.abc import Callable

from ..imports.optional_library import import_library


def main_content(utf8: bytes) -> str | None:
    """Returns the text of a page's main part, or None if none is found.

    Needs trafilatura; without it there is none.

    Args:
        utf8: The page, as HTML in UTF-8.
    """
    extract = _extractor()
    if extract is None:
        return None
    try:
        text = extract(utf8)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the text of the body remains
        return None
    return " ".join(text.split()) if text else None


@functools.cache
def _extractor() -> Callable[[bytes], str | None] | None:
    trafilatura = import_library("trafilatura", "--text_of main")  # takes 0.5 s
    if trafilatura is None:
        return None
    from lxml.html import HTMLParser, document_fromstring  # trafilatura needs lxml, too

    # The package logs each page without a main part; nutbeam counts these pages instead.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)

    def extract(utf8: bytes) -> str | None:
        # Made here, because it would guess at the encoding, and refuse pages without <html>.
        tree = document_fromstring(utf8, parser=HTMLParser(encoding="utf-8"))
        text: str | None = trafilatura.extract(tree, include_comments=False)
        return text

    return extract
