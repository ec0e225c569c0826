"""Rows that are in no file which DuckDB reads: they are copied into its tables when a query names them."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...io.tablets.tablets import tablets
from ...policy.components.kinds import KINDS, components_of
from ...policy.components.schema import conform
from ..views.reading_job import Reading

if TYPE_CHECKING:
    from ...web.extracting.extraction_rules import RuleSet


class StoredRows:
    """Components that are stored as rows, and what rules take from pages, copied into DuckDB when needed.

    A table in files has no such component. The rows are a stream of Arrow batches. DuckDB moves rows
    that exceed its memory to its temporary files.

    Args:
        table: Address of the table.
        snapshot: Number of the snapshot.
        rule_sets: Sets of rules that are applied to the stored pages when a query names their view.
    """

    def __init__(self, address: str, snapshot: int, rule_sets: "Sequence[RuleSet]" = ()) -> None:
        self._pinned = Reading(address, "", snapshot)
        in_files = self._pinned.table.in_files
        self._waiting = {
            f"empty_{name}": name for name, kind in KINDS.items() if not in_files(kind.name)
        }
        self._rules: dict[str, RuleSet] = {}
        if rule_sets:
            from .rule_views import rules_table  # late: rules need all that parses a page

            self._rules = {rules_table(rules): rules for rules in rule_sets}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of components that are stored as rows, and were not copied into DuckDB yet."""
        return frozenset(self._waiting.values())

    def bring(self, connection: Any, query: str) -> None:
        """Copies the rows that a query needs into DuckDB.

        Args:
            connection: The connection, with the empty tables of ``connect``.
            query: The query.

        Raises:
            SnapshotTooOld: The table does not have all rows of the snapshot any more.
        """
        if not self._waiting and not self._rules:
            return
        named = self._named_tables(connection, query)
        for table in sorted(self._waiting.keys() & named):
            kind = KINDS[self._waiting[table]]
            self._insert(connection, table, kind.schema, self._batches(kind.name))
            del self._waiting[table]  # not earlier: after an interruption, it brings all rows
        for table in sorted(self._rules.keys() & named):
            from .rule_views import rows_of_rules

            schema, batches = rows_of_rules(self._pinned, self._rules[table])
            self._insert(connection, table, schema, batches)
            del self._rules[table]

    def _insert(
        self, connection: Any, table: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> None:
        failures: list[Exception] = []
        rows = pa.RecordBatchReader.from_batches(schema, _with_failures(batches, failures))
        connection.register("arriving", rows)
        try:
            connection.execute(f"INSERT INTO stored.{table} BY NAME SELECT * FROM arriving")
        except Exception:
            if failures:  # DuckDB's error has only its text, among other words
                raise failures[0] from None
            raise
        finally:
            connection.unregister("arriving")

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        kind, pinned = KINDS[name], self._pinned
        for component in components_of(kind, pinned.manifest().components):
            for tablet in tablets(pinned.files(component)):
                with pinned.reading():
                    for rows in pinned.table.scan(component, tablet):
                        yield from conform(rows, kind.schema).to_batches()

    def _named_tables(self, connection: Any, query: str) -> set[str]:
        """Returns the tables below the views that a query names, perhaps more."""
        try:
            return set(connection.get_table_names(query))
        except Exception:  # noqa: BLE001 - it cannot bind views of files
            # The views of pages and links also have rows of the state.
            words = set(re.findall(r"\w+", query.lower()))
            kind_names = {name for name, kind in KINDS.items() if kind.shown_as in words}
            of_rules = {
                table
                for table, rules in self._rules.items()
                if words & {rules.name, f"{rules.name}_rows"}
            }
            return {f"empty_{name}" for name in kind_names | {"state"}} | of_rules


def _with_failures(
    batches: Iterator[pa.RecordBatch], failures: list[Exception]
) -> Iterator[pa.RecordBatch]:
    """Yields batches; keeps the error that ends them."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise
