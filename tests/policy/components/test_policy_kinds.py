"""Declarations of components that cannot be."""

import pyarrow as pa
import pytest

from nutbeam.policy.components.columns import Column, Columns
from nutbeam.policy.components.declaration import Kind, RowKey, Zone
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import TEXT
from nutbeam.policy.components.views import views

COLUMNS = Columns([Column("key", TEXT, "A URL."), Column("time", pa.int64(), "A time.")])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"zone": Zone("time", score="merit")}, "component 'odd' lacks a column of its zone"),
        ({"zone": Zone("time"), "due": "key"}, "must be due by the time of its zone"),
        ({"key": RowKey.LINK}, "component 'odd' lacks the column 'target'"),
        ({"made_from": "state"}, "component 'odd' must have both, made_from and made_where"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Kind("odd", COLUMNS, **fields)


@pytest.mark.parametrize("view", ["outlinks", "inlinks", "batch_pages"])
def test_a_view_cannot_have_the_name_of_another_one(monkeypatch, view):
    monkeypatch.setitem(KINDS, "odd", Kind("odd", COLUMNS, view=view))
    with pytest.raises(ValueError, match="two views have one name"):
        views()
