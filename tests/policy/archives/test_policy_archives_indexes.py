"""Common Crawl's indexes: their schemas, and queries as its users write them, in DuckDB."""

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from nutbeam.io.archives.archive_indexes import write_url_index
from nutbeam.io.archives.host_index_files import write_host_index
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.policy.archives.host_index import (
    facts_of_captures,
    facts_of_hosts,
    facts_of_ranks,
    host_index_rows,
)
from nutbeam.policy.archives.url_index import SUBSETS, url_index_rows
from nutbeam.policy.components.archive_rows import CAPTURES
from nutbeam.policy.components.schema import HOSTS

# The names and types of cc-index-schema-flat.json, as DuckDB shows them.
URL_COLUMNS = """
url_surtkey VARCHAR, url VARCHAR, url_host_name VARCHAR, url_host_tld VARCHAR,
url_host_2nd_last_part VARCHAR, url_host_3rd_last_part VARCHAR, url_host_4th_last_part VARCHAR,
url_host_5th_last_part VARCHAR, url_host_registry_suffix VARCHAR, url_host_registered_domain VARCHAR,
url_host_private_suffix VARCHAR, url_host_private_domain VARCHAR, url_host_name_reversed VARCHAR,
url_protocol VARCHAR, url_port INTEGER, url_path VARCHAR, url_query VARCHAR,
fetch_time TIMESTAMP WITH TIME ZONE, fetch_status SMALLINT, fetch_redirect VARCHAR, content_digest VARCHAR,
content_mime_type VARCHAR, content_mime_detected VARCHAR, content_charset VARCHAR,
content_languages VARCHAR, content_truncated VARCHAR, warc_record_id BLOB, warc_filename VARCHAR,
warc_record_offset INTEGER, warc_record_length INTEGER, warc_segment VARCHAR, crawl VARCHAR, subset VARCHAR
"""
# Those of cc-host-index, athena_schema.v2.sql.
HOST_COLUMNS = """
surt_host_name VARCHAR, url_host_registered_domain VARCHAR, url_host_tld VARCHAR, hcrank10 DOUBLE,
prank10 DOUBLE, prank DOUBLE, hcrank DOUBLE, warc_record_length_av INTEGER,
warc_record_length_median INTEGER, fetch_200 INTEGER, fetch_200_lote INTEGER, fetch_200_lote_pct INTEGER,
fetch_3xx INTEGER, fetch_4xx INTEGER, fetch_5xx INTEGER, fetch_gone INTEGER, fetch_notModified INTEGER,
fetch_other INTEGER, fetch_redirPerm INTEGER, fetch_redirTemp INTEGER, nutch_fetched INTEGER,
nutch_fetched_pct INTEGER, nutch_gone INTEGER, nutch_gone_pct INTEGER, nutch_notModified INTEGER,
nutch_notModified_pct INTEGER, nutch_numRecords INTEGER, nutch_redirPerm INTEGER,
nutch_redirPerm_pct INTEGER, nutch_redirTemp INTEGER, nutch_redirTemp_pct INTEGER, nutch_unfetched INTEGER,
nutch_unfetched_pct INTEGER, robots_200 INTEGER, robots_3xx INTEGER, robots_4xx INTEGER, robots_5xx INTEGER,
robots_gone INTEGER, robots_notModified INTEGER, robots_other INTEGER, robots_redirPerm INTEGER,
robots_redirTemp INTEGER, crawl VARCHAR
"""


def capture(url, status, time=1_795_883_544_123, **more):
    known = {"batch": "1-a", "kind": "response", "mime": "text/html", "digest": b"\0" * 20, "whole": True,
             "file": "x.warc.gz", "offset": 7, "length": 100, "record": b"r" * 16, **more}  # fmt: skip
    return {"url": url, "time": time, "status": status, **known}


CAPTURED = [
    capture("https://www.a.va/", 200, language="it", length=300),
    capture("https://www.a.va/en?x=1", 200, language="en", length=100, charset="utf-8", title="T"),
    capture("https://a.va/moved", 301, redirect="https://www.a.va/"),
    capture("https://a.va/gone", 410, truncated="unspecified"),
    capture("https://a.va/same", 304, kind="revisit", digest=None),
    capture("https://a.va/tea", 418),
    capture("https://a.va/odd", 103),
    capture("https://a.va/robots.txt", None, kind="resource", mime="text/plain"),
    capture("http://b.com:8080/", 200, time=1_795_883_544_999),
    capture("dns:a.va", None, kind="resource", mime="text/dns"),
]


