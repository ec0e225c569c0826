"""The notebook runs from start to end, and draws what it says."""

import os
import re

import pytest
from here import ROOT

from nutbeam.policy.components.views import views

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
pytestmark = pytest.mark.skipif(not NOTEBOOK.exists(), reason="docs/ is not part of the wheel")


@pytest.fixture
def notebook():
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient: pip install 'nutbeam[dev]'")
    return nbformat.read(NOTEBOOK, as_version=4)


def test_the_notebook_is_stored_without_results(notebook):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)


def test_the_notebook_reads_existing_views(notebook):
    code = "".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    read = re.findall(r'table\.frame\("(\w+)"', code) + re.findall(r"FROM (\w+)", code)
    assert len(read) == code.count("table.frame(") + code.count("table.sql(") > 2
    assert set(read) <= views().keys()
    assert "products" in read


@pytest.mark.long
def test_the_notebook_runs(notebook, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install 'nutbeam[dev]'")
    for name in ("ipykernel", "matplotlib", "duckdb"):
        pytest.importorskip(name, reason=f"needs {name}: pip install 'nutbeam[dev]'")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    shown = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    printed = "".join(o.get("text", "") for o in shown)
    assert re.search(r"rounds, [1-9]\d* pages fetched", printed)
    assert "dropped: out_of_scope" in printed
    assert [o for o in shown if o.get("name") == "stderr"] == []
    assert sum("image/png" in o.get("data", ()) for o in shown) == 1
    texts = [o["data"]["text/plain"] for o in shown if "text/plain" in o.get("data", ())]
    assert any("db_fetched" in text for text in texts)
    prices = [text for text in texts if "price" in text]
    assert all(all(amount in text for amount in ("4.2", "5.9", "24.5")) for text in prices)
    assert len(prices) == 2
    assert "http://h" in texts[-1]
