"""Reads and writes a CrawlDb as text, as Nutch's ``readdb -dump`` does: normal, csv, json.

Nutch does not escape quotes in csv. So a line is read from both ends: the columns between URL and
metadata have no quotes of their own. What is written here has quotes doubled, and is read, too.
"""

import json
from typing import Any

import polars as pl

from .java_dates import parse_java_dates
from .text_records import (
    DATUM,
    TEXT_ENTRIES,
    ParsedRecords,
    TextForm,
    hex_signature,
    join_lines,
    number_records,
    seconds_of,
)

CSV_HEADING = (
    "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,"
    "Retry interval seconds,Retry interval days,Score,Signature,Metadata"
)
CSV_START = r'^(?:".*",-?\d+,"[^",]*",|Url,Status code,)'
NORMAL_START = r"\tVersion: \d+\s*$"
JSON_START = r"^\s*\{"
_NUMBER = r"[-+.\dEeNaIfinty]+"
_CSV = (
    r'(?s)^"(?P<url>.*)",(?P<status>-?\d+),"[^",]*",(?P<fetch_time>[^",]*),(?P<modified_time>[^",]*),'
    rf"(?P<retries>-?\d+),(?P<fetch_interval>{_NUMBER}),{_NUMBER},(?P<score>{_NUMBER}),"
    r'"(?P<signature>[^",]*)","(?P<metadata>.*)"\s*$'
)
_PAIRS_END = "|||"
# The lines of a record in the normal form, by the columns that they give.
_LABELS = {
    "status": r"^Status: (-?\d+)",
    "fetch_time": r"^Fetch time: (.*\S)",
    "modified_time": r"^Modified time: (.*\S)",
    "retries": r"^Retries since fetch: (-?\d+)",
    "fetch_interval": rf"^Retry interval: ({_NUMBER}) seconds",
    "days": rf"^Retry interval: ({_NUMBER}) days",
    "score": rf"^Score: ({_NUMBER})",
    "signature": r"^Signature: (.*\S)",
}
_DAY_S = 86_400


def _of_texts(texts: pl.DataFrame, zone: str) -> ParsedRecords:
    """Returns the rows of records whose values are texts: ``record``, and columns of ``DATUM``."""
    rows = texts.with_columns(
        pl.col("status").cast(pl.Int16, strict=False),
        parse_java_dates(texts.get_column("fetch_time"), zone).alias("fetch_time"),
        parse_java_dates(texts.get_column("modified_time"), zone)
        .fill_null(0)
        .alias("modified_time"),
        pl.col("retries").cast(pl.Int32, strict=False),
        seconds_of(pl.col("fetch_interval")),
        pl.col("score").cast(pl.Float32, strict=False),
        hex_signature(pl.col("signature")),
    )
    needed = ("url", "status", "fetch_time", "fetch_interval")
    is_bad = pl.any_horizontal(pl.col(name).is_null() for name in needed)
    bad = rows.filter(is_bad).get_column("record").to_list()
    good = rows.filter(~is_bad).select(DATUM.names()).cast(DATUM)
    return ParsedRecords(good, bad)


def parse_csv_dump(lines: pl.Series, zone: str = "") -> ParsedRecords:
    """Returns the records of lines of csv.

    >>> line = '"http://a.com/",2,"db_fetched",0,0,0,86400.0,1.0,1.5,"0a",""'
    >>> parse_csv_dump(pl.Series([CSV_HEADING, line])).rows.select("url", "fetch_interval", "score").rows()
    [('http://a.com/', 86400, 1.5)]
    """
    records = join_lines(lines, CSV_START).filter(
        ~pl.col("text").str.starts_with("Url,Status code,")
        & (pl.col("text").str.strip_chars() != "")
    )
    groups = pl.col("text").str.extract_groups(_CSV)
    texts = records.select("record", groups.alias("fields")).unnest("fields")
    texts = texts.with_columns(_unquoted("url"), _unquoted("metadata"))
    return _of_texts(texts.with_columns(pairs_of(texts.get_column("metadata"))), zone)


def _unquoted(name: str) -> pl.Expr:
    """Returns a quoted text without the doubling of its quotes; Nutch does not double them."""
    text = pl.col(name)
    undoubled = text.str.replace_all('""', "", literal=True)
    return (
        pl.when(undoubled.str.contains('"', literal=True))
        .then(text)
        .otherwise(text.str.replace_all('""', '"', literal=True))
        .alias(name)
    )


def pairs_of(texts: pl.Series) -> pl.Series:
    """Returns the entries of texts such as ``name:value|||name:value|||``."""
    entry = pl.element().str.splitn(":", 2).struct.rename_fields(["key", "value"])
    pairs = pl.col("metadata").str.strip_suffix(_PAIRS_END).str.split(_PAIRS_END)
    there = pl.when(pl.col("metadata") != "").then(pairs.list.eval(entry))
    return _as_map(texts.alias("metadata").to_frame().select(there).to_series())


