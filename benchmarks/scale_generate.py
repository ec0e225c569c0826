"""generate on many tablets: what one place gets to find the threshold, and how many rows meet there.

``python benchmarks/scale.py generate [--small]``. Ranks are simulated: each tablet has a random part of
three times as many rows as are chosen. Summaries and the threshold are those of the product.

Budget: at most 32 MB in one place, and rows near the threshold of at most 1 % of the batch, for any
number of tablets.
"""

import sys
from collections.abc import Iterator

import measure

TABLETS = (100, 1_000, 10_000, 100_000)
CHOSEN = 1_000_000
MOST_BYTES, MOST_SHARE = 32 << 20, 0.01


def meet(tablets: int, chosen: int) -> dict[str, int]:
    """Returns the number of items of work, the bytes of their summaries, the rows that must meet."""
    import numpy as np
    import polars as pl

    from nutbeam.pipelines.generating import survey
    from nutbeam.policy.generating.threshold import best_ranks, summarize, threshold

    ranks = np.random.default_rng(1).integers(0, 2**64, 3 * chosen, dtype=np.uint64)
    groups = min(tablets, survey.MOST_SUMMARIES)
    # Each item has the rows of its tablets: those of many tablets are one summary.
    parts = [pl.Series("rank", part) for part in np.array_split(ranks, groups)]
    summaries = [summarize(best_ranks([part], chosen), chosen, len(part)) for part in parts]
    bar = threshold(summaries, chosen)
    above = int((ranks >= bar.sure).sum()) if bar.sure is not None else 0
    rows = int((ranks >= bar.least).sum()) - above
    return {
        "groups": groups,
        "bytes": sum(len(summary.ranks) for summary in summaries),
        # If all rows of the table are due, each summary has all of its numbers.
        "most": groups * len(summarize(pl.Series("rank", ranks), chosen).ranks),
        "rows": rows,
    }


def _rows(chosen: int, tablets: tuple[int, ...]) -> Iterator[dict[str, int]]:
    for number in tablets:
        used = measure.fresh("scale_generate", "meet", number, chosen)
        yield {"tablets": number, **used.result}


def main() -> None:
    """Prints the block."""
    small = "--small" in sys.argv[1:]
    chosen, tablets = (20_000, TABLETS[:2]) if small else (CHOSEN, TABLETS)
    found = list(_rows(chosen, tablets))
    rows = [
        (
            r["tablets"],
            r["groups"],
            r["bytes"] / 1e6,
            r["most"] / 1e6,
            r["rows"],
            r["rows"] / chosen,
        )
        for r in found
    ]
    heads = (
        "tablets",
        "summaries",
        "MB in one place",
        "MB at most",
        "rows that meet",
        "of the batch",
    )
    measure.table(f"generate: the best {chosen:,}", heads, rows)
    good = all(r["most"] <= MOST_BYTES and r["rows"] <= MOST_SHARE * chosen for r in found)
    print(f"  at most 32 MB and 1 % of the batch in one place: {'held' if good else 'MISSED'}")
