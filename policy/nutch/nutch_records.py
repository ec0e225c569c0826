"""Records of a CrawlDb from rows of the state: the way back to Nutch."""

import polars as pl

from ...web.exchange.status import PROTOCOL_STATUS_NAMES
from ..base.key_columns import from_keys
from ..components.schema import StateRows
from ..schedules.schedule import DAY_S
from .datum_fields import METADATA_MAP, MetadataName

TYPED_METADATA = pl.List(pl.Struct({"key": pl.String, "kind": pl.String, "value": pl.String}))
# Columns of the state that a record needs.
EXPORTED_COLUMNS = (
    "key", "status", "fetch_time", "modified_time", "retries", "fetch_interval", "score", "signature",
    "metadata", "protocol_status", "protocol_message", "repr_url", "response_ms", "http_code",
    "content_type", "fixed_interval", "distance", "max_depth", "last_inlink_day",
)  # fmt: skip
_MOST_RETRIES = 127  # a signed byte


def records_of_state(state_rows: StateRows) -> pl.DataFrame:
    """Returns records of a CrawlDb, in order of their URLs.

    Args:
        state_rows: STATE rows with ``EXPORTED_COLUMNS``.

    Returns:
        Columns of DATUM; ``metadata`` has a list of structs ``key``, ``kind`` (the class in Nutch) and
        ``value``.
    """
    maps = state_rows.get_column("metadata").cast(METADATA_MAP)
    entry = pl.struct(
        key=pl.element().struct.field("key"),
        kind=pl.lit("Text"),
        value=pl.element().struct.field("value"),
    )
    own = pl.col("own").list.eval(entry).cast(TYPED_METADATA).fill_null([])
    rows = state_rows.with_columns(
        from_keys(state_rows.get_column("key")).alias("url"), maps.map.entries().alias("own")
    )
    entries = [_entry(name, kind, value) for name, kind, value in _columns_as_entries()]
    there = pl.element().filter(pl.element().struct.field("value").is_not_null())
    added = pl.concat_list(entries).list.eval(there).cast(TYPED_METADATA)
    return rows.select(
        "url",
        pl.col("status").cast(pl.UInt8),
        "fetch_time",
        pl.col("modified_time").fill_null(0),
        pl.col("retries").fill_null(0).clip(0, _MOST_RETRIES),
        pl.col("fetch_interval").fill_null(0),
        pl.col("score").fill_null(0.0),
        "signature",
        metadata=pl.concat_list(own, added),
    ).sort("url")


def _entry(name: str, kind: str, value: pl.Expr) -> pl.Expr:
    return pl.struct(key=pl.lit(name), kind=pl.lit(kind), value=value.cast(pl.String))


def _columns_as_entries() -> list[tuple[str, str, pl.Expr]]:
    """Returns name, class and value of the metadata that has columns here."""
    code = pl.col("protocol_status")
    name = code.replace_strict(
        PROTOCOL_STATUS_NAMES, default=pl.lit("unknown"), return_dtype=pl.String
    )
    message = (pl.lit(": ") + pl.col("protocol_message")).fill_null("")
    protocol = pl.format("{}({}), lastModified=0{}", name, code, message)
    return [
        (MetadataName.PROTOCOL, "ProtocolStatus", protocol),
        (MetadataName.REPRESENTATIVE, "Text", pl.col("repr_url")),
        (MetadataName.RESPONSE_TIME, "IntWritable", pl.col("response_ms")),
        (MetadataName.HTTP_CODE, "Text", pl.col("http_code")),
        (MetadataName.CONTENT_TYPE, "Text", pl.col("content_type")),
        (MetadataName.FIXED_INTERVAL, "FloatWritable", pl.col("fixed_interval").cast(pl.Float32)),
        (MetadataName.DEPTH, "IntWritable", pl.col("distance") + 1),
        (MetadataName.MAX_DEPTH, "IntWritable", pl.col("max_depth")),
        (MetadataName.ORPHAN, "IntWritable", pl.col("last_inlink_day") * DAY_S),
    ]
