"""Rows, changes and the transition table for tests of update_state."""

from file_changes import update_state
from frames import frame_of

from nutbeam.policy.components.schema import CHANGES, STATE, Status
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
)

KEY = "com.example:http/"
NOW = 1_700_000_000_000
BEFORE = NOW - 30 * DAY_MS
MONTH = 30 * 86_400
OPTIONS = UpdateOptions()
OLD = {
    "key": KEY,
    "fetch_time": NOW - 1,
    "fetch_interval": MONTH,
    "retries": 0,
    "last_fetch_time": BEFORE,
    "modified_time": BEFORE,
    "score": 1.0,
    "distance": 2,
    "etag": '"old"',
    "last_modified": "old",
    "batch_id": "b0",
    "document": "d0",
    "page": "p0",
}


EVENT = {
    "key": KEY,
    "order": 1,
    "fetch_time": NOW,
    "protocol_status": 1,
    "http_code": 200,
    "batch_id": "b1",
    "page": "p1",
    "document": "d1",
    "etag": '"new"',
    "content_type": "text/html",
}


STATUSES = [None, *Status]
A, B = b"a", b"b"


def update(rows, changes, options=OPTIONS, now=NOW):
    return update_state(frame_of(STATE, *rows), frame_of(CHANGES, *changes), now, options)[:3]


def one(old, *changes, options=OPTIONS):
    """The row, the outcome and the counts of one URL."""
    kept, outcome, counts = update([old] if old else [], changes, options)
    rows = kept.to_dicts()
    return (rows[0] if rows else None), outcome.to_dicts(), counts


def old_row(status, **columns):
    return {**OLD, "status": int(status), **columns} if status is not None else None


def event(status, **columns):
    return {**EVENT, "fetch_status": status, **columns}


def linked(score, distance=1, order=1, key=KEY):
    return {"key": key, "order": order, "inlink_score": score, "inlink_distance": distance}


def name(status):
    return "none" if status is None else status.name.lower()


# (event, signatures of row and event, new status, days until due)
TABLE = {
    "success_first": (FETCH_SUCCESS, None, A, Status.DB_FETCHED, 30),
    "success_different": (FETCH_SUCCESS, B, A, Status.DB_FETCHED, 30),
    "success_equal": (FETCH_SUCCESS, A, A, Status.DB_NOTMODIFIED, 30),
    # Nutch says db_notmodified here: its defect 30.
    "success_not_parsed": (FETCH_SUCCESS, A, None, Status.DB_FETCHED, 30),
    "notmodified": (FETCH_NOTMODIFIED, A, None, Status.DB_NOTMODIFIED, 30),
    "redir_temp": (FETCH_REDIR_TEMP, A, None, Status.DB_REDIR_TEMP, 30),
    "redir_perm": (FETCH_REDIR_PERM, A, None, Status.DB_REDIR_PERM, 30),
    "retry": (FETCH_RETRY, A, None, Status.DB_UNFETCHED, 1),
    "gone": (FETCH_GONE, A, None, Status.DB_GONE, 45),
}
