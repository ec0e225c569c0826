"""The jobs of the web graph: the same graph and ranks as in memory, also after a kill."""

import dataclasses
import gzip
import itertools
import shutil

import networkx as nx
import polars as pl
import pytest
from crawling import manifest_of, nutbeam, rows_of
from linked_tables import in_key_order, make_linked, random_edges, ranks_in

from nutbeam.io.graph.graph_files import RoundFiles, stored_graph
from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.pipelines.graph.graph_readers import sorted_edges
from nutbeam.pipelines.views.reading_job import Reading
from nutbeam.policy.components import graph_schema
from nutbeam.policy.graph import link_limits
from nutbeam.policy.graph.graph_blocks import graph_blocks
from nutbeam.policy.graph.link_limits import LinkLimits
from nutbeam.policy.graph.linkrank import LinkRank, PageRank
from nutbeam.policy.graph.ranking import rank_iterations
from nutbeam.policy.graph.rankings import Harmonic, Hits
from nutbeam.transforms.elements import chunks
from nutbeam.transforms.graph import graph_layout, write_blocks

SMALL = ("--block_nodes", "9")


@pytest.fixture(scope="module")
def edges():
    return random_edges(5, nodes=80, links=500)


@pytest.fixture(scope="module")
def linked(edges, tmp_path_factory):
    """A table with links, of pages that are all in the state but a few."""
    keys = pl.concat([edges["source"], edges["target"]]).unique().sort()
    table = tmp_path_factory.mktemp("linked") / "table"
    return make_linked(table, edges, [*keys[5:], "com.other:http/"])


@pytest.fixture
def table(linked, tmp_path):
    return shutil.copytree(linked, tmp_path / "table")


def twin(edges, level="page", limits=None, block_nodes=9):
    return graph_blocks(in_key_order(edges), limits or LinkLimits(), level, block_nodes)


