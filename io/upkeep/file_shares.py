"""Counts how many rows name each file of old batches, in shares of bounded size.

A compact drops a file of an old batch if no row names it, so it must bring together what all tablets
say about a file. A share is what is judged in one place: the files of some batches. Small batches
share a place. What tablets say about a large batch is summed in several parts first, and a name
travels as its hash: so no place gets more than about half a million entries of 16 bytes, besides one
for each file of a batch.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ...policy.components.lost_files import STATE_FILES
from ...policy.components.schema import to_frame
from ..batches.batches import batch_component
from ..snapshots.manifest import Manifest
from ..storage.table_sizes import table_sizes
from ..tablets.file_lists import DataFile

# Hashes of names of files, and the number of rows that have the name.
NAMED_FILES = pa.schema([("file", pa.uint64()), ("rows", pa.int64())])


class Share(NamedTuple):
    """Where the files of a batch are judged.

    Attributes:
        number: Number of the share.
        parts: Number of parts in which the rows that name its files are summed first.
    """

    number: int
    parts: int


def share_batches(manifest: Manifest, batches: Sequence[str]) -> dict[str, Share]:
    """Divides batches into shares by the number of rows that may name their files.

    Args:
        manifest: The snapshot.
        batches: Ids of the batches.
    """
    shares: dict[str, Share] = {}
    number, room, most = -1, 0, table_sizes().share_rows
    for batch in batches:
        components = (batch_component(batch, kind) for kind in STATE_FILES.values())
        rows = sum(c.rows for name in components if (c := manifest.components.get(name)))
        if rows > room or number < 0:
            number, room = number + 1, most
        room -= rows
        shares[batch] = Share(number, max(1, -(-rows // most)))
    return shares


def count_named_files(
    names: pl.Series, shares: Mapping[str, Share]
) -> Iterator[tuple[tuple[int, int], pa.Table]]:
    """Yields (number of a share, a part of it) and NAMED_FILES rows, from names in rows of a tablet.

    Args:
        names: Paths of files of batches, as rows name them.
        shares: The batches whose files are judged; names of other batches are left out.
    """
    judged = pl.DataFrame(
        [(batch, *share) for batch, share in shares.items()],
        {"batch": pl.String, "number": pl.Int64, "parts": pl.UInt64},
        orient="row",
    )
    counted = names.drop_nulls().alias("path").value_counts(name="rows")
    of_batches = counted.with_columns(
        batch=pl.col("path").str.split("/").list.get(1, null_on_oob=True)
    )
    rows = of_batches.join(judged, on="batch")
    rows = rows.with_columns(file=hash_names(rows.get_column("path")))
    rows = rows.with_columns(part=pl.col("file") % pl.col("parts"))
    for (number, part), group in rows.group_by("number", "part"):
        yield (int(number), int(part)), group.select("file", "rows").to_arrow().cast(NAMED_FILES)


def sum_rows(chunks: Iterable[pa.Table]) -> pa.Table:
    """Returns NAMED_FILES rows with one row for each file."""
    rows = pl.concat([to_frame(NAMED_FILES.empty_table()), *map(to_frame, chunks)])
    return rows.group_by("file").agg(pl.col("rows").sum()).to_arrow().cast(NAMED_FILES)


def hash_names(names: pl.Series) -> pl.Series:
    """Returns 64-bit hashes of texts that are the same on each machine and in each version.

    Two names with one hash are harmless: then a file is kept that could be dropped.
    """
    return pl.Series("file", [_hash_name(name) for name in names], dtype=pl.UInt64)


def _hash_name(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


class LiveRows:
    """The numbers of rows that refer to files of a share.

    Args:
        rows: NAMED_FILES rows of the whole share.

    Attributes:
        total: Number of all these rows.
    """

    def __init__(self, rows: pa.Table) -> None:
        self._rows = dict(zip(rows["file"].to_pylist(), rows["rows"].to_pylist(), strict=True))
        self.total = sum(self._rows.values())

    def of(self, file: DataFile) -> int:
        """Returns how many rows refer to a file, by its path or an earlier one."""
        paths = {file.path, file.formerly or file.path}
        return sum(self._rows.get(_hash_name(path), 0) for path in paths)
