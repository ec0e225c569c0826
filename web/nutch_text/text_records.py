"""Divides text into records, and what parsing some of them returns."""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

# A record of a CrawlDb, whichever form it was read from. The URL is as Nutch has it.
DATUM = pl.Schema(
    {
        "url": pl.String(),
        "status": pl.Int16(),  # Nutch's code
        "fetch_time": pl.Int64(),  # ms: when it is due
        "modified_time": pl.Int64(),  # ms; 0: unknown
        "retries": pl.Int32(),
        "fetch_interval": pl.Int32(),  # s
        "score": pl.Float32(),
        "signature": pl.Binary(),
        "metadata": pl.Map(pl.String, pl.String),
    }
)
# A link of a LinkDb.
LINKDB_LINK = pl.Schema({"url": pl.String(), "source": pl.String(), "anchor": pl.String()})
# A host of a HostDb.
HOSTDB_HOST = pl.Schema(
    {
        "host": pl.String(),
        **dict.fromkeys(
            ("unfetched", "fetched", "gone", "redir_temp", "redir_perm", "notmodified"), pl.Int64()
        ),
        **dict.fromkeys(("dns_failures", "connection_failures"), pl.Int64()),
        "score": pl.Float32(),
        "last_check": pl.Int64(),  # ms; 0: never
        "homepage": pl.String(),
        "metadata": pl.Map(pl.String, pl.String),
    }
)
TEXT_ENTRIES = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))


class ParsedRecords(NamedTuple):
    """Records of a piece of text.

    Attributes:
        rows: ``DATUM``, ``LINKDB_LINK`` or ``HOSTDB_HOST``.
        bad_lines: Numbers of the first lines of records that cannot be read, from 0.
    """

    rows: pl.DataFrame
    bad_lines: list[int]


class TextForm(NamedTuple):
    """A form of text that Nutch writes.

    Attributes:
        name: Its name for users.
        kind: ``crawldb``, ``linkdb`` or ``hostdb``.
        start: Pattern of the first line of a record; a heading has it, too.
        parse: ``parse(lines, zone)`` returns the records of lines, which begin with a first line.
    """

    name: str
    kind: str
    start: str
    parse: Callable[[pl.Series, str], ParsedRecords]


def number_records(lines: pl.Series, start: str) -> pl.DataFrame:
    """Returns ``line`` (number), ``text`` and ``record``: the number of its first line."""
    numbered = lines.alias("text").to_frame().with_row_index("line")
    first = pl.when(pl.col("text").str.contains(start)).then("line")
    return numbered.with_columns(record=first.forward_fill().fill_null(0))


def join_lines(lines: pl.Series, start: str) -> pl.DataFrame:
    """Returns ``record`` and ``text`` of each record, its lines joined."""
    if lines.str.contains(start).all():
        return lines.alias("text").to_frame().with_row_index("record")
    records = number_records(lines, start).group_by("record", maintain_order=True)
    return records.agg(pl.col("text").str.join("\n").str.strip_chars_end("\n"))


def hex_signature(text: pl.Expr) -> pl.Expr:
    """Returns the bytes of hexadecimal digits; null where there are none, as in ``null``."""
    digits = text.str.replace_all(" ", "", literal=True)
    return pl.when(digits.str.contains(r"^(?:[0-9A-Fa-f]{2})+$")).then(digits).str.decode("hex")


def seconds_of(text: pl.Expr) -> pl.Expr:
    """Returns a number of seconds as a whole number; Nutch prints some as ``2592000.0``."""
    return text.cast(pl.Float64, strict=False).round().clip(0, 2**31 - 1).cast(pl.Int32)
