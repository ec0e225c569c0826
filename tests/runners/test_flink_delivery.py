"""What workers of a real Flink cluster get, and what is said where they lack something."""

import json

import pytest
from crawling import nutbeam, reach
from flink.cluster import Cluster, missing, wait_for
from flink.jobs import launched
from job_server import run
from plugins import install_example
from simulated_web import SimWeb

pytestmark = [pytest.mark.flink, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def bare():
    """One worker, which has nutbeam's libraries but not nutbeam; nothing is tried twice."""
    with Cluster(1, bare=True, attempts=0) as cluster:
        yield cluster


@pytest.mark.long
def test_a_plug_in_is_used_by_workers_that_have_nothing(bare, tmp_path):
    install_example(tmp_path / "site")
    with SimWeb(hosts=2, pages=4, seed=7, crawl_delay=0) as web:
        assert nutbeam("inject", tmp_path / "table", *web.seeds) == 0
        code, printed, said = run(
            "round", "table", *reach(web), *bare.options, "--parse_filters", "headings",
            "--plugin_package", "headings-filter", cwd=tmp_path, timeout=900,
            PYTHONPATH=str(tmp_path / "site"),
        )  # fmt: skip
        assert (code, said) == (0, ""), f"{printed}\n{bare.logs()}"
    code, printed, _ = run("pages", "table", cwd=tmp_path)
    found = [json.loads(line) for line in printed.splitlines()]
    assert {page["url"] for page in found} == set(web.seeds)
    assert all(page["metadata"]["headings"] for page in found)


def test_workers_without_nutbeam_are_one_line(bare, tmp_path):
    table = tmp_path / "table"
    words = ("--deliver", "false", *bare.options)
    code, _, said = run("inject", table, "http://a.com/", *words, timeout=900)
    assert (code, said) == (
        3,
        (
            "nutbeam inject: package 'nutbeam' is missing on the workers: leave out --deliver false, "
            "or install it in their image\n"
        ),
    )
    assert not table.exists()


@pytest.mark.long
def test_a_cluster_without_a_free_slot_is_one_line(bare, tmp_path):
    table, other = tmp_path / "table", tmp_path / "other"
    address = f"localhost:{bare.rest_port}"
    with SimWeb(hosts=1, pages=4, seed=7, crawl_delay=0) as web:
        assert nutbeam("inject", table, *web.site.urls("page")) == 0
        assert nutbeam("generate", table) == 0
        # One page after the other, and never done: it is cancelled.
        words = ("fetch", table, *reach(web), "--server_delay", "1h")
        with launched(bare, *words) as command:
            command.wait_for(lambda: bare.rest("/overview")["slots-available"] == 0, "it runs")
            words = (*bare.options, f"--flink_master={address}")
            code, _, said = run("inject", other, "http://a.com/", *words)
            bare.cancel()
    assert (code, said) == (
        3,  # a scheduler may try again
        (
            f"nutbeam inject: the Flink cluster at {address!r} has no free slot, all 1 are taken: "
            "wait for a job to end, or add TaskManagers\n"
        ),
    )
    assert not other.exists()
    wait_for(lambda: bare.rest("/overview")["slots-available"] == 1, "the slot is free again")
