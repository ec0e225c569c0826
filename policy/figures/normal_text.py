"""Rows of the state in the text form of Nutch's ``readdb -dump -format normal``."""

import datetime
from collections.abc import Mapping
from typing import Any

from ...web.urls.row_keys import from_key
from ..components.schema import STATUS_NAMES

# Of Nutch's CrawlDatum, whose text this is.
_VERSION = 7
_DAY_S = 86_400


def normal_text(row: Mapping[str, Any]) -> str:
    """Returns a row as the URL, a tab, and a line per value; an empty line ends it.

    Times are UTC. Line breaks in metadata are escaped.

    >>> row = {"key": "com.a:http/", "status": 2, "fetch_time": 0, "modified_time": None,
    ...        "retries": 1, "fetch_interval": 86400, "score": 0.5, "signature": b"\\x01",
    ...        "metadata": [("a", "b")], "repr_url": "http://b.com/"}
    >>> print(normal_text(row), end="")  # doctest: +NORMALIZE_WHITESPACE
    http://a.com/	Version: 7
    Status: 2 (db_fetched)
    Fetch time: Thu Jan 01 00:00:00 UTC 1970
    Modified time: Thu Jan 01 00:00:00 UTC 1970
    Retries since fetch: 1
    Retry interval: 86400 seconds (1 days)
    Score: 0.5
    Signature: 01
    Metadata:
     a=b
     _repr_=http://b.com/
    <BLANKLINE>
    """
    interval = row["fetch_interval"] or 0
    signature = row["signature"]
    lines = [
        f"{from_key(row['key'])}\tVersion: {_VERSION}",
        f"Status: {row['status']} ({STATUS_NAMES.get(row['status'], 'unknown')})",
        f"Fetch time: {_java_time(row['fetch_time'])}",
        f"Modified time: {_java_time(row['modified_time'])}",
        f"Retries since fetch: {row['retries'] or 0}",
        f"Retry interval: {interval} seconds ({interval // _DAY_S} days)",
        f"Score: {row['score']}",
        f"Signature: {signature.hex() if signature is not None else 'null'}",
        "Metadata: ",
    ]
    metadata = dict(row["metadata"] or [])
    if row.get("repr_url"):
        metadata["_repr_"] = row["repr_url"]  # where Nutch has it
    lines += [_escape(f" \t{name}={value}") for name, value in metadata.items()]
    return "\n".join([*lines, "", ""])


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _java_time(time_ms: int | None) -> str:
    """Returns a time as Java's ``Date`` prints it; Nutch has 0 where there is none."""
    try:
        moment = datetime.datetime.fromtimestamp((time_ms or 0) / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):  # the year is out of range
        return f"{time_ms} ms"
    return moment.strftime("%a %b %d %H:%M:%S UTC %Y")
