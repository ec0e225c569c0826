"""Parts of the work on sitemaps: what came of sources that are done, so that it is not done again.

An attempt at a partition writes a part every half a minute. If it dies, the next attempt of the same
operation takes over its parts, and requests only the sitemaps of other sources.
"""

import hashlib
import io
import json
import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ...policy.components.schema import HOSTS, conform_frame
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.safe_json import json_object
from ..snapshots.operations import Operation
from ..storage.files import LARGEST_BYTES, create_exclusive, names, read_bytes
from ..storage.places import Folder
from .batches import batch_component, remove_aside
from .leases import SITEMAP_LEASES

# A purge may delete a part meanwhile.
_DAMAGES = (ValueError, KeyError, TypeError, OSError, pl.exceptions.PolarsError, UserError)
_LOG = logging.getLogger(__name__)


class SitemapPart(NamedTuple):
    """What came of some sources.

    Attributes:
        sources: The sources that are done.
        counts: Counts of these sources.
        urls: Rows of URLs, also of sources that are not done: these come again.
        hosts: HOSTS rows of the hosts of these sources.
        elsewhere: Rows of their sitemaps in other partitions.
    """

    sources: list[str]
    counts: Mapping[str, int]
    urls: pl.DataFrame
    hosts: pl.DataFrame
    elsewhere: pl.DataFrame


@dataclass(frozen=True)
class SitemapParts:
    """The parts of a partition of an operation.

    Attributes:
        operation: The operation.
        partition: Name of the partition.
        rules: Names the rules by which URLs are judged: with others, nothing is taken over.
        urls: Schema of the rows of URLs.
        elsewhere: Schema of the rows of sitemaps.
    """

    operation: Operation
    partition: int
    rules: str
    urls: pa.Schema
    elsewhere: pa.Schema

    def read(self) -> Iterator[SitemapPart]:
        """Yields the parts that earlier attempts have written; damaged ones are left out."""
        folder = self._table / batch_component(SITEMAP_LEASES, "aside")
        for name in sorted(names(folder)):
            if name.startswith(self._start) and name.endswith(".arrow"):
                try:
                    yield self._part_of(read_bytes(folder / name, LARGEST_BYTES))
                except _DAMAGES:
                    _LOG.warning("damaged, so its work is done again: %s", folder / name)

    def write(self, part: SitemapPart) -> None:
        """Writes a part."""
        folder, number = self._table / batch_component(SITEMAP_LEASES, "aside"), 0
        there, data = set(names(folder)), _to_bytes(part)
        while (name := f"{self._start}{number:05d}.arrow") in there or not create_exclusive(
            folder / name, data, durable=False
        ):
            number += 1

    @property
    def _table(self) -> Folder:
        return self.operation.table

    @property
    def _start(self) -> str:
        digest = hashlib.sha256(f"{self.operation.id}\n{self.rules}".encode()).hexdigest()[:16]
        return f"p{self.partition:05d}-{self.operation.snapshot}-{digest}-"

    def _part_of(self, data: bytes) -> SitemapPart:
        head, _, rows = data.partition(b"\n")
        record = json_object(head)
        frames = []
        for size, schema in zip(record["sizes"], (self.urls, HOSTS, self.elsewhere), strict=True):
            frames.append(conform_frame(pl.read_ipc(io.BytesIO(rows[:size])), schema))
            rows = rows[size:]
        counts = {str(name): int(number) for name, number in record["counts"].items()}
        return SitemapPart([*map(str, record["sources"])], counts, *frames)


def _to_bytes(part: SitemapPart) -> bytes:
    """Returns a part as a line of JSON, and its rows in Arrow's format."""
    bodies = []
    for rows in (part.urls, part.hosts, part.elsewhere):
        sink = io.BytesIO()
        rows.write_ipc(sink, compression="zstd")
        bodies.append(sink.getvalue())
    head = {"sources": part.sources, "counts": dict(part.counts), "sizes": [*map(len, bodies)]}
    return b"\n".join((json.dumps(head).encode(), b"".join(bodies)))


def forget_parts(table: Folder) -> None:
    """Removes all parts; called after an operation has committed what they have."""
    remove_aside(table, SITEMAP_LEASES)