def _as_map(entries: pl.Series) -> pl.Series:
    whole = pl.element().filter(pl.element().struct.field("value").is_not_null())
    kept = entries.cast(TEXT_ENTRIES).list.eval(whole)
    filled = pl.when(pl.col("metadata").list.len() > 0).then("metadata")
    return kept.alias("metadata").to_frame().select(filled.cast(DATUM["metadata"])).to_series()


def parse_normal_dump(lines: pl.Series, zone: str = "") -> ParsedRecords:
    """Returns the records of lines in the normal form.

    >>> parse_normal_dump(pl.Series(["http://a.com/\\tVersion: 7", "Status: 2 (db_fetched)",
    ...     "Fetch time: 0", "Retry interval: 60 seconds (0 days)", "Score: 1.0", "Metadata: ",
    ...     " \\ta=b"])).rows.select("url", "metadata").rows()
    [('http://a.com/', {'a': 'b'})]
    """
    numbered = number_records(lines, NORMAL_START).with_columns(
        of_metadata=pl.col("text").str.starts_with("Metadata:").cum_max().over("record")
    )
    first = numbered.filter(pl.col("line") == pl.col("record"))
    records = first.select("record", url=pl.col("text").str.replace(NORMAL_START, ""))
    values = numbered.filter(~pl.col("of_metadata"))
    for name, pattern in _LABELS.items():
        named = values.select("record", pl.col("text").str.extract(pattern).alias(name))
        named = named.drop_nulls().unique("record", keep="first")
        records = records.join(named, on="record", how="left", maintain_order="left")
    seconds = (pl.col("days").cast(pl.Float64, strict=False) * _DAY_S).cast(pl.String)
    records = records.with_columns(fetch_interval=pl.coalesce("fetch_interval", seconds))
    metadata = _normal_metadata(numbered.filter("of_metadata"))
    records = records.join(metadata, on="record", how="left", maintain_order="left")
    return _of_texts(records, zone)


def _normal_metadata(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns ``record`` and ``metadata``; a line without a tab continues the value before it."""
    entry = r"^ ?\t([^=]*)=(.*)$"
    rest = lines.filter(
        ~pl.col("text").str.starts_with("Metadata:") & (pl.col("text").str.strip_chars() != "")
    )
    rest = rest.with_columns(
        entry=pl.when(pl.col("text").str.contains(entry)).then("line").forward_fill().over("record")
    ).drop_nulls("entry")
    texts = rest.group_by("record", "entry", maintain_order=True).agg(pl.col("text").str.join("\n"))
    texts = texts.with_columns(
        key=pl.col("text").str.extract(entry.replace("(.*)$", "(?s:.*)")),
        value=pl.col("text").str.extract(r"(?s)^ ?\t[^=]*=(.*)$"),
    )
    grouped = texts.group_by("record", maintain_order=True).agg(metadata=pl.struct("key", "value"))
    return grouped.with_columns(_as_map(grouped.get_column("metadata")))


def parse_json_dump(lines: pl.Series, zone: str = "") -> ParsedRecords:
    """Returns the records of lines with a JSON object each.

    >>> parse_json_dump(pl.Series(['{"url": "http://a.com/", "statusCode": 1, "fetchTime": 5,'
    ...     '"retryIntervalSeconds": 60, "metadata": {"a": 1}}'])).rows["metadata"].to_list()
    [{'a': '1'}]
    """
    rows, bad = list[dict[str, Any]](), list[int]()
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            rows.append(_json_row(number, record))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            bad.append(number)
    texts = pl.DataFrame(rows, schema={"record": pl.UInt32, **dict.fromkeys(DATUM.names(), pl.String)}
                         | {"metadata": TEXT_ENTRIES})  # fmt: skip
    parsed = _of_texts(texts.with_columns(_as_map(texts.get_column("metadata"))), zone)
    return ParsedRecords(parsed.rows, sorted([*bad, *parsed.bad_lines]))


def _json_row(number: int, record: dict[str, Any]) -> dict[str, Any]:
    names = {
        "url": "url", "status": "statusCode", "fetch_time": "fetchTime", "score": "score",
        "modified_time": "modifiedTime", "retries": "retriesSinceFetch",
        "fetch_interval": "retryIntervalSeconds", "signature": "signature",
    }  # fmt: skip
    row: dict[str, Any] = {
        name: None if record.get(field) is None else str(record[field])
        for name, field in names.items()
    }
    metadata = record.get("metadata") or {}
    pairs = [{"key": str(key), "value": _plain(value)} for key, value in metadata.items()]
    return {"record": number, **row, "metadata": pairs}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


CSV_DUMP = TextForm("readdb -dump -format csv", "crawldb", CSV_START, parse_csv_dump)
NORMAL_DUMP = TextForm("readdb -dump", "crawldb", NORMAL_START, parse_normal_dump)
JSON_DUMP = TextForm("readdb -dump -format json", "crawldb", JSON_START, parse_json_dump)
