"""Inlinks page by page agree with plain Python, however the frames are cut; hubs stay small."""

import random

import polars as pl
import pytest

from nutbeam.io.reading.inlinks import by_target, top_targets
from nutbeam.policy.components.link_rows import INLINKS, link_keys
from nutbeam.policy.components.schema import conform, to_frame


def links_of(pairs):
    frame = pl.DataFrame(
        {"target": [t for t, _ in pairs], "source": [s for _, s in pairs],
         "score": [float(len(s) % 3) for _, s in pairs]}
    )  # fmt: skip
    frame = frame.with_columns(link_keys(frame["target"], frame["source"]))
    return to_frame(conform(frame.unique("key").sort("key"), INLINKS))


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("most", [1, 4, 100])
def test_the_best_of_each_target(rows, most):
    some = random.Random(rows)
    pairs = [(f"com.a:http/{some.randrange(5) ** 2}", f"com.{some.choice('ab')}:http/{'x' * n}")
             for n in range(60)]  # fmt: skip
    links = links_of(pairs)
    wanted, totals = {}, {}
    for row in links.to_dicts():
        wanted.setdefault(row["target"], []).append(row)
        totals[row["target"]] = totals.get(row["target"], 0) + 1
    for target, found in wanted.items():
        found.sort(key=lambda r: (-r["score"], r["source"].startswith("com.a:"), r["source"]))
        wanted[target] = [row["source"] for row in found[:most]]
    frames = list(by_target(links.iter_slices(rows), most))
    got = {}
    for frame in frames:
        for target, source in frame.select("target", "source").rows():
            got.setdefault(target, []).append(source)
    assert got == wanted
    assert sum(frame["target"].n_unique() for frame in frames) == len(wanted)
    top = top_targets(links.iter_slices(rows), most)
    best = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:most]
    assert top.rows() == best


@pytest.mark.long
def test_a_hub_is_cut_while_it_is_read():
    links = links_of([("com.hub:http/", f"com.a:http/{n}") for n in range(50_000)])
    (best,) = by_target(links.iter_slices(100), 10)
    assert len(best) == 10
    assert top_targets(links.iter_slices(100), 1).rows() == [("com.hub:http/", 50_000)]
