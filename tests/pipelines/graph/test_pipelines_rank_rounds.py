"""linkrank in many rounds: several pipelines give the ranks of one, and small tolerances count."""

import apache_beam as beam
import polars as pl
import pytest
from crawling import nutbeam
from linked_tables import make_linked, random_edges, ranks_in

from nutbeam.io.graph.graph_files import RoundFiles
from nutbeam.io.snapshots.operations import Operation
from nutbeam.pipelines.graph import linkrank
from nutbeam.policy.graph.linkrank import PageRank
from nutbeam.policy.graph.rankings import Hits
from nutbeam.transforms.graph import rank_rounds

SMALL = ("--block_nodes", "9")


@pytest.fixture
def table(tmp_path):
    """A table with links."""
    return make_linked(tmp_path / "table", random_edges(5, nodes=80, links=500))


@pytest.mark.long
@pytest.mark.parametrize("tolerance", ["1e-10", "1e-12"])
def test_a_ranking_ends_at_a_very_small_tolerance(table, capsys, tolerance):
    assert nutbeam("webgraph", table, *SMALL) == 0
    capsys.readouterr()
    words = ("--ranking", "pagerank", "--damping_factor", "0.5", "--tolerance", tolerance)
    assert nutbeam("linkrank", table, *words) == 0
    lines = capsys.readouterr().out.splitlines()
    changes = [float(line.split()[-1]) for line in lines if line.startswith("round")]
    assert changes[-1] <= float(tolerance) < changes[-2]
    assert changes[-1] > 0


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.usefixtures("in_ranges")
@pytest.mark.parametrize(
    ("ranking", "tolerance", "rounds"),
    [("pagerank", "0", 25), ("hits", "1e-9", 1000), ("pagerank", "1e-3", 1000)],
)
def test_many_rounds_are_several_pipelines_with_the_same_ranks(
    table, monkeypatch, capsys, ranking, tolerance, rounds
):
    assert nutbeam("webgraph", table, *SMALL) == 0
    words = ("linkrank", table, "--ranking", ranking, "--tolerance", tolerance)
    assert nutbeam(*words, "--rank_rounds", min(rounds, 99)) == 0
    right, shown = ranks_in(table), capsys.readouterr().out
    made, pipelines, real = [], [], linkrank.RankSome.expand

    def expand(self, operations):
        pipelines.append(self)
        return real(self, operations)

    write = RoundFiles.write

    def noting(self, receipt, values):
        made.append((receipt.round, receipt.block))
        write(self, receipt, values)

    monkeypatch.setattr(RoundFiles, "write", noting)
    monkeypatch.setattr(linkrank.RankSome, "expand", expand)
    for module in (linkrank, rank_rounds):
        monkeypatch.setattr(module, "MOST_STEPS", 7)
    assert nutbeam(*words, "--rank_rounds", rounds) == 0
    assert len(pipelines) >= (1 if tolerance == "1e-3" else 3)
    assert ranks_in(table).equals(right)
    assert len(made) == len(set(made))  # no round is made twice
    again = capsys.readouterr().out
    assert _rounds_in(again) == _rounds_in(shown)
    assert again.count("linkrank:") == 1
    assert not list((table / "page_ranks").glob("rounds-*"))


def _rounds_in(printed):
    return [line for line in printed.splitlines() if line.startswith("round")]


def test_one_pipeline_refuses_more_rounds_than_beam_can_build(table, capsys):
    assert nutbeam("webgraph", table) == 0
    words = ("--ranking", "hits", "--rank_rounds", 101, "--no_wait_until_finish")
    assert nutbeam("linkrank", table, *words) == 2
    line = "--rank_rounds must be at most 100 for hits if the job is only submitted, got 101"
    assert line in capsys.readouterr().err
    with pytest.raises(ValueError, match="at most 200 for pagerank in one pipeline, got 201"):
        rank_rounds.RankRounds(PageRank(), rounds=201)


@pytest.mark.long
@pytest.mark.parametrize("ranking", ["pagerank", "hits"])
def test_the_most_rounds_of_a_pipeline_can_be_built(ranking):
    method = PageRank() if ranking == "pagerank" else Hits()
    most = rank_rounds.most_rounds(method)
    pipeline = beam.Pipeline()
    operations = pipeline | beam.Create([]).with_output_types(Operation)
    _ = operations | rank_rounds.RankRounds(method, rounds=most)
    pipeline.to_runner_api()


@pytest.mark.long
def test_a_thousand_rounds_can_be_set(tmp_path, capsys):
    """The pages of a chain are as many rounds apart; a pipeline of all rounds cannot be built."""
    keys = [f"com.a{n:03}:http/" for n in range(206)]
    chain = pl.DataFrame({"source": keys[:-1], "target": keys[1:]})
    table = make_linked(tmp_path / "table", chain)
    assert nutbeam("webgraph", table) == 0
    assert nutbeam("linkrank", table, "--ranking", "harmonic", "--rank_rounds", "1000") == 0
    assert "round 206: change 0\n" in capsys.readouterr().out
    right = [sum(1 / n for n in range(1, at + 1)) for at in range(206)]
    assert ranks_in(table)["harmonic"].to_list() == pytest.approx(right)
