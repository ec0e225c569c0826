"""graphfiles writes what Common Crawl's tools read: WebGraph, LAW and pyccwebgraph.

cc-webgraph's scripts call these classes of WebGraph and LAW, with these arguments. ``make test-long``
brings them in.
"""

import gzip
import shutil
import subprocess

import numpy as np
import polars as pl
import pytest
from crawling import nutbeam
from linked_tables import make_linked, random_edges
from running import TOOLS

JAR = TOOLS / "webgraph" / "cc-webgraph.jar"
WEBGRAPH, LAW = "it.unimi.dsi.webgraph", "it.unimi.dsi.law"
VERSION = "cc-main-2026-nut-beam"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (shutil.which("java") and JAR.exists()),
        reason=f"no Java, or no WebGraph at {JAR}: make test-long fetches it",
    ),
]


def java(*words, text=""):
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", JAR, *words]
    return subprocess.run(
        list(map(str, command)), input=text, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="module", params=["host", "domain"])
def graph(request, tmp_path_factory):
    """Start of the names of the files of a graph."""
    folder, level = tmp_path_factory.mktemp("graph"), request.param
    edges = random_edges(5, nodes=300, links=2_000)
    edges = edges.with_columns(target=pl.col("target").str.replace("d1", "a-1"))
    table = make_linked(folder / "table", edges)
    for name in dict.fromkeys(["host", level]):
        assert nutbeam("webgraph", table, "--level", name) == 0
    for ranking in (("harmonic",), ("pagerank", "--tolerance", "1e-12")):
        assert nutbeam("linkrank", table, "--level", level, "--ranking", *ranking) == 0
    start = folder / f"{VERSION}-{level}"
    assert nutbeam("graphfiles", table, "--level", level, "-o", start) == 0
    return start


@pytest.fixture(scope="module")
def read(graph):
    """The same, once WebGraph has made its own files of it, as process_webgraph.sh does."""
    lines = unpacked(graph, "edges")
    java(f"{WEBGRAPH}.BVGraph", "--once", "-g", "ArcListASCIIGraph", "-", graph, text=lines)
    java(f"{WEBGRAPH}.Transform", "transpose", graph, f"{graph}-t")
    java(f"{WEBGRAPH}.Stats", "--save-degrees", graph)
    return graph


def unpacked(start, kind):
    return gzip.decompress(start.with_name(f"{start.name}-{kind}.txt.gz").read_bytes()).decode()


def rows(start, kind):
    return [line.split("\t") for line in unpacked(start, kind).splitlines()]


def ranks(start):
    """Returns harmonic centrality and PageRank by reversed name."""
    return {row[4]: (float(row[1]), float(row[3])) for row in rows(start, "ranks")[1:]}


def test_webgraph_reads_the_links(read):
    java(f"{WEBGRAPH}.ASCIIGraph", "-g", "BVGraph", read, f"{read}-plain")
    lines = read.with_name(f"{read.name}-plain.graph-txt").read_text().splitlines()
    assert int(lines[0]) == len(rows(read, "vertices"))
    found = [(n, int(to)) for n, line in enumerate(lines[1:]) for to in line.split()]
    assert found == [(int(a), int(b)) for a, b in rows(read, "edges")]


def test_ranks_are_those_of_webgraph_and_law(read):
    names = [row[1] for row in rows(read, "vertices")]
    ours = np.array([ranks(read)[name] for name in names])
    java(f"{WEBGRAPH}.algo.HyperBall", "--log2m", 14, "--harmonic-centrality", f"{read}-h.bin",
         f"{read}-t", read)  # fmt: skip
    harmonic = np.fromfile(f"{read}-h.bin", ">f4")
    assert ours[:, 0] == pytest.approx(harmonic, rel=0.02)
    java(f"{LAW}.rank.PageRankParallelGaussSeidel", "--expand", "--threshold", "1e-13",
         f"{read}-t", f"{read}-pr")  # fmt: skip
    pagerank = np.fromfile(f"{read}-pr.ranks", ">f8")
    assert ours[:, 1] == pytest.approx(pagerank, abs=1e-6)


@pytest.mark.parametrize("graph", ["domain"], indirect=True)  # it reads no others
def test_pyccwebgraph_finds_names_and_links(read):
    pyccwebgraph = pytest.importorskip("pyccwebgraph")
    found = pyccwebgraph.CCWebgraph.setup(
        str(read.parent), VERSION, jar_path=str(JAR), auto_download=False
    )
    try:
        names = [row[1] for row in rows(read, "vertices")]
        links = [(names[int(a)], names[int(b)]) for a, b in rows(read, "edges")]
        for number, name in enumerate(names):
            domain = ".".join(reversed(name.split(".")))
            assert found.domain_to_id(domain) == number
            assert found.id_to_domain(number) == domain
            right = {to for source, to in links if source == name}
            assert {to_reversed(to) for to in found.get_successors(domain)} == right
            right = {source for source, to in links if to == name}
            assert {to_reversed(to) for to in found.get_predecessors(domain)} == right
        assert found.domain_to_id("not-there.example") is None
    finally:
        found.shutdown()


def to_reversed(domain):
    return ".".join(reversed(domain.split(".")))
