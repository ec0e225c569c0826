"""What commits, compacts and manifests cost in a table of any size: bytes on a key, bytes a commit.

``python benchmarks/scale_commits.py [--small]`` simulates sizes, by the code that jobs run: reports of
workers with names as they are, manifests of a long history, rows that name files. Nothing is fetched.
Each figure stands beside what it was when everything came together in one place. ``docs/scale.md`` has
the figures. ``--small`` is a quick form.
"""

import dataclasses
import pathlib
import pickle
import secrets
import sys
import tempfile
import tracemalloc

import measure
import polars as pl

from nutbeam.io.snapshots.closed_batches import entries_after
from nutbeam.io.snapshots.entries import DEDUP, Batch
from nutbeam.io.snapshots.manifest import Manifest, load_manifest, store_manifest
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import Component, DataFile
from nutbeam.io.tablets.report_files import load_reports, store_reports
from nutbeam.io.tablets.written import Written, gather_written
from nutbeam.io.upkeep.file_shares import count_named_files, share_batches, sum_rows

PAGES_A_FILE = 23  # of a batch with a billion pages in 43 million files


def names_of_files(number: int, batches: int = 1) -> list[str]:
    """Returns paths of files of documents, as a fetch in 100 partitions writes them."""
    name = secrets.token_hex(8)
    folders = [
        f"batches/{1_790_000_000 + n}-0a1{secrets.token_hex(4)}/documents" for n in range(batches)
    ]
    return [
        f"{folders[n % batches]}/p{n % 100:05d}-1790000000000-{name}-{n}.parquet"
        for n in range(number)
    ]


def reports_of_bundle(files: int) -> list[Written]:
    """Returns the reports of a bundle: as a fetch reports files of pages, one by one."""
    return [
        Written(
            path.rpartition("/")[0],
            (DataFile(path, 40, 900_000, "com.example.www:https/a", "com.example.www:https/z",
                      partition=7, order=at, crc32=4_000_000_000),),
            counts={"fetched": 40, "status/200": 38},
            address="/data/crawl",
        )
        for at, path in enumerate(names_of_files(files))
    ]  # fmt: skip


