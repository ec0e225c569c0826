"""Nutch's own index-writers.xml and an exchanges.xml say where documents go."""

import csv
import io

import pytest
from crawling import nutbeam
from indexed_tables import page, put
from nutch_index_files import exchanges_xml, index_writers_xml

from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.writer_kinds import open_writer
from nutbeam.io.table.opening import open_table
from nutbeam.policy.indexing.index_options import IndexWriterOptions
from nutbeam.transforms.indexing import index_setup
from nutbeam.transforms.indexing.index_setup import chosen_writers


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index_setup._warn_once.cache_clear()
    (tmp_path / "index-writers.xml").write_text(index_writers_xml())
    return tmp_path


def test_every_writer_of_the_file_is_taken_or_named(folder, caplog):
    options = IndexWriterOptions(index_writers="index-writers.xml")
    routes = chosen_writers(options)
    kinds = [rule.kind for rule in routes.writers]
    assert kinds == ["solr", "dummy", "csv", "elasticsearch"]
    (line,) = (record.getMessage() for record in caplog.records)
    for left_out in ("indexer_rabbit_1 (rabbit)", "cloudsearch", "kafka"):
        assert left_out in line
    chosen_writers(options)
    assert len(caplog.records) == 1
    table = open_table(str(folder / "table"))
    solr, _, _, elastic = (
        open_writer(rule, IndexTarget("main", rule.name, rule.parameters, table, 1, ""))
        for rule in routes.writers
    )
    assert solr.target.name == "indexer_solr_1"
    assert elastic.kind == "elasticsearch"


def test_documents_go_where_exchanges_say(folder):
    table = str(folder / "table")
    put(table, "17-1", {"com.a:http/1": page("é" * 5000), "com.a:http/2": page('say "x", y')})
    (folder / "exchanges.xml").write_text(exchanges_xml("indexer_dummy_1", "indexer_csv_1"))
    words = ("--index_writers", "index-writers.xml", "--exchanges", "exchanges.xml")
    assert nutbeam("index", table, *words) == 0
    (dummy,) = (folder / "dummy-index.txt").glob("*.txt")
    assert dummy.read_text() == "add\thttp://a.com/1\nadd\thttp://a.com/2\n"
    (file,) = (folder / "csvindexwriter").glob("*.csv")
    header, first, second = csv.reader(io.StringIO(file.read_text("utf-8")))
    assert header == ["id", "title", "content"]
    assert first == ["http://a.com/1", "é" * 100, "é" * 4096]
    assert second[2] == 'say "x", y'
    put(table, "17-2", {"com.a:http/2": None})
    assert nutbeam("index", table, *words) == 0
    assert len(list((folder / "dummy-index.txt").glob("*"))) == 1  # its parameter delete is false
    assert len(list((folder / "csvindexwriter").glob("*-deletes.csv"))) == 1


def test_a_route_to_a_writer_that_is_not_here_is_an_error(folder, capsys):
    table = str(folder / "table")
    put(table, "17-1", {"com.a:http/1": page("one")})
    (folder / "exchanges.xml").write_text(exchanges_xml("indexer_kafka_1", "indexer_csv_1"))
    words = ("--index_writers", "index-writers.xml", "--exchanges", "exchanges.xml")
    capsys.readouterr()
    assert nutbeam("index", table, *words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "a route names index writer 'indexer_kafka_1'" in error
    assert "nutbeam has no indexer_kafka_1 (kafka)" in error


def test_a_mapping_that_changes_the_id_fails_at_once(folder, capsys):
    table = str(folder / "table")
    put(table, "17-1", {"com.a:http/1": page("one")})
    (folder / "w.toml").write_text('[[writer]]\nname="a"\nkind="dummy"\npath="x"\nremove=["id"]')
    capsys.readouterr()
    assert nutbeam("index", table, "--index_writers", "w.toml") == 2
    error = capsys.readouterr().err
    assert (error.count("\n"), "got 'remove id'" in error) == (1, True)
    assert not (folder / "x").exists()
