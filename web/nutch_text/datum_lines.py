"""Writes records of a CrawlDb as text, as Nutch's ``readdb -dump`` does: csv and json.

Times are UTC. In csv quotes within a value are doubled, which Nutch does not do: any reader of csv can
read it.
"""

import json
from collections.abc import Iterator

import numpy as np
import polars as pl

from ..base.columns import each_once

_DAY_S = 86_400
_JAVA_DATE = "%a %b %d %H:%M:%S UTC %Y"


def java_float(value: float) -> str:
    """Returns a number as Java's ``Float.toString`` writes it.

    >>> java_float(2592000.0), java_float(31536000.0), java_float(0.1), java_float(0.0001)
    ('2592000.0', '3.1536E7', '0.1', '1.0E-4')
    >>> java_float(float("nan")), java_float(float("inf"))
    ('NaN', 'Infinity')
    """
    number = np.float32(value)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, unique=True, trim="0")
    text = np.format_float_scientific(number, unique=True, trim="0", exp_digits=1)
    return text.replace("e+", "E").replace("e", "E")


def _dates(name: str) -> pl.Expr:
    return pl.from_epoch(pl.col(name), "ms").dt.strftime(_JAVA_DATE)


def _floats(values: pl.Series) -> pl.Series:
    return each_once(values.cast(pl.Float32), java_float)


def csv_lines(records: pl.DataFrame, names: dict[int, str]) -> pl.Series:
    """Returns a line per record, without a heading.

    Args:
        records: Columns of DATUM; ``metadata`` with lists of structs.
        names: Names of statuses.
    """
    pair = pl.element().struct.field("key") + ":" + pl.element().struct.field("value") + "|||"
    metadata = pl.col("metadata").list.eval(pair)
    interval = records.get_column("fetch_interval")
    texts = records.select(
        _quoted(pl.col("url")).alias("url"),
        pl.col("status").cast(pl.String),
        _quoted(_status_names(names)).alias("name"),
        _dates("fetch_time"),
        _dates("modified_time"),
        pl.col("retries").cast(pl.String),
        _floats(interval).alias("seconds"),
        _floats(interval // _DAY_S).alias("days"),
        _floats(records.get_column("score")).alias("score"),
        _quoted(_hex()).alias("signature"),
        _quoted(metadata.list.join("")).alias("metadata"),
    )
    return texts.select(pl.concat_str(texts.columns, separator=",")).to_series()


def _status_names(names: dict[int, str]) -> pl.Expr:
    return pl.col("status").replace_strict(names, default=pl.lit("unknown"), return_dtype=pl.String)


def _hex() -> pl.Expr:
    return pl.col("signature").bin.encode("hex").fill_null("null")


def _quoted(text: pl.Expr) -> pl.Expr:
    return pl.lit('"') + text.str.replace_all('"', '""', literal=True) + pl.lit('"')


def json_lines(records: pl.DataFrame, names: dict[int, str]) -> Iterator[str]:
    """Yields a line per record; see ``csv_lines``."""
    interval = records.get_column("fetch_interval")
    rows = records.select(
        "url",
        statusCode="status",
        statusName=_status_names(names),
        fetchTime=_dates("fetch_time"),
        modifiedTime=_dates("modified_time"),
        retriesSinceFetch="retries",
        retryIntervalSeconds=interval.cast(pl.Float64),
        retryIntervalDays=(interval // _DAY_S).cast(pl.Float64),
        score=_floats(records.get_column("score")).cast(pl.Float64),
        signature=_hex(),
        metadata="metadata",
    )
    for row in rows.iter_rows(named=True):
        row["metadata"] = {entry["key"]: entry["value"] for entry in row["metadata"]}
        yield json.dumps(row, separators=(",", ":"))
