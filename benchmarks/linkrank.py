"""LinkRank against a sparse product of scipy, and with graphs of two sizes.

``python benchmarks/linkrank.py [--small] [--sizes] [--build] [--large] [--in FOLDER]``. A graph of 10 million links between
a million pages, ten rounds. Each side reads its own files: nutbeam the blocks of the table, scipy a
matrix that it has saved. scipy computes the same ranks: a product of the matrix and a vector per
round. Both write the ranks.

Budget: at most three times scipy's time; under 1 GB.

``--sizes`` instead ranks graphs of 2 and of 20 million links, in blocks of the same size. Memory is
bounded by a block and a cache of decoded links of 256 MB (``KEPT_BYTES``), which a small graph does
not fill. Budget: the peaks differ by no more than the cache and 20 %. ``--build`` makes the graph of
a link table, of one million and of ten million links. Budget: the peaks differ by no more than 20 %.
``--large`` ranks graphs of 10 and of 100 million links, once; ``--large --build`` makes and ranks the
graphs of link tables of these sizes. ``--in FOLDER`` says where there is room, 60 GB for the second.
"""

import contextlib
import itertools
import pathlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator

import measure
import numpy as np
import polars as pl

ROUNDS = 10
# Pages per host; links lead everywhere, more often to the first pages.
PAGES = 20
# Links that are made at a time.
PIECE_LINKS = 2_000_000


def make(address: str, links: int, block_nodes: int, seed: int = 1) -> int:
    """Writes a table with the blocks of a random graph; returns the number of links."""
    from nutbeam.io.graph.graph_files import write_edges, write_nodes
    from nutbeam.io.snapshots.commit import commit
    from nutbeam.io.snapshots.operations import begin, new_id
    from nutbeam.io.tablets.written import Written
    from nutbeam.policy.components.graph_schema import Piece, pieces_of

    operation = begin(address, "webgraph", f"{new_id()}.webgraph")
    nodes, table, written = links // 10, operation.table, []
    firsts = list(range(0, nodes, block_nodes))
    total, out = 0, np.zeros(nodes, np.int64)
    for number, first in enumerate(firsts):
        size = min(block_nodes, nodes - first)
        parts = []
        for other, low in enumerate(firsts):
            height = min(block_nodes, nodes - low)
            piece = _random_links(seed, number, other, links * size // nodes * height // nodes,
                                  height, size)  # fmt: skip
            out[low : low + height] += np.bincount(piece.sources, minlength=height)
            total += len(piece.sources)
            parts += [(other, part) for part in pieces_of(Piece(*piece[:2], None))]
        written.append(Written("page_edges", (write_edges(table, "page", number, parts),)))
    keys = pl.int_range(nodes, eager=True).cast(pl.String).str.zfill(9)
    for first in firsts:
        some = slice(first, min(first + block_nodes, nodes))
        degrees = out[some]
        rows = pl.DataFrame({"key": "com.a:http/" + keys[some], "id": np.arange(some.start, some.stop),
                             "in_links": degrees, "out_links": degrees, "counted_links": degrees})  # fmt: skip
        written.append(Written("page_nodes", (write_nodes(table, "page", first, rows),)))
    commit(operation, written)
    return total