def commit_bytes(files: int, bundles: int) -> dict[str, float]:
    """Returns the bytes that reach the key of a commit, before and now, and those of report files.

    All bundles are alike: one of them is measured.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = place_of(folder)
        reports = reports_of_bundle(files // bundles)
        sent = store_reports(root, gather_written(reports))
        written = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*.json"))
        tracemalloc.start()
        kept = list(load_reports(root, sent))
        memory = tracemalloc.get_traced_memory()[0] if written else 0
        tracemalloc.stop()
        assert sum(len(report.files) for report in kept) == files // bundles
    return {
        "before": bundles * sum(len(pickle.dumps(report)) for report in reports),
        "now": bundles * sum(len(pickle.dumps(report)) for report in sent),
        "written": bundles * written,
        "memory": bundles * memory,
    }


def manifest_bytes(batches: int) -> dict[str, float]:
    """Returns the bytes of a manifest that names all batches of a history, and of one with lists.

    Also what a list of closed batches takes each time that one is written, and the files that are
    read to begin the next job.
    """

    entries, components = _history(batches)
    with tempfile.TemporaryDirectory() as folder:
        table = open_table(folder)
        one = Manifest(snapshot=1, operation="1-a.update", job="update", batches=entries)
        one = dataclasses.replace(one, components=components)
        with replaced_sizes(closed_batches=batches):
            store_manifest(table, one)
        before = len(table.record(1))
        store_manifest(table, dataclasses.replace(one, snapshot=2))
        # A history that grew: the next batches come one by one.
        now, lists = [], _bytes_below(folder)
        manifest = load_manifest(table, 2)
        for number in range(3, 67):
            manifest = _with_batch(load_manifest(table, number - 1), number, batches)
            store_manifest(table, manifest)
            now.append(len(table.record(number)))
        grown = _bytes_below(folder) - lists
    return {
        "before": before, "now": max(now), "mean": sum(now) / len(now), "lists": grown / len(now)
    }  # fmt: skip


def _bytes_below(folder: str) -> int:
    return sum(p.stat().st_size for p in (pathlib.Path(folder) / "manifest/closed").glob("*"))


def _entry(number: int) -> tuple[str, Batch, dict[str, Component]]:

    name = f"{1_700_000_000 + 900 * number}-0a1{number:08x}"
    batch = Batch(
        "updated", 1_700_000_000_000, 100, 10_000_000, 0, number, frozenset([DEDUP, "links"])
    )
    components = {
        f"batches/{name}/{kind}": Component(
            f"manifest/lists/batches.{name}.{kind}-{secrets.token_hex(8)}.parquet",
            2_160, 10_000_000, 200_000_000_000, None, 4_000_000_000,
        )
        for kind in ("fetchlist", "pages", "documents", "outcome", "host_findings")
    }  # fmt: skip
    return name, batch, components


def _history(batches: int) -> tuple[dict[str, Batch], dict[str, Component]]:
    entries, components = {}, {}
    for number in range(batches):
        name, batch, own = _entry(number)
        entries[name] = batch
        components |= own
    return entries, components


def _with_batch(manifest: Manifest, snapshot: int, batches: int) -> Manifest:

    name, batch, components = _entry(batches + snapshot)
    return dataclasses.replace(
        manifest, snapshot=snapshot, batches=entries_after(manifest.batches, {name: batch}),
        components=entries_after(manifest.components, components),
    )  # fmt: skip


def compact_bytes(files: int) -> dict[str, float]:
    """Returns the bytes on the largest key of a compact over a million files and more.

    Each file has 23 pages, and the rows of a file are in one of the tablets of a million rows.
    """

    batches = max(1, files // 10_000)
    paths = names_of_files(files, batches)
    folders = sorted({path.rpartition("/")[0] for path in paths})
    rows = files * PAGES_A_FILE // batches
    components = {
        name: Component(f"manifest/lists/{n}.parquet", 1, rows, 1) for n, name in enumerate(folders)
    }
    shares = share_batches(
        Manifest(components=components), [name.split("/")[1] for name in folders]
    )
    parts: dict[tuple[int, int], list] = {}
    tablet = 1_000_000 // PAGES_A_FILE
    before = 0
    for start in range(0, files, tablet):
        names = paths[start : start + tablet]
        before += len(pickle.dumps(dict.fromkeys(names, PAGES_A_FILE)))
        for key, chunk in count_named_files(pl.Series(names), shares):
            parts.setdefault(key, []).append(chunk)
    largest = max(sum(chunk.nbytes for chunk in chunks) for chunks in parts.values())
    by_share: dict[int, int] = {}
    for (number, _), chunks in parts.items():
        by_share[number] = by_share.get(number, 0) + sum_rows(chunks).nbytes
    return {"before": before, "part": largest, "share": max(by_share.values()), "keys": len(parts)}


def figures(small: bool = False) -> None:
    """Prints all tables of this benchmark."""
    scale = 20 if small else 1
    commits = [(216_000 // scale, 100), (1_000_000 // scale, 1_000), (1_000_000 // scale, 100)]
    rows = []
    for files, bundles in commits:
        got = commit_bytes(files, bundles)
        rows.append(
            [f"{files:,}", f"{bundles:,}", _mb(got["before"]), f"{got['before'] / files:.0f}",
             _mb(got["now"]), _mb(got["written"]), _mb(got["memory"])]
        )  # fmt: skip
    heads = (
        "files",
        "bundles",
        "MB before",
        "bytes a file",
        "MB now",
        "MB in report files",
        "MB in memory",
    )
    measure.table("bytes on the key of a commit, by files that workers have written", heads, rows)
    rows = []
    for batches in (100, 10_000 // scale, 35_000 // scale):
        got = manifest_bytes(batches)
        rows.append(
            [f"{batches:,}", _mb(got["before"]), f"{got['before'] / batches:.0f}", _mb(got["now"]),
             _mb(got["mean"]), _mb(got["lists"])]
        )  # fmt: skip
    heads = (
        "batches",
        "MB before",
        "bytes a batch",
        "MB at most",
        "MB on average",
        "MB of lists a commit",
    )
    measure.table("bytes of a manifest, by batches in the history", heads, rows)
    rows = []
    for files in (216_000 // scale, 1_000_000 // scale):
        got = compact_bytes(files)
        rows.append(
            [
                f"{files:,}",
                _mb(got["before"]),
                f"{got['keys']:,}",
                _mb(got["part"]),
                _mb(got["share"]),
            ]
        )
    heads = ("files", "MB before", "keys now", "MB, names", "MB, sums")
    measure.table("bytes on the largest key of compact, by files of old batches", heads, rows)


def _mb(number: float) -> str:
    return f"{number / 1e6:.3f}"


def main() -> None:
    """Prints the block."""
    figures("--small" in sys.argv[1:])


if __name__ == "__main__":
    main()
