"""Reads the table of Nutch 2 as text, as its ``readdb -dump`` writes it.

A record is a URL, a tab, and a line per field, such as ``status:<TAB>2 (status_fetched)``. Only what a
CrawlDb of Nutch 1 has, too, is read.
"""

import polars as pl

from .java_dates import parse_java_dates
from .text_records import (
    DATUM,
    TEXT_ENTRIES,
    ParsedRecords,
    TextForm,
    hex_signature,
    number_records,
    seconds_of,
)

WEBTABLE_START = r"(?:^|\t)key:\t"
# Statuses of Nutch 2 that a CrawlDb does not have: never set, retry, not modified.
_STATUSES = {0: 1, 34: 1, 38: 6}
_FIELD = r"^(?:[^\t]+\t)?{name}:\t(.*)$"
_FIELDS = {
    "url": "baseUrl", "status": "status", "fetch_time": "fetchTime", "fetch_interval": "fetchInterval",
    "retries": "retriesSinceFetch", "modified_time": "modifiedTime", "signature": "signature",
    "score": "score", "reprUrl": "reprUrl", "protocolStatus": "protocolStatus", "markers": "markers",
}  # fmt: skip


def parse_webtable(lines: pl.Series, zone: str = "") -> ParsedRecords:
    """Returns the records of lines.

    >>> parse_webtable(pl.Series(["http://a.com/\\tkey:\\tcom.a:http/", "baseUrl:\\thttp://a.com/",
    ...     "status:\\t34 (status_retry)", "fetchTime:\\t5", "fetchInterval:\\t60", "score:\\t1.0",
    ...     "marker dist : \\t2"])).rows.select("url", "status", "metadata").rows()
    [('http://a.com/', 1, {'_depth_': '3'})]
    """
    numbered = number_records(lines, WEBTABLE_START)
    first = numbered.filter(pl.col("line") == pl.col("record"))
    records = first.select("record", named=pl.col("text").str.extract(r"^([^\t]+)\tkey:"))
    for name, field in _FIELDS.items():
        value = pl.col("text").str.extract(_FIELD.format(name=field))
        values = numbered.select("record", value.alias(name)).drop_nulls()
        values = values.filter(pl.col(name) != "null").unique("record", keep="first")
        records = records.join(values, on="record", how="left", maintain_order="left")
    entries = _entries(numbered, records)
    code = pl.col("status").str.extract(r"(\d+)").cast(pl.Int16, strict=False)
    rows = records.join(entries, on="record", how="left", maintain_order="left").with_columns(
        url=pl.coalesce("named", "url"),
        status=code.replace(_STATUSES),
        fetch_time=parse_java_dates(records.get_column("fetch_time"), zone),
        modified_time=parse_java_dates(records.get_column("modified_time"), zone).fill_null(0),
        retries=pl.col("retries").cast(pl.Int32, strict=False).fill_null(0),
        fetch_interval=seconds_of(pl.col("fetch_interval")),
        score=pl.col("score").cast(pl.Float32, strict=False),
        signature=hex_signature(pl.col("signature")),
        metadata=pl.col("metadata").cast(DATUM["metadata"]),
    )
    needed = ("url", "status", "fetch_time", "fetch_interval")
    is_bad = pl.any_horizontal(pl.col(name).is_null() for name in needed)
    bad = rows.filter(is_bad).get_column("record").to_list()
    return ParsedRecords(rows.filter(~is_bad).select(DATUM.names()).cast(DATUM), bad)


def _entries(numbered: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Returns ``record`` and ``metadata``, with the names that Nutch 1 has for fields of Nutch 2."""
    named = numbered.select(
        "record",
        key=pl.col("text").str.extract(r"^metadata (.+?) ?: ?\t"),
        value=pl.col("text").str.extract(r"^metadata .+? ?: ?\t(.*)$"),
    )
    marker = pl.col("text").str.extract(r"^marker dist ?: ?\t(\d+)")
    in_map = pl.col("text").str.extract(r"^markers:\t.*\bdist=(\d+)")
    depth = (pl.coalesce(marker, in_map).cast(pl.Int32) + 1).cast(pl.String)
    depths = numbered.select("record", key=pl.lit("_depth_"), value=depth)
    fields = [
        records.select("record", key=pl.lit(key), value=name)
        for key, name in (("_repr_", "reprUrl"), ("_pst_", "protocolStatus"))
    ]
    entries = pl.concat([named, depths, *fields]).drop_nulls()
    entries = entries.unique(["record", "key"], keep="first", maintain_order=True)
    grouped = entries.group_by("record").agg(
        metadata=pl.struct("key", "value").cast(TEXT_ENTRIES.inner)
    )
    return grouped


WEBTABLE_DUMP = TextForm("readdb -dump of Nutch 2", "crawldb", WEBTABLE_START, parse_webtable)
