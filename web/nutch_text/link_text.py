"""Reads and writes a LinkDb as text, as Nutch's ``readlinkdb -dump`` does."""

from collections.abc import Iterable, Iterator

import polars as pl

from .text_records import LINKDB_LINK, ParsedRecords, TextForm, number_records

LINKS_START = r"\tInlinks:\s*$"
# Nutch 1.21 and newer add metadata to each link.
_LINK = r"^ ?fromUrl: (\S+) anchor: (.*?)(?: metadata: .*)?$"


def parse_links(lines: pl.Series, zone: str = "") -> ParsedRecords:
    """Returns the links of lines.

    >>> lines = ["http://a.com/\\tInlinks:", " fromUrl: http://b.com/ anchor: B", ""]
    >>> parse_links(pl.Series(lines)).rows.rows()
    [('http://a.com/', 'http://b.com/', 'B')]
    """
    numbered = number_records(lines, LINKS_START)
    is_first = pl.col("line") == pl.col("record")
    url = pl.when(is_first & pl.col("text").str.contains(LINKS_START)).then(
        pl.col("text").str.replace(LINKS_START, "")
    )
    rows = numbered.with_columns(
        url=url.forward_fill(),
        source=pl.col("text").str.extract(_LINK, 1),
        anchor=pl.col("text").str.extract(_LINK, 2),
    ).filter(~(is_first & url.is_not_null()) & (pl.col("text").str.strip_chars() != ""))
    is_bad = pl.any_horizontal(pl.col("url", "source").is_null())
    bad = rows.filter(is_bad).get_column("line").to_list()
    return ParsedRecords(rows.filter(~is_bad).select(LINKDB_LINK.names()).cast(LINKDB_LINK), bad)


def link_record(url: str, links: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yields the lines of a page that others link to.

    Args:
        url: The page.
        links: Pages with a link to it, and the texts of the links.

    >>> "".join(link_record("http://a.com/", [("http://b.com/", "B")]))
    'http://a.com/\\tInlinks:\\n fromUrl: http://b.com/ anchor: B\\n\\n'
    """
    yield f"{url}\tInlinks:\n"
    for source, anchor in links:
        yield f" fromUrl: {source} anchor: {anchor}\n"
    yield "\n"


LINK_DUMP = TextForm("readlinkdb -dump", "linkdb", LINKS_START, parse_links)
