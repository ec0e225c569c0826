import itertools

from nutbeam.io.reading.extract_runs import last_extract_run, stored_columns, write_extract_run
from nutbeam.io.rows.extracted_views import extracted_views_sql
from nutbeam.io.storage.local_place import LocalPlace
from nutbeam.web.base.clock import replaced_clock


def test_the_newest_run_that_can_be_read_counts_and_old_ones_are_removed(tmp_path):
    files = LocalPlace(tmp_path)
    assert (last_extract_run(files, "shop"), stored_columns(files)) == ({}, {})
    clock = itertools.count(1_800_000_000_000)  # each has a millisecond of its own
    with replaced_clock(clock.__next__):
        for number in range(60):
            write_extract_run(files, "shop", {"number": number, "stored_columns": {"a": "text"}})
    folder = tmp_path / "extracts" / "shop"
    assert len(list(folder.iterdir())) == 50
    (folder / "9999999999-00000000000.json").write_text("{damaged")
    assert last_extract_run(files, "shop")["number"] == 59
    assert stored_columns(files) == {"shop": {"a": "text"}}


def test_names_of_a_strange_table_do_not_become_sql():
    strange = {
        "x AS SELECT 1; --": {"a": "text"}, "list": ["a"], "pages": {"a": "number"},
        "shop": {"a'b": "text", "b": "VARCHAR", "c": "list of date", "d": "decimal"},
    }  # fmt: skip
    pages, shop = extracted_views_sql(strange)
    assert pages.startswith('CREATE VIEW "pages_rows" AS')
    assert "record.position AS position, [stored.timestamp_of" in shop
    assert ' AS DECIMAL(28, 8)) AS "d",' in shop
    assert not any(word in shop for word in ("a'b", 'AS "b"'))
