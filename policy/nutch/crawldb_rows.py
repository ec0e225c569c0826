"""Rows of the state from the records of a CrawlDb."""

from collections import Counter
from typing import NamedTuple, TypeAlias

import polars as pl

from ...web.rules.url_rules import UrlRules
from ..components.blocklist import Blocklist, drop_blocked
from ..components.rule_counts import count_reasons
from ..components.schema import STATE, STATUS_NAMES, StateRows, Status, empty
from ..schedules.schedule import DAY_MS
from .datum_fields import add_fields, with_delay

DatumRows: TypeAlias = pl.DataFrame  # columns of DATUM, of web/nutch_text/text_records.py
_FIELDS = ("protocol_status", "protocol_message", "repr_url", "response_ms", "http_code", "content_type",
           "fixed_interval", "distance", "max_depth", "last_inlink_day", "delay")  # fmt: skip


class NutchRules(NamedTuple):
    """Which URLs of Nutch's records arrive, and in which form.

    Attributes:
        rules: Normalizes and filters URLs.
        filters: Whether to filter them.
        blocklist: Names that the table must not have.
    """

    rules: UrlRules
    filters: bool
    blocklist: Blocklist


def admit_urls(
    rows: pl.DataFrame, how: NutchRules, column: str = "url", name: str = "key"
) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns the rows whose URLs are accepted, with their keys; and counts of the others.

    Args:
        rows: Rows with URLs as Nutch has them.
        how: The rules.
        column: The column with the URLs.
        name: Name of the column for the keys.
    """
    admitted = how.rules.admit(rows.get_column(column), "crawldb", filters=how.filters)
    counts = count_reasons(admitted)
    keys = admitted.get_column("key")
    keyed = rows.with_columns(keys.alias(name))
    if keys.null_count():
        keyed = keyed.drop_nulls(name)
    keyed, blocked = drop_blocked(keyed.rename({name: "key"}), how.blocklist)
    counts.update(blocked)
    return keyed.rename({"key": name}), +counts


def state_of_records(records: DatumRows, how: NutchRules) -> tuple[StateRows, Counter[str]]:
    """Returns rows of records of a CrawlDb, with those columns of STATE that have values; and counts.

    A CrawlDb does not say when a URL was last requested. It was an interval before it is due; if it
    has failed, a day before, for Nutch tries again after a day. A URL that is unfetched and has not
    failed was not requested. A key may be there several times.
    """
    counts = Counter({"crawldb/records": len(records)})
    is_state = pl.col("status").is_in(list(STATUS_NAMES))
    rows = records.filter(is_state)
    counts["dropped/bad_status"] = len(records) - len(rows)
    rows, dropped = admit_urls(rows, how)
    counts.update(dropped)
    rows = with_delay(add_fields(rows, *_FIELDS))
    rows = rows.with_columns(
        last_fetch_time=last_fetch_time(),
        modified_time=pl.when(pl.col("modified_time") > 0).then("modified_time"),
    )
    types = pl.Schema(
        {name: dtype for name, dtype in empty(STATE).schema.items() if name in rows.columns}
    )
    return rows.select(list(types)).cast(types), +counts


def last_fetch_time() -> pl.Expr:
    """Returns when a URL was last requested, ms, by its status, due time, interval and retries."""
    interval = pl.col("fetch_interval").cast(pl.Int64).clip(lower_bound=0) * 1000
    is_new = pl.col("status") == int(Status.DB_UNFETCHED)
    wait = pl.when(is_new).then(DAY_MS).otherwise(interval)
    time = pl.col("fetch_time") - wait
    was_tried = ~is_new | (pl.col("retries") > 0)
    return pl.when(was_tried & (time > 0)).then(time)
