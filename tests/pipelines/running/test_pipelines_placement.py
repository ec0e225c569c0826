"""Which workers a job on a cluster gets: none, one, or all."""

import dataclasses
import math

import pytest
from bad_input import AGENT
from crawling import assert_same, contents, manifest_of, manifests_of, nutbeam, reach
from simulated_web import SimWeb
from table_changes import change, state_of

from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines import crawl, dedup, fetch, inject, invertlinks, parse, update
from nutbeam.pipelines.batch_tools import reparse
from nutbeam.pipelines.command_line.cli import main
from nutbeam.pipelines.generating.generate_candidates import rows_to_survey
from nutbeam.pipelines.launch.job import prepare
from nutbeam.pipelines.round import find_next_round, stages_of_round
from nutbeam.pipelines.running.one_worker import build_placed
from nutbeam.pipelines.running.placement import Workers
from nutbeam.pipelines.running.runner import make_pipeline, run_pipeline
from nutbeam.transforms.tickets import Ticket
from nutbeam.web.base.clock import now_ms
from nutbeam.web.base.errors import NothingToDo

FLINK = ["--runner=PortableRunner", "--job_endpoint=localhost:1", "--environment_type=PROCESS",
         "--environment_options=process_command=/none", "--parallelism=2"]  # fmt: skip


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=2, pages=4, seed=7, crawl_delay=0) as served:
        yield served


@pytest.fixture(scope="module")
def table(web, tmp_path_factory):
    """A table with a batch that is updated, deduped and not inverted; nothing is due."""
    folder = tmp_path_factory.mktemp("placement") / "table"
    assert nutbeam("inject", folder, *urls_of(web)) == 0
    assert nutbeam("round", folder, *reach(web), "--top_n", 100) == 0
    return folder


def urls_of(web):
    return [web.site.plan.url(page) for page in web.site.plan.all_pages()]


def steps(table, build, kind, batch=None, **options):
    """Returns the names of the steps that Flink gets of a job; None if it gets none."""
    every = {"shared_path": True, "deliver": False}
    options = kind(**every, **options)
    pipeline = prepare(Ticket(str(table), "op", batch), build, options, FLINK)
    if "Portable" not in type(pipeline.runner).__name__:
        return None
    parts = pipeline.to_runner_api().components.transforms.values()
    return [part.unique_name for part in parts if not part.subtransforms]


def test_a_job_that_has_nothing_to_do_gets_no_worker(table):
    assert steps(table, update.build, update.Options) is None
    assert steps(table, parse.build, parse.Options) is None
    assert steps(table, fetch.build, fetch.Options) is None
    assert steps(table, update.build, update.Options, "no-such-batch") is None
    (batch,) = manifest_of(table).batches
    assert steps(table, parse.build, parse.Options, batch) is None
    assert steps(table, invertlinks.build, invertlinks.Options)  # it waits for the links


def test_a_job_that_has_nothing_to_do_ends_as_on_one_machine(table):
    options = update.Options(shared_path=True)
    pipeline = prepare(Ticket(str(table), "op"), update.build, options, FLINK)
    with pytest.raises(NothingToDo, match="no batch is parsed"):
        run_pipeline(pipeline)


def test_dedup_of_an_empty_table_gets_no_worker(tmp_path):
    assert steps(tmp_path, dedup.build, dedup.Options) is None


def test_a_job_on_a_small_table_is_one_step(table):
    (batch,) = manifest_of(table).batches
    for build, kind in ((dedup.build, dedup.Options), (reparse.build, parse.Options)):
        few = steps(table, build, kind, batch)
        assert len([name for name in few if "Impulse" not in name]) == 1
        assert len(steps(table, build, kind, batch, one_worker_urls=0)) > 10
        assert len(steps(table, build, kind, batch, one_worker_urls=1)) > 10  # it has more URLs


def test_many_seeds_are_for_all_workers(tmp_path):
    few, many = (tmp_path / name for name in ("few.txt", "many.txt"))
    few.write_text("http://a.com/\n")
    many.write_text("http://a.com/\n" * 10_000)
    table = tmp_path / "table"
    sizes = [
        len(steps(table, inject.build_of_seeds([str(path)]), inject.Options, one_worker_urls=1_000))
        for path in (few, many)
    ]
    assert sizes[0] < 4
    assert sizes[1] > 10


@pytest.fixture
def due_table(tmp_path):
    """A table of 300 URLs that are due."""
    (tmp_path / "seeds.txt").write_text("".join(f"http://a.com/{n}\n" for n in range(300)))
    assert nutbeam("inject", tmp_path / "due", tmp_path / "seeds.txt") == 0
    return tmp_path / "due"


def phases_spread(table, **options):
    """Returns the phases of a round that have steps for all workers."""
    names = steps(table, stages_of_round(crawl.Options(**options), 1), crawl.Options, **options)
    every = {"Generate", "Fetch", "Parse", "Update", "Links", "Dedup"}
    return {name.split("/")[0] for name in names} & every


def test_only_the_fetch_of_a_small_round_is_for_all_workers(due_table):
    assert phases_spread(due_table, num_fetchers=2) == {"Fetch"}
    assert phases_spread(due_table, num_fetchers=1) == set()
    assert phases_spread(due_table, one_worker_urls=0) == {
        "Generate", "Fetch", "Parse", "Update", "Dedup"
    }  # fmt: skip


