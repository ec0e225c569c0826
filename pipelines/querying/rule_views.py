"""Views of sets of rules that ``extract`` has applied, and that are in no document: their rows are taken again.

The text of the rules is in the record of the run. The rules are applied to the stored pages when a query
names the view, so its rows are always those of the snapshot that is read.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ...io.rows.extracted_views import name_of_view
from ...io.snapshots.pinned import Pinned
from ...policy.components.views import views
from ...policy.extracting.extracted_rows import extracted_schema
from ...policy.extracting.page_records import EXTRACTED_FROM
from ...policy.page_rows import PageChoice
from ...web.extracting.extraction_rules import RuleSet
from ...web.extracting.rule_reader import read_extraction_rules
from ...web.rule_files.rule_files import RuleFile


def read_rule_sets(texts: Mapping[str, str]) -> list[RuleSet]:
    """Returns sets of rules; those that cannot be read, such as those of a later version, are left out.

    Args:
        texts: The text of each, by its name.
    """
    rule_sets = []
    for name, text in texts.items():
        with contextlib.suppress(ValueError):
            rule_sets.append(read_extraction_rules(RuleFile(f"extracts/{name}", text), name))
    return rule_sets


def rules_table(rules: RuleSet) -> str:
    """Returns the name of the table, in the schema ``stored``, with the rows of a set of rules."""
    return f"extracted_{rules.name}"


def create_rule_view(connection: Any, rules: RuleSet) -> None:
    """Creates the view of a set of rules, with an empty table."""
    connection.register("rows", _schema(rules).empty_table())
    connection.execute(f"CREATE TABLE stored.{rules_table(rules)} AS SELECT * FROM rows")
    connection.unregister("rows")
    connection.execute(
        f"CREATE VIEW {name_of_view(rules.name)} AS SELECT * FROM stored.{rules_table(rules)}"
    )


def rows_of_rules(pinned: Pinned, rules: RuleSet) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Returns (columns, rows) of what rules take from the newest body of each living URL."""
    # Late: only views of rules start processes that parse.
    from ..views.extracted_reader import DefaultLimits, extracted_tables
    from ..views.reader import living_pages

    choice, schema = PageChoice(views()["pages"].pick(EXTRACTED_FROM)), _schema(rules)

    def batches() -> Iterator[pa.RecordBatch]:
        with pinned.reading():
            for pages in living_pages(pinned, choice):
                for rows in extracted_tables(pages, rules, DefaultLimits(), Counter()):
                    yield from rows.cast(schema).to_batches()

    return schema, batches()


def _schema(rules: RuleSet) -> pa.Schema:
    """Returns the columns, with times in UTC without a zone, as all views have them."""
    return pa.schema(
        [field.with_type(_without_zone(field.type)) for field in extracted_schema(rules)]
    )


def _without_zone(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_zone(kind.value_type))
    return pa.timestamp("ms") if pa.types.is_timestamp(kind) else kind
