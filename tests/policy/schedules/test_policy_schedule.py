import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.schema import STATE
from nutbeam.policy.schedules.schedule import ScheduleOptions, due, gone_interval
from nutbeam.web.base.clock import Clock

NOW = 1_700_000_000_000
DAY = 86_400
LONGEST_MS = 7_776_000 * 1000
OPTIONS = ScheduleOptions()
AT = Clock(NOW)


def is_due(row, clock=AT, options=OPTIONS):
    return frame_of(STATE, {"key": "k", **row}).select(due(clock, options)).item()


@pytest.mark.parametrize(
    ("fetch_time", "expected"),
    [
        (0, True),
        (NOW - 1, True),
        (NOW, True),
        (NOW + 1, False),
        (NOW + LONGEST_MS, False),
        (NOW + LONGEST_MS + 1, True),  # a mistake of the past
    ],
)
def test_due(fetch_time, expected):
    assert is_due({"fetch_time": fetch_time}) is expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [(0, 0), (1, 2), (2, 3), (3, 5), (30 * DAY, 45 * DAY), (45 * DAY, 67.5 * DAY), (67.5 * DAY, 81 * DAY),
     (81 * DAY, 81 * DAY), (59 * DAY, 88.5 * DAY), (60 * DAY, 81 * DAY), (2**31 - 1, 81 * DAY)],
)  # fmt: skip
def test_gone_interval(interval, expected):
    frame = pl.DataFrame({"i": [int(interval)]}, schema={"i": pl.Int32})
    result = frame.select(gone_interval(pl.col("i"), OPTIONS))
    assert (result.item(), result.dtypes) == (expected, [pl.Int32])