def test_few_pages_of_a_large_table_are_worked_on_by_one_worker(due_table):
    """Only the steps that read the whole table, and the fetch, are for all workers."""
    large = {"num_fetchers": 2, "one_worker_urls": 5}
    assert phases_spread(due_table, top_n=1, **large) == {"Generate", "Fetch", "Dedup"}
    assert phases_spread(due_table, top_n=2, **large) == {"Generate", "Fetch", "Update", "Dedup"}


def test_the_pages_of_a_round_are_not_more_than_the_rows_that_are_due(tmp_path):
    """``--top_n`` is 50,000 by default, and would be for all workers."""
    tomorrow = now_ms() + 86_400_000
    rows = state_of({f"com.a:http/{n}": 1.0 for n in range(100)}, fetch_time=tomorrow)
    change(str(tmp_path), rows, "load")
    table, options = open_table(str(tmp_path)), crawl.Options()
    assert rows_to_survey(table, manifest_of(tmp_path), options) == 0  # zone maps say so
    assert nutbeam("inject", tmp_path, "http://b.com/") == 0
    assert rows_to_survey(table, manifest_of(tmp_path), options) == 101
    large = {"num_fetchers": 2, "one_worker_urls": 7}
    assert phases_spread(tmp_path, **large) == {"Fetch"}
    assert phases_spread(tmp_path, add_days=2, **large) == {"Fetch", "Update", "Dedup"}


def test_a_batch_that_was_fetched_only_is_parsed_by_all_workers(web, tmp_path):
    assert nutbeam("inject", tmp_path, *urls_of(web)) == 0
    assert nutbeam("generate", tmp_path, "--top_n", 1) == 0
    assert phases_spread(tmp_path, one_worker_urls=5) == set()
    assert nutbeam("fetch", tmp_path, *reach(web)) == 0
    assert phases_spread(tmp_path, one_worker_urls=5) == {"Parse"}


ONE, ALL = Workers.ONE, Workers.ALL


@pytest.mark.parametrize(
    ("fetchers", "workers"), [(1, [ONE] * 5), (2, [ONE, ALL, ONE, ONE, ONE]),
                              (2, [ALL, ALL, ONE, ONE, ALL])]
)  # fmt: skip
def test_a_round_on_one_worker_makes_the_same_table(web, tmp_path, fetchers, workers):
    here, there = tmp_path / "here", tmp_path / "there"
    for table in (here, there):
        assert nutbeam("inject", table, *web.seeds) == 0
    assert nutbeam("round", here, *reach(web), "--num_fetchers", fetchers) == 0
    connect_to = tuple(word for word in reach(web) if ":" in str(word))
    options = crawl.Options(num_fetchers=fetchers, connect_to=connect_to, server_delay=0.0)
    rows = [0 if needed is ONE else math.inf for needed in workers]
    stages = dataclasses.replace(stages_of_round(options, 1), rows=lambda *_: rows)
    ticket, pipeline = Ticket(str(there), "op"), make_pipeline([])
    build_placed(pipeline, stages.place(ticket, options), options, (ticket, 0))
    result = run_pipeline(pipeline)
    assert_same(contents(there), contents(here))
    counters = {
        (one.key.metric.namespace, one.key.metric.name): one.result
        for one in result.metrics().query()["counters"]
    }
    (fetched,) = [one.counts for one in manifests_of(here) if one.job == "fetch"]
    assert counters["nutbeam_fetcher", "pages"] == fetched["pages"]


def test_a_job_on_one_worker_is_one_task_of_flink(table):
    options = dedup.Options(shared_path=True, deliver=False)
    typed = [*FLINK[:-1], "--parallelism", "2"]
    for beam_args in (FLINK, typed):
        pipeline = prepare(Ticket(str(table), "op"), dedup.build, options, beam_args)
        assert pipeline.options.get_all_options()["parallelism"] == 1


def test_without_due_rows_nothing_is_sent_to_a_cluster(tmp_path, capfd, monkeypatch):
    """Zone maps still know the earlier times of rows that were fetched since."""
    with SimWeb(hosts=1, pages=100, seed=7, crawl_delay=0) as web:
        words = ("crawl", tmp_path, *web.seeds, *reach(web), "--rounds", -1)
        assert nutbeam(*words, "--progress", "false") == 0
    begin(str(tmp_path), "crawl", "op.crawl")
    options = crawl.Options()
    assert find_next_round(str(tmp_path), "op", options, 1)  # as far as zone maps say
    assert find_next_round(str(tmp_path), "op", options, 1, by_rows=True) is None
    # No job server is there, which is not looked for.
    monkeypatch.setattr("nutbeam.pipelines.launch.job.preflight", lambda *_, **__: None)
    for job in (["generate"], ["round", *AGENT]):
        assert main([*job, str(tmp_path), "--shared_path", *FLINK]) == 1
        assert "due" in capfd.readouterr().out
    assert nutbeam("inject", tmp_path, "http://new.example.com/") == 0
    assert find_next_round(str(tmp_path), "op", options, 1, by_rows=True) == (1, None)
    sent = []
    monkeypatch.setattr(
        "nutbeam.pipelines.round.run_over_conflicts",
        lambda pipeline, *_: sent.append(type(pipeline.runner).__name__),
    )
    main(["round", *AGENT, str(tmp_path), "--shared_path", *FLINK])
    assert sent == ["PortableRunner"]
