"""What import_nutch does with paths and files that are not as Nutch leaves them."""

import gzip
import shutil

import pytest
from command_output import printed
from crawling import manifest_of, nutbeam, state_of
from nutch_crawls import NOW, NutchCrawl, datum, page, parse

from nutbeam.web.nutch_text.datum_text import CSV_HEADING

HOME = "http://a.com/"


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "nutbeam.import_nutch"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("seeds.txt", "http://a.com/\n", "has a list of seeds: nutbeam inject TABLE {path} reads it"),
        ("notes.txt", "hello\n", "expected a crawldb, linkdb, hostdb or segments of Nutch"),
        ("part-00000", "", "empty, left out"),
        ("data", b"SEQ\x06\x00", "the header of a SequenceFile is damaged"),
    ],
)  # fmt: skip
def test_a_path_without_nutchs_data_is_one_line(tmp_path, table, refuse, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert expected.format(path=path) in refuse("import_nutch", table, path)
    assert not table.exists()


def test_an_empty_folder_and_no_folder_are_one_line(tmp_path, table, refuse):
    (tmp_path / "empty").mkdir()
    assert "expected a crawldb" in refuse("import_nutch", table, tmp_path / "empty")
    assert "no such file or folder" in refuse("import_nutch", table, tmp_path / "none")


def test_files_of_other_classes_and_left_files_are_named_and_the_rest_is_imported(
    crawl, table, caplog, capsys
):
    folder = crawl.crawldb(datum(HOME))
    crawl.crawldb(datum("http://unfinished.com/"), part="_temporary/0/part-r-00000")
    crawl.crawldb(datum("http://old.com/"), name="crawldb/old/x")
    shutil.move(folder / "old/x/current", folder / "old/current")
    (folder / ".locked").touch()
    (folder / "current/part-r-00000/.data.crc").write_bytes(b"crc")
    (folder / "current/part-r-00000/index").unlink()
    (folder / "current/part-r-00001").mkdir()
    (folder / "current/part-r-00001/data").touch()
    crawl.crawldb(datum("http://copying.com/"), part="part-r-00002")
    copied = folder / "current/part-r-00002/data"
    copied.rename(f"{copied}._COPYING_")
    crawl._map("nodes/part-r-00000", "org.apache.nutch.scoring.webgraph.Node", [(b"a", b"b")])
    crawl._map("bodies/part-r-00000", "org.apache.nutch.protocol.Content", [(b"a", b"b")])
    line = printed(capsys, "import_nutch", table, crawl.folder)
    assert state_of(table)["url"].to_list() == [HOME]
    for count in ("other_class 2", "unfinished_job 1", "half_copied 2", "empty_file 1"):
        assert f"left_out/{count}" in line
    text = "\n".join(warnings(caplog))
    assert "holds org.apache.nutch.scoring.webgraph.Node, left out" in text
    assert "bodies/part-r-00000/data: holds org.apache.nutch.protocol.Content, left out" in text
    assert "output of a job that did not end, left out" in text
    assert "part-r-00002/data._COPYING_: its copy has not ended, left out" in text
    assert "its index is missing, which is not needed here" in text
    assert "had locked the database" in text


@pytest.mark.parametrize("name", ["data._COPYING_", ".data.Xy12Zq", ".distcp.tmp.attempt_1", None])
def test_a_crawldb_that_is_half_copied_is_named_while_the_rest_is_imported(
    crawl, table, caplog, capsys, name
):
    data = crawl.crawldb(datum(HOME)) / "current/part-r-00000/data"
    crawl.crawldb(datum("http://whole.com/"), part="part-r-00001")
    data.rename(data.with_name(name)) if name else data.unlink()
    line = printed(capsys, "import_nutch", table, crawl.folder)
    assert state_of(table)["url"].to_list() == ["http://whole.com/"]
    assert f"left_out/half_copied {2 if name else 1}" in line
    text = "\n".join(warnings(caplog))
    assert f"{data.with_name('index')}: the file data beside it is missing" in text
    assert name is None or f"{data.with_name(name)}: its copy has not ended, left out" in text


def test_segments_without_folders_that_nutch_writes_together_are_named(
    crawl, table, caplog, capsys
):
    crawl.segment("1", listed=[datum(HOME)], contents={HOME: page(b"x")})
    folder = crawl.segment("2", fetched=[datum(HOME, 33)], parsed={HOME: parse("x")})
    shutil.rmtree(folder / "parse_text")
    crawl.segment("3", fetched=[datum(HOME, 33)], contents={HOME: page(b"x")})
    printed(capsys, "import_nutch", table, crawl.folder)
    assert warnings(caplog) == [
        "segment 1 has content, but no crawl_fetch: it counts as not fetched",
        "segment 2 was parsed, but has no parse_text",
    ]


def test_a_data_file_that_is_named_alone_lacks_no_index(crawl, table, caplog, capsys):
    data = crawl.crawldb(datum(HOME)) / "current/part-r-00000/data"
    printed(capsys, "import_nutch", table, data)
    assert state_of(table)["url"].to_list() == [HOME]
    assert warnings(caplog) == []


def test_damaged_blocks_are_named_and_counted_and_the_rest_is_imported(
    crawl, table, caplog, capsys
):
    folder = crawl.crawldb(*(datum(f"http://a.com/{number:05d}") for number in range(2_000)))
    file = folder / "current/part-r-00000/data"
    data = bytearray(file.read_bytes())
    data[30_000:30_008] = b"\xff\xfe" * 4
    file.write_bytes(data[:-20])
    line = printed(capsys, "import_nutch", table, folder)
    assert "damaged/" in line
    assert "truncated_file 1" in line
    assert 1_500 < state_of(table).height < 2_000
    first = warnings(caplog)[0]
    assert first.startswith(f"{file}, byte ")


def test_dumps_with_bad_lines_name_them_and_go_on(tmp_path, table, caplog, capsys):
    line = '"http://{}.com/",2,"db_fetched",{},Thu Jan 01 00:00:00 UTC 1970,0,2592000.0,30.0,1.0,"null",""'
    lines = [
        CSV_HEADING,
        line.format("a", "Sun Nov 01 00:00:00 UTC 2026"),
        line.format("b", "soon"),
    ]
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "part-00000.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert "damaged/bad_record 1" in printed(capsys, "import_nutch", table, tmp_path / "dump")
    assert state_of(table).select("url", "fetch_time").rows() == [(HOME, NOW)]
    assert warnings(caplog)[0].endswith("part-00000.gz, line 3: bad record")


def test_an_unclear_time_zone_is_one_line_and_an_option_names_it(tmp_path, table, refuse):
    record = (
        "http://a.com/\tVersion: 7\nStatus: 1 (db_unfetched)\nFetch time: Sun Nov 01 05:30:00 IST 2026\n"
        "Modified time: Thu Jan 01 05:30:00 IST 1970\nRetries since fetch: 0\n"
        "Retry interval: 60 seconds (0 days)\nScore: 1.0\nSignature: null\nMetadata: \n \n"
    )
    (tmp_path / "part-00000").write_text(record)
    assert "the time zone 'IST' is not known or ambiguous: give --time_zone" in refuse(
        "import_nutch", table, tmp_path / "part-00000"
    )
    assert not table.exists()
    words = ("import_nutch", table, tmp_path / "part-00000", "--time_zone")
    assert "--time_zone must be the name of a time zone" in refuse(*words, "Mars")
    assert nutbeam(*words, "Asia/Kolkata") == 0
    assert state_of(table)["fetch_time"].to_list() == [NOW]
    assert manifest_of(table).job == "import_nutch"


def test_two_segments_of_one_name_are_refused(tmp_path, table, refuse):
    paths = []
    for name in ("one", "two"):
        other = NutchCrawl(tmp_path / name)
        paths.append(other.segment("20261022000000", listed=[datum(HOME)]))
    error = refuse("import_nutch", table, *paths)
    assert "two segments have the name '20261022000000': import" in error
    assert not table.exists()


def test_a_segment_that_is_imported_again_is_named_unless_the_operation_is_the_same(
    crawl, table, caplog, capsys
):
    crawl.segment("1", fetched=[datum(HOME, 33)], contents={HOME: page(b"x")})
    words = ("import_nutch", table, crawl.folder)
    for operation in (("--operation", "first"),) * 2:
        printed(capsys, *words, *operation)
    (batch,) = manifest_of(table).batches
    assert warnings(caplog) == []
    printed(capsys, *words)
    (line,) = warnings(caplog)
    assert line.startswith(
        f"segment 1 is imported again, as one more batch: it is batch {batch} already"
    )


def test_a_configuration_is_not_written_if_a_path_beside_it_is_wrong(tmp_path, table, refuse):
    conf, target = tmp_path / "conf", tmp_path / "settings"
    conf.mkdir()
    (conf / "nutch-site.xml").write_text("<configuration/>")
    options = ("--conf", conf, "--conf_to", target)
    assert "no such file or folder" in refuse("import_nutch", table, tmp_path / "no", *options)
    assert not target.exists()
