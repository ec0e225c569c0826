"""Text of Nutch's tools is read, whatever stands in URLs and metadata."""

import polars as pl
import pytest

from nutbeam.web.nutch_text.datum_lines import java_float
from nutbeam.web.nutch_text.datum_text import (
    CSV_HEADING,
    parse_csv_dump,
    parse_json_dump,
    parse_normal_dump,
)
from nutbeam.web.nutch_text.host_text import parse_hosts
from nutbeam.web.nutch_text.java_dates import UnknownZone, check_zone, parse_java_dates
from nutbeam.web.nutch_text.link_text import parse_links
from nutbeam.web.nutch_text.webtable_text import parse_webtable

DATE, NONE = "Sun Nov 01 01:00:00 CET 2026", "Thu Jan 01 01:00:00 CET 1970"
NOW = 1_793_491_200_000


def lines(text):
    return pl.Series("text", text.split("\n"))


def csv_line(url="http://a.com/", metadata="", signature="null"):
    return f'"{url}",2,"db_fetched",{DATE},{NONE},1,3.1536E7,365.0,-0.5,"{signature}","{metadata}"'


def test_csv_without_escaped_quotes_is_read_from_both_ends():
    url, metadata = 'http://a.com/?q="x",1,"y"', 'title:say "hi", you|||empty:|||a:b:c|||'
    records = parse_csv_dump(lines(f"{CSV_HEADING}\n{csv_line(url, metadata, '0aff')}"))
    assert records.bad_lines == []
    row = records.rows.row(0, named=True)
    assert row["url"] == url
    assert row["metadata"] == {"title": 'say "hi", you', "empty": "", "a": "b:c"}
    assert (row["fetch_time"], row["modified_time"], row["fetch_interval"]) == (NOW, 0, 31_536_000)
    assert (row["signature"], row["retries"], row["score"]) == (b"\x0a\xff", 1, -0.5)


def test_csv_with_doubled_quotes_is_read_too_and_line_breaks_in_metadata_stay():
    text = csv_line(metadata='a:""x""|||b:1\n2|||') + "\n" + csv_line("http://b.com/")
    rows = parse_csv_dump(lines(text)).rows
    assert rows["url"].to_list() == ["http://a.com/", "http://b.com/"]
    assert rows["metadata"].to_list() == [{"a": '"x"', "b": "1\n2"}, None]


@pytest.mark.parametrize("broken", [csv_line().replace(DATE, "x"), csv_line().replace("3.15", "x")])
def test_a_csv_record_that_cannot_be_read_is_named_by_its_line(broken):
    records = parse_csv_dump(lines(f"{CSV_HEADING}\n{csv_line()}\n{broken}\n{csv_line()}"))
    assert (records.rows.height, records.bad_lines) == (2, [2])


@pytest.mark.parametrize(
    ("interval", "seconds"), [("2592000 seconds (30 days)", 2_592_000), ("30.0 days", 2_592_000)]
)
def test_the_normal_form_of_old_and_new_nutch_is_read(interval, seconds):
    text = (
        f"http://a.com/\tVersion: 7\nStatus: 3 (db_gone)\nFetch time: {DATE}\nModified time: {NONE}\n"
        f"Retries since fetch: 2\nRetry interval: {interval}\nScore: 1.5E-4\nSignature: 0a ff\n"
        "Metadata: \n \ta=b=c\n\tlong=first\nsecond\n\n"
        "http://b.com/\tVersion: 7\nStatus: 1 (db_unfetched)\nFetch time: soon\n"
    )
    records = parse_normal_dump(lines(text))
    row = records.rows.row(0, named=True)
    assert (row["status"], row["retries"], row["fetch_interval"]) == (3, 2, seconds)
    assert (row["fetch_time"], row["signature"]) == (NOW, b"\x0a\xff")
    assert row["metadata"] == {"a": "b=c", "long": "first\nsecond"}
    assert records.bad_lines == [13]


