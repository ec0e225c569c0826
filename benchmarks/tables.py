"""Web tables for benchmarks: any number of rows, the same ones every time."""

import os
import pathlib
import shutil
import time

import numpy as np
import polars as pl

from nutbeam.io.batches.batches import batch_component, write_file
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.table_sizes import replaced_sizes
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets import tablet_writer
from nutbeam.io.tablets.tablet_writer import write_run
from nutbeam.io.tablets.tablets import ROW_NUMBER
from nutbeam.io.tablets.tablets import tablets as known_tablets
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.components.schema import FETCHLIST, PAGES, STATE, Status, conform
from nutbeam.web.exchange.status import FETCH_NOTMODIFIED, FETCH_SUCCESS, SUCCESS

DAY_MS = 86_400_000
DUE_SHARE = 0.2
BATCH = "1700000000-00000000"
OLDER = tuple(f"16{number:08d}-00000000" for number in range(30))
_STEP = 250_000
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def host_sizes(rows: int, hosts: int) -> np.ndarray:
    """Returns how many rows each host has: few have very many, most have a handful.

    >>> sizes = host_sizes(1000, 50)
    >>> int(sizes.sum()), int(sizes.min()) >= 1
    (1000, True)
    """
    weights = (np.arange(hosts) + 10.0) ** -0.8
    edges = np.floor(np.cumsum(weights) / weights.sum() * (rows - hosts)).astype(np.int64)
    edges[-1] = rows - hosts
    sizes = np.diff(edges, prepend=0) + 1
    return np.random.default_rng(1).permutation(sizes)


def keys(sizes: np.ndarray, start: int, end: int) -> pl.Series:
    """Returns the row keys of rows [start, end) of a table whose hosts have these sizes."""
    return keys_at(sizes, np.arange(start, end))


def keys_at(sizes: np.ndarray, number: np.ndarray) -> pl.Series:
    """Returns the row keys of rows by their numbers."""
    upto = np.cumsum(sizes)
    host = np.searchsorted(upto, number, side="right")
    within = number - (upto[host] - sizes[host])
    frame = pl.DataFrame({"host": host, "page": within, "mixed": _mix(number)})
    padded = pl.col("host").cast(pl.String).str.zfill(7)
    page = pl.col("page").cast(pl.String).str.zfill(7)
    tail = (pl.col("mixed") % 1_000_000).cast(pl.String)
    return frame.select(
        key=pl.concat_str(
            pl.lit("com.example.h"), padded, pl.lit(":http/page/"), page, pl.lit("-"), tail,
            pl.lit(".html"),
        )
    ).to_series()  # fmt: skip


def state_rows(
    sizes: np.ndarray, start: int, end: int, now: int, due_share: float = DUE_SHARE
) -> pl.DataFrame:
    """Returns rows [start, end) of the state, of which a share is due."""
    random = np.random.default_rng(start)
    number = end - start
    due = random.random(number) < due_share
    wait = random.integers(1 * DAY_MS, 29 * DAY_MS, number)
    fetched = random.random(number) < 0.6
    status = np.where(fetched, int(Status.DB_FETCHED), int(Status.DB_UNFETCHED))
    last = now - random.integers(1 * DAY_MS, 60 * DAY_MS, number)
    signature = _mix(np.arange(start, end)).view("S8")
    frame = pl.DataFrame(
        {
            "key": keys(sizes, start, end),
            "status": pl.Series(status, dtype=pl.UInt8),
            "fetch_time": np.where(due, now - wait, now + wait),
            "fetch_interval": np.full(number, 30 * 86_400, np.int32),
            "retries": np.zeros(number, np.int32),
            "last_fetch_time": np.where(fetched, last, 0),
            "modified_time": np.where(fetched, last, 0),
            "score": random.pareto(1.5, number).astype(np.float32),
            "signature": pl.Series([bytes(s) * 2 for s in signature], dtype=pl.Binary),
            "distance": random.integers(0, 12, number).astype(np.int32),
        }
    )
    gone = pl.when(pl.col("status") == int(Status.DB_FETCHED))
    return frame.with_columns(signature=gone.then("signature"))


def make_table(
    root: pathlib.Path,
    rows: int,
    hosts: int,
    tablet_rows: int | None = None,
    due_share: float = DUE_SHARE,
) -> None:
    """Writes a table of state rows, as an update that was committed would leave it.

    Args:
        root: Folder, made new.
        rows: How many.
        hosts: Of how many hosts, one after the other.
        tablet_rows: Rows of a tablet, where it is not the default.
        due_share: Which share of the rows is due.
    """
    with replaced_sizes(**({} if tablet_rows is None else {"tablet_rows": tablet_rows})):
        _write_table(root, rows, hosts, due_share)


def _write_table(root: pathlib.Path, rows: int, hosts: int, due_share: float) -> None:
    sizes, now = host_sizes(rows, hosts), int(time.time() * 1000)
    operation = begin(str(root), "load", "load", now=now)
    writer = tablet_writer.TabletWriter(operation.table, "state", STATE)
    for start in range(0, rows, _STEP):
        frame = state_rows(sizes, start, min(start + _STEP, rows), now, due_share)
        writer.write(pl.from_arrow(conform(frame, STATE)))
    commit(operation, [Written("state", tuple(writer.close()))])


