"""Declares each kind of component once; all commands use the declarations.

A component of a table is a list of files or of ranges of rows: ``state``, ``batches/ID/pages``.
Its kind is the last part of its name. To add a component, declare its kind here.

Tables of format 2 and older can still be opened, and their manifests and folders have former names
of two components. So a manifest is read with the present names, and files are looked for in both
folders. New files get the present names; old files stay where they are, because older snapshots
name them.
"""

import functools
from collections.abc import Iterable

from .columns import Column, Columns, join_columns
from .declaration import Flushed, Kept, Kind, Owner, RowKey, RowLayout, Zone
from .document_schema import DOCUMENTS_COLUMNS
from .graph_schema import EDGE_COLUMNS, NODE_COLUMNS, RANK_COLUMNS
from .index_schema import (
    DEAD_LETTERS_COLUMNS,
    INDEX_RUNS_COLUMNS,
    INDEXED_COLUMNS,
    SHARD_COLUMNS,
)
from .link_rows import INLINKS_COLUMNS
from .schema import (
    BLOCKLIST_COLUMNS,
    FETCHLIST_COLUMNS,
    HOST_COUNTS_COLUMNS,
    HOST_SETTINGS_COLUMNS,
    HOSTS_COLUMNS,
    OUTCOME_COLUMNS,
    PAGES_COLUMNS,
    STATE_COLUMNS,
    TEXT,
)

# Names in tables of format 2 and older, and the present names.
FORMER_NAMES = {"bars": "blocklist", "learnt": "host_findings"}


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


def _graph_kinds(level: str) -> tuple[Kind, Kind, Kind]:
    """Returns the kinds of the graph of pages, hosts or domains."""
    keys = (STATE_COLUMNS if level == "page" else HOSTS_COLUMNS).pick("key")
    nodes, ranks = join_columns(keys, NODE_COLUMNS), join_columns(keys, RANK_COLUMNS)
    key = RowKey.URL if level == "page" else RowKey.HOST
    ordered = functools.partial(Kind, key=key, layout=RowLayout.SORTED_FILES)
    of_edges = f"up to a million links from one block of {level}s to one block"
    return (
        ordered(f"{level}_nodes", nodes, f"a {level} in the graph of {level}s"),
        Kind(f"{level}_edges", EDGE_COLUMNS, of_edges, RowKey.HASH, layout=RowLayout.SORTED_FILES),
        ordered(f"{level}_ranks", ranks, f"the ranks of a {level}"),
    )


# Files with the hosts of seeds, for tables whose hosts are in rows.
SEED_HOSTS = "seed_hosts"

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "state",
            STATE_COLUMNS,
            "a URL of the table",
            layout=RowLayout.ROWS,
            later_versions=("change_shape", "gone_since"),
            due="fetch_time",
            zone=Zone("fetch_time", "score", "status"),
            cell="s:state",
        ),
        Kind(
            "hosts",
            HOSTS_COLUMNS,
            "a host that was requested, or that is the host of a seed",
            key=RowKey.HOST,
            layout=RowLayout.ROWS,
            later_versions=("robots_failing_since", "unfetched", "purged_since", "cookies"),
            cell="h:host",
        ),
        Kind(
            "links",
            INLINKS_COLUMNS,
            "a page that links to another one",
            key=RowKey.LINK,
            layout=RowLayout.ROWS,
            zone=Zone("last_seen"),
            ended="gone_since",
            view="inlinks",
            cell="l:link",
        ),
        Kind(
            SEED_HOSTS,
            HOSTS_COLUMNS,
            "a host of a seed",
            key=RowKey.HOST,
            made_from="hosts",
            made_where="seed",
        ),
        Kind(
            "host_counts",
            HOST_COUNTS_COLUMNS,
            "a host whose numbers of URLs a job has changed: what to add to its row in `hosts`",
            key=RowKey.HOST,
        ),
        Kind(
            "host_settings",
            HOST_SETTINGS_COLUMNS,
            "a host with settings of the operator",
            key=RowKey.HOST,
        ),
        Kind(
            "blocklist",
            BLOCKLIST_COLUMNS,
            "a name that was purged",
            key=RowKey.HASH,
            layout=RowLayout.SORTED_FILES,
        ),
        *(kind for level in ("page", "host", "domain") for kind in _graph_kinds(level)),
        Kind(
            "fetchlist",
            FETCHLIST_COLUMNS,
            "a URL that generate chose",
            owner=Owner.BATCH,
            layout=RowLayout.SORTED_FILES,
            kept=Kept.NO_LONGER,
        ),
        Kind(
            "pages",
            PAGES_COLUMNS,
            "a URL that fetch tried, with its response",
            owner=Owner.BATCH,
            flushed=Flushed.ADOPTED,
            kept=Kept.NAMED,
        ),
        Kind(
            "host_findings",
            HOSTS_COLUMNS,
            "a host, with what a fetch found out about it",
            key=RowKey.HOST,
            owner=Owner.BATCH,
            flushed=Flushed.LAST_ADOPTED,
            kept=Kept.NO_LONGER,
        ),
        Kind(
            "documents",
            DOCUMENTS_COLUMNS,
            "a page that was fetched, or a part of one, with its text and links",
            owner=Owner.BATCH,
            flushed=Flushed.REPLACED,
            kept=Kept.NAMED,
        ),
        Kind(
            "removed",
            STATE_COLUMNS.pick("key"),
            "a URL that `filterdb` removed while the batch was open, so that `updatedb` does not "
            "add it again",
            owner=Owner.BATCH,
            layout=RowLayout.SORTED_FILES,
            kept=Kept.NO_LONGER,
        ),
        Kind(
            "outcome",
            OUTCOME_COLUMNS,
            "a URL that fetch tried, as updatedb left it",
            owner=Owner.BATCH,
            layout=RowLayout.SORTED_FILES,
            kept=Kept.WITH_DOCUMENTS,
        ),
        Kind(
            "indexed",
            INDEXED_COLUMNS,
            "a page that an index holds, or that its writers have refused",
            owner=Owner.INDEX,
            layout=RowLayout.TABLETS,
            ended="deleted",
        ),
        Kind(
            "dead_letters",
            DEAD_LETTERS_COLUMNS,
            "a page that a writer of an index has refused",
            owner=Owner.INDEX,
            layout=RowLayout.SORTED_FILES,
        ),
        Kind(
            "shards",
            SHARD_COLUMNS,
            "a URL that a shard of an index names, or a piece of one of its files",
            owner=Owner.INDEX,
            layout=RowLayout.SHARDS,
        ),
        Kind(
            "index_runs",
            INDEX_RUNS_COLUMNS,
            "the last operation that has written an index",
            key=RowKey.HASH,
            owner=Owner.INDEX,
            journal=True,
        ),
    )
}


