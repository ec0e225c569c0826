"""Near duplicates among 5 million SimHashes, in up to 3 bits.

``python benchmarks/simhash.py [--small]``. A sixth of the signatures are near others. Measured are
the function that finds the pairs, and ``dedup`` of a whole table with these signatures, start and
reading and writing too.

Budget: at most 60 s each on two cores. The pairs of a sample must be those that comparing it with
all signatures finds; the time of that, for all instead of the sample, is the baseline.
"""

import functools
import pathlib
import tempfile
import time

import measure
import numpy as np
import tables

DISTANCE = 3
SAMPLE = 300
BUDGET_ROW = 12e-6  # s: a minute for 5 million


def signatures(rows: int) -> np.ndarray:
    """Returns SimHashes: unrelated ones, and in every sixth place one near that before it.

    >>> int(np.bitwise_count(np.bitwise_xor(*signatures(12)[4:6])))
    2
    """
    random = np.random.default_rng(7)
    hashes = random.integers(0, 2**64, rows, dtype=np.uint64)
    near = np.arange(5, rows, 6)
    flips = random.integers(0, 64, (2, len(near))).astype(np.uint64)
    flips[1] = (flips[0] + np.uint64(1) + flips[1] % np.uint64(60)) % np.uint64(64)
    one = np.uint64(1)
    hashes[near] = hashes[near - 1] ^ (one << flips[0]) ^ (one << flips[1])
    return hashes


def pairs(rows: int) -> int:
    """Finds all near pairs; returns how many there are."""
    from nutbeam.policy.dedup.near_pairs import near_hashes

    hashes = signatures(rows)
    with measure.measured():
        return sum(len(first) for first, _ in near_hashes(hashes, DISTANCE))


def brute(rows: int) -> list[int]:
    """Returns the number of pairs of a sample by comparing it with all, and by the bands."""
    from nutbeam.policy.dedup.near_pairs import near_hashes

    hashes = signatures(rows)
    sample = np.random.default_rng(8).choice(rows, SAMPLE, replace=False)
    found = set()
    with measure.measured():
        for at in sample:
            near = np.flatnonzero(np.bitwise_count(hashes ^ hashes[at]) <= DISTANCE)
            found |= {(min(at, i), max(at, i)) for i in near.tolist() if i != at}
    chosen = np.zeros(rows, dtype=bool)
    chosen[sample] = True
    banded = set()
    for first, second in near_hashes(hashes, DISTANCE):
        some = chosen[first] | chosen[second]
        banded |= {
            (min(i, j), max(i, j))
            for i, j in zip(first[some].tolist(), second[some].tolist(), strict=True)
        }
    return [len(found), len(found ^ banded)]


def make(table: str, rows: int) -> None:
    """Writes a table whose pages are all fetched and have these signatures."""
    import polars as pl

    from nutbeam.io.snapshots.commit import commit
    from nutbeam.io.snapshots.operations import begin
    from nutbeam.io.tablets.tablet_writer import TabletWriter
    from nutbeam.io.tablets.written import Written
    from nutbeam.policy.components.schema import STATE, Status, conform

    sizes, now = tables.host_sizes(rows, max(1, rows // 50)), int(time.time() * 1000)
    hashes, step = signatures(rows).astype(">u8").tobytes(), 250_000
    operation = begin(table, "load", "load", now=now)
    writer = TabletWriter(operation.table, "state", STATE)
    for start in range(0, rows, step):
        end = min(start + step, rows)
        values = [hashes[8 * at : 8 * at + 8] for at in range(start, end)]
        frame = tables.state_rows(sizes, start, end, now).with_columns(
            status=pl.lit(int(Status.DB_FETCHED), pl.UInt8),
            signature=pl.Series(values, dtype=pl.Binary),
        )
        writer.write(pl.from_arrow(conform(frame, STATE)))
    commit(operation, [Written("state", tuple(writer.close()))])


def dedup(table: str, distance: int) -> None:
    """Marks the duplicates of a table."""
    measure.nutbeam("dedup", table, f"--dedup_distance={distance}", "--progress=false")


def compare(folder: pathlib.Path, rows: int, repeats: int) -> None:
    """Prints the times of all of them."""
    table = folder / "table"
    measure.fresh("simhash", "make", str(table), rows)
    sample = measure.fresh("simhash", "brute", rows)
    found, differences = sample.result
    if differences or not found:
        raise SystemExit(f"{differences} pairs of the sample differ, of {found}")
    runs = {"pairs": functools.partial(measure.fresh, "simhash", "pairs", rows)}
    for number in range(repeats):
        tables.clone(table, folder / f"near{number}")
        tables.clone(table, folder / f"equal{number}")
    numbers = {"near": iter(range(repeats)), "equal": iter(range(repeats))}
    for name, distance in (("near", DISTANCE), ("equal", 0)):
        runs[name] = functools.partial(_fresh_dedup, folder, name, numbers[name], distance)
    figures = measure.interleaved(runs, repeats)
    baseline = sample.work * rows / SAMPLE / 2
    shown, budget = [], rows * BUDGET_ROW
    for name, title in (
        ("pairs", "all pairs, the function alone"),
        ("near", f"dedup, whole process, up to {DISTANCE} bits"),
        ("equal", "dedup, whole process, equal signatures only"),
    ):
        seconds = measure.median(figures[name], "process" if name != "pairs" else "work")
        peak = measure.median(figures[name], "peak") / 2**20
        shown.append([title, seconds, seconds / budget, measure.median(figures[name], "cpu"), peak])
    shown.append(["comparing all with all (by the sample)", baseline, baseline / budget, "", ""])
    print(f"{figures['pairs'][0].result:,} pairs; the {found} pairs of the sample are the same")
    title = f"{rows:,} SimHashes; median of {repeats}; budget {budget:g} s"
    measure.table(title, ["", "s", "of budget", "CPU s", "peak MB"], shown)


def _fresh_dedup(folder: pathlib.Path, name: str, numbers, distance: int) -> measure.Figures:
    return measure.fresh("simhash", "dedup", str(folder / f"{name}{next(numbers)}"), distance)


def main() -> None:
    sizes = measure.sized((100_000, 1), (2_000_000, 3), (5_000_000, 3))
    with tempfile.TemporaryDirectory(prefix="nutbeam-simhash-") as folder:
        compare(pathlib.Path(folder), *sizes)


if __name__ == "__main__":
    main()
