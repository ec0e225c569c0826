"""Reads a HostDb as text, as Nutch's ``readhostdb`` writes it: a line of values with tabs per host."""

import zoneinfo

import polars as pl

from .datum_text import pairs_of
from .text_records import HOSTDB_HOST, ParsedRecords, TextForm

HOSTS_HEADING = "hostname\tunfetched\t"
_COUNT, _TIME = r"\t-?\d+", r"\t\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"
HOSTS_START = rf"^(?:{HOSTS_HEADING}|[^\t]+{10 * _COUNT}\t[^\t]+{_TIME}\t)"
# In the order of the line; two of them are sums of others.
_COLUMNS = (
    "host", "unfetched", "fetched", "gone", "redir_temp", "redir_perm", "notmodified", "", "dns_failures",
    "connection_failures", "", "score", "last_check", "homepage", "metadata",
)  # fmt: skip


def parse_hosts(lines: pl.Series, zone: str = "") -> ParsedRecords:
    """Returns the hosts of lines; times without a zone are those of ``zone``, or UTC.

    >>> line = "a.com\\t1\\t2\\t0\\t0\\t0\\t3\\t6\\t0\\t1\\t1\\t0.5\\t1970-01-01 00:00:01\\thttp://a.com/\\t"
    >>> parse_hosts(pl.Series([line])).rows.select("host", "notmodified", "last_check").rows()
    [('a.com', 3, 1000)]
    """
    numbered = lines.alias("text").to_frame().with_row_index("line")
    rows = numbered.filter(
        ~pl.col("text").str.starts_with(HOSTS_HEADING) & (pl.col("text").str.strip_chars() != "")
    )
    is_bad = ~pl.col("text").str.contains(HOSTS_START)
    bad = rows.filter(is_bad).get_column("line").to_list()
    fields = pl.col("text").str.splitn("\t", len(_COLUMNS)).struct
    named = [fields.field(f"field_{at}").alias(name) for at, name in enumerate(_COLUMNS) if name]
    texts = rows.filter(~is_bad).select(named)
    check = pl.col("last_check").str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="ms", strict=False)
    local = check.dt.replace_time_zone(
        str(zoneinfo.ZoneInfo(zone or "UTC")), ambiguous="earliest", non_existent="null"
    )
    parsed = texts.with_columns(
        local.cast(pl.Int64).fill_null(0).alias("last_check"),
        pairs_of(texts.get_column("metadata").fill_null("")).alias("metadata"),
    )
    return ParsedRecords(parsed.select(HOSTDB_HOST.names()).cast(HOSTDB_HOST, strict=False), bad)


HOST_DUMP = TextForm("readhostdb", "hostdb", HOSTS_START, parse_hosts)
