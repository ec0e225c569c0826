"""URL filters of literal lists: prefixes and suffixes of URLs; hosts, domains and public suffixes.

They are Nutch's prefix- and suffix-urlfilter.txt, domain- and domaindenylist-urlfilter.txt.
"""

import functools

import polars as pl

from ..base.columns import falses, text_frame, zeros
from ..base.wording import value_error
from ..rule_files.rule_files import NameLines, entries, host_name, line_at, lines_of, without_longer
from ..urls.domains import suffix_and_domain
from ..urls.url_parts import host_of_url, parts_of
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


class DomainFilter(UrlFilter):
    """Accepts or refuses URLs whose host, registered domain or suffix is in a file.

    One entry per line: a host (``www.foo.com``), a registered domain (``foo.com``), a
    public suffix (``co.uk``) or a top-level domain (``uk``). If several entries match, the
    verdict has the line of the widest one. Names may be written in Unicode; URLs have them in
    punycode. A file without entries accepts all URLs (NUTCH-2189). Text that is not a URL, or
    has no host, is refused in both modes.

    Args:
        text: The file.
        name: Its name in messages.
        deny: Whether URLs in the list are refused, instead of accepted.

    >>> DomainFilter("net\\napache.org", "d").decide("http://lucene.apache.org/")
    Verdict(accept=True, line=2, slow=False)
    """

    def __init__(self, text: str, name: str, deny: bool = False) -> None:
        self.name, self._text, self._deny = name, text, deny
        self._names = NameLines((_read_entry(line, name, n), n) for n, line in entries(text))

    def rule(self, line: int, url: str = "") -> str:
        """Returns the entry at a line; for 0, what happens to a URL without an entry."""
        if line:
            return line_at(self._text, line)
        if not len(self._names):
            return "has no entries, and accepts all"
        if url and not host_of_url(url):
            return "refuses text that is not a url with a host"
        return "accepts all other hosts" if self._deny else "no entry accepts it"

    def decide_column(self, urls: pl.Series) -> Verdicts:
        """Returns the verdict on each URL; nulls are refused."""
        if not len(self._names):
            return verdicts(urls.is_not_null())
        hosts = parts_of(urls).select("host")
        each = hosts.filter(pl.col("host") != "").unique()
        # Few hosts are in or below a listed name; only they need their public suffix.
        below = self._is_below(each.get_column("host"))
        each = pl.concat([each.filter(below), each.filter(~below)])
        listed = map(_names_of, each.get_column("host").head(int(below.sum())))
        names = text_frame(listed, "suffix", "domain", "whole", "top")
        entry_lines = names.select(
            self._names.lines(names.get_column(name)).alias(name) for name in names.columns
        )
        first = pl.coalesce(pl.when(pl.col(name) > 0).then(name) for name in names.columns)
        first_lines = entry_lines.select(first.fill_null(0)).to_series()
        each = each.with_columns(line=first_lines.extend(zeros(len(each) - len(entry_lines))))
        lines = hosts.join(each, on="host", how="left", maintain_order="left").get_column("line")
        has_host = lines.is_not_null()
        lines = lines.fill_null(0)
        return verdicts(((lines > 0) != self._deny) & has_host, lines)

    def _is_below(self, hosts: pl.Series) -> pl.Series:
        """Returns which hosts are in the list, or are below a name in it."""
        is_listed = falses(len(hosts))
        name = hosts.str.strip_suffix(".")
        while not name.is_null().all():
            is_listed |= self._names.lines(name) > 0
            name = name.str.extract(r"^[^.]*\.(.*)$", 1)
        return is_listed


@functools.lru_cache(maxsize=1 << 17)
def _names_of(host: str) -> tuple[str | None, str, str, str]:
    """Returns the entries that match a host: public suffix, registered domain, host, last label.

    >>> _names_of("www.bbc.co.uk")
    ('co.uk', 'bbc.co.uk', 'www.bbc.co.uk', 'uk')
    """
    host = host.removesuffix(".")
    return (*suffix_and_domain(host), host, host.rpartition(".")[2])


def _read_entry(line: str, name: str, number: int) -> str:
    entry = host_name(line)
    if entry is None:
        wanted = "an entry must be a host, a domain or a suffix, as foo.com"
        raise value_error(f"{name}:{number}: {wanted}", line)
    return entry