@pytest.fixture
def rows():
    return url_index_rows(pl.DataFrame(CAPTURED, schema=pl.Schema(CAPTURES), orient="row"))


@pytest.fixture
def tables(rows, tmp_path):
    """A connection with the table ccindex, and cchost_index_testing_v2 and host_index."""
    folder = place_of(str(tmp_path))
    for subset in SUBSETS:
        path = folder / f"urls/crawl=mine/subset={subset}/a.parquet"
        write_url_index(path, rows.filter(pl.col("subset") == subset))
    hosts = [{"key": "va.a", "fetched": 3, "gone": 1, "redir_perm": 1, "notmodified": 1, "unfetched": 4,
              "duplicate": 2, "robots_status": 200},
             {"key": "com.b", "fetched": 1, "robots_status": 503}, {"key": "org.c", "unfetched": 5}]  # fmt: skip
    ranks = pl.DataFrame({"key": ["com.b", "va.a"], "harmonic": [2.0, 8.0], "pagerank": [0.1, 0.4]})
    facts = pl.concat([
        facts_of_captures(rows),
        facts_of_hosts(pl.DataFrame(hosts, schema=pl.Schema(HOSTS))),
        facts_of_ranks(ranks),
    ])  # fmt: skip
    write_host_index(folder / "hosts/crawl=CC-MAIN-2025-13/a.parquet", host_index_rows(facts))
    connection = duckdb.connect()
    for name, where in {
        "ccindex": "urls/*/*/*.parquet",
        "host_index": "hosts/*/*.parquet",
        "cchost_index_testing_v2": "hosts/*/*.parquet",
    }.items():
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM "
            f"read_parquet('{tmp_path}/{where}', hive_partitioning=true)"
        )
    return connection


@pytest.mark.parametrize(
    ("table", "columns"), [("ccindex", URL_COLUMNS), ("host_index", HOST_COLUMNS)]
)
def test_columns_have_the_names_types_and_order_of_common_crawl(tables, table, columns):
    found = tables.execute(f"DESCRIBE {table}").fetchall()
    wanted = [tuple(each.split(maxsplit=1)) for each in columns.strip().split(",")]
    assert [(name, kind) for name, kind, *_ in found] == wanted


def test_queries_of_the_url_index_find_captures(tables):
    def query(sql):
        return tables.execute(sql).fetchall()

    assert query(
        "SELECT subset, fetch_status, COUNT(*) FROM ccindex WHERE crawl = 'mine' GROUP BY ALL ORDER BY ALL"
    ) == [("crawldiagnostics", 103, 1), ("crawldiagnostics", 301, 1), ("crawldiagnostics", 304, 1),
          ("crawldiagnostics", 410, 1), ("crawldiagnostics", 418, 1), ("robotstxt", 200, 1),
          ("warc", 200, 3)]  # fmt: skip
    assert query(
        "SELECT url, warc_filename, warc_record_offset, warc_record_length FROM ccindex WHERE subset = "
        "'warc' AND url_host_registered_domain = 'a.va' AND content_languages = 'ita'"
    ) == [("https://www.a.va/", "x.warc.gz", 7, 300)]
    assert query(
        "SELECT url_surtkey, url_host_name, url_host_tld, url_path, url_query, url_port, url_protocol, "
        "content_digest, content_charset, warc_segment, epoch_ms(fetch_time) FROM ccindex "
        "WHERE url_query IS NOT NULL"
    ) == [("va,a)/en?x=1", "www.a.va", "va", "/en", "x=1", None, "https", "A" * 32, "UTF-8", "1-a",
           1_795_883_544_000)]  # fmt: skip
    assert query("SELECT fetch_redirect FROM ccindex WHERE fetch_status = 301") == [
        ("https://www.a.va/",)
    ]
    assert query("SELECT content_truncated FROM ccindex WHERE fetch_status = 410") == [
        ("unspecified",)
    ]
    assert query("SELECT url_port FROM ccindex WHERE url_host_tld = 'com'") == [(8080,)]


