"""The guide of the transforms names modules that exist."""

import importlib
import re

import pytest
from here import ROOT

GUIDE = ROOT / "docs" / "guides" / "transforms.md"
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel")


def test_each_transform_is_in_the_module_that_the_table_names():
    rows = re.findall(r"^\| ([`\w, ]+) \| `([\w.]+)` \| ", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert rows
    for names, module in rows:
        public = vars(importlib.import_module(f"nutbeam.transforms.{module}"))
        assert set(re.findall(r"\w+", names)) <= public.keys()
