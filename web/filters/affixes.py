"""URL filters of literal prefixes and suffixes, as Nutch's prefix- and suffix-urlfilter.txt."""

import polars as pl

from ..base.wording import value_error
from ..rule_files.rule_files import NameLines, line_at, lines_of, without_longer
from ..urls.url_parts import parts_of
from .verdicts import UrlFilter, Verdicts, verdicts


class PrefixFilter(UrlFilter):
    """Accepts URLs that begin with one of the prefixes of a file, which has one per line.

    Empty lines, and lines that begin with ``#`` or a space, are ignored. A file without a
    prefix accepts no URL.

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
        return line_at(self._text, line) if line else "no prefix accepts it"

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""
        lines = self._names.prefix_lines(urls)
        return verdicts(lines > 0, lines)


class SuffixFilter(UrlFilter):
    """Accepts or refuses URLs that end with one of the suffixes of a file, which has one per line.

    A line that begins with ``+`` (refuse URLs with a suffix) or ``-`` (accept only those)
    sets the mode; the last one counts. ``I`` after it ignores case, ``P`` compares the path
    instead of the whole URL. Without such a line the mode is ``-``.

    >>> pictures = SuffixFilter("+PI\\n.gif\\n", "s")
    >>> pictures.decide("http://foo.com/a.GIF?x=1")
    Verdict(accept=False, line=2, slow=False)
    """

    def __init__(self, text: str, name: str) -> None:
        self.name, self._text = name, text
        self._refuse = self._ignore_case = self._path = False
        suffixes: list[tuple[str, int]] = []
        for number, raw in enumerate(lines_of(text), start=1):
            line = raw.strip()
            if line[:1] in ("+", "-"):
                if line.strip("+-PI "):
                    wanted = "a line that begins with + or - may have the flags P and I alone"
                    raise value_error(f"{name}:{number}: {wanted}", line)
                self._refuse = line[0] == "+"
                self._path |= "P" in line
                self._ignore_case |= "I" in line
            elif line and line[0] != "#":
                suffixes.append((line, number))
        if self._ignore_case:
            suffixes = [(suffix.lower(), number) for suffix, number in suffixes]
        self._names = NameLines(without_longer((suffix[::-1], n) for suffix, n in suffixes))

    def rule(self, line: int, url: str = "") -> str:
        """Returns the suffix at a line."""
        default = "accepts what has no suffix of it" if self._refuse else "no suffix accepts it"
        return line_at(self._text, line) if line else default

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""
        texts = urls.str.to_lowercase() if self._ignore_case else urls
        if self._path:
            path = parts_of(texts).get_column("path")
            texts = path.zip_with(path.is_not_null(), texts)
        lines = self._names.prefix_lines(texts.str.reverse())
        return verdicts(((lines > 0) != self._refuse) & urls.is_not_null(), lines)
