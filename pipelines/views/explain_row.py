"""What a table says of a URL: its row, whether the next batch takes it, what robots.txt says."""

import dataclasses
import datetime
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from ...io.batches.batches import claimed_keys
from ...io.rows.bars import read_bars
from ...io.rows.hosts import read_seeds_hosts, seed_files
from ...io.snapshots.manifest import Manifest, Pinned, newest_manifest
from ...io.snapshots.table_clock import clock_of
from ...io.tablets.fold import tablets_of_keys
from ...io.tablets.tablets import rows_of_large_hosts, tablets
from ...policy.bars import Bars
from ...policy.clocks import resting, wrong_times
from ...policy.schedule import TOLERANCE_MS, Clock, due
from ...policy.schema import HOSTS, STATE, STATUS_NAMES, to_frame
from ...policy.scope import Seeds
from ...policy.selection import STATUS_CODES, GenerateOptions, eligible, groups, later, ranked
from ...policy.threshold import rank
from ...web.base.agent import AgentOptions, agent_token
from ...web.base.robots_options import RobotsOptions
from ...web.robots.robots import DEFER, RobotsRecord, RobotsRules, is_exempt
from ...web.robots.robots_lines import deciding_line
from ...web.urls import row_keys as urls
from ...web.urls.row_keys import from_key, host_of
from ...web.urls.schemes import is_web, scheme_of
from .row_records import TIMES, iso


class Why(NamedTuple):
    """A reason, as one word, and what is behind it."""

    reason: str
    said: str


@dataclasses.dataclass(frozen=True)
class _Snapshot(Pinned):
    table: str
    snapshot: int


class Known:
    """The newest snapshot of a table.

    Args:
        table: Address of the table.
    """

    def __init__(self, table: str) -> None:
        self.manifest: Manifest = newest_manifest(table)
        self._pinned = _Snapshot(table, self.manifest.snapshot)
        self.clock = clock_of(self.manifest)
        self.now = self.clock.now

    @property
    def seeds(self) -> Seeds:
        """Hosts and domains of the seeds."""
        return read_seeds_hosts(self._pinned.root, seed_files(self._pinned))

    @property
    def bars(self) -> Bars:
        """What was purged and must not come back."""
        return read_bars(self._pinned)

    def row(self, key: str) -> dict[str, Any] | None:
        """Returns the STATE row of a key, if it has one."""
        known = tablets(self._pinned.files("state"))
        found = self._pinned.root.find("state", known, pl.Series("key", [key]))
        return found.row(0, named=True) if len(found) else None

    def host(self, key: str) -> dict[str, Any] | None:
        """Returns the HOSTS row of a key's host, if it has one."""
        files = self._pinned.files("hosts")
        found = self._pinned.root.find("hosts", tablets(files), pl.Series("key", [host_of(key)]))
        return found.row(0, named=True) if len(found) else None

    def rows_of_host(self, key: str) -> int:
        """Returns how many rows the key's host has, as update counts them; 0 of one that is small."""
        return rows_of_large_hosts(self._pinned.files("state")).get(host_of(key), 0)

    def batch_of(self, key: str) -> str | None:
        """Returns the open batch that has chosen a key."""
        for batch in self.manifest.open_batches(self.now):
            if len(claimed_keys(self._pinned.root, self.manifest, [batch], key, key)):
                return batch
        return None

    def better(self, key: str, score: float, options: GenerateOptions) -> int:
        """Returns how many rows of the key's host or domain generate would take before it."""
        group = groups(pl.Series([key]), options.count_mode).item()
        ends = (":", ".") if options.count_mode == "domain" else (":",)
        of_group = pl.any_horizontal(pl.col("key").str.starts_with(group + end) for end in ends)
        files = tablets(self._pinned.files("state"))
        near = tablets_of_keys(files, pl.Series([f"{group}{ends[-1]}", f"{group}:\x7f"]))
        rows = self._pinned.root.read(
            "state", near, ["key", "score"],
            lambda state: eligible(state.filter(of_group), self.clock, options),
        )  # fmt: skip
        batches = self.manifest.open_batches(self.now)
        claimed = claimed_keys(self._pinned.root, self.manifest, batches, None, None)
        rows = ranked(rows.filter(~pl.col("key").is_in(claimed.implode())), options)
        own = rank(pl.Series([score]), pl.Series([key])).item()
        higher = (pl.col("rank") > own) | ((pl.col("rank") == own) & (pl.col("key") > key))
        return len(rows.filter(higher))


