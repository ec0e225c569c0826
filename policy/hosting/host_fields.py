"""The host table as users see it: records, Nutch's lines, and the names of expressions."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..base.key_columns import from_keys, host_names
from ..components.host_rows import is_given_up
from ..components.schema import HOSTS_COLUMNS, STATUS_COUNTS, HostRows
from ..conditions import fields_of
from ..expressions.values import Field, Type, Value
from .sketches import number_of_domains, number_of_times, percentile

# Nutch's names, and ours.
_NUTCH = {
    "redirTemp": "redir_temp",
    "redirPerm": "redir_perm",
    "notModified": "notmodified",
    "redirs": "redirects",
    "numRecords": "urls",
    "dnsFailures": "dns_failures",
    "connectionFailures": "connection_failures",
    "homepage": "homepage",
}
_MADE = {
    "host": (pl.String, "The host."),
    "urls": (pl.Int64, "Number of its URLs."),
    "redirects": (pl.Int64, "Number of its URLs that are redirects."),
    "ok": (pl.Int64, "Number of its URLs that are `db_fetched` or `db_notmodified`."),
    "responses": (pl.Int64, "Number of response times that are known."),
    "response_p50": (pl.Float64, "Median response time, ms."),
    "response_p95": (pl.Float64, "95th percentile of its response times, ms."),
    "response_p99": (pl.Float64, "99th percentile of its response times, ms."),
    "foreign_domains": (pl.Int64, "Number of foreign domains that link to it, if it is a domain."),
}
_TYPES = {pl.String: Type.TEXT, pl.Int64: Type.NUMBER, pl.Float64: Type.NUMBER}
DUMP_HEADER = ("hostname", "unfetched", "fetched", "gone", "redirTemp", "redirPerm", "notModified",
               "numRecords", "dnsFail", "cnxFail", "sumFail", "score", "lastCheck", "homepage",
               "metadata")  # fmt: skip


def host_fields() -> dict[str, Field]:
    """Returns the names that expressions over the host table may use: ours and Nutch's.

    >>> [name in host_fields() for name in ("fetched", "numRecords", "response_p95", "key")]
    [True, True, True, False]
    """
    fields = fields_of(column for column in HOSTS_COLUMNS if column.name != "key")
    for name, (dtype, meaning) in _MADE.items():
        value = Value(pl.col(name), _TYPES[dtype], finite=dtype is pl.Int64)
        fields[name] = Field(name, value, meaning)
    fields |= {name: fields[ours] for name, ours in _NUTCH.items()}
    return fields


def host_values(rows: HostRows, needs: Sequence[str]) -> HostRows:
    """Returns HOSTS rows with those columns of ``host_fields`` that an expression needs."""
    count = pl.col(*STATUS_COUNTS.values(), "connection_failures", "dns_failures").fill_null(0)
    rows = rows.with_columns(count)
    sums = {
        "urls": tuple(STATUS_COUNTS.values()),
        "redirects": ("redir_temp", "redir_perm"),
        "ok": ("fetched", "notmodified"),
    }
    texts = rows.get_column("response_times")
    columns = {name: pl.sum_horizontal(*parts) for name, parts in sums.items()}
    columns["host"] = pl.lit(host_names(rows.get_column("key")))
    for name in set(needs) & {"response_p50", "response_p95", "response_p99"}:
        percent = float(name[-2:])
        values = [percentile(sketch, percent) for sketch in texts]
        columns[name] = pl.lit(pl.Series(values, dtype=pl.Float64))
    if "responses" in needs:
        columns["responses"] = pl.lit(pl.Series(map(number_of_times, texts), dtype=pl.Int64))
    if "foreign_domains" in needs:
        numbers = map(number_of_domains, rows.get_column("linking_domains"))
        columns["foreign_domains"] = pl.lit(pl.Series(numbers, dtype=pl.Int64))
    return rows.with_columns(**columns)


def is_shown() -> pl.Expr:
    """Returns the condition for rows of hosts that are shown to users.

    Rows of registered domains without URLs, and those of hosts that were purged and were not
    requested since, are not shown.
    """
    findings = pl.col("robots_status", "dns_time", "settings", "last_request_time")
    counted = pl.any_horizontal(pl.col(*STATUS_COUNTS.values()).fill_null(0) != 0)
    has_findings = pl.any_horizontal(findings.is_not_null())
    return ~is_given_up() & (counted | has_findings | pl.col("seed"))


def host_record(row: Mapping[str, Any], percentiles: Sequence[float]) -> dict[str, Any]:
    """Returns the values of a HOSTS row that are shown besides its stored columns.

    Args:
        row: The row, with the columns that ``host_values`` makes of sums.
        percentiles: Which percentiles of its response times.
    """
    sketch = row["response_times"]
    return {
        "urls": row["urls"],
        "responses": number_of_times(sketch),
        "response_ms": {f"p{percent:g}": percentile(sketch, percent) for percent in percentiles},
        "foreign_domains": number_of_domains(row["linking_domains"]),
    }


def nutch_line(row: Mapping[str, Any], checked: str) -> str:
    """Returns the line of Nutch's dump for a row with the columns of ``host_values``."""
    failures = row["dns_failures"], row["connection_failures"]
    home = from_keys(pl.Series([row["homepage"]], dtype=pl.String))[0] or ""
    settings = " ".join(f"{name}={value}" for name, value in _pairs(row["settings"]))
    counts = (row[name] for name in ("unfetched", "fetched", "gone", "redir_temp", "redir_perm",
                                     "notmodified", "urls"))  # fmt: skip
    values = (row["host"], *counts, *failures, sum(failures), row["score"] or 0.0, checked, home,
              settings)  # fmt: skip
    return "\t".join(map(str, values))


def _pairs(settings: Any) -> list[tuple[str, str]]:
    if isinstance(settings, Mapping):
        return sorted(settings.items())
    return sorted((item["key"], item["value"]) for item in settings or ())
