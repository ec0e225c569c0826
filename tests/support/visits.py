"""Frames of visited rows, for tests of schedules."""

import polars as pl
from frames import frame_of

from nutbeam.policy.components.schema import CHANGES, STATE
from nutbeam.policy.schedules.schedule import DAY_MS, RescheduleOptions
from nutbeam.policy.schedules.visits import ScheduleContext
from nutbeam.web.exchange.status import FETCH_SUCCESS, SUCCESS

NOW = 1_700_000_000_000
DAY = 86_400
MODIFIED, NOTMODIFIED, UNKNOWN = (True, False), (False, True), (False, False)
ROW = {
    "key": "com.example:http/", "fetch_interval": 30 * DAY, "last_fetch_time": NOW - 30 * DAY_MS,
    "modified_time": NOW, "protocol_status": SUCCESS,
}  # fmt: skip


def visits_of(*rows):
    """Returns a frame of (state, columns of STATE, columns of the event) of each row."""
    state = frame_of(STATE, *(ROW | columns for _, columns, _ in rows))
    event = {"key": "k", "fetch_status": FETCH_SUCCESS, "fetch_time": NOW}
    events = frame_of(CHANGES, *(event | columns for _, _, columns in rows))
    events = events.rename(lambda name: f"event.{name}")
    flags = pl.DataFrame([list(states) for states, _, _ in rows], orient="row",
                         schema={"modified": pl.Boolean, "notmodified": pl.Boolean})  # fmt: skip
    return state.hstack(events).hstack(flags)


def visit(schedule, state, row=None, event=None, pages=None, **options):
    """Schedules one row; returns its interval and the time until it is due, in days, and the row."""
    context = ScheduleContext(RescheduleOptions(**options), pages)
    done = schedule(visits_of((state, row or {}, event or {})), context).row(0, named=True)
    due = (done["fetch_time"] - NOW) / DAY_MS
    return done["fetch_interval"] / DAY, due, done
