"""The site of the guide, as a Scrapy spider and as rules: both give the same items."""

import json
import re
import subprocess
import sys
from decimal import Decimal

import polars as pl
import pytest
from guide_blocks import blocks, run_as_typed
from here import ROOT

GUIDE = ROOT / "docs" / "guides" / "from-scrapy.md"
pytestmark = [
    pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel"),
    pytest.mark.long,
]


def test_the_spider_and_the_rules_of_the_guide_give_the_same_items(tmp_path, warm_commands):
    pytest.importorskip("scrapy", reason="Scrapy is in the extra bench")
    lines = [text for text, reason in blocks(GUIDE, "bash") if reason is None]
    run_as_typed("\n".join(lines), tmp_path, warm_commands)
    (spider,) = re.findall(
        r'^```python title="spider.py"\n(.*?)^```$', GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "spider.py").write_text(spider)
    command = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-O", "products.jsonl"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120, capture_output=True)
    items = [json.loads(line) for line in (tmp_path / "products.jsonl").read_text().splitlines()]
    assert len(items) == 3
    rows = pl.read_parquet(tmp_path / "products.parquet").select(*items[0])
    by_url = {item["url"]: item | {"price": Decimal(item["price"])} for item in items}
    assert {row["url"]: row for row in rows.iter_rows(named=True)} == by_url
