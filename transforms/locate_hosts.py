"""Finds the addresses of hosts, for one queue per address."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.tablets.written import Written, sum_counts
from ..policy.base.key_columns import host_keys
from ..policy.components.schema import to_frame
from ..policy.hosting.locate_options import LocateOptions
from ..web.exchange.addresses import Addresses, endpoints
from .elements.chunks import Chunk, to_chunks
from .partition import GroupByHost
from .wiring.display import Displayed

COUNTS = "counts"


@dataclasses.dataclass
class LocateHosts(Displayed):
    """Finds the addresses of the hosts of chosen rows, and adapts ``place``.

    Input:  chunks with ``key`` and ``place``, which begins with the batch's id.
    Output: (the chunks with ``address``, ``Written`` with counts). Pages of hosts that were not
        looked up in time stay due (``dropped/address_unknown``). A host without an address has
        a queue by name (``unresolved``): fetch reports the reason.

    Cost: a shuffle of the rows, because a host must have one address: one worker looks it up,
    once. A name server that does not answer costs at most ten minutes per partition.
    """

    options: LocateOptions

    def expand(self, rows: beam.PCollection[Chunk]) -> Any:
        by_host = GroupByHost(self.options.num_fetchers or 1, host="place", salt="address")
        located = (
            rows
            | by_host
            | "Locate"
            >> beam.FlatMap(_locate, self.options)
            .with_output_types(Chunk)
            .with_outputs(COUNTS, main="main")
        )
        return located["main"], located[COUNTS]


def _locate(grouped: tuple[int, Iterable[Chunk]], options: LocateOptions) -> Iterator[Any]:
    frames = [to_frame(chunk) for chunk in grouped[1]]
    addresses, counts = Addresses(options), dict[str, int]()
    keys = pl.concat(frame.get_column("key") for frame in frames)
    addresses_of = addresses.look_up_all(endpoints(keys))
    for frame in frames:
        rows, frame_counts = locate_hosts(frame, addresses_of)
        counts = sum_counts([counts, frame_counts])
        yield from to_chunks(rows)
    if counts:
        yield beam.pvalue.TaggedOutput(COUNTS, Written(counts=counts))


def locate_hosts(
    rows: pl.DataFrame, addresses: dict[str, str | None]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns chosen rows with the addresses of their hosts, and counts.

    >>> rows = pl.DataFrame({"key": ["com.a:http/", "com.b:http/", "com.c:http/"],
    ...                      "place": ["7/com.a", "7/com.b", "7/com.c"]})
    >>> found, counts = locate_hosts(rows, {"com.a": "1.2.3.4", "com.b": ""})
    >>> found.select("place", "address").rows(), counts
    ([('7/1.2.3.4', '1.2.3.4'), ('7/com.b', '')], {'dropped/address_unknown': 1, 'unresolved': 1})
    """
    hosts = host_keys(rows.get_column("key"))
    is_known = hosts.is_in(list(addresses))
    late = int((~is_known).sum())
    rows = rows.with_columns(
        address=hosts.replace_strict(addresses, default=None, return_dtype=pl.String)
    ).filter(is_known)
    has_address = pl.col("address").fill_null("") != ""
    placed = pl.col("place").str.extract("^([^/]*)/") + "/" + pl.col("address")
    rows = rows.with_columns(place=pl.when(has_address).then(placed).otherwise("place"))
    unresolved = int((rows.get_column("address") == "").sum())
    counts = {"dropped/address_unknown": late, "unresolved": unresolved}
    return rows, {name: number for name, number in counts.items() if number}
