"""Resolvers that several jobs give to ``ApplyChanges``."""

import dataclasses
import functools

import polars as pl

from ..io.rows.small_components import HOST_COUNTS_COMPONENT, read_domain_urls
from ..io.snapshots.operations import Operation
from ..io.tablets.resolve import Resolved, Resolver, resolving
from ..policy.components.schema import StateRows
from ..policy.hosting.hosts import COUNTED_OF_STATE, changed_counts, merge_hosts
from ..policy.hosting.merit import DomainRoom, Merits, domains_of_new_urls

# Where the differences that resolvers of the state return belong, for ``Target``.
COUNT_PLACES = {HOST_COUNTS_COMPONENT: HOST_COUNTS_COMPONENT}


def merge_resolver(operation: Operation) -> Resolver:
    """Returns the resolver of host records."""
    return resolving(functools.partial(merge_hosts, now=operation.now))


def counting_hosts(resolver: Resolver) -> Resolver:
    """Returns a resolver of the state that also returns the differences in numbers of URLs."""

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        resolved = resolver(rows, changes)
        counts = changed_counts(
            rows.select(COUNTED_OF_STATE), resolved.rows.select(COUNTED_OF_STATE)
        )
        return with_host_counts(resolved, counts)

    return resolve


def with_host_counts(resolved: Resolved, counts: pl.DataFrame) -> Resolved:
    """Returns the result of a resolver with HOST_COUNTS rows, if there are any."""
    if counts.is_empty():
        return resolved
    extra = {**resolved.extra, HOST_COUNTS_COMPONENT: counts}
    return dataclasses.replace(resolved, extra=extra)


def read_domain_room(
    operation: Operation, rows: StateRows, changes: pl.DataFrame, merits: Merits | None
) -> DomainRoom | None:
    """Reads the room of registered domains for URLs that changes add; None if they have no limit."""
    if merits is None:
        return None
    return DomainRoom(merits, read_domain_urls(operation, domains_of_new_urls(rows, changes)))
