"""docs/reference/files.md lists every file that a crawl makes in a table."""

import re

import pytest
from crawling import nutbeam
from here import ROOT
from simulated_web import SimWeb

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
        name: re.compile(re.sub("ID|NAME|NUMBER", r"[^/]+", name.replace(".", r"\.")))
        for name in names
    }


def test_every_file_of_a_table_is_listed(tmp_path):
    table = tmp_path / "table"
    with SimWeb(hosts=1, pages=3, seed=7, crawl_delay=0) as web:
        doors = [word for door in web.connect_to for word in ("--connect_to", door)]
        assert nutbeam("crawl", table, *web.seeds, *doors, "--server_delay", "0") == 0
    found = [str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()]
    assert len(found) > 10
    known = patterns()
    assert [name for name in found if not any(p.fullmatch(name) for p in known.values())] == []
    made = {name for name, p in known.items() if any(map(p.fullmatch, found))}
    assert {"manifest/NUMBER.json", "state/NAME.parquet", "batches/ID/pages/NAME.parquet"} <= made
