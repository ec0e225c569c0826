"""The loaders of docs/guides/agents.md, with the real LangChain and LlamaIndex.

These live in an environment of their own, build/loaders, because of what they bring.
"""

import json
import re
import subprocess

import pytest
from crawling import nutbeam
from here import ROOT

GUIDE = ROOT / "docs" / "guides" / "agents.md"
PYTHON = ROOT / "build" / "loaders" / "bin" / "python"
PROBE = """
import itertools, json, sys
from nutbeam_langchain import NutbeamLoader
from nutbeam_llamaindex import NutbeamReader
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaDocument

table, shown = sys.argv[1], []
for chunks in (0, 16):
    loaded = NutbeamLoader(table, chunks).load()
    assert all(type(document) is LangChainDocument for document in loaded)
    read = NutbeamReader().load_data(table, chunks)
    assert all(type(document) is LlamaDocument for document in read)
    shown.append([
        sorted([d.page_content, d.id, d.metadata["source"], d.metadata["title"]] for d in loaded),
        sorted([d.text, d.id_, d.metadata["url"], d.metadata["title"]] for d in read),
    ])
print(json.dumps(shown))
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not PYTHON.exists(),
        reason=f"needs the frameworks: {PYTHON} is missing, make test-loaders makes it",
    ),
    pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel"),
]


def test_the_loaders_of_the_guide_give_documents_of_both_frameworks(tmp_path):
    files = re.findall(
        r'^```python title="(\w+\.py)"\n(.*?)^```$', GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert [name for name, _ in files] == ["nutbeam_langchain.py", "nutbeam_llamaindex.py"]
    for name, text in files:
        assert len(text.split("\nclass ")[1].splitlines()) <= 20
        (tmp_path / name).write_text(text)
    site = tmp_path / "site"
    site.mkdir()
    link = "<a href='b.html'>b</a>"
    (site / "a.html").write_text(
        f"<title>A</title><h2>One</h2>{'word ' * 5}.<h2>Two</h2>End. {link}"
    )
    (site / "b.html").write_text("<title>B</title>")  # a page without text
    table, words = tmp_path / "table", ("--schemes", "file", "--file_roots", site)
    assert nutbeam("crawl", table, f"file://{site}/a.html", *words) == 0
    probe = subprocess.run(
        [PYTHON, "-c", PROBE, table], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert probe.returncode == 0, probe.stderr
    for number, (loaded, read) in enumerate(json.loads(probe.stdout.splitlines()[-1])):
        assert loaded == read
        assert {url.rpartition("/")[2] for *_, url, _ in loaded} == [
            {"a.html", "b.html"},
            {"a.html"},
        ][number]
        assert len({name for _, name, *_ in loaded}) == len(loaded) == [2, 2][number]
