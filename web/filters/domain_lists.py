"""URL filters of lists of hosts, domains and suffixes: domain and domaindenylist."""

import functools

import polars as pl

from ..base.columns import falses, text_frame, zeros
from ..base.wording import value_error
from ..rule_files.rule_files import NameLines, entries, line_at
from ..rule_files.rule_hosts import host_name
from ..urls.domains import suffix_and_domain
from ..urls.url_parts import host_of_url, parts_of
from .verdicts import UrlFilter, Verdicts, verdicts


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