def kind_of(component: str) -> Kind:
    """Returns the kind of a component; for an unknown component, a kind with only the key.

    >>> kind_of("batches/1/host_findings").key, kind_of("later").schema.names
    (<RowKey.HOST: 'hosts, reversed'>, ['key'])
    >>> kind_of("batches/1/later").owner.folder
    'batches'
    """
    above, _, name = present_name(component).rpartition("/")
    return KINDS.get(name) or Kind(
        name,
        Columns([Column("key", TEXT, "Its key.")]),
        owner=next(
            (o for o in Owner if o.folder and above.startswith(f"{o.folder}/")), Owner.TABLE
        ),
    )


def unknown_components(components: Iterable[str]) -> list[str]:
    """Returns the components that this version does not declare: those of a newer version.

    >>> unknown_components(["state", "batches/1/learnt", "later"])
    ['later']
    """
    return [name for name in components if present_name(name).rpartition("/")[2] not in KINDS]


def components_of(kind: Kind, components: Iterable[str]) -> list[str]:
    """Returns the components of a kind, in order; of a kind of the table its name.

    >>> components_of(KINDS["indexed"], ["state", "index/main/indexed"])
    ['index/main/indexed']
    >>> components_of(KINDS["state"], [])
    ['state']
    """
    if kind.owner is Owner.TABLE:
        return [kind.name]
    top, end = f"{kind.owner.folder}/", f"/{kind.name}"
    return sorted(n for n in components if n.startswith(top) and n.endswith(end))


def components_in_tablets(components: Iterable[str]) -> list[str]:
    """Returns the components that are in tablets, in the order of their kinds."""
    known = list(components)
    kinds = (kind for kind in KINDS.values() if kind.in_tablets)
    return [name for kind in kinds for name in components_of(kind, known)]


def repeating(name: str) -> list[Kind]:
    """Returns the kinds that repeat rows of a kind.

    >>> [kind.name for kind in repeating("hosts")]
    ['seed_hosts']
    """
    return [kind for kind in KINDS.values() if kind.made_from == name]


def kinds_in_rows() -> tuple[str, ...]:
    """Returns the names of the kinds that a table in Bigtable keeps in rows."""
    return tuple(name for name, kind in KINDS.items() if kind.layout is RowLayout.ROWS)


def kinds_of_batches() -> tuple[str, ...]:
    """Returns the names of the kinds that each batch has."""
    return tuple(name for name, kind in KINDS.items() if kind.owner is Owner.BATCH)


def folders() -> tuple[str, ...]:
    """Returns the folders of a table that have files of rows."""
    of_table = [name for name, kind in KINDS.items() if kind.owner is Owner.TABLE]
    owners = filter(None, (owner.folder for owner in Owner))
    return (*(folder for name in of_table for folder in folders_of(name)), *owners)
