"""The databases and segments of a crawl that Nutch made are read."""

import polars as pl
import pytest
from hadoop_files import java_datums, java_records, unpack_nutch_crawl

from nutbeam.web.hadoop.crawl_datums import DATUM_STATUS_NAMES, read_crawl_datums
from nutbeam.web.hadoop.host_datums import read_host_datums
from nutbeam.web.hadoop.link_values import read_inlinks
from nutbeam.web.hadoop.segment_values import read_contents, read_parse_data, read_parse_texts
from nutbeam.web.hadoop.sequence_files import read_blocks, read_header


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nutch")
    unpack_nutch_crawl(folder)
    return folder


def rows_of(path, read):
    with path.open("rb") as stream:
        header = read_header(stream)
        return pl.concat(read(block, header) for block in read_blocks(stream))


def test_the_crawl_db_is_read_as_nutch_reads_it(crawl):
    rows = rows_of(crawl / "crawldb/current/part-r-00000/data", read_crawl_datums)
    expected = java_records((crawl / "crawldb.json").read_text())
    assert java_datums(rows) == expected


def test_each_part_of_a_segment_is_about_its_fetch_list(crawl):
    for segment in (crawl / "segments").iterdir():
        listed = rows_of(segment / "crawl_generate" / "part-r-00000", read_crawl_datums)
        fetched = rows_of(segment / "crawl_fetch" / "part-r-00000" / "data", read_crawl_datums)
        assert sorted(listed.get_column("url")) == fetched.get_column("url").to_list()
        success = fetched.filter(
            pl.col("status").replace_strict(DATUM_STATUS_NAMES) == "fetch_success"
        )
        urls = success.get_column("url").to_list()
        for name, read in (
            ("content", read_contents),
            ("parse_data", read_parse_data),
            ("parse_text", read_parse_texts),
        ):
            rows = rows_of(segment / name / "part-r-00000" / "data", read)
            assert rows.get_column("url").to_list() == urls
        parsed = rows_of(segment / "crawl_parse" / "part-r-00000", read_crawl_datums)
        kinds = parsed.get_column("status").replace_strict(DATUM_STATUS_NAMES)
        assert parsed.filter(kinds == "signature").get_column("url").to_list() == urls
        assert set(kinds) == {"signature", "linked"}


def test_the_link_db_has_the_links_of_parsed_pages(crawl):
    rows = rows_of(crawl / "linkdb/current/part-r-00000/data", read_inlinks)
    expected = java_records((crawl / "linkdb.json").read_text())
    assert sorted(rows.select("url", "from_url", "anchor").rows()) == sorted(
        (record["key"], *link) for record in expected for link in record["inlinks"]
    )


def test_the_host_db_counts_the_rows_of_the_crawl_db(crawl):
    hosts = rows_of(crawl / "hostdb/current/part-r-00000", read_host_datums)
    rows = rows_of(crawl / "crawldb/current/part-r-00000/data", read_crawl_datums)
    statuses = rows.get_column("status").replace_strict(DATUM_STATUS_NAMES).to_list()
    for column, status in (
        ("unfetched", "db_unfetched"),
        ("fetched", "db_fetched"),
        ("gone", "db_gone"),
    ):
        assert hosts.get_column(column).sum() == statuses.count(status)