# The queries of the README of cc-host-index, by the columns that they read.
@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("crawl, fetch_200, fetch_200_lote, prank10, hcrank10", ("CC-MAIN-2025-13", 2, 1, 10.0, 10.0)),
        (("fetch_200, fetch_gone, fetch_redirPerm, fetch_redirTemp, fetch_notModified, fetch_3xx, "
         "fetch_4xx, fetch_5xx, fetch_other"), (2, 1, 1, 0, 1, 0, 1, 0, 1)),
        ("warc_record_length_av, warc_record_length_median", (200, 200)),
        (("nutch_numRecords, nutch_fetched, nutch_unfetched, nutch_gone, nutch_redirTemp, "
         "nutch_redirPerm, nutch_notModified"), (12, 3, 4, 1, 0, 1, 1)),
        ("nutch_fetched_pct, nutch_unfetched_pct, nutch_gone_pct", (25, 33, 8)),
        (("robots_200, robots_gone, robots_redirPerm, robots_redirTemp, robots_notModified, robots_3xx, "
         "robots_4xx, robots_5xx, robots_other"), (1, 0, 0, 0, 0, 0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_queries_of_the_host_index_find_a_host(tables, columns, expected):
    sql = (
        f"SELECT {columns} FROM cchost_index_testing_v2 WHERE surt_host_name = 'va,a' "
        "AND url_host_tld = 'va' ORDER BY crawl ASC"
    )
    assert tables.execute(sql).fetchall() == [expected]


def test_queries_over_many_hosts_and_joins_with_annotations_run(tables):
    assert tables.execute(
        "SELECT crawl, surt_host_name, hcrank10, fetch_200_lote_pct, fetch_200_lote "
        "FROM cchost_index_testing_v2 WHERE crawl = 'CC-MAIN-2025-13' AND url_host_tld = 'va' "
        "AND fetch_200_lote_pct > 49 ORDER BY hcrank10 DESC LIMIT 10"
    ).fetchall() == [("CC-MAIN-2025-13", "va,a", 10.0, 50, 1)]
    assert tables.execute(
        "SELECT crawl, CAST(SUM(fetch_200) AS INT64) AS sum_fetch_200 FROM host_index "
        "WHERE contains(ARRAY ['va,a','com,b'], surt_host_name) GROUP BY crawl ORDER BY crawl ASC"
    ).fetchall() == [("CC-MAIN-2025-13", 3)]
    # As cc-index-annotations joins the index with a table of its own.
    tables.execute(
        "CREATE TABLE notes AS SELECT 'com,b' AS surt_host_name, 'CC-MAIN-2025-13' AS crawl, 7 AS degree"
    )
    tables.execute(
        "CREATE VIEW joined AS SELECT *, degree FROM host_index AS left_db LEFT OUTER JOIN notes AS "
        "right_db ON (left_db.surt_host_name = right_db.surt_host_name AND left_db.crawl = right_db.crawl)"
    )
    assert tables.execute(
        "SELECT surt_host_name, hcrank10, degree, robots_5xx FROM joined "
        "WHERE surt_host_name LIKE 'com,b%' AND url_host_tld = 'com' ORDER BY hcrank10 DESC"
    ).fetchall() == [("com,b", 2.5, 7, 1)]


def test_hosts_that_were_not_fetched_have_a_row_and_no_ranks_if_there_are_none(tables):
    assert tables.execute(
        "SELECT nutch_numRecords, fetch_200, hcrank, warc_record_length_av FROM host_index "
        "WHERE surt_host_name = 'org,c'"
    ).fetchall() == [(5, 0, None, None)]


def test_the_columns_that_are_never_null_are_those_of_common_crawl(rows, tmp_path):
    write_url_index(place_of(str(tmp_path / "a.parquet")), rows)
    written = pq.read_schema(tmp_path / "a.parquet")
    assert [field.name for field in written if not field.nullable] == [
        "url_surtkey", "url", "url_host_name", "url_protocol", "url_path", "fetch_time", "fetch_status",
        "warc_record_id", "warc_filename", "warc_record_offset", "warc_record_length", "warc_segment",
    ]  # fmt: skip


def test_a_file_of_the_index_is_in_the_order_of_its_keys(rows, tmp_path):
    write_url_index(place_of(str(tmp_path / "a.parquet")), rows)
    keys = pq.read_table(tmp_path / "a.parquet", columns=["url_surtkey"])["url_surtkey"].to_pylist()
    assert keys == sorted(keys)
    write_url_index(place_of(str(tmp_path / "a.parquet")), rows.clear())
    assert not (tmp_path / "a.parquet").exists()
