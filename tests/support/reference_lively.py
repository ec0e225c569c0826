"""The schedule of the plug-in ``lively_schedule``, for one row, in plain Python."""

from reference_schedules import DAY_S, MODIFIED, NOTMODIFIED, Limits, Row

GONE, NOT_CHANGED = 3, 38


def lively(row: Row, old: Row, event: Row, change: str, pages: int, limits: Limits) -> None:
    """Sets the next fetch of a row.

    Args:
        row: The row after the visit, with its interval from before.
        old: The row before the visit.
        event: The result of the visit.
        change: The kind of change.
        pages: Number of rows of the table.
        limits: Limits of all schedules.
    """
    interval = row["fetch_interval"]
    if change == MODIFIED:
        interval //= 2
    if change == NOTMODIFIED:
        interval *= 2
    if old.get("retries") or old.get("status") == GONE:
        interval = DAY_S
    longest = min(31_536_000, limits.max_fetch_interval)
    interval = min(max(interval, 600 * pages), longest)
    earlier = 1800 if event["fetch_status"] == NOT_CHANGED else 0
    if row["fixed_interval"]:
        interval, earlier = row["fixed_interval"], 0
    row["fetch_interval"] = interval
    row["fetch_time"] = event["fetch_time"] + (interval - earlier) * 1000
    row["change_shape"] = (row["change_shape"] or 0.0) + 1
    row["change_days"] = (row["change_days"] or 0.0) + (change == MODIFIED)
    if row["change_days"] > 2:
        row["metadata"] = None
    if change == MODIFIED:
        row["modified_time"] = event["fetch_time"]
