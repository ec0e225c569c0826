"""The SQL of the views of what rules have taken from pages: one for each set of rules, with typed columns."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...policy.components.views import views
from ...policy.components.vocabulary import LIVING

# A table may come from a stranger: only such names and types become SQL.
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SQL_TYPES = {
    **dict.fromkeys(("text", "currency", "url", "markdown"), "VARCHAR"),
    "number": "DOUBLE",
    "decimal": "DECIMAL(28, 8)",
    "date": "BIGINT",
    "bool": "BOOLEAN",
}


def extracted_views_sql(columns_of_sets: Mapping[str, Any]) -> Iterator[str]:
    """Yields the statements that create the views.

    A view has the name of its set; if that is the name of another view, ``_rows`` is added.

    Args:
        columns_of_sets: The type of each field by name, by the name of the set.
    """
    living = ", ".join(str(int(status)) for status in LIVING)
    for name, types in columns_of_sets.items():
        if not _NAME.fullmatch(name) or not isinstance(types, dict):
            continue
        fields = "".join(
            f', {expression} AS "{column}"'
            for column, kind in types.items()
            if _NAME.fullmatch(column) and (expression := _field(column, str(kind)))
        )
        yield f"""CREATE VIEW {name_of_view(name)} AS
            SELECT url_of(key) AS url, record.rule AS rule, record.position AS position{fields},
                   stored.timestamp_of(last_fetch_time) AS last_fetch_time,
                   record.rules_version AS rules_version
            FROM (SELECT s.key, s.last_fetch_time, unnest(d.extracted) AS record
                  FROM stored.state AS s JOIN stored.newest_documents AS d ON d.key = s.key
                  WHERE s.status IN ({living}))
            WHERE record.rules = '{name}'"""


def name_of_view(rules: str) -> str:
    """Returns the name of the view of a set of rules, in quotes, since it may be a word of SQL.

    >>> name_of_view("order"), name_of_view("pages")
    ('"order"', '"pages_rows"')
    """
    return f'"{rules}_rows"' if rules in views() else f'"{rules}"'


def _field(column: str, kind: str) -> str:
    """Returns the SQL of a field; empty if there is no such type."""
    outer, _, inner = kind.partition(" of ")
    single = _SQL_TYPES.get(inner or ("text" if outer == "list" else outer), "")
    if not single:
        return ""
    is_date = (inner or outer) == "date"
    if outer == "list":
        values = f"""from_json(json_extract(record.fields, '$.{column}'), '["{single}"]')"""
        return f"[stored.timestamp_of(each) FOR each IN {values}]" if is_date else values
    value = f"TRY_CAST(json_extract_string(record.fields, '$.{column}') AS {single})"
    return f"stored.timestamp_of({value})" if is_date else value
