"""What Nutch's and Hadoop's classes wrote is read as these classes read it.

tests/fixtures/hadoop/README.md says how the files were made.
"""

import io
import tarfile

import polars as pl
import pytest
from hadoop_files import java_datums, java_records
from here import TESTS

from nutbeam.web.hadoop.crawl_datums import read_crawl_datums
from nutbeam.web.hadoop.host_datums import read_host_datums
from nutbeam.web.hadoop.link_values import read_inlinks
from nutbeam.web.hadoop.segment_values import read_contents, read_parse_data, read_parse_texts
from nutbeam.web.hadoop.sequence_files import read_blocks, read_header

with tarfile.open(TESTS / "fixtures" / "hadoop" / "values.tar.xz") as archive:
    FILES = {
        member.name.removeprefix("./"): archive.extractfile(member).read()
        for member in archive
        if member.isfile()
    }
CODECS = sorted(name for name in FILES if name.startswith("codecs/") and name.endswith(".seq"))
VERSIONS = ("1.3", "1.15", "1.22")


def rows_of(name, read):
    """Returns the rows of a SequenceFile; no part of it is damaged."""
    stream = io.BytesIO(FILES[name])
    header = read_header(stream)
    return pl.concat(read(block, header) for block in read_blocks(stream))


def pairs(items):
    return sorted([item["key"], item["value"]] for item in items)


@pytest.mark.parametrize("name", CODECS)
def test_a_crawl_db_is_read_with_each_codec(name):
    assert java_datums(rows_of(name, read_crawl_datums)) == java_records(FILES["codecs/none.json"])


def test_there_is_a_file_for_each_codec_and_compression():
    assert len(CODECS) == 13


def test_each_version_of_a_crawl_datum_is_read():
    rows = rows_of("old/datums.seq", read_crawl_datums)
    assert java_datums(rows) == java_records(FILES["old/datums.json"])


@pytest.mark.parametrize("version", VERSIONS)
def test_links_are_read_as_nutch_reads_them(version):
    rows = rows_of(f"{version}/linkdb/data", read_inlinks)
    expected = [
        (record["key"], *link)
        for record in java_records(FILES[f"{version}/linkdb.json"])
        for link in record["inlinks"]
    ]
    assert sorted(rows.select("url", "from_url", "anchor").rows()) == sorted(expected)


def test_links_have_metadata_since_nutch_1_22():
    rows = rows_of("1.22/linkdb/data", read_inlinks)
    with_metadata = rows.filter(pl.col("metadata").list.len() > 0)
    assert with_metadata.get_column("url").unique().to_list() == [
        "https://www.example.org/0009/page"
    ]
    entry = {"key": "depth", "kind": "IntWritable", "value": "3"}
    assert with_metadata.get_column("metadata").to_list() == [[entry]] * 3


@pytest.mark.parametrize("name", [f"{version}/content/data" for version in VERSIONS])
def test_contents_are_read_as_nutch_reads_them(name):
    _check_contents(name, name.replace("/data", ".json"))


def test_deflated_contents_of_old_versions_are_read():
    _check_contents("old/contents.seq", "old/contents.json")


def _check_contents(name, expected):
    records = [
        {
            "key": row["url"],
            "url": row["content_url"],
            "base_url": row["base_url"],
            "content": row["content"].hex(),
            "content_type": row["content_type"],
            "metadata": pairs(row["metadata"]),
        }
        for row in rows_of(name, read_contents).to_dicts()
    ]
    assert records == java_records(FILES[expected])


@pytest.mark.parametrize("version", VERSIONS)
def test_parse_data_are_read_as_nutch_reads_them(version):
    records = [
        {
            "key": row.pop("url"),
            **row,
            "outlinks": [[link["url"], link["anchor"]] for link in row["outlinks"]],
            "content_metadata": pairs(row["content_metadata"]),
            "parse_metadata": pairs(row["parse_metadata"]),
        }
        for row in rows_of(f"{version}/parse_data/data", read_parse_data).to_dicts()
    ]
    assert records == java_records(FILES[f"{version}/parse_data.json"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((f"{version}/parse_text/data", f"{version}/parse_text.json") for version in VERSIONS),
        ("old/texts.seq", "old/texts.json"),
    ],
)
def test_texts_are_read_as_nutch_reads_them(name, expected):
    rows = rows_of(name, read_parse_texts).rename({"url": "key"})
    assert rows.to_dicts() == java_records(FILES[expected])


@pytest.mark.parametrize("version", ["1.15", "1.22"])
def test_hosts_are_read_as_nutch_reads_them(version):
    rows = rows_of(f"{version}/hostdb/data", read_host_datums)
    expected = java_records(FILES[f"{version}/hostdb.json"])
    assert rows.get_column("host").to_list() == [record["key"] for record in expected]
    counts = ("unfetched", "fetched", "gone", "redir_temp", "redir_perm", "not_modified")
    for row, record in zip(rows.to_dicts(), expected, strict=True):
        words = record["value"].split("\t")
        assert [str(row[name]) for name in counts] == words[:6]
        assert str(row["dns_failures"]) == words[7]
        assert row["score"] == float(words[10])
        assert row["homepage_url"] == words[12]
        shown = "".join(f"{entry['key']}:{entry['value']}|||" for entry in row["metadata"])
        assert shown == words[13]
    assert rows.get_column("last_check").to_list()[3] == 1_700_000_000_003
