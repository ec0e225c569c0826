"""The template of a package of plug-ins is built, installed, and used in all its kinds."""

import json
import subprocess
import sys

import pytest
from crawling import manifest_of
from job_server import run
from plugin_template import TEMPLATE, gopher_site, install_template, template_options

from nutbeam.policy.components.reasons import plugin_faults

pytestmark = pytest.mark.skipif(not TEMPLATE.exists(), reason="docs/ is not part of the wheel")
PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return install_template(tmp_path_factory.mktemp("template"))


@pytest.mark.long
def test_the_tests_of_the_template_pass(site, tmp_path):
    words = ("-q", "-c", "/dev/null", "-p", "no:cacheprovider", str(TEMPLATE / "tests"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, env={"PYTHONPATH": str(site)},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout


def test_the_plug_ins_of_the_template_are_listed_with_their_package(site):
    code, printed, _ = run("plugin", "--format", "json", PYTHONPATH=str(site))
    records = map(json.loads, printed.splitlines())
    ours = {record["kind"]: record for record in records if record["package"] == "nutbeam-example"}
    assert code == 0
    assert {kind: record["name"] for kind, record in ours.items()} == {
        "url_filter": "no_print_versions", "url_normalizer": "without_tracking",
        "protocol": "gopher", "parser": "gopher_menu", "parse_filter": "reading_time",
        "schedule": "daily_front_pages", "scoring": "shallow", "index_filter": "words",
        "index_writer": "titles", "tokenizer": "quarters", "embedding": "letters",
    }  # fmt: skip
    assert ours["parser"]["object"] == "nutbeam_example.gopher:parse_menu"
    assert {record["version"] for record in ours.values()} == {"1.0"}


@pytest.mark.parametrize(
    "runner", [(), pytest.param(PROCESSES, marks=pytest.mark.long)], ids=["here", "processes"]
)
def test_a_crawl_uses_every_kind(site, tmp_path, runner):
    with gopher_site() as port:
        code, printed, said = run(
            "crawl", "table", *(f"gopher://localhost:{port}/1{page}" for page in ("", "/menu")),
            *template_options(port), "--rounds", "2", *runner, cwd=tmp_path, PYTHONPATH=str(site),
        )  # fmt: skip
    assert code == 0, f"{printed}\n{said}"
    _, printed, _ = run("pages", "table", cwd=tmp_path)
    pages = {
        page["url"].partition(str(port))[2]: page for page in map(json.loads, printed.splitlines())
    }
    assert pages.keys() >= {"/1", "/1/menu", "/0/text"}
    assert "/0/empty" not in {url for url, page in pages.items() if page["text"]}
    assert pages["/1"]["title"] == "Front"
    assert pages["/1/menu"]["metadata"] == {"entries": "1", "reading_minutes": "1"}
    counts = manifest_of(tmp_path / "table").counts
    assert plugin_faults(counts) == []
    words = ("--chunks", "16", "--chunk_tokenizer", "quarters", "--embedding", "letters")
    code, printed, said = run("pages", "table", *words, *runner, cwd=tmp_path, PYTHONPATH=str(site))
    assert code == 0, said
    chunks = [*map(json.loads, printed.splitlines())]
    assert chunks
    assert {len(chunk["embedding"]) for chunk in chunks} == {26}
    assert all(chunk["tokens"] == -(-len(chunk["text"]) // 4) <= 16 for chunk in chunks)
    words = ("--writer", "titles", "--writer_parameters", "file=titles.txt")
    code, printed, said = run(
        "index", "table", *words, "--index_filters", "basic,words", "--scoring", "opic,shallow",
        *runner, cwd=tmp_path, PYTHONPATH=str(site),
    )  # fmt: skip
    assert code == 0, f"{printed}\n{said}"
    titles = (tmp_path / "titles.txt").read_text().splitlines()
    assert f"gopher://localhost:{port}/1\tFront" in titles
