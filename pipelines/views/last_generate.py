"""Reports what the last generate did with a URL."""

from typing import Any

from ...io.batches.batches import claimed_keys
from ...io.snapshots.manifest import Manifest, lineage
from ...io.table.opening import open_table
from ...policy.components.reasons import counted_reasons
from ...policy.components.vocabulary import iso
from ...policy.generating.selection import CHOSEN, NOT_BEST, GenerateOptions
from ...web.base.errors import UserError
from ...web.urls.row_keys import from_key
from ..checkers.reasons import NOT_CHOSEN
from ..generating.recorded_options import as_recorded
from .explain_row import TableAt, not_generated


def last_generate(address: str, options: GenerateOptions) -> "LastGenerate | None":
    """Returns the newest generate in the history of a table that is kept, or None.

    Args:
        address: Address of the table.
        options: Options of explain; those of choosing are replaced by those of that generate.
    """
    try:
        for manifest in lineage(open_table(address)):
            if manifest.job == "generate":
                return LastGenerate(address, manifest, options)
    except UserError:  # a damaged manifest: older ones are not reached
        return None
    return None


class LastGenerate:
    """The newest generate of a table, and the snapshot that it read.

    Args:
        address: Address of the table.
        manifest: The snapshot that it made.
        options: Options of explain.
    """

    def __init__(self, address: str, manifest: Manifest, options: GenerateOptions) -> None:
        self._address, self._manifest = address, manifest
        self._options = as_recorded(options, manifest.options)
        self._seen: TableAt | None = None

    def fate(self, key: str) -> dict[str, Any]:
        """Returns what it did with a row key.

        Returns:
            ``time``, ``batch`` or None, ``reason``: ``chosen``, a reason of ``not_generated``,
            ``not_best``, ``not_in_table`` or ``unknown``; ``detail`` in words.
        """
        try:
            reason, detail = self._fate(key)
        except UserError as error:  # its snapshot has expired
            reason, detail = "unknown", str(error)
        batch = self._manifest.batch if self._manifest.batch in self._manifest.batches else None
        return {
            "time": iso(self._manifest.time),
            "batch": batch,
            "reason": reason,
            "detail": detail,
        }

    def _fate(self, key: str) -> tuple[str, str]:
        table, manifest = open_table(self._address), self._manifest
        batches = [name for name in manifest.batches if name == manifest.batch]
        if batches and len(claimed_keys(table, manifest, batches, key, key)):
            return CHOSEN, f"it is in batch {manifest.batch}"
        seen = self._table_before()
        row = seen.find("state", key)
        if row is None:
            return "not_in_table", f"{from_key(key)} was not in the table"
        for reason, detail in not_generated(row, seen, self._options):
            return reason, detail
        return NOT_BEST, counted_reasons(*NOT_CHOSEN)[NOT_BEST].meaning

    def _table_before(self) -> TableAt:
        """Returns the table as that generate read it: no job has changed the state since."""
        if self._seen is None:
            manifest = self._manifest
            self._seen = TableAt(self._address, manifest.snapshot - 1, manifest.time)
        return self._seen
