"""What a run of index costs after a batch: the same batch in a table ten times as large.

``python benchmarks/index_changes.py [--small]``. Two tables, of 20,000 pages and of 200,000, are
indexed into the embedded index. Then the same batch of 2,000 pages has new texts in both, spread
over all keys, and index runs again, as a fresh process. Budget: at most 1.5 times the CPU time in
the larger table.
"""

import pathlib
import random
import sys
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import measure

if TYPE_CHECKING:
    import polars as pl

BUDGET = 1.5
PAGES, TIMES, CHANGED = 20_000, 10, 2_000
_FILE_ROWS = 10_000


def grow(table: str, batch: str, numbers: list[int], words: int) -> None:
    """Commits pages with new texts, as the update of a batch does.

    Args:
        table: The table.
        batch: Id of the batch.
        numbers: Numbers of its pages.
        words: Words in each text.
    """
    import polars as pl

    from nutbeam.io.batches.batches import batch_component, write_file
    from nutbeam.io.snapshots.commit import CommitTerms, commit
    from nutbeam.io.snapshots.entries import Batch
    from nutbeam.io.snapshots.operations import begin
    from nutbeam.io.tablets.ranges import Range
    from nutbeam.io.tablets.resolve import Resolution, Resolved
    from nutbeam.io.tablets.tablets import tablets
    from nutbeam.io.tablets.written import Written
    from nutbeam.policy.components.schema import STATE, conform, empty, to_frame

    def newer(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        kept = rows.join(changes, on="key", how="anti")
        return Resolved(pl.concat([kept, changes.select(rows.columns)]).sort("key"))

    operation = begin(table, "inject", f"{batch}.inject")
    written, states = [], []
    for documents in _documents(numbers, words):
        file = write_file(operation.table.files, batch, "documents", [documents])
        written.append(Written(batch_component(batch, "documents"), (file,)))
        states.append(
            documents.select(
                "key", status=pl.lit(2, pl.UInt8), parse_status=pl.lit(1, pl.UInt8),
                score=pl.lit(1.0), document=pl.lit(file.path),
            )
        )  # fmt: skip
    wide = [empty(STATE), *states]
    rows = to_frame(conform(pl.concat(wide, how="diagonal_relaxed").sort("key"), STATE))
    known = tablets(operation.files("state"))
    part = Range(None, None, known[0] if known else None)
    written += operation.table.resolve(
        Resolution("state", part, newer, order=operation.snapshot + 1), rows
    )
    record = Batch("updated", operation.now, 1, 1, 0, taken_in=frozenset({"dedup"}))
    commit(operation, written, CommitTerms(others={batch: record}))


def _documents(numbers: list[int], words: int) -> "Iterator[pl.DataFrame]":
    import polars as pl

    from nutbeam.policy.components.document_schema import DOCUMENTS
    from nutbeam.policy.components.schema import conform, empty, to_frame

    rng = random.Random(words)
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(3, 9))) for _ in range(20_000)]
    # Keys in the order of their numbers would put a batch into a part of the table.
    keys = sorted((f"com.example.h{n % 997:03d}:http/page/{n:07d}", n) for n in numbers)
    for start in range(0, len(keys), _FILE_ROWS):
        some = keys[start : start + _FILE_ROWS]
        texts = [" ".join(rng.choices(vocabulary, k=words)) for _ in some]
        rows = pl.DataFrame(
            {"key": [key for key, _ in some], "text": texts, "title": [text[:40] for text in texts]}
        ).with_columns(
            parse_status=pl.lit(1), fetch_time=pl.lit(1_790_000_000_000), language=pl.lit("en")
        )
        yield to_frame(
            conform(pl.concat([empty(DOCUMENTS), rows], how="diagonal_relaxed"), DOCUMENTS)
        )


def cost(folder: pathlib.Path, pages: int, changed: int) -> list[measure.Figures]:
    """Returns what runs of index cost: the first one, and those after three batches."""
    table = str(folder / f"table-{pages}")
    grow(table, "1700000000-0", list(range(pages)), 20)
    found = [measure.command("index", table, "--progress=false")]
    rng = random.Random(5)
    for number in range(1, 4):
        # The same pages, whatever the size of the table.
        grow(table, f"170000000{number}-0", rng.sample(range(PAGES), changed), 300)
        found.append(measure.command("index", table, "--progress=false"))
        assert f"indexed {changed:,}" in found[-1].result, found[-1].result
    return found


def main() -> None:
    """Does what the command line says."""
    small = "--small" in sys.argv
    changed = CHANGED // 10 if small else CHANGED
    with tempfile.TemporaryDirectory(prefix="index-changes-") as folder:
        one = cost(pathlib.Path(folder), PAGES, changed)
        ten = cost(pathlib.Path(folder), PAGES * (2 if small else TIMES), changed)
    first = ("all pages", one[0].cpu, ten[0].cpu, ten[0].cpu / one[0].cpu)
    small_cpu, large_cpu = (measure.median(figures[1:], "cpu") for figures in (one, ten))
    ratio = large_cpu / small_cpu
    title = f"CPU s of index, fresh process; budget: {BUDGET} for the batch"
    heads = ("what is sent", f"{PAGES:,} pages", f"{TIMES} times as many", "ratio")
    measure.table(title, heads, [first, (f"a batch of {changed:,}", small_cpu, large_cpu, ratio)])
    sys.exit(ratio > BUDGET)


if __name__ == "__main__":
    main()
