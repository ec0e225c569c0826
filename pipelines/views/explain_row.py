"""Explains the row of a URL: why generate does not or did not choose it, and its robots.txt verdict."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ...io.batches.batches import claimed_keys
from ...io.reading.inlinks import inlinks_of
from ...io.rows.seed_hosts import read_seed_hosts
from ...io.rows.small_components import read_blocklist, read_host_settings
from ...io.snapshots.lineage import lineage
from ...io.snapshots.manifest import Manifest, load_manifest, newest_manifest
from ...io.snapshots.table_clock import clock_of
from ...io.table.opening import open_table
from ...io.tablets.tablets import rows_of_large_hosts, tablets, tablets_of_keys
from ...policy.components.clocks import is_resting, wrong_times
from ...policy.components.host_rows import Seeds
from ...policy.components.reasons import counted_reasons
from ...policy.components.schema import HOSTS, STATE, STATE_COLUMNS, STATUS_NAMES, to_frame
from ...policy.components.vocabulary import iso, record_of, statuses_of
from ...policy.conditions import wanted_rows
from ...policy.generating.selection import (
    CHOSEN,
    NOT_BEST,
    GenerateOptions,
    add_ranks,
    advance_clock,
    chosen_at,
    drop_low_scores,
    eligible_rows,
    groups,
)
from ...policy.generating.threshold import rank
from ...policy.hosting.host_settings import with_limits, with_own_limits, without_blocked_hosts
from ...policy.inlinks.edges import BestOptions, anchors_of
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.agent import AgentOptions, agent_token
from ...web.base.clock import TOLERANCE_MS, Clock
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.wording import in_words
from ...web.robots.robots import DEFER, RobotsRecord, RobotsRules, deciding_line, is_exempt
from ...web.robots.robots_options import RobotsOptions
from ...web.urls import row_keys as urls
from ...web.urls.row_keys import from_key, host_key_of
from ...web.urls.schemes import is_web, scheme_of
from ..checkers.reasons import NOT_CHOSEN
from ..generating.generate_rules import (
    as_recorded,
    host_limits_record,
    judge_today,
    limits_of_hosts,
    settings_of_host,
)
from .reading_job import Reading
from .readlinkdb import SHOWN_COLUMNS

# How many inlinks and anchors are shown.
_INLINKS = 10


class TableAt:
    """A table at a snapshot, and at a time.

    Args:
        table: Address of the table.
        snapshot: Number of the snapshot; None is the newest.
        now: The time that counts as now, ms; None is the present.
    """

    def __init__(self, address: str, snapshot: int | None = None, now: int | None = None) -> None:
        table = open_table(address)
        self.manifest = (
            newest_manifest(address) if snapshot is None else load_manifest(table, snapshot)
        )
        self.pinned = Reading(address, "", self.manifest.snapshot)
        self.find = self.pinned.find
        self.clock = clock_of(self.manifest, now)
        self.now = self.clock.now

    @property
    def seeds(self) -> Seeds:
        """The hosts of seeds."""
        return read_seed_hosts(self.pinned)

    def is_purged(self, key: str) -> bool:
        """Returns whether a key is on the blocklist."""
        return bool(read_blocklist(self.pinned).blocks(pl.Series([key])).item())

    def rows_of_host(self, key: str) -> int:
        """Returns the number of rows of the key's host, counted as in update; 0 if it is small."""
        return rows_of_large_hosts(self.pinned.files("state")).get(host_key_of(key), 0)

    def inlinks(self, key: str) -> dict[str, Any] | None:
        """Returns the best inlinks of a page and the anchors of all; None if there are none."""
        links = inlinks_of(self.pinned, key, BestOptions.max_inlinks)
        shown = [
            record_of(row, SHOWN_COLUMNS) for row in links.head(_INLINKS).iter_rows(named=True)
        ]
        return {"anchors": anchors_of(links)[:_INLINKS], "best": shown} if shown else None

    def batch_of(self, key: str) -> str | None:
        """Returns the open batch that has chosen a key."""
        table, batches = self.pinned.table, self.manifest.open_batches(self.now)
        chosen = (b for b in batches if len(claimed_keys(table, self.manifest, [b], key, key)))
        return next(chosen, None)

    def better(self, row: dict[str, Any], options: GenerateOptions) -> int:
        """Returns how many rows of the row's host or domain generate would take before it."""
        key, scorings = row["key"], scorings_of(options)
        group = groups(pl.Series([key]), options.count_mode).item()
        ends = (":", ".") if options.count_mode == "domain" else (":",)
        of_group = pl.any_horizontal(pl.col("key").str.starts_with(group + end) for end in ends)
        files = tablets(self.pinned.files("state"))
        near = tablets_of_keys(files, pl.Series([f"{group}{ends[-1]}", f"{group}:\x7f"]))
        columns = dict.fromkeys(("key", "score", "distance", *scorings.sort_columns))
        rows = self.pinned.table.read(
            "state", near, tuple(columns),
            lambda state: eligible_rows(state.filter(of_group), self.clock, options, scorings),
        )  # fmt: skip
        rows = drop_low_scores(rows, options, scorings)
        batches = self.manifest.open_batches(self.now)
        claimed = claimed_keys(self.pinned.table, self.manifest, batches, None, None)
        rows = self._boost_rows(rows.filter(~pl.col("key").is_in(claimed.implode())), options)
        rows = add_ranks(rows, options)
        boost = host_limits_record(self.pinned, options, key, self.now)["boost"]
        value = sort_value(row, options) * (1.0 if boost is None else boost)
        own = rank(pl.Series([value], dtype=pl.Float32), pl.Series([key])).item()
        higher = (pl.col("rank") > own) | ((pl.col("rank") == own) & (pl.col("key") > key))
        return len(rows.filter(higher))

    def _boost_rows(self, rows: pl.DataFrame, options: GenerateOptions) -> pl.DataFrame:
        """Returns rows with the boosts of their hosts, and without those of blocked hosts.

        Leaves out hosts with their own limit, except the host in question.
        """
        limits = limits_of_hosts(self.pinned, options, rows.get_column("key"), self.now)
        rows, _ = without_blocked_hosts(rows, read_host_settings(self.pinned))
        rows, _ = with_limits(rows, limits._replace(delays={}, bad={}))
        apart = {} if options.count_mode == "host" else limits.max_counts
        return with_own_limits(rows, apart)[0]


