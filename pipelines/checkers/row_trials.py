"""Runs a scoring of a plug-in on rows that are made for one URL."""

import time
from typing import Any

import polars as pl

from ...policy.base.row_status import Status
from ...policy.components.schema import DOCUMENTS, STATE, StateRows, conform_frame
from ...policy.links import LinkOptions, links_of_documents, share_scores, sum_links
from ...policy.scoring.scoring import BoostOptions, ScoringOptions
from ...policy.scoring.scorings import Scorings, chosen_scorings
from ...transforms.wiring.plugin_groups import SCORINGS
from ...web.base.clock import now_ms
from ...web.plugins.plugin_files import fault_text
from ...web.plugins.plugins import load_plugin
from ...web.urls.row_keys import to_key
from .time_limit import Trial, limited

_PAGE, _LINKS = "org.example:http/", 10


def try_scoring(name: str, url: str, options: Any) -> Trial:
    """Returns the scores of a URL: as a seed, and as the target of a link that nothing else leads to.

    The page with the link has the score 1 and ten links, and the scoring is the only one.

    Raises:
        ValueError: The scoring cannot be made.
    """
    make = load_plugin(SCORINGS, name)
    scorings = chosen_scorings(ScoringOptions(scoring=(name,)), {name: make})
    fault, start = "", time.perf_counter()
    scores: dict[str, float | None] = {}
    try:
        with limited(options.parser_timeout):
            scores = _scores_of(scorings, to_key(url))
    except ValueError as error:  # it names the step
        cause = error.__cause__ or error
        fault = f"{error}: {fault_text(cause, make)}"
    lines = [f"{what}: {score}" for what, score in scores.items()]
    record = {what.replace(" ", "_"): score for what, score in scores.items()}
    return Trial({"url": url, **record}, lines, fault, time.perf_counter() - start)


def _scores_of(scorings: Scorings, key: str) -> dict[str, float | None]:
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
           "fetch_time": now, "fetch_interval": 2_592_000, "retries": 0}  # fmt: skip
    return conform_frame(pl.DataFrame([row], infer_schema_length=None), STATE)