def hubs():
    """Returns links of a page with very many, and to pages with very many from one domain."""
    many = range(3_000)
    pairs = [
        *(("com.many:http/", f"com.t{n % 700}:http/{n}") for n in many),
        *(("com.many:http/one", f"com.one:http/{n}?{n % 3}") for n in many),
        *((f"com.farm.h{n % 50}:http/{n}", "com.hub:http/") for n in many),
        *((f"com.s{n}:http/", "com.hub:http/") for n in many),
        *(
            (f"com.farmer.h{n % 50}:http/{n}", f"com.field:http/{n * 7919 % 1009}")
            for n in range(6_000)
        ),
    ]
    edges = pl.DataFrame(pairs, schema=["source", "target"], orient="row")
    return edges.sample(fraction=1, shuffle=True, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("limits", [LinkLimits(), LinkLimits(limit_domain=False),
                                    LinkLimits(False, False, False, False)])  # fmt: skip
def test_no_key_of_a_shuffle_has_all_links_of_a_hub(tmp_path, monkeypatch, limits):
    most = 32_000
    monkeypatch.setattr(graph_layout, "RANGE_BYTES", most)
    monkeypatch.setattr(link_limits, "MANY_LINKS", 100)
    monkeypatch.setattr(chunks, "MAX_ROWS", 400)
    for name in ("_limit", "_node_range", "_number_targets"):
        measured_by(monkeypatch, name, tmp_path / f"{name}.txt")
    table = make_linked(tmp_path / "table", hubs())
    words = [f"--{name}={value}" for name, value in dataclasses.asdict(limits).items()]
    assert nutbeam("webgraph", table, *words) == 0
    graph = twin(hubs(), limits=limits, block_nodes=1 << 20)
    found = rows_of(str(table), "page_nodes").sort("key")
    assert found.equals(graph.nodes.select(found.columns))
    for path in tmp_path.glob("_*.txt"):
        sizes = [int(line) for line in path.read_text().splitlines()]
        assert max(sizes) < 2 * most, path.name
        assert sum(sizes) > 4 * most or limits == LinkLimits(), path.name


@pytest.mark.long
def test_links_between_two_blocks_meet_piece_by_piece(table, edges, monkeypatch, in_ranges):
    """However many links a block has, memory holds those of a piece, or of one source."""
    limits, sizes, real = LinkLimits(False, False, False, False), [], graph_layout.local_piece
    monkeypatch.setattr(graph_schema, "PIECE_LINKS", 40)

    def local_piece(found, *firsts):
        sizes.append(len(found))
        return real(found, *firsts)

    monkeypatch.setattr(graph_layout, "local_piece", local_piece)
    words = [f"--{name}=false" for name in dataclasses.asdict(limits)]
    assert nutbeam("webgraph", table, *words) == 0
    graph = twin(edges, limits=limits, block_nodes=1 << 20)
    assert sum(sizes) == graph.nodes["in_links"].sum() > 300
    assert max(sizes) <= 40
    links = [[(s, t) for s, t in zip(piece.sources, piece.targets, strict=True)]
             for piece in graph.pieces(0, 0)]  # fmt: skip
    reading = Reading(str(table), "", newest_manifest(str(table)).snapshot)
    parts = [part.rows() for part in sorted_edges(stored_graph(reading, "page"))]
    assert list(itertools.chain(*parts)) == list(itertools.chain(*links))
    assert max(map(len, parts)) <= 40


def measured_by(monkeypatch, name, path):
    """Lets a step write down how many bytes each key of its shuffle has."""
    real = getattr(write_blocks, name)

    def step(grouped, *more):
        values = list(grouped[1])
        with path.open("a") as file:
            file.write(f"{sum(chunk.nbytes for chunk in values)}\n")
        return real((grouped[0], values), *more)

    step.__annotations__ = real.__annotations__
    monkeypatch.setattr(write_blocks, name, step)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.usefixtures("in_ranges")
@pytest.mark.parametrize("level", ["page", "host", "domain"])
def test_the_graph_of_a_table_is_that_in_memory(table, edges, level, capsys):
    assert nutbeam("webgraph", table, "--level", level, *SMALL) == 0
    graph = twin(edges, level)
    found = rows_of(str(table), f"{level}_nodes").sort("key")
    assert found.equals(graph.nodes.select(found.columns))
    assert f"nodes {len(graph.nodes)}" in capsys.readouterr().out
    assert nutbeam("linkrank", table, "--level", level, "--formula", "nutch") == 0
    ranks, _ = rank_iterations(LinkRank(nutch=True), graph, 10)
    assert ranks_in(table, level)["linkrank"].to_list() == pytest.approx(
        ranks["linkrank"], abs=1e-9
    )


@pytest.mark.long
@pytest.mark.usefixtures("in_ranges")
def test_all_ranks_of_a_table_are_those_in_memory(table, edges, capsys):
    no_limits = [w for name in ("ignore_internal_host", "ignore_internal_domain", "limit_page",
                                "limit_domain") for w in (f"--{name}", "false")]  # fmt: skip
    assert nutbeam("webgraph", table, *no_limits, *SMALL) == 0
    for ranking in ("pagerank", "hits", "harmonic", "linkrank"):
        assert nutbeam("linkrank", table, "--ranking", ranking, "--rank_rounds", 8) == 0
    printed = capsys.readouterr().out
    assert "round 8: change" in printed
    # Printed while the job runs: its last line is after the rounds.
    assert printed.rindex("round 8: change") < printed.rindex("linkrank: nodes")
    graph = twin(edges, limits=LinkLimits(False, False, False, False))
    found = ranks_in(table)
    for ranking, tolerance in (
        (PageRank(), 1e-6),
        (Hits(), 1e-6),
        (Harmonic(), 0),
        (LinkRank(), 0),
    ):
        right, _ = rank_iterations(ranking, graph, 8, tolerance)
        for name in ranking.results:
            assert found[name].to_list() == pytest.approx(right[name], abs=1e-9)
    assert found["linkrank"].mean() == pytest.approx(1)


@pytest.mark.long
@pytest.mark.parametrize("writes", [1, 12, 31, 57])
def test_a_kill_in_any_round_changes_no_rank(table, monkeypatch, in_ranges, capsys, writes):
    assert nutbeam("webgraph", table, *SMALL) == 0
    blocks, made, write = manifest_of(table).components["page_nodes"].files, [], RoundFiles.write
    monkeypatch.setattr(RoundFiles, "write", _dying(write, writes))
    assert nutbeam("linkrank", table) == 3
    assert "killed" in capsys.readouterr().err
    monkeypatch.setattr(RoundFiles, "write", _noting(write, made))
    assert nutbeam("linkrank", table) == 0
    assert len(made) == 11 * blocks - (writes - 1)  # what was done is not done again
    continued = ranks_in(table)
    assert nutbeam("linkrank", table) == 0
    assert ranks_in(table).equals(continued)
    assert not list((table / "page_ranks").glob("rounds-*"))


@pytest.mark.long
def test_a_killed_ranking_continues_only_with_the_same_rounds(table, monkeypatch):
    assert nutbeam("webgraph", table, *SMALL) == nutbeam("linkrank", table) == 0
    ten, write, made = ranks_in(table), RoundFiles.write, []
    blocks = manifest_of(table).components["page_nodes"].files
    monkeypatch.setattr(RoundFiles, "write", _dying(write, 16 * blocks))
    assert nutbeam("linkrank", table, "--rank_rounds", 20) == 3
    monkeypatch.setattr(RoundFiles, "write", _noting(write, made))
    assert nutbeam("linkrank", table) == 0
    assert ranks_in(table).equals(ten)
    assert {number for number, _ in made} == set(range(11))
    assert not list((table / "page_ranks").glob("rounds-*"))


@pytest.mark.long
def test_a_ranking_that_has_not_ended_says_so(tmp_path, caplog):
    """The pages of a chain are farther apart than there are rounds."""
    keys = [f"com.a{n:03}:http/" for n in range(12)]
    chain = pl.DataFrame({"source": keys[:-1], "target": keys[1:]})
    table = make_linked(tmp_path / "table", chain)
    assert nutbeam("webgraph", table) == 0
    words = ("linkrank", table, "--ranking", "harmonic")
    assert nutbeam(*words, "--rank_rounds", 5) == 0
    assert "harmonic has not ended: round 5, the last one, has changed 7: run" in caplog.text
    caplog.clear()
    assert nutbeam(*words, "--rank_rounds", 12) == 0
    assert nutbeam("linkrank", table, "--rank_rounds", 1) == 0
    assert "has not ended" not in caplog.text
    right = [sum(1 / n for n in range(1, at + 1)) for at in range(12)]
    assert ranks_in(table)["harmonic"].to_list() == pytest.approx(right)


@pytest.mark.long
def test_ranks_by_default_are_those_of_networkx(table, edges):
    no_limits = [f"--{name}=false" for name in dataclasses.asdict(LinkLimits())]
    assert nutbeam("webgraph", table, *no_limits) == 0
    for ranking in ("pagerank", "hits"):
        assert nutbeam("linkrank", table, "--ranking", ranking) == 0
    graph = nx.DiGraph(row for row in edges.rows() if row[0] != row[1])
    hub, authority = nx.hits(graph, max_iter=10_000, tol=1e-12)
    right = {"pagerank": nx.pagerank(graph, tol=1e-14), "hub": hub, "authority": authority}
    found = ranks_in(table)
    for name, values in right.items():
        assert dict(found.select("key", name).rows()) == pytest.approx(values, abs=1e-6), name


def _dying(write, number):
    count = itertools.count(1)

    def dying(self, receipt, values):
        if next(count) >= number:
            raise RuntimeError("killed")
        write(self, receipt, values)

    return dying


def _noting(write, made):
    def noting(self, receipt, values):
        made.append((receipt.round, receipt.block))
        write(self, receipt, values)

    return noting


@pytest.mark.long
def test_scores_are_ranks_and_others_are_cleared(table, capsys):
    assert nutbeam("webgraph", table) == nutbeam("linkrank", table) == 0
    assert nutbeam("scoreupdater", table, "--clear_score", "0.25") == 0
    ranks = dict(ranks_in(table).select("key", "linkrank").iter_rows())
    state = rows_of(str(table), "state")
    right = [ranks.get(key, 0.25) for key in state["key"]]
    assert state["score"].to_list() == pytest.approx(right, rel=1e-6)
    assert "com.other:http/" in set(state["key"]) - set(ranks)
    capsys.readouterr()
    assert nutbeam("scoreupdater", table, "--clear_score", "0.25") == 0
    assert "nothing changed" in capsys.readouterr().out
    assert nutbeam("scoreupdater", table, "--rank", "hub") == 1
    assert "no hub of pages: run nutbeam linkrank" in capsys.readouterr().err


@pytest.mark.long
def test_nodes_are_shown_best_first(table, edges, capsys):
    assert nutbeam("webgraph", table, *SMALL) == nutbeam("linkrank", table) == 0
    ranks = ranks_in(table).sort("linkrank", "key", descending=[True, False])
    capsys.readouterr()
    assert nutbeam("nodedumper", table, "--top", 3) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [float(line.split("\t")[1]) for line in lines] == pytest.approx(
        ranks["linkrank"][:3].to_list(), rel=1e-6
    )
    assert all(line.startswith("http://h") for line in lines)
    graph = twin(edges)
    host = pl.col("key").str.split(":").list.first()
    domain = host.str.split(".").list.head(2).list.join(".")
    for what, column in (("inlinks", "in_links"), ("outlinks", "out_links")):
        for group, name, aggregate in (("host", host, "sum"), ("domain", domain, "max")):
            words = ("--what", what, "--group_by", group, "--aggregate", aggregate, "--as_eff")
            assert nutbeam("nodedumper", table, *words) == 0
            shown = dict(line.split("=") for line in capsys.readouterr().out.splitlines())
            values = graph.nodes.group_by(name).agg(getattr(pl.col(column), aggregate)())
            right = {".".join(reversed(key.split("."))): str(n) for key, n in values.iter_rows()}
            assert shown == right


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("level", ["domain", "host"])
def test_files_of_a_graph_are_as_common_crawl_publishes_them(table, edges, tmp_path, level):
    for name in {level, "host"}:
        assert nutbeam("webgraph", table, "--level", name) == 0
    for ranking in ("harmonic", "pagerank"):
        assert nutbeam("linkrank", table, "--level", level, "--ranking", ranking) == 0
    assert nutbeam("graphfiles", table, "--level", level, "-o", tmp_path / "g") == 0
    graph = twin(edges, level)
    vertices, links, ranks = (
        _table_in(tmp_path / f"g-{kind}.txt.gz") for kind in ("vertices", "edges", "ranks")
    )  # fmt: skip
    keys = graph.nodes["key"].to_list()
    assert [row[:2] for row in vertices[:-1]] == [[str(n), key] for n, key in enumerate(keys)]
    pairs = [(int(row[0]), int(row[1])) for row in links[:-1]]
    assert pairs == sorted(set(pairs))
    assert len(pairs) == graph.nodes["in_links"].sum()
    head = ["#harmonicc_pos", "#harmonicc_val", "#pr_pos", "#pr_val", "#host_rev"]
    assert ranks[0] == (head if level == "host" else [*head, "#n_hosts"])
    rows = ranks[1:-1]
    assert [row[0] for row in rows] == [str(n + 1) for n in range(len(keys))]
    harmonic, _ = rank_iterations(Harmonic(), graph, 100)
    right = dict(zip(keys, harmonic["harmonic"], strict=True))
    assert {row[4]: float(row[1]) for row in rows} == pytest.approx(right, rel=1e-6)
    assert sorted(int(row[2]) for row in rows) == list(range(1, len(keys) + 1))
    if level == "domain":
        assert {row[5] for row in rows} == {"3"}
        assert {row[2] for row in vertices[:-1]} == {"3"}


def _table_in(path):
    return [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().split("\n")]


@pytest.mark.long
def test_a_purge_leaves_a_graph_that_can_be_ranked(table, capsys):
    assert nutbeam("webgraph", table, *SMALL) == nutbeam("linkrank", table) == 0
    before = ranks_in(table)
    assert nutbeam("purge", table, "--host", "h0.d0.com", "--wait_seconds", 0) == 0
    assert nutbeam("fsck", table) == 0
    left = before.filter(~pl.col("key").str.starts_with("com.d0.h0:"))
    assert len(left) < len(before)
    assert ranks_in(table).equals(left)
    assert rows_of(str(table), "page_nodes").sort("key")["key"].equals(left["key"])
    assert nutbeam("linkrank", table, "--ranking", "pagerank") == 0
    found = ranks_in(table)
    assert found["linkrank"].equals(left["linkrank"])
    assert found["pagerank"].null_count() == 0
    capsys.readouterr()
    assert nutbeam("nodedumper", table, "--rank", "pagerank") == 0
    assert "h0.d0.com" not in capsys.readouterr().out


@pytest.mark.long
def test_a_graph_follows_copy_compact_and_rollback(table, tmp_path):
    assert nutbeam("webgraph", table) == nutbeam("linkrank", table) == 0
    ranks = ranks_in(table)
    assert nutbeam("copy", table, tmp_path / "other") == 0
    assert ranks_in(tmp_path / "other").equals(ranks)
    assert nutbeam("linkrank", tmp_path / "other") == 0
    assert ranks_in(tmp_path / "other").equals(ranks)
    assert nutbeam("webgraph", table, "--limit_domain", "false") == 0
    # They were those of another graph.
    assert manifest_of(table).components["page_ranks"].files == 0
    assert nutbeam("rollback", table, "--to", 3) == 0
    assert nutbeam("compact", table, "--snapshot_retention", 0) == 0
    assert ranks_in(table).equals(ranks)
    assert nutbeam("fsck", table) == 0


def test_a_missing_graph_is_reported_in_one_line_with_the_command_to_run(table, capsys):
    assert nutbeam("linkrank", table) == 1
    assert "no links between pages, or no graph: run nutbeam webgraph" in capsys.readouterr().err
    assert nutbeam("scoreupdater", table) == 1
    assert "no linkrank of pages: run nutbeam linkrank" in capsys.readouterr().err
    assert nutbeam("nodedumper", table) == 1
    assert nutbeam("graphfiles", table) == 2