def not_generated(
    row: dict[str, Any], table: TableAt, options: GenerateOptions
) -> Iterator[tuple[str, str]]:
    """Yields (reason, detail) of each condition that prevents generate from choosing a row now.

    It yields nothing if only the score decides whether the row is chosen.
    """
    key, clock = row["key"], advance_clock(table.clock, options)
    if scheme_of(from_key(key)) not in options.schemes:
        yield "scheme_not_allowed", f"schemes are {','.join(options.schemes)}"
    if table.is_purged(key):
        yield "purged", "it was purged, and is in the blocklist"
    if not _frame(STATE, row).select(chosen_at(table.clock, options)).item():
        yield "not_due", _wait(row, clock)
    if options.restrict_status and row["status"] not in statuses_of(options.restrict_status):
        yield "status", f"{STATUS_NAMES[row['status']]}, not {options.restrict_status}"
    if 0 <= options.max_distance < (row["distance"] or 0):
        most = options.max_distance
        yield "too_far", f"{row['distance']} links from the seeds, max_distance is {most}"
    if 0 <= options.generate_min_interval < (row["fetch_interval"] or 0):
        longest, own = in_words(options.generate_min_interval), in_words(row["fetch_interval"])
        yield "long_interval", f"its interval is {own}, generate_min_interval is {longest}"
    wanted = wanted_rows(options.expr, now=table.now)
    if wanted is not None and not wanted.of(_frame(STATE, row)).item():
        yield "expr", f"this is not true of it: {options.expr}"
    if not (value := sort_value(row, options)) >= options.min_score:
        yield "low_score", f"score {value:g}, min_score is {options.min_score:g}"
    batch = table.batch_of(key)
    if batch is not None:
        phase = table.manifest.batches[batch].phase
        end = "another crawl may be at work on it, or else the next crawl finishes it"
        yield "in_batch", f"in batch {batch}, which is {phase}: {end}"
    if settings_of_host(table.pinned, host_key_of(key)).blocked:
        yield "host_blocked", "a setting of its host blocks it (hostinject)"
    host = table.find("hosts", host_key_of(key))
    if host is not None and _frame(HOSTS, host).select(is_resting(table.now)).item():
        yield "backoff", f"its host is left alone until {iso(host['backoff_until'])}"
    yield from _refused_today(row, table, options)
    own = host_limits_record(table.pinned, options, key, table.now)["max_count"]
    if own is not None:  # it replaces the limit of all
        options = dataclasses.replace(options, count_mode="host")
    most = options.max_count if own is None else own
    if (most > 0 or own == 0) and table.better(row, options) >= most:
        limit = "" if own is None else f", and that is the limit of this host: {most:,}"
        yield "max_count", f"{most} or more URLs of its {options.count_mode} come before it{limit}"


