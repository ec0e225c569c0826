"""Brings the rows of a table into the order of their URLs, which Nutch's databases have.

Rows lie in the order of their keys, with hosts reversed. Buckets of URLs that follow one another are
written to temporary files, and each bucket is sorted in memory.
"""

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa

from ...policy.components.schema import StateRows, to_frame
from ..snapshots.pinned import Pinned
from ..storage.processes import scratch
from ..tablets.tablets import tablets

_BUCKET_ROWS = 400_000
_SAMPLED = 256  # one key of these


def in_url_order(
    pinned: Pinned,
    columns: tuple[str, ...],
    convert: Callable[[StateRows], pl.DataFrame],
) -> Iterator[pl.DataFrame]:
    """Yields converted rows of the state, sorted by ``url``.

    Args:
        pinned: The snapshot.
        columns: Columns to read.
        convert: Makes rows with ``url`` of rows of the state with these columns.
    """
    total = sum(map(len, _frames(pinned, ("key",))))
    bounds = pl.Series([], dtype=pl.String)
    if total > _BUCKET_ROWS:
        samples = (convert(rows.gather_every(_SAMPLED)) for rows in _frames(pinned, columns))
        bounds = _bounds(samples, math.ceil(total / _BUCKET_ROWS))
    frames = (convert(rows) for rows in _frames(pinned, columns))
    if not len(bounds):
        rows = list(frames)
        if rows:
            yield pl.concat(rows).sort("url")
        return
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        files = _divide(frames, bounds, Path(folder))
        for file in files:
            with pa.memory_map(str(file)) as source:
                yield to_frame(pa.ipc.open_stream(source).read_all()).sort("url")


def _frames(pinned: Pinned, columns: tuple[str, ...]) -> Iterator[StateRows]:
    for tablet in tablets(pinned.files("state")):
        yield from pinned.table.read_in_frames("state", tablet, columns)


def _bounds(samples: Iterator[pl.DataFrame], number: int) -> pl.Series:
    """Returns the URLs at which buckets end, from a sample of the rows."""
    urls = pl.concat(rows.get_column("url") for rows in samples).sort()
    places = [len(urls) * at // number for at in range(1, number)]
    return urls.gather(places).unique().sort()


def _divide(frames: Iterator[pl.DataFrame], bounds: pl.Series, folder: Path) -> list[Path]:
    """Writes rows into a file for each bucket; returns the files in order of their URLs."""
    files = [folder / f"{number:06d}" for number in range(len(bounds) + 1)]
    with contextlib.ExitStack() as open_files:
        writers = dict[int, pa.RecordBatchStreamWriter]()
        for rows in frames:
            buckets = bounds.search_sorted(rows.get_column("url"), side="right")
            for (number,), part in rows.group_by(buckets.alias("bucket")):
                table = part.drop("bucket", strict=False).to_arrow()
                if number not in writers:
                    stream = open_files.enter_context(pa.OSFile(str(files[int(number)]), "wb"))
                    writer = pa.ipc.new_stream(stream, table.schema)
                    writers[int(number)] = open_files.enter_context(writer)
                writers[int(number)].write_table(table)
    return [file for file in files if file.exists()]