def not_generated(row: dict[str, Any], known: Known, options: GenerateOptions) -> Iterator[Why]:
    """Yields why generate would not take a row now; nothing where it would, if its score is enough."""
    key, clock = row["key"], later(known.clock, options)
    if scheme_of(from_key(key)) not in options.schemes:
        yield Why("scheme_not_allowed", f"schemes are {','.join(options.schemes)}")
    if known.bars.hit(pl.Series([key])).item():
        yield Why("purged", "it was purged, and is barred")
    if not _frame(STATE, row).select(due(clock, options)).item():
        yield Why("not_due", _wait(row, clock))
    if options.restrict_status and row["status"] != STATUS_CODES[options.restrict_status]:
        yield Why("status", f"{STATUS_NAMES[row['status']]}, not {options.restrict_status}")
    if 0 <= options.max_distance < (row["distance"] or 0):
        most = options.max_distance
        yield Why("too_far", f"{row['distance']} links from the seeds, max_distance is {most}")
    if not row["score"] >= options.min_score:
        yield Why("low_score", f"score {row['score']:g}, min_score is {options.min_score:g}")
    batch = known.batch_of(key)
    if batch is not None:
        phase = known.manifest.batches[batch].phase
        yield Why("in_batch", f"in batch {batch}, which is {phase}")
    host = known.host(key)
    if host is not None and _frame(HOSTS, host).select(resting(known.now)).item():
        yield Why("backoff", f"its host is left alone until {iso(host['backoff_until'])}")
    most = options.max_count
    if most > 0 and known.better(key, row["score"], options) >= most:
        said = f"{options.max_count} or more URLs of its {options.count_mode} come before it"
        yield Why("max_count", said)


def _frame(schema: pa.Schema, row: dict[str, Any]) -> pl.DataFrame:
    return to_frame(pa.Table.from_pylist([row], schema=schema))


def _wait(row: dict[str, Any], clock: Clock) -> str:
    """Says when a row is due that is not due yet."""
    when, last = row["fetch_time"], row["last_fetch_time"]
    if clock.back is not None and last is not None and last > clock.now + TOLERANCE_MS:
        when = clock.back + when - last
    wait = datetime.timedelta(milliseconds=when - clock.now)
    return f"due at {iso(when)}, in {str(wait).partition('.')[0]}"


def wrong_clock(row: dict[str, Any], known: Known, options: GenerateOptions) -> str:
    """Says which times of a row cannot be; nothing where all can."""
    if not _frame(STATE, row).select(wrong_times(known.now, options)).item():
        return ""
    said = ", ".join(f"{name} {iso(row[name])}" for name in TIMES if row[name] is not None)
    return (
        f"a clock was wrong: {said}, and it is {iso(known.now)}; update sets that right when it "
        "comes to the row, fsck --repair does at once"
    )


@dataclasses.dataclass(frozen=True)
class RobotsView(RobotsOptions, AgentOptions):
    """How robots.txt is read."""


def robots_of(url: str, host: dict[str, Any] | None, options: RobotsView) -> dict[str, Any]:
    """Returns what the robots.txt that the table knows says of a URL.

    Returns:
        ``verdict``: allowed, denied, too_costly (to find out takes too many
        steps), deferred (the server failed), unknown (it
        is asked when the URL is fetched), exempt; ``line`` and ``rule`` that
        decide, if one does; ``read``, when, and ``status`` and ``crawl_delay``.
    """
    found: dict[str, Any] = dict.fromkeys(("line", "rule", "read", "status", "crawl_delay"))
    origin = "/".join(url.split("/", 3)[:3])
    if not is_web(url) or is_exempt(urls.host(url), options.robots_allowlist):
        return {"verdict": "exempt"} | found
    if host is None or host["robots_status"] is None or host["robots_origin"] != origin:
        return {"verdict": "unknown"} | found
    agents = (agent_token(options), *options.robots_agents)
    text, read = host["robots_text"] or "", host["robots_time"] or 0
    record = RobotsRecord(host["robots_status"], text, read, host["robots_failing_since"] or 0)
    rules = RobotsRules(record, agents)
    found |= {"read": iso(read), "status": rules.status, "crawl_delay": rules.crawl_delay}
    if rules.state == DEFER:
        return {"verdict": "deferred"} | found
    line = deciding_line(text, url, agents)
    if line is not None:
        found |= {"line": line.number, "rule": line.text}
    return {"verdict": rules.verdict(url)} | found