def _refused_today(
    row: dict[str, Any], table: TableAt, options: GenerateOptions
) -> Iterator[tuple[str, str]]:
    """Yields why the options filter and normalize leave out a row, if they do."""
    if not (options.filter or options.normalize):
        return
    judged = judge_today(_frame(STATE, row), table.pinned, options)
    reason = judged.get_column("reason").item()
    if options.filter and reason is not None:
        yield reason, "today's rules refuse it (--filter)"
    elif options.normalize and reason is None and judged.get_column("key").item() != row["key"]:
        url = from_key(judged.get_column("key").item())
        yield "normalized", f"today's rules make it {url} (--normalize)"


def sort_value(row: dict[str, Any], options: GenerateOptions) -> float:
    """Returns the value by which generate compares a row of the state with others."""
    scorings = scorings_of(options)
    if scorings.sorts_by_score:
        return float(row["score"])
    return float(scorings.sort_value(_frame(STATE, row)).get_column("sort_value").item())


def _frame(schema: pa.Schema, row: dict[str, Any]) -> pl.DataFrame:
    return to_frame(pa.Table.from_pylist([row], schema=schema))


def _wait(row: dict[str, Any], clock: Clock) -> str:
    """Returns when a row will be due."""
    when, last = row["fetch_time"], row["last_fetch_time"]
    if clock.back is not None and last is not None and last > clock.now + TOLERANCE_MS:
        when = clock.back + when - last
    return f"due at {iso(when)}, in {in_words((when - clock.now) / 1000)}"


def wrong_clock(row: dict[str, Any], table: TableAt, options: GenerateOptions) -> str:
    """Returns a message if some times of a row are impossible; empty if not."""
    if not _frame(STATE, row).select(wrong_times(STATE_COLUMNS, table.now, options)).item():
        return ""
    shown = record_of(row, STATE_COLUMNS.times)
    times = ", ".join(f"{name} {time}" for name, time in shown.items() if time is not None)
    return (
        f"a clock was wrong: {times}, and now is {iso(table.now)}; update corrects that when it "
        "comes to the row, fsck --repair at once"
    )


@dataclass(frozen=True)
class ShownRobotsOptions(RobotsOptions, AgentOptions):
    """Options of reading robots.txt."""


