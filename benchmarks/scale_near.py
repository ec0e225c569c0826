"""Near duplicates: how much one worker gets when the pairs become components.

``python benchmarks/scale.py near [--pairs=2000000] [--small]``. Pairs of pages without others, and
chains, which are the worst case. Without rounds, one worker gets all of them, as before rounds existed.

Budget: with the rounds that a table of this size gets, no key has more than 64 MB.
"""

import sys

import measure

PAIRS = 2_000_000
CHAIN = 1_000
MOST_BYTES = 64 << 20


def components(graph: str, pairs: int, rounds: int) -> dict[str, int]:
    """Finds the components of pairs; returns the largest key, all bytes, and the number of clusters."""
    import apache_beam as beam
    import numpy as np
    import polars as pl

    from nutbeam.policy.dedup.near_components import nodes_of
    from nutbeam.transforms.elements.chunks import to_chunks
    from nutbeam.transforms.near_pages.near_components import NearComponents

    number = np.arange(pairs, dtype=np.uint64)
    one = 2 * number if graph == "pairs" else number + number // np.uint64(CHAIN)
    ends = {name: nodes_of(np.uint64(0), at) for name, at in (("node", one), ("other", one + 1))}
    chunks = list(to_chunks(pl.DataFrame(ends).sample(fraction=1, shuffle=True, seed=1)))
    partitions = 1 + 200 * 2 * pairs // (32 << 20)  # as for the rows of dedup
    with measure.KeySizes() as sizes, beam.Pipeline("FnApiRunner") as pipeline:
        found = pipeline | beam.Create(chunks) | NearComponents(rounds, partitions)
        rows = found | beam.Map(len) | beam.CombineGlobally(sum)
        rows | beam.Map(_check, len(np.unique(np.concatenate(list(ends.values())))))
    return {"fullest": sizes.fullest, "shuffled": sizes.shuffled}


def _check(rows: int, nodes: int) -> None:
    if rows != nodes:
        raise SystemExit(f"{rows:,} rows for {nodes:,} nodes")


def main() -> None:
    """Prints the block."""
    from nutbeam.policy.dedup.near_components import rounds_for

    words = [word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--pairs=")]
    pairs = int(words[-1]) if words else 20_000 if "--small" in sys.argv[1:] else PAIRS
    needed = max(1, rounds_for(2 * pairs))
    rows, largest = [], 0
    for graph in ("pairs", "chains"):
        for rounds in (0, needed, 3):
            used = measure.fresh("scale_near", "components", graph, pairs, rounds)
            fullest, shuffled = used.result["fullest"], used.result["shuffled"]
            rows.append(
                (graph, rounds, fullest / 2**20, shuffled / 2**20, used.cpu, used.peak / 2**20)
            )
            largest = max(largest, fullest if rounds else 0)
    heads = ("graph", "rounds", "largest key, MiB", "shuffled, MiB", "CPU s", "peak memory, MiB")
    measure.table(f"components of {pairs:,} pairs; chains of {CHAIN:,}", heads, rows)
    held = "held" if largest <= MOST_BYTES else "MISSED"
    print(
        f"  largest key with rounds: {largest / 2**20:.1f} MiB, at most {MOST_BYTES >> 20}: {held}"
    )
