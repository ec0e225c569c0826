"""Users see the same names, statuses and times in frames and in text."""

import datetime
import json

import polars as pl
import pyarrow as pa
import pytest
from frames import frame_of

from nutbeam.policy.components.columns import Form
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import STATE, STATE_COLUMNS, STATUS_NAMES, Status, conform
from nutbeam.policy.components.views import shown_columns
from nutbeam.policy.components.vocabulary import (
    STATUS_WORDS,
    code_name,
    record_of,
    shown_frame,
    shown_schema,
    statuses_of,
)

COLUMNS = shown_columns(KINDS["state"])
ROW = {
    "key": "com.example:https/a",
    "status": 6,
    "fetch_time": 1_700_000_000_000,
    "signature": b"\x00\xff",
    "protocol_status": 21,
    "parse_status": 1,
    "last_inlink_day": 1,
    "metadata": [("a", "b")],
}
SEEN = {
    "url": "https://example.com/a",
    "key": "com.example:https/a",
    "status": "db_notmodified",
    "fetch_time": "2023-11-14T22:13:20.000Z",
    "signature": "00ff",
    "protocol_status": "notmodified",
    "parse_status": "success",
    "last_inlink_day": "1970-01-02",
    "metadata": {"a": "b"},
}


def test_a_record_has_names_and_times():
    record = record_of(ROW, COLUMNS)
    assert list(record) == ["url", *(name for name in STATE.names if name != "key"), "key"]
    assert {name: value for name, value in record.items() if value is not None} == SEEN
    assert json.loads(json.dumps(record)) == record


def test_a_frame_has_the_same_as_records():
    schema = shown_schema(COLUMNS)
    table = conform(shown_frame(frame_of(STATE, ROW), COLUMNS), schema)
    assert table.schema == schema
    (row,) = table.to_pylist(maps_as_pydicts="lossy")
    when = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)
    typed = {"fetch_time": when, "last_inlink_day": datetime.date(1970, 1, 2)}
    assert {name: value for name, value in row.items() if value is not None} == SEEN | typed


def test_a_code_of_a_later_version_is_its_number():
    assert record_of({"status": 200}, STATE_COLUMNS.pick("status")) == {"status": "200"}
    frame = pl.DataFrame({"status": [200]}, schema={"status": pl.UInt8})
    assert shown_frame(frame, STATE_COLUMNS).item() == "200"
    assert code_name(200, *STATE_COLUMNS.pick("status")) == "unknown (200)"


def test_a_time_out_of_range_stays_readable():
    time = STATE_COLUMNS.pick("fetch_time", "last_inlink_day")
    row = {"fetch_time": 1 << 62, "last_inlink_day": 1 << 30}
    assert record_of(row, time) == {
        "fetch_time": "4611686018427387904 ms",
        "last_inlink_day": "day 1073741824",
    }


@pytest.mark.parametrize("name", STATUS_NAMES.values())
def test_a_status_by_its_name_and_by_its_short_name(name):
    status = Status[name.upper()]
    assert statuses_of(name) == (status,)
    short = statuses_of(name.removeprefix("db_"))
    also = (Status.DB_NOTMODIFIED,) if name == "db_fetched" else ()
    assert short == (status, *also)
    assert {name, name.removeprefix("db_")} <= set(STATUS_WORDS)


def test_a_word_that_is_no_status():
    with pytest.raises(ValueError, match=r"status must be one of .*, got 'fetch'"):
        statuses_of("fetch")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_column_is_explained(kind):
    assert kind.meaning
    for column in kind.columns:
        assert column.meaning.endswith(".")
        assert bool(column.codes) == (column.form is Form.CODE)
        endings = ("time", "_until", "_since", "_seen", "_day", "created", "deleted")
        assert not column.name.endswith(endings) or column.form in (Form.TIME, Form.DAY)


def test_a_column_has_one_form_under_one_name():
    forms = {}
    for kind in KINDS.values():
        for column in kind.columns:
            forms.setdefault(column.name, set()).add((column.form, column.type, column.unit))
    assert {name: some for name, some in forms.items() if len(some) > 1} == {}


def test_files_have_numbers():
    assert STATE.field("status").type == pa.uint8()
    assert STATE.field("fetch_time").type == pa.int64()
