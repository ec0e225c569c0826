"""The guides to search servers, as typed, on real servers; run by ``make test-servers``."""

import pytest
from guide_blocks import blocks, run_as_typed
from here import ROOT
from search_servers_here import create_core, managed_configset, search_server

GUIDES = ROOT / "docs" / "guides"
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not GUIDES.exists(), reason="docs/ is not part of the wheel"),
]


@pytest.mark.parametrize("name", ["opensearch", "elasticsearch", "solr"])
def test_a_guide_runs_as_typed(name, tmp_path):
    path = GUIDES / f"{name}.md"
    typed = [text for text, why in blocks(path, "bash") if (why or "").startswith("servers:")]
    expected = [line for text, _ in blocks(path, "text") for line in text.splitlines()]
    (tmp_path / "work").mkdir()
    folder = tmp_path / "server"
    with search_server(name, folder) as server:
        if name == "solr":
            create_core(server, "pages", managed_configset(folder))
        script = "\n".join(typed)
        for address in ("http://localhost:9200", "http://localhost:8983"):
            script = script.replace(address, server.url)
        printed = run_as_typed(script, tmp_path / "work", seconds=500)
    shown = [line for line in expected if not line.startswith("https://")]
    assert shown
    for line in shown:
        assert line.strip("…") in printed
