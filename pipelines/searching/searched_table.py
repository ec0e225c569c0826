"""An index of a table that is searched: opened, opened again after changes, and its results."""

from ...io.indexing.unpacked_index import index_cache, is_whole, table_cache, unpack_index
from ...io.rows.small_components import BLOCKLIST_COMPONENT
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.pinned import Pinned
from ...policy.components.index_schema import index_component
from ...policy.components.kinds import KINDS, components_of
from ...web.base.errors import UsageError, UserError
from .index_search import Hit, ShardSearch

_ATTEMPTS = 3  # to open what other processes remove


class SearchedTable:
    """An index of a table, which is opened again when a newer snapshot has changed it.

    Args:
        table: Address of the table.
        index: Name of the index.
        folder: Where it is unpacked; empty: in the usual cache.

    Attributes:
        opened: The index that was opened last; None if a purge has changed the table since then.
    """

    def __init__(self, address: str, index: str, folder: str = "") -> None:
        self.address, self.index = address, index
        self._shards = index_component(index, "shards")
        self._cache = table_cache(address, folder)
        self._state = ("", "")
        self.opened: ShardSearch | None = None

    def newest(self) -> ShardSearch:
        """Returns the index of the newest snapshot; opens it again only if it has changed.

        Raises:
            UserError: There is no such index, or it cannot be read.
        """
        manifest = newest_manifest(self.address)
        component = manifest.components.get(self._shards)
        if component is None:
            self.opened = None
            raise UsageError(_no_index(self.address, self.index, manifest))
        purges = manifest.content_of(BLOCKLIST_COMPONENT) or ""
        if purges != self._state[1]:  # what was opened may have what was purged
            self.opened = None
        state = component.list, purges
        if self.opened is None or state != self._state:
            self.opened, self._state = self._open(manifest, purges), state
        return self.opened

    def _open(self, manifest: Manifest, purges: str) -> ShardSearch:
        pinned = Pinned()
        pinned.address, pinned.snapshot = self.address, manifest.snapshot
        with pinned.reading():
            files = pinned.files(self._shards)
            for _ in range(_ATTEMPTS):
                cache = index_cache(self._cache, self.index, purges)
                unpacked = unpack_index(pinned.table.files, files, cache)
                try:
                    return ShardSearch(unpacked)
                except UserError:
                    if is_whole(unpacked):
                        raise
                # Another process has another snapshot, and has removed what this one has unpacked.
            raise UserError(
                f"the unpacked index was removed by another process: {str(cache)!r}: "
                "run the search again, or give it another --cache_folder"
            )


def _no_index(address: str, name: str, manifest: Manifest) -> str:
    shards = components_of(KINDS["shards"], manifest.components)
    indexes = [component.split("/")[1] for component in shards]
    if indexes:
        return (
            f"{address!r} has no index {name!r} that can be searched: there is {', '.join(indexes)}"
        )
    return f"{address!r} has no index {name!r} that can be searched: run nutbeam index {address}"


def snippet_spans(hit: Hit) -> list[tuple[str, bool]]:
    """Returns the spans of a snippet, each with whether it is a mark.

    >>> snippet_spans(Hit("u", "t", "a bc d", ((2, 4),), 1.0, {}))
    [('a ', False), ('bc', True), (' d', False)]
    """
    spans, at = list[tuple[str, bool]](), 0
    for begin, end in hit.marks:
        spans += [(hit.snippet[at:begin], False), (hit.snippet[begin:end], True)]
        at = end
    return [(text, mark) for text, mark in (*spans, (hit.snippet[at:], False)) if text]
