"""Ranks of a simulated web with planted hubs, and the same ranks on other runners."""

import shutil

import polars as pl
import pytest
from crawling import answer, nutbeam
from linked_tables import graph_in, make_linked, random_edges, ranks_in
from running import NO_PRISM, PRISM, RUNNERS
from simulated_web import TrueSite

from nutbeam.web.urls.row_keys import parse_url, to_key

HUBS = [f"http://hub{n}.example.org/" for n in range(3)]


def site_edges(site):
    """Returns the links of the pages of a site, and planted ones: each page links to each hub."""
    from bs4 import BeautifulSoup

    pages = [url for url, kind in site.reachable(site.seeds).items() if kind == "page"]
    edges = [(page, hub) for page in pages for hub in HUBS]
    for page in pages:
        soup = BeautifulSoup(answer(site, page).body, "html.parser")
        found = (parse_url(link["href"], page) for link in soup.find_all("a", href=True))
        edges += [(page, url.partition("#")[0]) for url in found if url and url.startswith("http")]
    return pl.DataFrame(
        [(to_key(source), to_key(target)) for source, target in edges],
        schema=["source", "target"],
        orient="row",
    )


@pytest.mark.long
def test_planted_hubs_rank_first(tmp_path, capsys):
    table = make_linked(tmp_path / "table", site_edges(TrueSite(hosts=4, pages=12, seed=7)))
    words = ("--ignore_internal_domain", "false", "--limit_domain", "false")
    assert nutbeam("webgraph", table, *words) == 0
    for ranking in ("linkrank", "pagerank", "hits", "harmonic"):
        assert nutbeam("linkrank", table, "--ranking", ranking) == 0
        rank = "authority" if ranking == "hits" else ranking
        capsys.readouterr()
        assert nutbeam("nodedumper", table, "--rank", rank, "--top", 3) == 0
        best = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
        assert best == HUBS


@pytest.mark.parametrize(
    "runner",
    [
        pytest.param("processes", marks=pytest.mark.long),
        pytest.param(
            "prism",
            marks=[pytest.mark.prism, pytest.mark.skipif(not PRISM.exists(), reason=NO_PRISM)],
        ),
    ],
)
def test_another_runner_gives_the_same_graph_and_ranks(tmp_path, runner):
    table = make_linked(tmp_path / "table", random_edges(5, nodes=80, links=500))
    found = []
    for name in ("", runner):
        copy = shutil.copytree(table, tmp_path / f"table-{name}")
        for words in (
            ("webgraph", copy, "--block_nodes", "30"),
            ("linkrank", copy),
            ("linkrank", copy, "--ranking", "hits"),
        ):
            assert nutbeam(*words, *(RUNNERS[name] or ["--runner=DirectRunner"])) == 0
        found.append((graph_in(copy), ranks_in(copy)))
    assert found[0][0] == found[1][0]
    assert found[0][1].equals(found[1][1])