def robots_of(url: str, host: dict[str, Any] | None, options: ShownRobotsOptions) -> dict[str, Any]:
    """Returns the verdict of the robots.txt in the table about a URL.

    Returns:
        ``verdict``: allowed, denied, too_costly (matching takes too many steps), deferred (the
        server failed), unknown (fetch will request robots.txt), exempt; the ``line`` and ``rule``
        that decide, if one does; the time ``read``, ``status``, ``crawl_delay``, and ``odd_delay``,
        a crawl delay that is no time.
    """
    details: dict[str, Any] = dict.fromkeys(
        ("line", "rule", "read", "status", "crawl_delay", "odd_delay")
    )
    origin = "/".join(url.split("/", 3)[:3])
    if not is_web(url) or is_exempt(urls.host(url), options.robots_allowlist):
        return {"verdict": "exempt"} | details
    if host is None or host["robots_status"] is None or host["robots_origin"] != origin:
        return {"verdict": "unknown"} | details
    agents = (agent_token(options), *options.robots_agents)
    text, read = host["robots_text"] or "", host["robots_time"] or 0
    record = RobotsRecord(host["robots_status"], text, read, host["robots_failing_since"] or 0)
    rules = RobotsRules(record, agents, host=urls.host(url) or "")
    details |= {"read": iso(read), "status": rules.status, "crawl_delay": rules.crawl_delay}
    details["odd_delay"] = rules.odd_delay
    if rules.state == DEFER:
        return {"verdict": "deferred"} | details
    line = deciding_line(text, url, agents)
    if line is not None:
        details |= {"line": line.number, "rule": line.text}
    return {"verdict": rules.verdict(url)} | details


def last_generate(address: str, options: GenerateOptions) -> "LastGenerate | None":
    """Returns the newest generate in the history of a table that is kept, or None.

    Args:
        address: Address of the table.
        options: Options of explain; those of choosing are replaced by those of that generate.
    """
    try:
        for manifest in lineage(open_table(address)):
            if manifest.job == "generate":
                return LastGenerate(address, manifest, options)
    except UserError:  # a damaged manifest: older ones are not reached
        return None
    return None


class LastGenerate:
    """The newest generate of a table, and the snapshot that it read.

    Args:
        address: Address of the table.
        manifest: The snapshot that it made.
        options: Options of explain.
    """

    def __init__(self, address: str, manifest: Manifest, options: GenerateOptions) -> None:
        self._address, self._manifest = address, manifest
        self._options = as_recorded(options, manifest.options)
        self._seen: TableAt | None = None

    def fate(self, key: str) -> dict[str, Any]:
        """Returns what it did with a row key.

        Returns:
            ``time``, ``batch`` or None, ``reason``: ``chosen``, a reason of ``not_generated``,
            ``not_best``, ``not_in_table`` or ``unknown``; ``detail`` in words.
        """
        try:
            reason, detail = self._fate(key)
        except UserError as error:  # its snapshot has expired
            reason, detail = "unknown", str(error)
        batch = self._manifest.batch if self._manifest.batch in self._manifest.batches else None
        return {
            "time": iso(self._manifest.time),
            "batch": batch,
            "reason": reason,
            "detail": detail,
        }

    def _fate(self, key: str) -> tuple[str, str]:
        table, manifest = open_table(self._address), self._manifest
        batches = [name for name in manifest.batches if name == manifest.batch]
        if batches and len(claimed_keys(table, manifest, batches, key, key)):
            return CHOSEN, f"it is in batch {manifest.batch}"
        seen = self._table_before()
        row = seen.find("state", key)
        if row is None:
            return "not_in_table", f"{from_key(key)} was not in the table"
        for reason, detail in not_generated(row, seen, self._options):
            return reason, detail
        return NOT_BEST, counted_reasons(*NOT_CHOSEN)[NOT_BEST].meaning

    def _table_before(self) -> TableAt:
        """Returns the table as that generate read it: no job has changed the state since."""
        if self._seen is None:
            manifest = self._manifest
            self._seen = TableAt(self._address, manifest.snapshot - 1, manifest.time)
        return self._seen
