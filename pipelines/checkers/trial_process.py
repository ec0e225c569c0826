"""Runs a plug-in on URLs or on a page, in a process with limits.

A plug-in that loops, ends its process or needs all memory costs that process, and is named for it.
"""

import contextlib
import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ...io.parsing.parse_pool import ParsePool
from ...io.parsing.parse_worker import Job, ParseTask
from ...web.base.dataclass import dataclass
from ...web.base.options import shared_option
from ...web.engine.pace import FetchOptions
from ...web.exchange.http_options import HttpOptions
from ...web.pages.page import Source
from ...web.pages.parse_options import ParseOptions
from .chunk_trials import try_embedding, try_tokenizer
from .page_trials import try_parse_filter, try_parser
from .row_trials import try_schedule, try_scoring
from .rule_checkers import NormalizerCheckOptions
from .time_limit import Trial
from .url_trials import try_at_once, try_protocol, try_url_filter, try_url_normalizer

# The process is ended this long after the limit: first it may say at which line it is.
_LATE_S = 2.0
_CALLS = 2  # of one trial, each with the limit


@dataclass(frozen=True)
class TrialOptions(FetchOptions, HttpOptions, ParseOptions):
    """Options of a trial; for the process, which does not import Beam, as commands do."""

    url_scope: str = shared_option(NormalizerCheckOptions, "url_scope")


# A URL, several at once, or a page.
TrialTarget = str | tuple[str, ...] | Source
_TRIALS: Mapping[str, Callable[[str, Any, TrialOptions], Trial]] = {
    "url_filter": try_url_filter,
    "url_normalizer": try_url_normalizer,
    "protocol": try_protocol,
    "parser": try_parser,
    "parse_filter": try_parse_filter,
    "schedule": try_schedule,
    "scoring": try_scoring,
    "tokenizer": try_tokenizer,
    "embedding": try_embedding,
}


class _Trials(NamedTuple):
    kind: str
    name: str
    targets: Sequence[TrialTarget]
    options: TrialOptions


def run_trials(
    kind: str, name: str, targets: Sequence[TrialTarget], options: Any
) -> Iterator[Trial]:
    """Yields what a plug-in makes of each URL, or of a page.

    Args:
        kind: Its kind, as in ``nutbeam plugin``; not one of documents.
        name: Its name.
        targets: The URLs, or the page.
        options: Those of the command.

    Raises:
        UserError: The plug-in cannot be imported, or nutbeam cannot parse the page for a filter.
    """
    names = [field.name for field in dataclasses.fields(TrialOptions)]
    own = TrialOptions(**{name: getattr(options, name) for name in names})
    rules = functools.partial(_rules, _Trials(kind, name, targets, own))
    task = ParseTask(_trial_table, rules, (), (), _CALLS * options.parser_timeout + _LATE_S)
    pool = ParsePool(1, options.parser_memory, __name__)
    try:
        job = Job("", f"the plug-in {name}", (), "", task)
        result = pool.result(pool.submit(job, pa.table({"row": range(len(targets))})))
        for text in result.documents.column("trial"):
            yield Trial(*json.loads(text.as_py()))
    finally:
        pool.close()


def _rules(trials: _Trials, seeds: object, filters: object) -> _Trials:
    return trials


def _trial_table(
    rows: pa.Table, trials: _Trials, skip: Mapping[int, str], at_row: Callable[[int], None]
) -> tuple[pa.Table, dict[str, int]]:
    """Returns the trials as JSON; ``ParseTask.parse`` has the arguments."""
    kind, name, targets, options = trials
    texts = []
    for at, row in enumerate(rows.column("row").to_pylist()):
        target = targets[row]
        url = target.url if isinstance(target, Source) else target
        url = url if isinstance(url, str) else None
        if at in skip:
            trial = Trial({"url": url}, [f"!{url}"], _end_text(skip[at], options), 0.0)
        else:
            at_row(at)
            with contextlib.redirect_stdout(sys.stderr):  # the output of the process is thrown away
                at_once = isinstance(target, tuple)
                call = functools.partial(try_at_once, kind) if at_once else _TRIALS[kind]
                trial = call(name, target, options)
        texts.append(json.dumps(trial))
    at_row(len(rows))
    return pa.table({"trial": texts}), {}


def _end_text(why: str, options: ParseOptions) -> str:
    """Returns why a plug-in's process was ended.

    >>> _end_text("parser_tea crashed: exit code 7", ParseOptions())
    'it ended its process: exit code 7'
    >>> _end_text("parser_tea timeout", ParseOptions())
    'it took longer than 30 s (--parser_timeout)'
    >>> _end_text("filter_tea out_of_memory", ParseOptions())
    'it needed more memory than --parser_memory'
    >>> _end_text("crashed SIGSEGV", ParseOptions())
    'it ended its process: SIGSEGV'
    """
    if why.startswith(("parser_", "filter_")):
        why = why.partition(" ")[2]
    reason, _, detail = why.replace(": ", " ").partition(" ")
    texts = {
        "timeout": f"it took longer than {options.parser_timeout:g} s (--parser_timeout)",
        "out_of_memory": "it needed more memory than --parser_memory",
    }
    return texts.get(reason, f"it ended its process: {detail or reason}")
