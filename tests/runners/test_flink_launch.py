"""Operations end to end on a real Flink cluster: pin and commit are steps of the pipeline."""

import polars as pl
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.portable_runner import PortableRunner
from crawling import (
    asked,
    assert_same,
    contents,
    latest_snapshot,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
)
from flink.cluster import ENDED, wait_for
from flink.jobs import ENOUGH_S, bring_in, choose, launched, whole
from simulated_web import served_web

from nutbeam.pipelines import generate
from nutbeam.pipelines.launch.job import prepare
from nutbeam.transforms.tickets import Ticket
from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.flink


web = served_web(hosts=3, pages=5, seed=5, scope="module")


def test_the_launcher_dies_and_the_commit_comes(flink, web, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    choose(here, web)
    bring_in(here, web, "fetch", "parse", "updatedb")
    urls = choose(there, web, "--num_fetchers", 2)
    before, start = latest_snapshot(there), len(asked(web))
    with launched(flink, "fetch", there, "--operation", "alone", *reach(web)) as command:
        (job,) = command.wait_for(command.jobs, "the job was submitted")
        command.kill()
        assert latest_snapshot(there) == before
        wait_for(lambda: flink.jobs()[job] in ENDED, "the job's end", ENOUGH_S)
    assert flink.jobs()[job] == "FINISHED"
    made = manifest_of(there)
    assert (made.operation, made.snapshot) == ("alone.fetch", before + 1)
    assert made.counts["pages"] == len(urls)
    # Another launch reports what it did.
    assert nutbeam("fetch", there, "--operation", "alone", *reach(web)) == 0
    assert sorted(asked(web)[start:]) == urls
    assert latest_snapshot(there) == before + 1
    bring_in(there, web, "parse", "updatedb")
    assert_same(contents(there), contents(here))


def test_options_that_flink_does_not_have_or_refuses(flink, web, tmp_path, capsys):
    table = tmp_path / "table"
    choose(table, web)
    for words, code, reason in (
        (
            ["--tabel_x", "3"],
            2,
            "unknown option '--tabel_x': neither Beam nor the job server has it",
        ),
        (["--execution_mode_for_batch=BATCHFORCED"], 2, ", got 'BATCHFORCED'"),
        (["--parallelism=0", "--one_worker_urls", "0"], 3, "Parallelism must be at least one"),
    ):
        capsys.readouterr()
        assert nutbeam("next", table, *reach(web), *flink.options, *words) == code
        out, err = capsys.readouterr()
        assert (out, reason in err) == ("", True)
    assert flink.running() == []


@pytest.mark.long
def test_a_graph_that_was_built_before_works_on_the_table_as_it_is_when_it_runs(
    flink, web, tmp_path
):
    table = tmp_path / "table"
    first, *others = sorted(web.site.urls("page"))
    assert nutbeam("inject", table, first) == 0
    options = generate.Options(shared_path=True, deliver=False)
    beam_args = [*flink.beam_args, "--sdk_location=container"]
    pipeline = prepare(Ticket(str(table), "later"), generate.build, options, beam_args)
    runner = PortableRunner()
    graph = pipeline.to_runner_api(
        default_environment=runner.default_environment(pipeline.options)
    ).SerializeToString()
    known = {path.name for path in table.rglob("*.parquet")}
    assert nutbeam("inject", table, *others) == 0
    gone = [path for path in table.rglob("state/*.parquet") if path.name in known]
    for path in gone:  # what the graph could have seen is there no more
        path.unlink()
    assert gone
    result = runner.run_portable_pipeline(
        beam_runner_api_pb2.Pipeline.FromString(graph), PipelineOptions(beam_args)
    )
    assert result.wait_until_finish(int(ENOUGH_S * 1000)) == "DONE"
    assert [m.operation for m in manifests_of(table)][2:] == ["later.generate"]
    chosen = pl.concat(pl.read_parquet(path, columns=["key"]) for path in whole(table, "fetchlist"))
    assert {from_key(key) for key in chosen["key"]} == {first, *others}
