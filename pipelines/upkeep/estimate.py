"""estimate: how long the next round takes and why, what it weighs, and what many pages cost.

::

    state, as generate reads it ─ the URLs that it would choose ─┐
    hosts: pauses, answers so far ─ turns x (answer + pause) ────┴─▶ the slowest hosts ─▶ seconds
    history ─ times of phases, size of a page ─▶ seconds, bytes

It commits nothing, and sends no request.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import polars as pl
from rich import filesize

from ...io.batches.batches import batch_component
from ...io.reading.host_rows import LARGE, find_hosts, host_frames
from ...io.reading.round_facts import answer_frames, last_requests, phase_seconds
from ...io.snapshots.manifest import Manifest, newest_manifest
from ...io.snapshots.operations import Operation, new_id
from ...io.snapshots.rounds import unfinished_batches
from ...io.storage.parquet_files import collect, scan
from ...policy.base.key_columns import host_keys
from ...policy.components.declaration import Owner
from ...policy.components.kinds import kind_of
from ...policy.components.schema import FETCHLIST, STATUS_COUNTS
from ...policy.estimating.crawl_cost import (
    CrawlCost,
    HostSpread,
    PageWeight,
    crawl_cost,
    page_weight,
)
from ...policy.estimating.round_time import (
    ChosenRows,
    FetchTerms,
    FetchTime,
    HostTime,
    KnownSpeeds,
    answer_times,
    fetch_time,
    host_times,
    phase_times,
    seconds_of_requests,
    time_of_a_page,
)
from ...policy.generating.selection import GenerateOptions
from ...policy.hosting.host_settings import best_of_hosts, with_own_limits
from ...policy.hosting.locate_options import LocateOptions
from ...policy.scope import TargetOptions
from ...transforms.tickets import Ticket, dry_operation
from ...transforms.top_rows import top_n_per_key
from ...web.base.dataclass import dataclass
from ...web.base.machine import usable_cores
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ...web.base.visible import visible_lines
from ...web.base.wording import format_count
from ...web.engine.pace import FetchOptions
from ..base.command import DONE, NOTHING_TO_DO, TABLE, Invocation, gives_record
from ..base.live import duration, live_view
from ..generating.generate_candidates import (
    candidates_of,
    clock_of_survey,
    due_at,
    tablets_of_state,
)
from ..launch.job_options import CheckedScoringOptions
from ..views.endings import nothing_due
from ..views.next_due import next_url

ARGUMENTS = (TABLE,)
_SHOWN = 5  # hosts that hold the fetch up
_RANKED = {"key": pl.String, "delay": pl.Float64, "rank": pl.UInt64}
_WHY = {
    "hosts": "the turns of hosts hold the fetch up; the slowest:",
    "threads": "answers hold the fetch up: more --threads",
    "cpu": "the processor holds the fetch up; the slowest hosts:",
    "time_limit": "--fetch_time_limit ends the fetch; the slowest hosts:",
    "start": "the start and the end of the fetch take longer than its requests, whatever the hosts do",
    "nothing": "nothing is fetched",
}
_PHASES = ("generate", "fetch", "parse", "update", "dedup")


@dataclass(frozen=True)
class Options(FetchOptions, LocateOptions, CheckedScoringOptions, TargetOptions):
    """Options of estimate: those of generate, and the pauses of a fetch."""

    GROUP = "estimate"

    pages: int = option(0, "Say what a crawl of this many pages costs, too; 0: do not.", minimum=0)


@dataclass(frozen=True)
class RoundEstimate:
    """What the next round takes.

    Attributes:
        urls: Number of URLs that it fetches.
        fetch: How long its fetch takes.
        phases: How long each phase takes, s.
        weight: What a page weighs.
    """

    urls: int
    fetch: FetchTime
    phases: dict[str, float]
    weight: PageWeight

    @property
    def seconds(self) -> float:
        """The time of the whole round."""
        return sum(self.phases.values())


def run(invocation: Invocation) -> int:
    address, options = str(invocation.table), invocation.options
    manifest = newest_manifest(address)
    operation = dry_operation(Ticket(address, new_id()), "estimate")
    with live_view(invocation.progress):
        estimate = estimate_round(operation, manifest, options)
        cost = _cost(operation, estimate, options) if options.pages else None
        PROGRESS.finish()
    code = DONE if estimate.urls else NOTHING_TO_DO
    if not gives_record(invocation, _record(address, estimate, cost)):
        reason = "" if estimate.urls else nothing_due(next_url(address, options))
        print(visible_lines(_lines(estimate, cost, reason)))
    return code


def estimate_round(operation: Operation, manifest: Manifest, options: Options) -> RoundEstimate:
    """Returns what the next round takes: an open batch is finished first."""
    chosen, phases_left = _next_rows(operation, manifest, options)
    terms = FetchTerms(options, operation.now, usable_cores())
    hosts = host_keys(chosen.get_column("key")).unique()
    speeds = _known_speeds(operation, manifest, hosts, terms)
    rows = find_hosts(operation, hosts, without=LARGE)
    times = host_times(chosen, rows, speeds, terms)
    fetch = fetch_time(times, speeds, terms)
    phases = phase_times(speeds, len(chosen)) | {"fetch": fetch.seconds + speeds.fetch_rest_s}
    shown = {name: phases[name] for name in _PHASES if name in phases and name in phases_left}
    return RoundEstimate(len(chosen), fetch, shown if len(chosen) else {}, _weight(manifest))


def _next_rows(
    operation: Operation, manifest: Manifest, options: Options
) -> tuple[ChosenRows, tuple[str, ...]]:
    """Returns the rows that the next round fetches, and the phases that it has."""
    for batch in unfinished_batches(manifest, operation.now)[:1]:
        if manifest.batches[batch].phase == "generated":
            files = operation.files(batch_component(batch, "fetchlist"))
            rows = scan([operation.table / file.path for file in files], FETCHLIST)
            return collect(rows.select("key", "delay")), _PHASES[1:]
    return next_batch_rows(operation, options), _PHASES


def next_batch_rows(operation: Operation, options: Options) -> ChosenRows:
    """Returns ``key`` and ``delay`` of the rows that generate would choose now."""
    best = _BestRows(options)
    for item in tablets_of_state(operation):
        PROGRESS.add()
        if item.tablet.may_have(due_at(clock_of_survey(operation), options)):
            remaining, max_counts = candidates_of(item, options)
            best.add(*with_own_limits(remaining.rows, max_counts))
    return best.rows()


class _BestRows:
    """The best rows of the tablets so far, as many as a batch takes.

    A row that is not among them would not be chosen with further tablets, either: these can only add
    better rows.
    """

    def __init__(self, options: GenerateOptions) -> None:
        self._options = options
        self._usual = pl.DataFrame(schema=_RANKED)
        self._free = pl.DataFrame(schema=_RANKED)
        self._limited = pl.DataFrame(schema={**_RANKED, "group": pl.String, "most": pl.Int64})

    def add(self, usual: pl.DataFrame, free: pl.DataFrame, limited: pl.DataFrame) -> None:
        """Adds the rows of a tablet, by the limit of their host; see ``with_own_limits``."""
        number, most = self._options.top_n, self._options.max_count
        if most > 0:
            rows = [frame for frame in (self._usual, usual) if len(frame)]
            names = [*_RANKED, "group"]
            rows = [frame.select(names) for frame in rows]
            self._usual = pl.concat(rows) if rows else self._usual
            if len(self._usual):
                self._usual = top_n_per_key(self._usual, most, "group", ("rank", "key"))
        else:
            self._usual = pl.concat([self._usual, usual.select(*_RANKED)])
        self._free = pl.concat([self._free, free.select(*_RANKED)])
        if len(limited):
            names = self._limited.columns
            self._limited = best_of_hosts(pl.concat([self._limited, limited.select(names)]))
        self._usual, self._free = (
            frame.top_k(number, by=["rank", "key"]) for frame in (self._usual, self._free)
        )

    def rows(self) -> ChosenRows:
        """Returns the best of all rows."""
        parts = [frame.select(*_RANKED) for frame in (self._usual, self._free, self._limited)]
        best = pl.concat(parts).top_k(self._options.top_n, by=["rank", "key"])
        return best.select("key", "delay")


def _known_speeds(
    operation: Operation, manifest: Manifest, hosts: pl.Series, terms: FetchTerms
) -> KnownSpeeds:
    """Returns what earlier rounds of the table took."""
    table = operation.table
    phases = phase_seconds(table, _PHASES)
    requests = last_requests(table, manifest)
    keys = host_keys(requests.get_column("key")).unique()
    speeds = KnownSpeeds(
        answer_times(answer_frames(operation), pl.concat([hosts, keys]).unique()), phases=phases
    )
    if "fetch" not in phases or requests.is_empty():
        return speeds
    delays = find_hosts(operation, keys, without=LARGE)
    page_s = time_of_a_page(requests, delays, speeds, terms)
    took = seconds_of_requests(requests)
    rest = max(0.0, phases["fetch"][0][0] - took)
    return dataclasses.replace(speeds, page_s=page_s, fetch_rest_s=rest)


def _weight(manifest: Manifest) -> PageWeight:
    """Returns what a page of the table weighs, by the newest snapshot."""
    sizes = {"batch": 0, "rows": 0, "pages": 0}
    for name, component in manifest.components.items():
        kind = kind_of(name)
        if kind.owner is Owner.BATCH:
            sizes["batch"] += component.bytes
            sizes["pages"] += component.rows if kind.name == "pages" else 0
        elif kind.name in ("state", "hosts", "links"):
            sizes["rows"] += component.bytes
    return page_weight(sizes["batch"], sizes["rows"], sizes["pages"])


def _cost(operation: Operation, estimate: RoundEstimate, options: Options) -> CrawlCost:
    names = list(STATUS_COUNTS.values())
    urls = [
        number
        for rows in host_frames(operation, without=LARGE)
        for number in rows.select(pl.sum_horizontal(names)).to_series()
        if number
    ]
    slowest = estimate.fetch.hosts[:1]
    pause = slowest[0].delay + slowest[0].answer if slowest else options.server_delay
    cores = usable_cores()
    return crawl_cost(options.pages, estimate.weight.bytes, HostSpread(urls, pause), cores)


def _record(address: str, estimate: RoundEstimate, cost: CrawlCost | None) -> dict[str, Any]:
    return {
        "table": address,
        "urls": estimate.urls,
        "seconds": round(estimate.seconds, 3),
        "phases": {name: round(seconds, 3) for name, seconds in estimate.phases.items()},
        "bound": estimate.fetch.bound,
        "left": estimate.fetch.left,
        "hosts": len(estimate.fetch.hosts),
        "slowest": [one._asdict() for one in estimate.fetch.hosts[:_SHOWN]],
        "bytes": estimate.urls * estimate.weight.bytes,
        "page": estimate.weight._asdict(),
        "cost": cost._asdict() if cost is not None else None,
    }


def _lines(estimate: RoundEstimate, cost: CrawlCost | None, reason: str) -> Iterator[str]:
    if reason:
        yield reason
    else:
        yield from _round_lines(estimate)
    weight = estimate.weight
    source = "as in this table" if weight.measured else "by docs/scale.md"
    if estimate.urls:
        total = filesize.decimal(estimate.urls * weight.bytes)
        yield f"on disk: about {total}, {filesize.decimal(weight.bytes)} a page, {source}"
    if cost is not None:
        yield from _cost_lines(cost, source)


def _round_lines(estimate: RoundEstimate) -> Iterator[str]:
    fetch = estimate.fetch
    yield (
        f"the next round: {format_count(estimate.urls, 'URLs')} of "
        f"{format_count(len(fetch.hosts), 'hosts')}, about {duration(estimate.seconds)}"
    )
    yield "  " + ", ".join(f"{name} {duration(one)}" for name, one in estimate.phases.items())
    yield f"  {_WHY[fetch.bound]}"
    if fetch.left:
        yield f"  {format_count(fetch.left, 'URLs')} stay due: --fetch_time_limit allows more"
    for one in fetch.hosts[:_SHOWN] if fetch.bound != "start" else ():
        yield f"  {_host_line(one)}"


def _host_line(one: HostTime) -> str:
    """Returns the line of a host that holds a fetch up.

    >>> _host_line(HostTime("a.com", 2, 3, 5.0, 0.1, "crawl_delay", 10.3))
    'a.com: 10 s = 3 turns x (0.1 s answer + 5 s pause, crawl_delay)'
    """
    turns = format_count(one.turns, "turns")
    pause = f"{one.answer:.2g} s answer + {one.delay:g} s pause, {one.cause}"
    return f"{one.host}: {duration(one.seconds)} = {turns} x ({pause})"


def _cost_lines(cost: CrawlCost, source: str) -> Iterator[str]:
    yield (
        f"a crawl of {format_count(cost.pages, 'pages')}: {cost.cpu_s / 3600:,.1f} CPU hours in one "
        f"process, {cost.flink_cpu_s / 3600:,.1f} on Flink (docs/scale.md)"
    )
    yield (
        f"  {filesize.decimal(cost.disk_bytes)} on disk, {source}; "
        f"{filesize.decimal(cost.network_bytes)} over the network"
    )
    if cost.hosts:
        yield (
            f"  {duration(cost.seconds)} on this machine, if the pages are spread over hosts as in this "
            f"table ({format_count(cost.hosts, 'hosts')}, the largest has {cost.largest_share:.1%})"
        )