def test_json_with_other_values_than_texts_is_read():
    text = (
        '{"url":"http://a.com/","statusCode":2,"fetchTime":"DATE","modifiedTime":null,'
        '"retriesSinceFetch":0,"retryIntervalSeconds":60.0,"score":1.0,"signature":"null",'
        '"metadata":{"a":1,"b":{"c":null}}}\n[1]\nnot json\n{"url":"http://b.com/"}'
    )
    records = parse_json_dump(lines(text.replace("DATE", DATE)))
    assert records.rows["metadata"].to_list() == [{"a": "1", "b": '{"c": null}'}]
    assert records.rows["fetch_time"].to_list() == [NOW]
    assert records.bad_lines == [1, 2, 3]


def test_links_of_old_and_new_nutch_are_read():
    text = (
        "http://a.com/\tInlinks:\n fromUrl: http://b.com/ anchor: B anchor: x\n"
        " fromUrl: http://c.com/ anchor:  metadata: \nbroken\n\nhttp://d.com/\tInlinks:\n\n"
    )
    links = parse_links(lines(text))
    assert links.rows.rows() == [
        ("http://a.com/", "http://b.com/", "B anchor: x"),
        ("http://a.com/", "http://c.com/", ""),
    ]
    assert links.bad_lines == [3]


def test_hosts_have_their_columns():
    text = (
        "hostname\tunfetched\tfetched\n"
        "a.com\t1\t2\t3\t4\t5\t6\t21\t7\t8\t15\t0.5\t2026-11-01 01:00:00\thttp://a.com/\tx:1|||\nbroken"
    )
    hosts = parse_hosts(lines(text), "Europe/Berlin")
    row = hosts.rows.row(0, named=True)
    assert (row["host"], row["gone"], row["redir_temp"], row["notmodified"]) == ("a.com", 3, 4, 6)
    assert (row["dns_failures"], row["connection_failures"], row["last_check"]) == (7, 8, NOW)
    assert row["metadata"] == {"x": "1"}
    assert hosts.bad_lines == [2]


def test_the_table_of_nutch_2_is_read():
    text = (
        "http://a.com/\tkey:\tcom.a:http/\nbaseUrl:\thttp://a.com/\nstatus:\t38 (status_notmodified)\n"
        f"fetchTime:\t{NOW}\nprevFetchTime:\t5\nfetchInterval:\t60\nretriesSinceFetch:\t0\n"
        "modifiedTime:\t7\nprotocolStatus:\tSUCCESS, args=[]\nsignature:\t0aff\ntitle:\tA\nscore:\t2.5\n"
        "marker dist : \t1\nreprUrl:\tnull\nmetadata mine : \tx\n\n"
        "http://b.com/\tkey:\tcom.b:http/\nstatus:\t0 (null)\nfetchTime:\t1\nfetchInterval:\t60\nscore:\t0.0\n"
    )
    rows = parse_webtable(lines(text)).rows
    assert rows["url"].to_list() == ["http://a.com/", "http://b.com/"]
    assert rows["status"].to_list() == [6, 1]
    row = rows.row(0, named=True)
    assert (row["fetch_time"], row["modified_time"], row["signature"]) == (NOW, 7, b"\x0a\xff")
    assert row["metadata"] == {"mine": "x", "_depth_": "2", "_pst_": "SUCCESS, args=[]"}


def test_zones_are_those_of_the_option_where_their_names_are_not_clear():
    texts = pl.Series(["Sun Nov 01 05:30:00 IST 2026", "Sun Nov 01 02:00:00 GMT+02:00 2026"])
    assert parse_java_dates(texts, "Asia/Kolkata").to_list() == [NOW, NOW]
    with pytest.raises(UnknownZone, match="'IST' is not known or ambiguous"):
        parse_java_dates(texts)
    with pytest.raises(ValueError, match=r"'\.\./etc'"):
        check_zone("../etc")


def test_floats_are_written_as_java_writes_them():
    texts = [java_float(value) for value in (2_592_000, 1e7, 12345678, 0.001, 0.00099, -0.0, 1 / 3)]
    assert texts == ["2592000.0", "1.0E7", "1.2345678E7", "0.001", "9.9E-4", "-0.0", "0.33333334"]
