"""Divides lines of seeds into a URL and ``name=value`` pieces, as Nutch has them after tabs.

People also write comments after a URL, and spaces for tabs. What is surely meant is read; the other
lines with blanks are refused, because a blank would become part of another URL.
"""

import re
from typing import NamedTuple

from ...policy.components.reasons import counted_reasons

BLANK_IN_URL = "blank_in_url"
# No URL is hurt: what comes after a # is a fragment, which is never requested.
_COMMENT = re.compile(r"\s+#.*", re.DOTALL)
# Blanks before a name of Nutch, in place of a tab.
_BLANKS = re.compile(r"\s+(?=nutch\.[\w.]+\s*=)")
_PIECE = re.compile(r"[^\s=]+=\S*")
# What is not part of a URL with blanks.
_OTHER_WORD = re.compile(r"^[\w.]+=|://")
# A host, and perhaps port and path, without a scheme.
_HOST = re.compile(
    r"(?://)?"
    r"((?:(?:[\w-]+\.)+[^\W\d_]{2,}|localhost|\d+(?:\.\d+){3})(?::\d+)?(?:[/?#]\S*)?)"
    r"(?:\s.*)?",
    re.DOTALL,
)


# ``http:/a.com/``, ``http:\\a.com``, ``http//a.com/``, ``http:a.com``.
_WRONG_SLASHES = re.compile(r"(https?)(?!://[^/])(?::[/\\]*|//+)([^\s/\\:]\S*)", re.IGNORECASE)
# What stands before a URL in lists, quotations and Markdown.
_WRAPPED = re.compile(
    r"(?:[-*+\u2022>|]|\d+[.)])\s+|[\"'<(`\u201c\u2018\u00ab]|\[[^\]]*\]\(|\w+\s*[:=]\s+"
)
_WEB_URL = re.compile(r"https?://[^\s<>\"'`\u201d\u2019\u00bb)\]]+", re.IGNORECASE)


class SeedLine(NamedTuple):
    """A line of seeds.

    Attributes:
        url: The text of the URL; None if the line is refused.
        pieces: The ``name=value`` pieces.
    """

    url: str | None
    pieces: list[str]


def divide_line(line: str, *, typed: bool = False) -> SeedLine:
    """Divides a line; a comment, with blanks and ``#`` before it, is not part of it.

    Args:
        line: A line of seeds.
        typed: Whether it is an argument of a command. The shell has kept its words together, so they
            are one URL with blanks, such as the name of a file, unless a further word is
            ``name=value`` or a URL.

    >>> divide_line("http://a.com/\\tnutch.score=2\\tcolour=dark red")
    SeedLine(url='http://a.com/', pieces=['nutch.score=2', 'colour=dark red'])
    >>> divide_line("http://a.com/ nutch.score=2 lang=en  # the start page")
    SeedLine(url='http://a.com/', pieces=['nutch.score=2', 'lang=en'])
    >>> divide_line("http://a.com/ lang=en"), divide_line("http://a.com/a page.html")
    (SeedLine(url=None, pieces=[]), SeedLine(url=None, pieces=[]))
    >>> divide_line("http://a.com/a page.html", typed=True)
    SeedLine(url='http://a.com/a page.html', pieces=[])
    """
    start, _, rest = line.strip().partition("\t")
    if comment := _COMMENT.search(start):
        start, rest = start[: comment.start()], ""
    url, *blanks = _BLANKS.split(start.strip(), maxsplit=1)
    words = blanks[0].split() if blanks else []
    if not all(map(_PIECE.fullmatch, words)) or url.split() != [url]:
        if typed and not blanks and not any(map(_OTHER_WORD.search, url.split()[1:])):
            return SeedLine(url, [])
        # Without a scheme it is no URL, whatever the blanks mean.
        return SeedLine(None if "://" in url else url, [])
    return SeedLine(url, [*words, *(_pieces_after_tab(rest) if rest else [])])


def hint_for(reason: str, line: str) -> str:
    """Returns advice for a line that was dropped; it may be empty.

    >>> hint_for("malformed", "example.com/a"), hint_for("malformed", "http:/a.com/")
    ('; write https://example.com/a', '; write http://a.com/')
    >>> hint_for("blank_in_url", "- http://a.com/"), hint_for("malformed", "[a](http://a.com/)")
    ('; write http://a.com/', '; write http://a.com/')
    """
    line = line.strip()
    if host := _HOST.fullmatch(line):
        return f"; write https://{host[1]}"
    if slashes := _WRONG_SLASHES.fullmatch(line):
        return f"; write {slashes[1].lower()}://{slashes[2]}"
    if (wrapped := _WRAPPED.match(line)) and (url := _WEB_URL.search(line, wrapped.end())):
        return f"; write {url[0]}"
    if reason == BLANK_IN_URL:
        return f"; {counted_reasons('inject dropped')[reason].advice}"
    return ""


def _pieces_after_tab(text: str) -> list[str]:
    """Returns the pieces after the first tab; a comment may be a piece, or follow a number."""
    pieces = []
    for piece in (part for field in text.split("\t") for part in _BLANKS.split(field.strip())):
        if piece.startswith("#"):
            break
        is_number = piece.startswith("nutch.")
        pieces.append(_COMMENT.sub("", piece) if is_number else piece)
    return pieces
