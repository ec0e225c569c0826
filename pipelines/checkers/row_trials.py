"""Runs a scoring or a schedule of a plug-in on rows that are made for one URL."""

import time
from collections.abc import Callable
from typing import Any

import polars as pl

from ...policy.base.row_status import Status
from ...policy.components.document_schema import DOCUMENTS
from ...policy.components.schema import CHANGES, STATE, StateRows, conform_frame
from ...policy.links import LinkOptions, links_of_documents, share_scores, sum_links
from ...policy.schedules.reschedule import reschedule
from ...policy.schedules.schedule import DAY_MS, RescheduleOptions
from ...policy.schedules.visits import ScheduleContext, VisitRows
from ...policy.scoring.scoring import BoostOptions, ScoringOptions
from ...policy.scoring.scorings import Scorings, chosen_scorings
from ...transforms.wiring.plugin_groups import SCHEDULES, SCORINGS
from ...web.base.clock import now_ms
from ...web.base.visible import visible
from ...web.exchange.status import FETCH_SUCCESS
from ...web.plugins.plugins import load_plugin
from ...web.urls.row_keys import to_key
from .time_limit import Trial, limited

_Values = dict[str, float | None]
_PAGE, _LINKS = "org.example:http/", 10
_INTERVAL_S = 2_592_000
_VISITS = ("after the first visit", "after a change", "if it is not modified")


def try_scoring(name: str, url: str, options: Any) -> Trial:
    """Returns the scores of a URL: as a seed, and as the target of a link that nothing else leads to.

    The page with the link has the score 1 and ten links, and the scoring is the only one.
    """
    make = load_plugin(SCORINGS, name)

    def find_scores() -> _Values:
        scorings = chosen_scorings(ScoringOptions(scoring=(name,)), {name: make})
        return _scores_of(scorings, to_key(url))

    return _trial_of(find_scores, url, options.parser_timeout)


def try_schedule(name: str, url: str, options: Any) -> Trial:
    """Returns when a page is due again: after its first visit, after a change, and without one.

    It was visited now and, unless it is the first visit, 30 days ago.
    """
    schedule = load_plugin(SCHEDULES, name)
    context = ScheduleContext(RescheduleOptions(schedule=name))

    def find_due_times() -> _Values:
        visits = _visits_of(to_key(url))
        rows = reschedule(visits, schedule, context)
        days = (rows["fetch_time"] - visits["event.fetch_time"]) / DAY_MS
        return {
            f"days until it is due {when}": day for when, day in zip(_VISITS, days, strict=True)
        }

    return _trial_of(find_due_times, url, options.parser_timeout)


def _trial_of(find: Callable[[], _Values], url: str, limit: float) -> Trial:
    fault, start = "", time.perf_counter()
    values: _Values = {}
    try:
        with limited(limit):
            values = find()
    except ValueError as error:  # it names the plug-in, its step and the line of its code
        fault = visible(str(error))
    lines = [f"{what}: {value}" for what, value in values.items()]
    record = {what.replace(" ", "_"): value for what, value in values.items()}
    return Trial({"url": url, **record}, lines, fault, time.perf_counter() - start)


def _visits_of(key: str) -> VisitRows:
    """Returns a row for each of ``_VISITS``, as ``reschedule`` has them."""
    now = now_ms()
    page = {
        "key": key,
        "fetch_interval": _INTERVAL_S,
        "fetch_time": now,
        "retries": 0,
        "score": 1.0,
    }
    seen = page | {
        "last_fetch_time": now - _INTERVAL_S * 1000,
        "modified_time": now - _INTERVAL_S * 1000,
    }
    rows = pl.DataFrame([page, seen, seen], infer_schema_length=None)
    event = {"key": key, "fetch_status": FETCH_SUCCESS, "fetch_time": now}
    events = conform_frame(pl.DataFrame([event] * len(_VISITS)), CHANGES)
    old_status = [Status.DB_UNFETCHED, Status.DB_FETCHED, Status.DB_FETCHED]
    return (
        conform_frame(rows, STATE)
        .hstack(events.rename(lambda name: f"event.{name}"))
        .with_columns(
            pl.Series("modified", [False, True, False]),
            pl.Series("notmodified", [False, False, True]),
            pl.Series("old_status", list(map(int, old_status)), pl.UInt8),
            old_retries=pl.lit(0, pl.Int32), visited=True, gone=False, early=False,
        )
    )  # fmt: skip


def _scores_of(scorings: Scorings, key: str) -> _Values:
    seed = scorings.injected(_rows(key, Status.DB_UNFETCHED, distance=0))
    targets = [{"key": key}, *({"key": f"{_PAGE}{n}"} for n in range(1, _LINKS))]
    document = {"key": _PAGE, "score": 1.0, "distance": 0, "outlinks": targets}
    documents = conform_frame(pl.DataFrame([document], schema=pl.Schema(DOCUMENTS)), DOCUMENTS)
    page, options = _rows(_PAGE, Status.DB_FETCHED, distance=0), LinkOptions()
    shared = share_scores(documents.with_columns(unchanged=pl.lit(False)), options, scorings, page)
    links, _ = links_of_documents(shared, pl.Series([], dtype=pl.String), options, scorings)
    target = _rows(key, None, distance=1).with_columns(score=pl.lit(0.0))
    arrived = scorings.arrived(target.join(sum_links(links, scorings), on="key"), now_ms())
    frames = {
        "score as a seed": (seed, "score"),
        "value by which generate chooses": (scorings.sort_value(seed), "sort_value"),
        "score as the target of a link": (arrived, "score"),
        "boost in an index": (scorings.index_boost(page, BoostOptions()), "boost"),
    }
    return {
        what: frame[column].item() if len(frame) else None
        for what, (frame, column) in frames.items()
    }


def _rows(key: str, status: Status | None, distance: int) -> StateRows:
    now = now_ms()
    row = {"key": key, "status": status and int(status), "score": 1.0, "distance": distance,
           "fetch_time": now, "fetch_interval": _INTERVAL_S, "retries": 0}  # fmt: skip
    return conform_frame(pl.DataFrame([row], infer_schema_length=None), STATE)