def _random_links(seed: int, target: int, source: int, links: int, height: int, size: int):
    from nutbeam.policy.components.graph_schema import Piece

    rng = np.random.default_rng([seed, target, source])
    targets = (rng.random(links) ** 3 * size).astype(np.int64)
    # A tenth of the pages have no links.
    pairs = np.unique(rng.integers(0, max(1, height * 9 // 10), links) * size + targets)
    return Piece((pairs // size).astype(np.int32), (pairs % size).astype(np.int32), None)


def save_matrix(table: str, path: str) -> None:
    """Saves the graph of a table as a sparse matrix of scipy."""
    import scipy.sparse

    from nutbeam.io.graph.graph_files import stored_graph
    from nutbeam.io.snapshots.manifest import newest_manifest
    from nutbeam.pipelines.views.reading_job import Reading

    graph = stored_graph(Reading(table, "", newest_manifest(table).snapshot), "page")
    starts = [file.order for file in graph.nodes]
    pieces = [
        (piece.sources + starts[s], piece.targets + starts[t])
        for t in range(graph.blocks)
        for s in range(graph.blocks)
        for piece in graph.pieces(s, t)
    ]
    sources, targets = (np.concatenate(side) for side in zip(*pieces, strict=True))
    shape = (graph.all_nodes, graph.all_nodes)
    links = np.bincount(sources, minlength=graph.all_nodes)
    matrix = scipy.sparse.csr_matrix((1 / links[sources], (targets, sources)), shape)
    scipy.sparse.save_npz(path, matrix, compressed=False)
    np.save(f"{path}-dangling.npy", links == 0)


def ours(tiny: str, table: str) -> None:
    """Ranks the table, after a tiny one was ranked."""
    measure.nutbeam("linkrank", tiny, "--progress=false")
    with measure.measured():
        measure.nutbeam("linkrank", table, "--progress=false")


def theirs(path: str, output: str) -> None:
    """Computes the same with scipy."""
    import scipy.sparse

    with measure.measured():
        matrix, dangling = scipy.sparse.load_npz(path), np.load(f"{path}-dangling.npy")
        nodes = matrix.shape[0]
        score = np.ones(nodes)
        for _ in range(ROUNDS):
            score = 0.15 + 0.85 * (score[dangling].sum() / nodes + matrix @ score)
        np.save(output, score)


def check(table: str, output: str) -> float:
    """Returns the largest difference of the ranks of both."""
    ranks = pl.read_parquet(sorted(pathlib.Path(table).glob("page_ranks/*.parquet")))
    return float(np.abs(ranks.sort("key")["linkrank"].to_numpy() - np.load(output)).max())


def compare(folder: pathlib.Path, links: int, repeats: int) -> None:
    """Times both."""
    table, tiny, matrix, output = (str(folder / n) for n in ("table", "tiny", "m.npz", "r.npy"))
    total = measure.fresh("linkrank", "make", table, links, 1 << 20).result
    measure.fresh("linkrank", "make", tiny, 1_000, 1 << 20)
    measure.fresh("linkrank", "save_matrix", table, matrix)
    found: dict[str, list[measure.Figures]] = {"ours": [], "scipy": []}
    for at in range(repeats):
        own = [str(_clone(one, folder / f"{one}-{at}")) for one in (tiny, table)]
        found["ours"].append(measure.fresh("linkrank", "ours", *own))
        found["scipy"].append(measure.fresh("linkrank", "theirs", matrix, output))
    difference = measure.fresh("linkrank", "check", own[1], output).result
    measure.table(
        f"{total:,} links, {links // 10:,} pages, {ROUNDS} rounds; ranks differ by at most "
        f"{difference:.1g}; median of {repeats}",
        ("the work alone", "linkrank", "scipy", "ratio"),
        _rows(found),
    )


def sizes(folder: pathlib.Path, links: int) -> None:
    """Ranks a graph and one ten times as large."""
    found: dict[str, list[measure.Figures]] = {}
    tiny = str(folder / "tiny")
    measure.fresh("linkrank", "make", tiny, 1_000, links // 40)
    for number in (links, 10 * links):
        table = str(folder / f"{number}")
        measure.fresh("linkrank", "make", table, number, links // 40)
        own = str(_clone(tiny, folder / f"tiny-{number}"))
        found[f"{number:,} links"] = [measure.fresh("linkrank", "ours", own, table)]
    heads = (f"{ROUNDS} rounds, blocks of {links // 40:,} pages", *found, "ratio")
    measure.table("the same blocks", heads, _rows(dict(reversed(found.items())), turned=True))


def make_links(table: str, links: int) -> int:
    """Writes a table whose link table has random links; returns their number."""
    from nutbeam.io.snapshots.commit import commit
    from nutbeam.io.snapshots.operations import begin, new_id

    operation = begin(table, "inject", f"{new_id()}.inject")
    written = list(operation.table.load("links", _link_rows(links)))
    commit(operation, written)
    return sum(file.rows for part in written for file in part.files)


def _link_rows(links: int) -> Iterator[pl.DataFrame]:
    """Yields the rows of random links, in the order of their keys."""
    from nutbeam.policy.components.link_rows import INLINKS, link_keys
    from nutbeam.policy.components.schema import conform, to_frame

    rng, pages = np.random.default_rng(1), links // 10
    targets = (rng.random(links) ** 3 * pages).astype(np.int32)
    sources = rng.integers(0, pages, links, dtype=np.int32)
    # Hosts in the order of their keys; a piece has the links to some of them.
    names = pl.DataFrame({"host": pl.int_range(-(-pages // PAGES), eager=True)})
    hosts = names.sort(pl.format("com.host{}:", "host"))["host"].to_numpy()
    place = np.empty(len(hosts), np.int32)
    place[hosts] = np.arange(len(hosts))
    piece = place[targets // PAGES] // max(1, len(hosts) * PIECE_LINKS // links)
    order = np.argsort(piece, kind="stable")
    targets, sources = targets[order], sources[order]
    edges = np.cumsum(np.bincount(piece))
    for start, end in itertools.pairwise([0, *edges.tolist()]):
        some = slice(start, end)
        numbers = pl.DataFrame({"target": targets[some], "source": sources[some]}).unique()
        host, page = pl.all() // PAGES, pl.all() % PAGES
        rows = numbers.select(pl.format("com.host{}:http/page/{}.html", host, page))
        keys = link_keys(rows.get_column("target"), rows.get_column("source"))
        for part in rows.with_columns(key=keys).sort("key").iter_slices(1 << 17):
            yield to_frame(conform(part, INLINKS))


def built(tiny: str, table: str) -> None:
    """Makes the graph of a table, after that of a tiny one."""
    measure.nutbeam("webgraph", tiny, "--progress=false")
    with measure.measured():
        measure.nutbeam("webgraph", table, "--progress=false")


def build(folder: pathlib.Path, links: int) -> None:
    """Makes the graphs of two link tables."""
    found: dict[str, list[measure.Figures]] = {}
    tiny = str(folder / "tiny")
    measure.fresh("linkrank", "make_links", tiny, 1_000)
    for number in (10 * links, links):
        table = str(folder / f"{number}")
        measure.fresh("linkrank", "make_links", table, number)
        own = str(_clone(tiny, folder / f"tiny-{number}"))
        found[f"{number:,} links"] = [measure.fresh("linkrank", "built", own, table)]
    measure.table("webgraph of a link table", ("webgraph", *reversed(found), "ratio"),
                  _rows(found, turned=True))  # fmt: skip


def large(folder: pathlib.Path, links: int, *, from_links: bool) -> None:
    """Ranks two graphs, which may be made of link tables; shows what they take on disk, too."""
    rows: list[tuple] = []
    tiny, steps = str(folder / "tiny"), ["built", "ours"] if from_links else ["ours"]
    maker, more = ("make_links", ()) if from_links else ("make", (1 << 20,))
    measure.fresh("linkrank", maker, tiny, 1_000, *more)
    for number in (links // 10, links):
        table = folder / f"{number}"
        measure.fresh("linkrank", maker, str(table), number, *more)
        own = str(_clone(tiny, folder / f"tiny-{number}"))
        for step in steps:
            with _watched(folder) as disk:
                figures = measure.fresh("linkrank", step, own, str(table))
            counted, size, most = disk(table)
            what = "webgraph" if step == "built" else f"linkrank, {ROUNDS} rounds"
            rows.append((f"{what}, {counted:,} links", figures.work, figures.cpu,
                         figures.peak / 2**20, size, most))  # fmt: skip
        shutil.rmtree(table)
    heads = ("the work alone", "seconds", "CPU s", "peak memory, MB", "graph, MB",
             "more on disk, MB")  # fmt: skip
    measure.table("one run of each", heads, rows)


@contextlib.contextmanager
def _watched(folder: pathlib.Path) -> Iterator[Callable[[pathlib.Path], tuple[int, int, int]]]:
    """Watches the disk of a folder while files are made.

    Yields a function of a table: the number of links of its graph, the size of the graph in MB, and
    the most that was on the disk at a time beside what was there before, MB.
    """
    free = shutil.disk_usage(folder).free
    least, ended = [free], threading.Event()

    def watch() -> None:
        while not ended.wait(2):
            least[0] = min(least[0], shutil.disk_usage(folder).free)

    def figures(table: pathlib.Path) -> tuple[int, int, int]:
        nodes = [*table.glob("page_nodes/*.parquet")]
        edges = [*table.glob("page_edges/*.parquet")]
        links = pl.scan_parquet(nodes).select(pl.col("in_links").sum()).collect().item()
        size = sum(path.stat().st_size for path in (*nodes, *edges))
        return links, size >> 20, free - least[0] >> 20

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield figures
    finally:
        ended.set()
        watcher.join()


def _rows(found: dict[str, list[measure.Figures]], *, turned: bool = False) -> list[tuple]:
    rows = []
    for what, figure, scale in (("seconds", "work", 1), ("CPU s", "cpu", 1),
                                ("peak memory, MB", "peak", 2**20)):  # fmt: skip
        first, second = (measure.median(some, figure) / scale for some in found.values())
        shown = (second, first) if turned else (first, second)
        rows.append((what, *shown, first / second))
    return rows


def _clone(source: str, target: pathlib.Path) -> pathlib.Path:
    import tables

    return tables.clone(pathlib.Path(source), target)


def main() -> None:
    """Does what the command line says."""
    small = "--small" in sys.argv[1:]
    place = sys.argv[-1] if sys.argv[-2:-1] == ["--in"] else None
    with tempfile.TemporaryDirectory(prefix="linkrank-", dir=place) as name:
        folder = pathlib.Path(name)
        if "--large" in sys.argv[1:]:
            links = 1_000_000 if small else 100_000_000
            large(folder, links, from_links="--build" in sys.argv[1:])
        elif "--sizes" in sys.argv[1:]:
            sizes(folder, 200_000 if small else 2_000_000)
        elif "--build" in sys.argv[1:]:
            build(folder, 50_000 if small else 1_000_000)
        else:
            measure.need("scipy")
            compare(folder, 500_000 if small else 10_000_000, 1 if small else 3)


if __name__ == "__main__":
    main()