def add_batch(
    root: pathlib.Path,
    rows: int,
    hosts: int,
    pages: int,
    links: int,
    file_pages: int = 10_000,
    *,
    unchanged: bool = False,
) -> None:
    """Adds a batch that is parsed: pages of the table, each with links to its URLs.

    Args:
        root: The folder of a table by ``make_table`` with as many ``rows`` and ``hosts``.
        rows: Of the table.
        hosts: Of the table.
        pages: How many are in the batch; of all hosts.
        links: How many a page has; a tenth of them to URLs that are new.
        file_pages: How many pages are in a file.
        unchanged: Whether every second page answered 304; its links are in a document of one of
            the batches ``OLDER``, of each of them the same number.
    """
    sizes = host_sizes(rows, hosts)
    operation = begin(str(root), "load", "load-batch", batch=BATCH)
    chosen = np.unique(np.linspace(0, rows - 1, pages).astype(np.int64))
    key = keys_at(sizes, chosen)
    common = pl.DataFrame({"key": key, "score": np.ones(len(key), np.float32)}).with_columns(
        fetch_status=pl.lit(FETCH_SUCCESS, pl.UInt8),
        protocol_status=pl.lit(SUCCESS, pl.UInt8),
        http_code=pl.lit(200, pl.UInt16),
        fetch_time=pl.lit(operation.now),
        content_type=pl.lit("text/html"),
        parse_status=pl.lit(1, pl.UInt8),
        signature=pl.col("key").hash(0).cast(pl.String).cast(pl.Binary),
        distance=pl.lit(1, pl.Int32),
        slot=pl.lit(0, pl.UInt16),
        body=pl.lit(b"<html></html>"),
        title=pl.col("key"),
        text=pl.col("key"),
    )
    documents = common.with_columns(outlinks=_outlinks(sizes, rows, len(key), links))
    listed = common.with_columns(signature=pl.lit(b"before"))
    written = []
    if unchanged:
        document = np.full(len(common), None, object)
        for number, batch in enumerate(OLDER):
            older = documents.gather_every(2 * len(OLDER), offset=2 * number)
            file = write_file(operation.table, batch, "documents", [conform(older, DOCUMENTS)])
            written.append(Written(batch_component(batch, "documents"), (file,)))
            document[2 * number :: 2 * len(OLDER)] = file.path
        listed = listed.with_columns(document=pl.Series(document, dtype=pl.String))
        answered = pl.Series(np.arange(len(common)) % 2 == 0)
        status = pl.when(answered).then(FETCH_NOTMODIFIED).otherwise("fetch_status")
        common = common.with_columns(status.cast(pl.UInt8).alias("fetch_status"))
        documents = documents.gather_every(2, offset=1)
    for kind, frame, schema in (
        ("fetchlist", listed, FETCHLIST), ("pages", common, PAGES), ("documents", documents, DOCUMENTS)
    ):  # fmt: skip
        files = []
        for order, rows_of_file in enumerate(frame.iter_slices(file_pages)):
            parts = (conform(part, schema) for part in rows_of_file.iter_slices(2_000))
            files.append(write_file(operation.table, BATCH, kind, parts, order=order))
        written.append(Written(batch_component(BATCH, kind), tuple(files)))
    batch = Batch("parsed", operation.now, 1, len(key), operation.now + 7 * DAY_MS)
    commit(operation, written, CommitTerms(batch=batch))


def add_runs(root: pathlib.Path, share: float, runs: int) -> None:
    """Puts runs on all tablets of a table by ``make_table``: rows that are due as before.

    Args:
        root: The folder of the table.
        share: What part of the rows each run has.
        runs: How many.
    """
    for number in range(runs):
        operation = begin(str(root), "load", f"load-runs-{number}")
        every = int(1 / share)
        written = []
        for tablet in known_tablets(operation.files("state")):
            base = tablet.base
            rows = pl.read_parquet(root / base.path, row_index_name=ROW_NUMBER)
            some = rows.gather_every(every, offset=number * 7 % every)
            run = write_run(operation.table, "state", base, some, 0, operation.snapshot + 1)
            written.append(Written("state", (run,)))
        commit(operation, written)


def clone(root: pathlib.Path, copy: pathlib.Path) -> pathlib.Path:
    """Copies a table by hard links: files never change, and the copy can be committed to."""
    shutil.copytree(root, copy, copy_function=os.link)
    assert open_table(str(copy)).latest_snapshot()
    return copy


def _outlinks(sizes: np.ndarray, rows: int, pages: int, links: int) -> pl.Series:
    targets = (_mix(np.arange(pages * links)) % np.uint64(rows)).astype(np.int64)
    key = keys_at(sizes, targets)
    new = pl.Series(np.arange(len(key)) % 10 == 0)
    frame = pl.DataFrame({"key": key, "new": new}).select(
        pl.when("new").then(pl.col("key") + "?new").otherwise("key").alias("key"),
        anchor=pl.lit("a link"),
        rel=pl.lit(""),
    )
    document = pl.Series(np.repeat(np.arange(pages), links))
    lists = frame.select(pl.struct(pl.all()).alias("link"), document=document)
    return lists.group_by("document", maintain_order=True).agg("link").get_column("link")


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Returns numbers that look random, the same ones every time."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    return mixed ^ (mixed >> np.uint64(29))
