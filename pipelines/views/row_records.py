"""Converts rows of the state to records for users."""

import datetime
from typing import Any

from ...policy.schema import STATUS_NAMES
from ...web.urls.row_keys import from_key

TIME_COLUMNS = ("fetch_time", "last_fetch_time", "modified_time")
DUMPED = ("url", "status", "fetch_time", "fetch_interval", "retries", "last_fetch_time",
          "modified_time", "score", "distance", "signature", "protocol_status",
          "protocol_message", "http_code", "content_type", "batch_id", "metadata")  # fmt: skip


def record_of(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row as a record for users: with URL, names instead of codes, and ISO times."""
    record = {name: row.get(name) for name in DUMPED}
    record["url"] = from_key(row["key"])
    record["status"] = STATUS_NAMES.get(row["status"], row["status"])
    record["signature"] = row["signature"].hex() if row["signature"] else None
    record["metadata"] = dict(row["metadata"]) if row["metadata"] else {}
    for name in TIME_COLUMNS:
        record[name] = iso(row[name])
    return record


def iso(time_ms: int | None) -> str | None:
    """Returns a time in ISO form.

    >>> iso(0), iso(1 << 62)
    ('1970-01-01T00:00:00.000Z', '4611686018427387904 ms')
    """
    if time_ms is None:
        return None
    try:
        moment = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):  # the year is out of range
        return f"{time_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
