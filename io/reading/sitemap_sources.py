"""Finds hosts whose sitemaps are wanted: in the host table, and in lists of URLs and names."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import polars as pl

from ...policy.components.host_rows import has_urls, is_given_up
from ...web.urls.row_keys import from_host_key, host_key
from ..batches.seeds import file_lines, sources
from ..snapshots.operations import Operation
from .host_rows import host_frames

# Words that stand for hosts of the host table.
ALL_HOSTS, HOSTS_OF_SEEDS, RECORDED = "all", "seeds", "recorded"
GROUPS_OF_HOSTS = (ALL_HOSTS, HOSTS_OF_SEEDS, RECORDED)
_COLUMNS = ("key", "robots_origin")


def listed_sitemaps(words: Iterable[str]) -> Iterator[str]:
    """Yields URLs, and the lines of files: URLs of sitemaps, or names of hosts.

    Raises:
        UsageError: A file is missing, or is not text.
        UserError: A file cannot be read.
    """
    for source in sources(list(words)):
        if source.path is None:
            yield from source.urls
            continue
        for _, line in file_lines(source.path):
            if word := line.partition("\t")[0].strip():
                yield word


def origins_of_hosts(
    operation: Operation, names: Sequence[str], groups: Collection[str] = ()
) -> Iterator[str]:
    """Yields the origins of hosts, ``scheme://host[:port]``.

    The origin is that of the robots.txt that a fetch has recorded, else ``http://HOST``, as in
    Nutch: most servers redirect from there.

    Args:
        operation: Pins the host table.
        names: Names of hosts.
        groups: Words of ``GROUPS_OF_HOSTS``.
    """
    if names:
        keys = pl.Series([host_key(name) for name in names], dtype=pl.String)
        host_rows = operation.find_rows("hosts", keys.unique().sort(), _COLUMNS)
        origins = dict(host_rows.select("key", "robots_origin").iter_rows())
        yield from (origins.get(host_key(name)) or f"http://{name}" for name in names)
    for rows in host_frames(operation, without={"robots_text"}) if groups else ():
        for key, origin in _rows_of_groups(rows, groups).iter_rows():
            yield origin or f"http://{from_host_key(key)}"


def _rows_of_groups(rows: pl.DataFrame, groups: Collection[str]) -> pl.DataFrame:
    """Returns key and origin of the rows in some groups, in key order.

    Leaves out hosts that were given up, and hosts without URLs in the table that are not a seed's:
    registered domains have rows, too, and so have hosts to which pages link.
    """
    wanted = pl.lit(ALL_HOSTS in groups)
    if HOSTS_OF_SEEDS in groups:
        wanted |= pl.col("seed").fill_null(False)
    if RECORDED in groups:
        wanted |= pl.col("sitemaps").is_not_null()
    return (
        rows.filter(wanted & has_urls() & ~is_given_up()).select("key", "robots_origin").sort("key")
    )
