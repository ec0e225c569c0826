"""The plug-ins of the template, and one in a file, on workers of Flink that have neither."""

import json

import pytest
from crawling import nutbeam
from flink.cluster import Cluster, missing
from job_server import run
from plugin_template import TEMPLATE, gopher_site, install_template, template_options

pytestmark = [
    pytest.mark.flink,
    pytest.mark.long,
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(not TEMPLATE.exists(), reason="docs/ is not part of the wheel"),
]


def test_a_round_uses_plug_ins_of_a_package_and_of_a_file(tmp_path):
    site = install_template(tmp_path / "template")
    (tmp_path / "rules.py").write_text(
        "def no_text(urls):\n    return ~urls.str.ends_with('/0/text')\n"
    )
    with gopher_site() as port, Cluster(1, bare=True, attempts=0) as cluster:
        seeds = [f"gopher://localhost:{port}/1{page}" for page in ("", "/menu")]
        scheme = ("--schemes", "http,https,gopher", "--protocols", "gopher:=gopher")
        (tmp_path / "seeds").write_text("\n".join(seeds))
        code, printed, said = run(
            "inject", "table", tmp_path / "seeds", *scheme, cwd=tmp_path, PYTHONPATH=str(site)
        )
        assert code == 0, said
        words = [
            word.replace("no_print_versions", "no_print_versions,./rules.py:no_text")
            for word in template_options(port)
        ]
        code, printed, said = run(
            "round", "table", *words, *cluster.options, "--plugin_package", "nutbeam-example",
            cwd=tmp_path, timeout=900, PYTHONPATH=str(site),
        )  # fmt: skip
        assert code == 0, f"{printed}\n{said}\n{cluster.logs()}"
    code, printed, _ = run("pages", "table", cwd=tmp_path)
    pages = [json.loads(line) for line in printed.splitlines()]
    assert {page["url"] for page in pages} == set(seeds)
    assert all(page["metadata"]["reading_minutes"] == "1" for page in pages)
    assert (
        nutbeam("export", tmp_path / "table", "--what", "state", "-o", tmp_path / "state.jsonl")
        == 0
    )
    urls = (tmp_path / "state.jsonl").read_text()
    assert "/0/empty" in urls
    assert "/0/text" not in urls
