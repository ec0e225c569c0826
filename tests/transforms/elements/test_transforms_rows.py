import dataclasses
import datetime
import importlib.util
import sys
import types
import typing
from collections.abc import Mapping, Sequence

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.transforms.window import FixedWindows, GlobalWindow, TimestampedValue
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from hypothesis import given
from hypothesis import strategies as st
from running import run

from nutbeam.transforms.elements import row_types
from nutbeam.transforms.elements import rows as module
from nutbeam.transforms.elements.chunks import Chunk
from nutbeam.transforms.elements.field_kinds import rows_to_table, table_to_rows
from nutbeam.transforms.elements.row_types import (
    arrow_schema,
    constraint_of,
    kinds_of,
    maker,
)
from nutbeam.transforms.elements.rows import ChunksToRows, RowsToChunks, row_type_of, through_chunks
from nutbeam.transforms.top_n_per_key import TopNPerKey


class Visit(typing.NamedTuple):
    host: str
    since: datetime.datetime
    seen: Timestamp
    before: Sequence[Timestamp | None]
    times: Mapping[str, datetime.datetime]


class Header(typing.NamedTuple):
    name: str
    value: str | None


class Page(typing.NamedTuple):
    url: str
    size: int | None
    score: float
    done: bool
    body: bytes | None
    headers: Sequence[Header]
    facts: Mapping[str, Sequence[int]]
    best: Header | None


@dataclasses.dataclass
class Seed:
    url: str
    score: np.float32


PAGES = [
    Page("http://a/", 1, 0.5, True, b"x", [Header("a", "b"), Header("a", None)], {"n": [1, 2]},
         Header("c", "d")),
    Page("http://é/", None, float("inf"), False, None, [], {}, None),
]  # fmt: skip


def there_and_back(rows, row_type):
    kinds = kinds_of(row_type)
    make = maker(constraint_of(row_type))
    return list(table_to_rows(rows_to_table(rows, kinds), kinds, make))


def test_rows_of_all_kinds_come_back_as_they_were():
    assert there_and_back(PAGES, Page) == PAGES
    assert there_and_back([], Page) == []
    seeds = [Seed("a", 0.25), Seed("b", -1.0)]
    assert there_and_back(seeds, Seed) == seeds


NOON = datetime.datetime(2026, 11, 30, 12, 0, 0, 1, tzinfo=datetime.UTC)
VISITS = [
    Visit("a", NOON, MAX_TIMESTAMP, [Timestamp(1), None], {"x": NOON}),
    Visit("a", NOON + datetime.timedelta(1), Timestamp(micros=-1), [MIN_TIMESTAMP], {}),
    Visit("b", datetime.datetime(1, 1, 1, tzinfo=datetime.UTC), Timestamp(0), [], {}),
]


def test_times_come_back_as_they_were():
    assert there_and_back(VISITS, Visit) == VISITS
    assert arrow_schema(Visit).field("seen").type == pa.timestamp("us", "UTC")


def test_a_time_without_zone_counts_as_utc_and_comes_back_with_it():
    paris = datetime.timezone(datetime.timedelta(hours=1))
    visits = [VISITS[0]._replace(since=NOON.replace(tzinfo=None)),
              VISITS[0]._replace(since=NOON.astimezone(paris))]  # fmt: skip
    assert [visit.since for visit in there_and_back(visits, Visit)] == [NOON, NOON]


@pytest.mark.parametrize(("column", "best"), [("since", VISITS[1]), ("seen", VISITS[0])])
def test_rows_are_ordered_by_times(column, best):
    rows = [beam.Row(**visit._asdict()) for visit in VISITS]
    found = run(
        lambda p: (
            p
            | beam.Create(rows).with_output_types(RowTypeConstraint.from_user_type(Visit))
            | TopNPerKey(1, "host", column)
            | beam.Map(lambda visit: Visit(*(getattr(visit, name) for name in Visit._fields)))
        )
    )
    assert sorted(found) == [best, VISITS[2]]


texts = st.text(st.characters(exclude_categories=["Cs"]))
headers = st.builds(Header, texts, st.none() | texts)


@pytest.mark.long
@given(
    st.lists(
        st.builds(
            Page,
            url=texts,
            size=st.none() | st.integers(-(2**63), 2**63 - 1),
            score=st.floats(allow_nan=False),
            done=st.booleans(),
            body=st.none() | st.binary(),
            headers=st.lists(headers),
            facts=st.dictionaries(texts, st.lists(st.integers(0, 9))),
            best=st.none() | headers,
        )
    )
)
def test_any_row_comes_back_as_it_was(rows):
    assert there_and_back(rows, Page) == rows


@pytest.mark.parametrize("renamed", [None, types.SimpleNamespace(RowTypeConstraint=Page)])
def test_if_beam_renames_its_types_rows_of_classes_have_their_fields(monkeypatch, renamed):
    monkeypatch.setitem(sys.modules, "apache_beam.typehints.row_type", renamed)
    spec = importlib.util.find_spec(row_types.__name__)
    stand_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_in)
    row_type = stand_in.RowType.from_user_type(Page)
    assert stand_in.typed_fields(row_type) == tuple(typing.get_type_hints(Page).items())
    assert (row_type.user_type, stand_in.is_generated(row_type)) == (Page, False)
    assert stand_in.python_type(list[str]) == list[str]
    assert stand_in.RowType.from_user_type(int) is None
    with pytest.raises(ValueError, match=r"no known type for rows of \['url'\]"):
        stand_in.RowType.from_fields([("url", str)])


