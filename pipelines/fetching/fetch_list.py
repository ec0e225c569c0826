"""The fetch list of a partition: its tasks, and whether its queues are its own."""

from collections.abc import Iterator, Mapping

import polars as pl

from ...io.snapshots.operations import Operation
from ...policy.base.hash_buckets import SLOTS, hash_buckets
from ...policy.base.key_columns import host_keys
from ...policy.components.schema import FetchListRows
from ...policy.generating.selection import queue_names
from ...policy.hosting.host_settings import pause_of
from ...web.base.errors import UserError
from ...web.engine.engine import FetchOptions
from ...web.engine.tasks import Task
from ...web.exchange.addresses import Addresses, PinnedGuard, endpoints
from ...web.exchange.http_options import HttpOptions
from ...web.urls.row_keys import from_host_key, from_key, host_key_of
from .followed_links import RequestedPages


def list_tasks(
    rows: FetchListRows,
    requested: RequestedPages,
    threads_of: Mapping[str, int],
    pauses: FetchOptions,
) -> Iterator[Task]:
    """Yields the tasks of a fetch list.

    Args:
        rows: FETCHLIST rows.
        requested: The pages that are requested.
        threads_of: Threads of single hosts (reversed).
        pauses: Pauses of hosts with threads but no delay of their own.
    """
    # The best rows first, because a limit may leave out the last ones.
    for row in rows.sort("score", "key", descending=[True, False]).iter_rows(named=True):
        delay, address = requested.wait(row["key"])
        threads = threads_of.get(host_key_of(row["key"])) if threads_of else None
        # After a 304 there must be a stored body, and what was parsed of it.
        stored = row["page"] and row["signature"]
        yield Task(
            url=from_key(row["key"]),
            key=row["key"],
            score=row["score"],
            distance=row["distance"] or 0,
            etag=row["etag"] if stored else None,
            last_modified=row["last_modified"] if stored else None,
            modified_time=(row["modified_time"] or 0) if stored else 0,
            delay=pause_of(threads, delay, pauses),
            threads=threads,
            address=address,
        )


def check_undivided(
    operation: Operation, rows: FetchListRows, mode: str, options: HttpOptions
) -> None:
    """Checks that no queue has tasks in two partitions.

    Args:
        operation: The fetch.
        rows: FETCHLIST rows of a partition.
        mode: The names of queues: ``host``, ``domain`` or ``ip``.
        options: Options that decide where connections go.

    Raises:
        UserError: generate has divided a queue between partitions.
    """
    batch = str(operation.batch)
    many = operation.manifest().batches[batch].partitions > 1
    if not many or mode == "host":
        return
    addresses = rows.get_column("address") if mode == "ip" else None
    slots = hash_buckets(queue_names(batch, rows.get_column("key"), mode, addresses), SLOTS)
    if (slots != rows.get_column("slot")).any() or (mode == "ip" and _lacks_address(rows, options)):
        raise UserError(
            f"batch {batch!r} was not generated for queues by {mode}, and some of these are "
            "divided between partitions: fetch it with --queue_mode host, or generate with "
            f"--queue_mode {mode}, too"
        )


def _lacks_address(rows: FetchListRows, options: HttpOptions) -> bool:
    """Returns whether a host in the list needs an address, and the list does not have it."""
    addresses = Addresses(options)
    unlocated = rows.filter(pl.col("address").is_null()).get_column("key")
    hosts = endpoints(unlocated).items()
    return any(ports and not addresses.uses_name(from_host_key(key), ports) for key, ports in hosts)


def pinned_guard(rows: FetchListRows, options: HttpOptions) -> PinnedGuard | None:
    """Returns a guard that connects each host to its queue's address, for queues by address."""
    located = rows.filter(pl.col("address").is_not_null())
    if not len(located):
        return None
    hosts = located.select(host_keys(located.get_column("key")).alias("host"), "address").unique()
    return PinnedGuard(options, {from_host_key(host): at for host, at in hosts.iter_rows()})
