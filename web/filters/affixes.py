"""URL filters of literal prefixes and suffixes, as Nutch's prefix- and suffix-urlfilter.txt."""

import polars as pl

from ..base.quoting import quoted
from ..rule_files.rule_files import NameLines, line_at, lines_of, without_longer
from ..urls.url_parts import parts_of
from .verdicts import UrlFilter, Verdicts, verdicts


class PrefixFilter(UrlFilter):
    """Takes URLs that begin with one of the prefixes of a file, one a line.

    Empty lines, and those that begin with ``#`` or a space, mean nothing. A file
    without a prefix takes no URL.

    >>> PrefixFilter("http://\\nftp://", "p").decide("ftp://foo.com/")
    Verdict(accept=True, line=2, slow=False)
    """

    def __init__(self, text: str, name: str) -> None:
        self.name, self._text = name, text
        numbered = enumerate(lines_of(text), start=1)
        self._names = NameLines(
            without_longer((line, n) for n, line in numbered if line and line[0] not in " #")
        )

    def rule(self, line: int, url: str = "") -> str:
        """Returns the prefix at a line."""
        return line_at(self._text, line) if line else "no prefix takes it"

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns what ``decide`` says of each URL; nulls are not taken."""
        lines = self._names.prefix_lines(urls)
        return verdicts(lines > 0, lines)


class SuffixFilter(UrlFilter):
    """Takes, or refuses, URLs that end with one of the suffixes of a file, one a line.

    A line that begins with ``+`` (refuse those with a suffix) or ``-`` (take only
    those) sets the mode, the last one counts; ``I`` after it is for any case, ``P``
    for the path alone instead of the whole URL. Without such a line it is ``-``.

    >>> pictures = SuffixFilter("+PI\\n.gif\\n", "s")
    >>> pictures.decide("http://foo.com/a.GIF?x=1")
    Verdict(accept=False, line=2, slow=False)
    """

    def __init__(self, text: str, name: str) -> None:
        self.name, self._text = name, text
        self._refuse = self._ignore_case = self._path = False
        found: list[tuple[str, int]] = []
        for number, raw in enumerate(lines_of(text), start=1):
            line = raw.strip()
            if line[:1] in ("+", "-"):
                if line.strip("+-PI "):
                    raise ValueError(
                        f"{name}:{number}: a line that begins with + or - may have the flags P "
                        f"and I alone, got {quoted(line)}"
                    )
                self._refuse = line[0] == "+"
                self._path |= "P" in line
                self._ignore_case |= "I" in line
            elif line and line[0] != "#":
                found.append((line, number))
        if self._ignore_case:
            found = [(suffix.lower(), number) for suffix, number in found]
        self._names = NameLines(without_longer((suffix[::-1], n) for suffix, n in found))

    def rule(self, line: int, url: str = "") -> str:
        """Returns the suffix at a line."""
        default = "takes what has no suffix of it" if self._refuse else "no suffix takes it"
        return line_at(self._text, line) if line else default

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns what ``decide`` says of each URL; nulls are not taken."""
        texts = urls.str.to_lowercase() if self._ignore_case else urls
        if self._path:
            path = parts_of(texts).get_column("path")
            texts = path.zip_with(path.is_not_null(), texts)
        lines = self._names.prefix_lines(texts.str.reverse())
        return verdicts(((lines > 0) != self._refuse) & urls.is_not_null(), lines)
