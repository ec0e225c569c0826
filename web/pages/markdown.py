"""Makes Markdown of a text and its spans: CommonMark, with the tables and the deletions of GitHub."""

import html
import re
from collections.abc import Iterator, Sequence

from ..urls.userinfo import parse_target
from . import spans
from .spans import Span

# Signs that mean something anywhere in a line of Markdown. An underscore does so only beside a word.
_SIGNS = re.compile(r"[\\`*\[\]]|~(?=~)|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
# Signs that mean something at the start of a line.
_LINE_START = re.compile(
    r"#{1,6}(?=\s|$)|[-+](?=\s|$)|>|\d{1,9}(?=[.)](?:\s|$))|=+\s*$|-[-\s]*$|~(?=~~)|[|:](?=[-:|\s]+$)"
)
_TICKS = re.compile(r"`+")
_FENCES = re.compile(r"^\s*(`{3,}|~{3,})", re.MULTILINE)
_UNSAFE_IN_TARGET = re.compile(r"[\s<>()\\]")
_WRAPS = {spans.STRONG: "**", spans.EMPHASIS: "*", spans.DELETED: "~~"}


def markdown_of(
    text: str, text_spans: Sequence[Span], url: str = "", *, with_links: bool = True
) -> str:
    """Returns the Markdown of a text.

    Args:
        text: The text.
        text_spans: Its spans; without any, its lines are those of a plain text.
        url: URL of the page, to which links and images are relative.
        with_links: Whether targets of links, and images, are in it; else only their texts.

    >>> markdown_of("A\\n\\nb * c", [("heading", 0, 1, 2, ""), ("paragraph", 3, 8, 1, ""), ("code", 7, 8, 0, "")])
    '## A\\n\\nb \\\\* `c`'
    """
    return _Renderer(text, text_spans, url, with_links).render()


class _Renderer:
    """Writes blocks; each has the prefix of the quotes and the items around it."""

    def __init__(self, text: str, text_spans: Sequence[Span], url: str, with_links: bool) -> None:
        base = next((of for kind, *_, of in text_spans[:1] if kind == spans.BASE), "")
        self._text, self._spans, self._with_links = text, text_spans, with_links
        self._base = base or url
        self._at = 0
        self._lines: list[str] = []
        self._prefixes: list[str] = []
        self._mark = ""  # of an item, before its first line
        self._tight = False
'''
