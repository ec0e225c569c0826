"""The graph of a job knows the table's name, and not what is in it."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState
from crawling import manifest_of, nutbeam
from simulated_web import SimWeb

from nutbeam.io.snapshots.manifest import store_manifest
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files, store_files
from nutbeam.pipelines.reference_pages.reference import TEMPLATES

TABLETS = 5000
MOST_BYTES = 1 << 20
_KEPT = []


class KeepGraph(PipelineRunner):
    """A runner that only keeps the graph, as it would be sent."""

    def run_pipeline(self, pipeline, options):
        _KEPT.append(pipeline.to_runner_api().SerializeToString())
        return PipelineResult(PipelineState.DONE)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two tables, after a round and with a batch chosen: of one tablet, and of thousands."""
    folder = tmp_path_factory.mktemp("graph")
    with SimWeb(hosts=3, pages=4, seed=7, crawl_delay=0) as web:
        connect_to = [word for mapping in web.connect_to for word in ("--connect_to", mapping)]
        for name in ("small", "large"):
            words = [*web.seeds, "--rounds", "1", "--server_delay", "0", *connect_to]
            assert nutbeam("crawl", folder / name, *words) == 0
            assert nutbeam("generate", folder / name) == 0
    grow(folder / "large")
    shutil.copytree(folder / "small", folder / "other")
    return folder


def grow(table):
    """Adds a snapshot whose components have thousands of files, which are nowhere."""
    manifest = manifest_of(table)
    components = {}
    for name, component in manifest.components.items():
        (file, *_) = load_files(table, component)
        files = [
            dataclasses.replace(file, path=f"{file.path}-{number}", order=number)
            for number in range(TABLETS)
        ]
        components[name] = store_files(table, name, files)
    larger = dataclasses.replace(
        manifest, snapshot=manifest.snapshot + 1, operation="grown.grow", components=components
    )
    assert store_manifest(open_table(str(table)), larger)


_AGENT = ("--agent_name", "bot", "--agent_email", "bot@example.com")
_WORDS = {
    "inject": ("http://h0.example.com/",),
    "fetch": _AGENT,
    "round": _AGENT,
    "sitemap": ("http://h0.example.com/sitemap.xml", *_AGENT),
    "purge": ("--host", "h1.example.com"),
}


def graph_of(command, table):
    """Returns the graph of a command on a table."""
    _KEPT.clear()
    words = list(_WORDS.get(command, ()))
    if command == "mergelinkdb":
        words = [str(table.parent / "other")]
    runner = f"--runner={__name__}.{KeepGraph.__name__}"
    words += ["--operation", "the-one", runner, "--no_wait_until_finish"]
    assert nutbeam(command, table, *words) == 0
    (graph,) = _KEPT
    return graph


@pytest.mark.long
@pytest.mark.parametrize("command", TEMPLATES)
def test_a_graph_is_no_larger_for_a_large_table(tables, command):
    small, large = (graph_of(command, tables / name) for name in ("small", "large"))
    assert len(load_files(tables / "large", manifest_of(tables / "large").components["state"])) == (
        TABLETS
    )
    assert len(small) < MOST_BYTES
    # The same length but for how well a pickle is compressed.
    assert abs(len(small) - len(large)) < 200


@pytest.mark.long
def test_a_graph_is_built_without_a_look_at_the_data(tables):
    # No file of the large table's lists is there.
    table = tables / "large"
    files = load_files(table, manifest_of(table).components["state"])
    assert not [file.path for file in files if (Path(table) / file.path).exists()]
    assert graph_of("round", table)
