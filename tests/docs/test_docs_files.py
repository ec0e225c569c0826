"""docs/reference/files.md lists every file that the jobs make in a table."""

import re

import pytest
from crawling import nutbeam, reach
from here import ROOT
from simulated_web import SimWeb

from nutbeam.io.disk.table_names import is_made_name, name_forms

PAGE = ROOT / "docs" / "reference" / "files.md"
pytestmark = [
    pytest.mark.files,
    pytest.mark.skipif(not PAGE.exists(), reason="docs/ is not part of the wheel"),
]


def patterns():
    """Returns a pattern for each name in the first column of the table."""
    rows = re.findall(r"^\| (`.*?`) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(.+?)`", row)]
    return {
        name: re.compile(re.sub("(?<![.A-Z])[A-Z]{2,}", r"[^/]+", name.replace(".", r"\.")))
        for name in names
    }


@pytest.mark.long
def test_every_file_of_a_table_is_listed(tmp_path):
    table = tmp_path / "table"
    (tmp_path / "hosts").write_text("h0.example.com\tdelay=1\n")
    with SimWeb(hosts=1, pages=3, seed=7, crawl_delay=0) as web:
        more = ("--links", "--index", "main", "--rounds", "2", "--sitemaps", "once")
        assert nutbeam("crawl", table, *web.seeds, *more, *reach(web)) == 0
    assert nutbeam("hostinject", table, tmp_path / "hosts") == 0
    internal = ("--ignore_internal_host", "false", "--ignore_internal_domain", "false")
    assert nutbeam("webgraph", table, *internal) == 0
    assert nutbeam("linkrank", table, "--rank_rounds", "1") == 0
    found = [str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()]
    assert len(found) > 10
    known = patterns()
    assert [name for name in found if not any(p.fullmatch(name) for p in known.values())] == []
    assert [name for name in found if not is_made_name(name)] == []  # so that compact deletes them
    made = {name for name, p in known.items() if any(map(p.fullmatch, found))}
    assert {
        "manifest/SNAPSHOT.json", "state/NAME.parquet", "batches/ID/pages/NAME.parquet",
        "links/NAME.parquet", "host_settings/NAME.parquet", "index/INDEX/indexed/NAME.parquet",
        "page_nodes/NAME.parquet", "page_ranks/NAME.parquet",
    } <= made  # fmt: skip


def test_the_page_lists_the_declared_names_and_no_others():
    assert set(patterns()) == {*name_forms(), ".STOP"}
