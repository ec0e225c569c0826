"""Numbers of URLs by host, counted row by row: the reference for the host table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

STATUSES = {1: "unfetched", 2: "fetched", 3: "gone", 4: "redir_temp", 5: "redir_perm",
            6: "notmodified", 7: "duplicate", 8: "orphan", 9: "parse_failed"}  # fmt: skip
FAILED = "connection_failures"
Counts = dict[tuple[str, str], int]


def count_by_host(rows: Iterable[Mapping[str, Any]]) -> Counts:
    """Returns the numbers of URLs by (reversed host, name of the number), without zeros."""
    found = Counter[tuple[str, str]]()
    for row in rows:
        key = row["key"]
        host = key[: key.index("]") + 1] if key.startswith("[") else key.split(":")[0]
        if host:
            found[host, STATUSES[row["status"]]] += 1
            found[host, FAILED] += bool(row["retries"])
    return +found


def counts_in(rows: Iterable[Mapping[str, Any]]) -> Counts:
    """Returns the same of rows with a column per number."""
    names = (*STATUSES.values(), FAILED)
    return {(row["key"], name): row[name] for row in rows for name in names if row[name]}


def added(counts: Counts, changes: Counts) -> Counts:
    """Returns sums, without zeros."""
    total = Counter(counts)
    total.update(changes)
    return {name: number for name, number in total.items() if number}
