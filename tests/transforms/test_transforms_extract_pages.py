"""A page on which a rule never ends costs that page its records, and nothing else."""

import polars as pl
import pytest

from nutbeam.io.parsing.parse_pool import ParsePool
from nutbeam.policy.parsing.documents import DocumentOptions
from nutbeam.transforms.elements.chunks import to_chunks
from nutbeam.transforms.extract_pages import extract_pages
from nutbeam.transforms.parsing import parse_pages
from nutbeam.web.extracting.rule_reader import read_extraction_file

pytestmark = pytest.mark.long
# libxml2 has no limit: this takes the cube of the number of elements.
RULES = """
[[rule]]
name = "slow"
[rule.fields]
x = "xpath://*[count(//*[count(//*) > 1]) > 1]"
"""
SMALL, LARGE = b"<title>T</title><p>text</p>", b"<p>text</p>" + b"<b>1</b>" * 20_000


@pytest.fixture
def pool():
    pool = ParsePool(1, 0)
    yield pool
    pool.close()


def test_a_rule_that_never_ends_costs_one_page_its_records_and_not_its_text(pool, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(RULES)
    bodies = [SMALL, LARGE, SMALL]
    pages = pl.DataFrame(
        {
            "url": [f"http://a.example/{n}" for n in range(3)], "body": bodies,
            "content_type": ["text/html"] * 3,
        }
    ).with_columns(headers=pl.lit(None), last_fetch_time=pl.lit(None))  # fmt: skip
    rows, counts = [], {}
    for table, own_counts in extract_pages(pages, read_extraction_file(str(file)), pool, 1.0):
        rows += table.to_pylist()
        counts.update(own_counts)
    assert [row["url"][-1] for row in rows] == ["0", "2"]
    assert (counts["extract/s/slow/pages"], counts["extract/s/slow/timeout"]) == (3, 1)
    options = DocumentOptions(extract=(str(file),), parser_timeout=1.0)
    (chunk,) = to_chunks(pages.select("url", "body", "content_type"))
    documents, dead, counts = parse_pages(chunk, options, pool)
    assert (len(documents), len(dead)) == (3, 0)
    assert all("text" in text for text in documents["text"])
    assert counts["extract/s/slow/timeout"] == 1
    assert counts["extract/s/slow/records"] == 2
