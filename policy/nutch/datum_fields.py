"""What the metadata of Nutch's records means: which names have columns here, and the values of these."""

import functools
from typing import NamedTuple

import polars as pl

from ...web.exchange.status import PROTOCOL_STATUS_NAMES
from ..components.schema import FETCH_DELAY
from ..schedules.schedule import DAY_S

METADATA_MAP = pl.Map(pl.String, pl.String)


class MetadataName:
    """Names in Nutch's metadata that have columns here."""

    GENERATED = "_ngt_"
    PROTOCOL = "_pst_"
    REPRESENTATIVE = "_repr_"
    RESPONSE_TIME = "_rs_"
    HTTP_CODE = "nutch.protocol.code"
    CONTENT_TYPE = "Content-Type"
    FIXED_INTERVAL = "fixedInterval"
    DEPTH = "_depth_"
    MAX_DEPTH = "_maxdepth_"
    ORPHAN = "_orphan_"
    DELAY = "_variableFetchDelay_"
    ADDRESS = "_ip_"


_IN_COLUMNS = [value for name, value in vars(MetadataName).items() if name.isupper()]
# ``success(1), lastModified=0: arguments``; Nutch 2 has ``SUCCESS, args=[…]``.
_PROTOCOL = (
    r"(?s)^(\w+)(?:\((\d+)\))?(?:, lastModified=(-?\d+))?(?:(?:: |, args(?:\[\d+\])?=)(.*))?$"
)
_CODES = {name: code for code, name in PROTOCOL_STATUS_NAMES.items()}
_MS_PER_S = 1000


class MetadataField(NamedTuple):
    """A column that a name of Nutch's metadata gives.

    Attributes:
        name: The name in Nutch.
        value: The value of the column, from the text.
    """

    name: str
    value: pl.Expr


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64, strict=False)


def _whole(name: str, most: int = 2**31 - 1) -> pl.Expr:
    number = _number(name).floor()
    return pl.when(number.is_between(0, most)).then(number).cast(pl.Int64)


@functools.cache
def _fields() -> dict[str, MetadataField]:
    """Returns the fields by the names of their columns, in the state and in pages."""
    protocol = pl.col(MetadataName.PROTOCOL)
    code = protocol.str.extract(_PROTOCOL, 2).cast(pl.UInt8, strict=False)
    named = protocol.str.extract(_PROTOCOL, 1).str.to_lowercase()
    code_of_name = named.replace_strict(_CODES, default=None, return_dtype=pl.UInt8)
    return {
        "protocol_status": MetadataField(MetadataName.PROTOCOL, pl.coalesce(code, code_of_name)),
        "protocol_message": MetadataField(
            MetadataName.PROTOCOL, protocol.str.extract(_PROTOCOL, 4)
        ),
        "repr_url": MetadataField(MetadataName.REPRESENTATIVE, pl.col(MetadataName.REPRESENTATIVE)),
        "response_ms": MetadataField(
            MetadataName.RESPONSE_TIME, _whole(MetadataName.RESPONSE_TIME)
        ),
        "http_code": MetadataField(
            MetadataName.HTTP_CODE, _whole(MetadataName.HTTP_CODE, 2**16 - 1)
        ),
        "content_type": MetadataField(MetadataName.CONTENT_TYPE, pl.col(MetadataName.CONTENT_TYPE)),
        "fixed_interval": MetadataField(
            MetadataName.FIXED_INTERVAL, _whole(MetadataName.FIXED_INTERVAL)
        ),
        # Nutch counts seeds as depth 1.
        "distance": MetadataField(
            MetadataName.DEPTH, (_whole(MetadataName.DEPTH) - 1).clip(lower_bound=0)
        ),
        "max_depth": MetadataField(MetadataName.MAX_DEPTH, _whole(MetadataName.MAX_DEPTH)),
        # The time in s.
        "last_inlink_day": MetadataField(
            MetadataName.ORPHAN, _whole(MetadataName.ORPHAN, 2**40) // DAY_S
        ),
        "delay": MetadataField(MetadataName.DELAY, _number(MetadataName.DELAY) / _MS_PER_S),
        "ip": MetadataField(MetadataName.ADDRESS, pl.col(MetadataName.ADDRESS)),
    }


def add_fields(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Adds columns that metadata gives, and leaves the other names in ``metadata``.

    Rows without metadata, as most of a CrawlDb are, come last.

    Args:
        rows: ``metadata`` with Nutch's names.
        columns: Names of ``_fields``.

    >>> rows = pl.DataFrame({"metadata": [{"_depth_": "1", "a": "b"}, None]}, {"metadata": METADATA_MAP})
    >>> add_fields(rows, "distance").rows()
    [({'a': 'b'}, 0), (None, None)]
    """
    has_metadata = rows.get_column("metadata").is_not_null()
    with_metadata = _add_values(rows.filter(has_metadata), *columns)
    return pl.concat([with_metadata, rows.filter(~has_metadata)], how="diagonal")


def _add_values(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
    maps = rows.get_column("metadata").cast(METADATA_MAP)
    fields = {column: _fields()[column] for column in columns}
    names = {field.name for field in fields.values()}
    texts = pl.DataFrame({name: maps.map.get(name) for name in names})
    there = {name for name in names if texts.get_column(name).null_count() < len(texts)}
    # Of most names there are few values, if any.
    values = [
        _values_of(texts.select(field.name), field.value, column)
        if field.name in there
        else texts.select(field.value.alias(column)).clear(len(texts)).to_series()
        for column, field in fields.items()
    ]
    return rows.with_columns(*values, _other_entries(maps))


def _values_of(texts: pl.DataFrame, value: pl.Expr, column: str) -> pl.Series:
    """Returns the values of texts, of which each distinct one is read once."""
    (name,) = texts.columns
    distinct = texts.unique().with_columns(value.alias(column))
    if 4 * len(distinct) > len(texts):
        return texts.select(value.alias(column)).to_series()
    return texts.join(distinct, on=name, how="left", maintain_order="left", nulls_equal=True)[
        column
    ]


def _other_entries(maps: pl.Series) -> pl.Series:
    """Returns maps without the names that have columns here; null instead of an empty one."""
    if maps.null_count() == len(maps):
        return maps
    is_other = ~pl.element().struct.field("key").is_in(_IN_COLUMNS)
    entries = pl.col("metadata").list.eval(pl.element().filter(is_other))
    frame = maps.map.entries().alias("metadata").to_frame().with_columns(entries)
    filled = pl.when(pl.col("metadata").list.len() > 0).then("metadata")
    return frame.select(filled.cast(METADATA_MAP)).to_series()


def with_delay(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds a ``delay`` (s) to metadata, under the name that generate reads."""
    if rows.get_column("delay").null_count() == len(rows):
        return rows.drop("delay")
    own = pl.struct(key=pl.lit(FETCH_DELAY), value=pl.col("delay").cast(pl.String))
    entries = rows.get_column("metadata").map.entries().alias("metadata")
    both = pl.concat_list(pl.col("metadata").fill_null([]), own)
    rows = rows.with_columns(entries).with_columns(
        pl.when(pl.col("delay").is_not_null()).then(both).otherwise("metadata").alias("metadata")
    )
    return rows.drop("delay").with_columns(pl.col("metadata").cast(METADATA_MAP))
