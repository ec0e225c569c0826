"""Declares each kind of component once; all commands use the declarations.

A component of a table is a list of files or of ranges of rows: ``state``, ``batches/ID/pages``.
Its kind is the last part of its name. To add a component, declare its kind here.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from .clocks import set_right, set_right_hosts, wrong_hosts, wrong_times
from .schedule import ScheduleOptions
from .schema import BLOCKLIST, DOCUMENTS, FETCHLIST, HOSTS, OUTCOME, PAGES, STATE, TEXT


class Times(NamedTuple):
    """Functions that find and correct wrong times in rows, caused by a wrong clock.

    Attributes:
        wrong: ``wrong(now, options)`` returns the condition of rows with impossible times.
        set_right: ``set_right(rows, now, options, since)`` returns (rows, number of
            corrected rows); ``since`` is the time of the oldest result that may still
            arrive.
    """

    wrong: Callable[[int, ScheduleOptions], pl.Expr]
    set_right: Callable[[pl.DataFrame, int, ScheduleOptions, int], tuple[pl.DataFrame, int]]


STATE_TIMES = Times(wrong_times, set_right)
HOST_TIMES = Times(
    lambda now, _: wrong_hosts(now),
    lambda rows, now, _options, _since: set_right_hosts(rows, now),
)


@dataclasses.dataclass(frozen=True)
class Kind:
    """The declaration of a kind of component.

    Attributes:
        name: Its name, such as ``state``.
        schema: Its columns; ``key`` is the first.
        of_hosts: Whether keys are hosts (reversed). If not, they are URLs.
        in_tablets: Whether it has one row per key, in tablets: bases with runs on them. If not, it
            is a list of files that are read separately.
        in_rows: Whether a table in Bigtable keeps it in rows. If not, it is in files there, too.
        in_order: Whether each file is in key order.
        of_batch: Whether each batch has its own component of this kind.
        flushed: Whether a fetch writes files of it before it commits.
        times: Functions with which fsck corrects its times; None if no times need it.
    """

    name: str
    schema: pa.Schema
    of_hosts: bool = False
    in_tablets: bool = False
    in_rows: bool = False
    in_order: bool = False
    of_batch: bool = False
    flushed: bool = False
    times: Times | None = None


# Names in tables of format 2 and older, and the present names. Old files stay in their folders.
FORMER_NAMES = {"bars": "blocklist", "learnt": "host_findings"}

# Files with the hosts of seeds, for tables whose hosts are in rows.
SEED_HOSTS = "seed_hosts"

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "state",
            STATE,
            in_tablets=True,
            in_rows=True,
            in_order=True,
            times=STATE_TIMES,
        ),
        Kind(
            "hosts",
            HOSTS,
            of_hosts=True,
            in_tablets=True,
            in_rows=True,
            in_order=True,
            times=HOST_TIMES,
        ),
        Kind(SEED_HOSTS, HOSTS, of_hosts=True),
        Kind("blocklist", BLOCKLIST, in_order=True),
        Kind("fetchlist", FETCHLIST, of_batch=True, in_order=True),
        Kind("pages", PAGES, of_batch=True, flushed=True),
        Kind("host_findings", HOSTS, of_hosts=True, of_batch=True, flushed=True),
        Kind("documents", DOCUMENTS, of_batch=True, flushed=True),
        Kind("outcome", OUTCOME, of_batch=True, in_order=True),
    )
}


def kind_of(component: str) -> Kind:
    """Returns the kind of a component; for an unknown component, a kind with only the key.

    >>> kind_of("batches/1/host_findings").of_hosts, kind_of("later").schema.names
    (True, ['key'])
    """
    name = present_name(component).rpartition("/")[2]
    return KINDS.get(name) or Kind(name, pa.schema([("key", TEXT)]))


def present_name(component: str) -> str:
    """Returns the name of a component whose name may be one of an older table.

    >>> present_name("batches/1/learnt"), present_name("state")
    ('batches/1/host_findings', 'state')
    """
    above, slash, name = component.rpartition("/")
    return f"{above}{slash}{FORMER_NAMES.get(name, name)}"


def folders_of(component: str) -> list[str]:
    """Returns the folders that may have files of a component: the former one, and its own.

    >>> folders_of("batches/1/host_findings"), folders_of("state")
    (['batches/1/learnt', 'batches/1/host_findings'], ['state'])
    """
    above, slash, name = component.rpartition("/")
    former = [old for old, new in FORMER_NAMES.items() if new == name]
    return [f"{above}{slash}{folder}" for folder in (*former, name)]


def kinds_in_tablets() -> tuple[str, ...]:
    """Returns the names of the kinds that are in tablets."""
    return tuple(name for name, kind in KINDS.items() if kind.in_tablets)


def kinds_of_batches() -> tuple[str, ...]:
    """Returns the names of the kinds that each batch has."""
    return tuple(name for name, kind in KINDS.items() if kind.of_batch)


def folders() -> tuple[str, ...]:
    """Returns the folders of a table that have files of rows."""
    of_table = [name for name, kind in KINDS.items() if not kind.of_batch]
    return (*(folder for name in of_table for folder in folders_of(name)), "batches")
