"""Makes rows of Common Crawl's columnar index of the captures of an archive."""

import polars as pl

from ...web.archives.index_urls import url_parts
from ...web.archives.surt import surt_key
from ...web.archives.warc_records import RESOURCE, base32
from ...web.content.whatwg_encodings import registered_name
from ...web.pages.language import three_letter_code
from ..components.archive_rows import URL_INDEX, CaptureRows, UrlIndexRows

# Subsets, which are partitions of the index.
SUCCESSFUL, DIAGNOSTICS, ROBOTS_SUBSET = SUBSETS = ("warc", "crawldiagnostics", "robotstxt")
_ROBOTS_PATH = "/robots.txt"
_MOST = 2**31 - 1  # of the numbers in the index


def url_index_rows(captures: CaptureRows) -> UrlIndexRows:
    """Returns the rows of an index, with the column ``subset``, in the order of their SURT keys.

    A capture without a status of HTTP has 200: it is of another protocol, or a robots.txt. DNS
    records have no row.

    >>> from ..components.archive_rows import CAPTURES
    >>> capture = {"url": "http://www.a.com/robots.txt", "time": 1500, "kind": "resource"}
    >>> rows = url_index_rows(pl.DataFrame([capture], schema=pl.Schema(CAPTURES)))
    >>> rows.select("url_surtkey", "url_host_name", "fetch_status", "subset").row(0)
    ('com,a)/robots.txt', 'www.a.com', 200, 'robotstxt')
    """
    captures = captures.filter(~pl.col("url").str.starts_with("dns:"))
    columns = [
        pl.Series(name, values, dtype=pl.Schema(URL_INDEX)[name])
        for name, values in _columns_of_urls(captures.get_column("url").to_list()).items()
    ]
    status = pl.col("status").fill_null(200)
    seconds = pl.col("time") // 1000 * 1000  # as in the CDX
    rows = captures.with_columns(columns).select(
        *(column.name for column in columns),
        "url",
        _subset(status),
        fetch_time=seconds.cast(pl.Datetime("ms", "UTC")),
        fetch_status=status.cast(pl.Int16),
        fetch_redirect="redirect",
        content_digest=pl.col("digest").map_elements(base32, pl.String),
        content_mime_type="mime",
        content_mime_detected="mime_detected",
        content_charset=pl.col("charset").map_elements(registered_name, pl.String),
        content_languages=pl.col("language").map_elements(three_letter_code, pl.String),
        content_truncated="truncated",
        warc_record_id="record",
        warc_filename="file",
        warc_record_offset=pl.col("offset").clip(upper_bound=_MOST),
        warc_record_length=pl.col("length").clip(upper_bound=_MOST),
        warc_segment="batch",
    )
    return rows.sort("url_surtkey", "fetch_time").select(*URL_INDEX.names, "subset")


def _subset(status: pl.Expr) -> pl.Expr:
    is_robots = (pl.col("kind") == RESOURCE) & (pl.col("url_path") == _ROBOTS_PATH)
    is_success = status.is_between(200, 299)
    rest = pl.when(is_success).then(pl.lit(SUCCESSFUL)).otherwise(pl.lit(DIAGNOSTICS))
    return pl.when(is_robots).then(pl.lit(ROBOTS_SUBSET)).otherwise(rest).alias("subset")


def _columns_of_urls(urls: list[str]) -> dict[str, list[object]]:
    """Returns the columns of the index that follow from URLs."""
    parts = [url_parts(url) for url in urls]
    hosts = [each.host for each in parts]
    numbers = ("tld", "2nd_last_part", "3rd_last_part", "4th_last_part", "5th_last_part")
    return {
        "url_surtkey": [surt_key(url) for url in urls],
        "url_host_name": [host.name for host in hosts],
        **{f"url_host_{name}": [h.labels[at] for h in hosts] for at, name in enumerate(numbers)},
        "url_host_registry_suffix": [host.suffix for host in hosts],
        "url_host_registered_domain": [host.domain for host in hosts],
        "url_host_private_suffix": [host.private_suffix for host in hosts],
        "url_host_private_domain": [host.private_domain for host in hosts],
        "url_host_name_reversed": [host.reverse for host in hosts],
        "url_protocol": [each.scheme for each in parts],
        "url_port": [each.port for each in parts],
        "url_path": [each.path for each in parts],
        "url_query": [each.query for each in parts],
    }