def test_a_column_for_each_field():
    schema = arrow_schema(Page)
    assert schema.names == list(Page._fields)
    assert schema.field("url").type == pa.large_string()
    assert schema.field("size").type == pa.int64()
    assert schema.field("body").type == pa.large_binary()
    header = pa.struct([("name", pa.large_string()), ("value", pa.large_string())])
    assert schema.field("headers").type == pa.large_list(header)
    assert schema.field("best").type == header
    assert arrow_schema(Seed).field("score").type == pa.float32()


def as_tuple(row):
    return tuple(getattr(row, name) for name in Page._fields)


def test_through_a_pipeline_and_a_shuffle():
    found = run(
        lambda p: (
            p
            | beam.Create(PAGES).with_output_types(Page)
            | RowsToChunks()
            | beam.Reshuffle()
            | ChunksToRows(Page)
            | beam.Map(as_tuple)
        )
    )
    assert sorted(found) == sorted(map(tuple, PAGES))


def test_the_type_comes_back_too():
    pipeline = beam.Pipeline("FnApiRunner")
    pages = pipeline | beam.Create(PAGES).with_output_types(Page)
    made = pipeline | "Rows" >> beam.Create([beam.Row(a=1, b="x")])
    for number, rows in enumerate((pages, made)):
        kind = row_type_of(rows, "T")
        back = rows | f"There{number}" >> RowsToChunks() | f"Back{number}" >> ChunksToRows(kind)
        assert back.element_type == rows.element_type


def test_a_chunk_has_no_more_than_it_may_hold(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 10_000)
    monkeypatch.setattr(module, "_ROW_BYTES", 1)
    rows = [beam.Row(n=n, text="x" * 700) for n in range(100)]
    collect = module._Collect(row_type_of(beam.Pipeline() | beam.Create(rows), "T"))
    collect.setup()
    collect.start_bundle()
    found = [value for row in rows for value in collect.process(row) or ()]
    assert {value.windows for value in found} == {(GlobalWindow(),)}
    chunks = [value.value for value in found]
    assert sum(map(len, chunks)) + sum(map(len, collect._rows.values())) == 100
    assert len(chunks) > 6
    assert max(chunk.nbytes for chunk in chunks) <= 11_000


def test_windows_stay_apart():
    fields = RowTypeConstraint.from_fields([("n", int)])

    def build(p):
        timed = p | beam.Create(range(6)) | beam.Map(at).with_output_types(fields)
        chunks = timed | beam.WindowInto(FixedWindows(20)) | RowsToChunks()
        return chunks | beam.CombineGlobally(sum_rows).without_defaults()

    assert run(build) == [2, 2, 2]


def at(n):
    return TimestampedValue(beam.Row(n=n), n * 10)


def sum_rows(parts):
    return sum(part if isinstance(part, int) else len(part) for part in parts)


@pytest.mark.parametrize("hint", [datetime.date, typing.Any, int | str, tuple[int, str], set, dict])
def test_a_type_that_chunks_cannot_hold_is_refused_when_the_pipeline_is_built(hint):
    class Odd(typing.NamedTuple):
        url: str
        odd: hint

    rows = beam.Pipeline("FnApiRunner") | beam.Create([]).with_output_types(Odd)
    with pytest.raises(
        ValueError, match="field 'odd' has a type that chunks cannot hold"
    ) as refused:
        rows | RowsToChunks()
    assert ("declare it" in str(refused.value)) == (hint is typing.Any)


def test_rows_of_unknown_type_are_refused_when_the_pipeline_is_built():
    unknown = beam.Pipeline("FnApiRunner") | beam.Create([]).with_output_types(typing.Any)
    with pytest.raises(ValueError, match="RowsToChunks takes rows with fields, got elements of"):
        unknown | RowsToChunks()


@pytest.mark.parametrize("elements", [[1, 2], ["http://a/"], [{"url": "a"}], [("a", 1)]])
def test_elements_without_fields_are_refused_when_the_pipeline_is_built(elements):
    plain = beam.Pipeline("FnApiRunner") | beam.Create(elements)
    with pytest.raises(ValueError, match=r"T takes rows with fields .* or chunks .*, got elements"):
        through_chunks(plain, lambda chunks: chunks, "T", {})


def test_a_value_of_another_type_is_an_error_that_names_the_field():
    rows = [Page(*PAGES[0])._replace(size="many")]
    with pytest.raises(ValueError, match=r"field 'size' must hold int64: .*many"):
        rows_to_table(rows, kinds_of(Page))


def test_chunks_stay_chunks():
    table = pa.table({"a": [1, 2]})
    seen = []

    def work(chunks):
        seen.append(chunks.element_type)
        return chunks

    found = run(lambda p: through_chunks(p | beam.Create([table]), work, "T", {"key": ["a"]}))
    assert seen == [Chunk]
    assert found == [table]
