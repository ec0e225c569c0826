"""Makes the summary at the end of a crawl: how it ended, results, speed, and what was left out."""

import contextlib
import logging
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from ...io.batches.batches import batch_files
from ...io.batches.page_writer import COUNTED_OF_PAGES, why_not
from ...io.snapshots.manifest import Manifest
from ...io.storage.address_kinds import is_place
from ...io.storage.file_errors import MissingFile
from ...io.storage.parquet_files import collect, scan
from ...io.table.opening import open_table
from ...policy.components.kinds import kind_of
from ...policy.components.reasons import plugin_faults
from ...policy.components.rule_counts import cap_rule_counts, is_of_rule
from ...policy.components.vocabulary import iso
from ...policy.hosting.slow_hosts import all_together, slow_hosts, slow_record
from ...web.base import json_logs
from ...web.base.agent import agent_token
from ...web.base.json_logs import without_login
from ...web.base.progress import PROGRESS
from ...web.base.terminal import unwrap_stream
from ...web.base.wording import format_count
from ...web.exchange.status import PROTOCOL_STATUS_NAMES
from ...web.robots.rules import read_robots_rules
from ...web.urls.row_keys import from_key
from ..base.command import Invocation, gives_record
from ..base.live import duration
from ..generating.generate_rules import settings_of_host
from .endings import CrawlStop, by_reason, crawl_warnings, ending_of, unfetched_of, work_of
from .explain_row import TableAt
from .next_due import NextUrl, next_url
from .readdb import Figures, read_statistics
from .rule_reports import report_stored_rules

BEST = 5
_LOG = logging.getLogger("nutbeam")
_MOST_FILES = 20  # that are read for examples


def summary_of(
    invocation: Invocation,
    manifests: Sequence[Manifest],
    others: Sequence[Manifest],
    end: CrawlStop,
) -> dict[str, Any]:
    """Returns the results of a crawl as one record.

    Args:
        invocation: The command.
        manifests: The snapshots that its jobs made.
        others: The snapshots that others made meanwhile.
        end: What stopped it.
    """
    address, options = str(invocation.table), invocation.options
    total: Counter[str] = Counter()
    for manifest in manifests:
        total.update(manifest.counts)
    counts, work = Counter(cap_rule_counts(total)), work_of(manifests, others)
    # Computed in this process, because a job on a cluster would take long to start.
    statistics, best = read_statistics(address, options, (), Figures(BEST))
    waiting = next_url(address, options)
    odd_delay = _odd_delay(address, manifests, options) if counts["odd_crawl_delay"] else ("", "")
    examples = {} if work.fetched else _examples(address, manifests)
    seeds: Sequence[str] = invocation.arguments.get("seeds") or []
    if len(seeds) == 1 and not is_place(seeds[0]):
        examples = dict.fromkeys(work.refused, without_login(seeds[0])) | examples
    ending = ending_of(work, options, end, waiting, examples)
    reports = report_stored_rules(address, options.extract, [total], invocation.command)
    unfetched = statistics["status"].get("db_unfetched", 0)
    return {
        "table": address,
        "exit_code": ending.code,
        "ending": ending.reason,
        "message": ending.text or unfetched_of(unfetched, work, options, waiting),
        "warnings": crawl_warnings(
            work, counts, options, odd_delay, _fault_pages(address, manifests, counts)
        )
        + [
            {"count": 1, "reason": "rules", "message": line}
            for report in reports
            for line in report.warning_lines
        ],
        "extracted": [report.record() for report in reports],
        "next": _next_record(waiting),
        "rounds": work.rounds,
        "requests": work.requests,
        "fetched": work.fetched,
        "fetched_by_others": work.others,
        "parsed": counts["parsed"],
        "urls": statistics["total_urls"],
        "status": statistics["status"],
        "due": statistics.get("due", {}),
        "not_fetched": by_reason(counts, "not_fetched/"),
        "dropped": by_reason(counts, "dropped/"),
        "refused_by": {n: c for n, c in by_reason(counts, "").items() if is_of_rule(n)},
        "not_parsed": by_reason(counts, "failed/") | by_reason(counts, "skipped/"),
        "no_parser": by_reason(counts, "no_parser/"),
        "phases": {
            name: {"done": p.done, "unit": p.unit, "seconds": round(p.elapsed, 3),
                   "per_second": round(p.rate, 1)}
            for name, p in PROGRESS.snapshot().by_phase().items()
        },
        "slow_hosts": _slow_hosts(address, manifests, options),
        "best": best,
    }  # fmt: skip


def _next_record(waiting: NextUrl | None) -> dict[str, Any] | None:
    if waiting is None:
        return None
    held = [{"reason": reason, "detail": detail} for reason, detail in waiting.reasons]
    return {"url": waiting.url, "fetch_time": iso(waiting.time), "held_back": held}


def _slow_hosts(address: str, manifests: Sequence[Manifest], options: Any) -> list[dict[str, Any]]:
    """Returns the hosts that the fetches waited for, and what to do about each."""
    batch_hosts = [
        host
        for pages in _read_batches(address, manifests, "pages", ("key", "fetch_time"))
        for host in slow_hosts(pages)
    ]
    if not batch_hosts:
        return []
    seen = TableAt(address)
    records = []
    for one in all_together(batch_hosts):
        host = seen.find("hosts", one.key) or {}
        own = settings_of_host(seen.pinned, one.key)
        records.append(slow_record(one, own, host.get("crawl_delay"), options.server_delay))
    return records


def _odd_delay(address: str, manifests: Sequence[Manifest], options: Any) -> tuple[str, str]:
    """Returns the origin of a robots.txt whose crawl delay is no time, and its value; or empty."""
    agents = (agent_token(options), *options.robots_agents)
    columns = ("robots_origin", "robots_text")
    for hosts in _read_batches(address, manifests, "host_findings", columns):
        for origin, text in hosts.drop_nulls().iter_rows():
            odd = read_robots_rules(text, agents).odd_delay
            if odd is not None:
                return origin, odd
    return "", ""


def _read_batches(
    address: str,
    manifests: Sequence[Manifest],
    name: str,
    columns: Sequence[str],
    jobs: Sequence[str] = ("fetch",),
) -> Iterator[pl.DataFrame]:
    """Yields rows of a component of each batch, of a limited number of files that jobs wrote."""
    table, files = open_table(address), 0
    for manifest in manifests:
        if manifest.job in jobs and manifest.batch and files < _MOST_FILES:
            # A purge beside the crawl deletes files that it has written again.
            with contextlib.suppress(MissingFile):
                read_files = batch_files(table, manifest, manifest.batch, name)
                read_files = read_files[: _MOST_FILES - files]
                files += len(read_files)
                if read_files:
                    paths, schema = [table / file.path for file in read_files], kind_of(name).schema
                    yield collect(scan(paths, schema).select(columns))


def _examples(address: str, manifests: Sequence[Manifest]) -> dict[str, str]:
    """Returns a URL for each reason why a page was not fetched, also if it was redirected."""
    examples = dict[str, str]()
    for rows in _read_batches(address, manifests, "pages", ("key", *COUNTED_OF_PAGES)):
        same = ["protocol_status", "protocol_message", "http_code"]
        for row in rows.unique(same, keep="first", maintain_order=True).iter_rows(named=True):
            reason = why_not(row) or PROTOCOL_STATUS_NAMES[row["protocol_status"]]
            if (row["protocol_message"] or "").startswith("crawl delay"):
                reason = "crawl_delay"
            examples.setdefault(reason, from_key(row["key"]))
    return examples


def _fault_pages(
    address: str, manifests: Sequence[Manifest], counts: Mapping[str, int]
) -> dict[str, str]:
    """Returns a page for each plug-in that failed for pages, by the reason that is counted."""
    faults = plugin_faults(counts)
    reasons = {fault.reason for fault in faults if not fault.kind.startswith("url_")}
    fault_pages = dict[str, str]()
    for name, column, jobs in (
        ("documents", "parse_message", ("fetch", "parse")),
        ("pages", "protocol_message", ("fetch",)),
    ):
        if missing := reasons - fault_pages.keys():
            reason = pl.col(column).str.split(":").list.first()
            for rows in _read_batches(address, manifests, name, ("key", column), jobs):
                named = rows.select(reason, "key").filter(pl.col(column).is_in(missing))
                fault_pages |= {word: from_key(key) for word, key in named.iter_rows()}
    return fault_pages


def print_summary(invocation: Invocation, record: dict[str, Any]) -> None:
    """Prints the summary of a crawl as JSON for scripts, or as readable tables.

    A log for scripts has the warnings, too.
    """
    if json_logs.is_installed():
        lines = [warning["message"] for warning in record["warnings"]]
        for line in [*lines, *([record["message"]] if record["exit_code"] else [])]:
            _LOG.warning("%s", line)
        _LOG.info(
            "%s ends: %s", invocation.command, record["ending"], extra=_ending(invocation, record)
        )
    if not gives_record(invocation, record):
        _print_tables(record)


def _ending(invocation: Invocation, record: dict[str, Any]) -> Mapping[str, Any]:
    """Returns the fields of the last line in a log for scripts."""
    names = ("exit_code", "ending", "message", "rounds", "requests", "fetched", "urls")
    return json_logs.with_fields(
        event="end", command=invocation.command, **{name: record.get(name) for name in names}
    )


def _print_tables(record: dict[str, Any]) -> None:
    from ..base.console import VisibleConsole

    console = VisibleConsole(sys.stdout)
    # In one write, and not by rich, which ends the process if the reader has closed the stream.
    with console.capture() as captured:
        console.print(*_tables(record), sep="\n", end="")
        console.print(*last_lines(record), sep="\n", soft_wrap=True)
    print(captured.get(), end="", file=unwrap_stream(sys.stdout))


def last_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yields the lines below the tables: slow hosts, due URLs, warnings, work, the ending."""
    for slow in record["slow_hosts"]:
        seconds = duration(slow["seconds"])
        yield f"slow: {slow['host']}, {format_count(slow['pages'], 'pages')} in {seconds}, {slow['advice']}"
    if due := record["due"]:
        counts = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in due.items())
        first = record["next"]
        yield f"due: {counts}" + (f"; the first one at {first['fetch_time']}" if first else "")
    for extracted in record["extracted"]:
        for name, rule in extracted["figures"].items():
            made = f"{format_count(rule['records'], 'records')} of {format_count(rule['pages'], 'pages')}"
            yield f"{extracted['rules']}: {name}: {made}"
    for warning in record["warnings"]:
        yield f"warning: {warning['message']}"
    if record["rounds"]:
        yield (
            f"{format_count(record['requests'], 'requests')} in {format_count(record['rounds'], 'rounds')}, "
            f"{format_count(record['fetched'], 'pages')} fetched; the table is in {record['table']}"
        )
    if record["message"]:
        yield record["message"]


def _tables(record: dict[str, Any]) -> Iterator[Any]:
    from rich.table import Column, Table

    phases = [
        (
            name,
            format_count(p["done"], p["unit"]) if p["done"] else "",
            f"{p['seconds']:.2f}",
            f"{p['per_second']:,.0f}",
        )
        for name, p in record["phases"].items()
    ]
    best = [(page["repr_url"] or page["url"], f"{page['score']:.3g}") for page in record["best"]]
    sections = (
        ("URLs by status", ("status", "URLs"), _texts(record["status"])),
        ("Speed", ("phase", "done", "seconds", "per second"), phases),
        ("Not fetched", ("reason", "times"), _texts(record["not_fetched"])),
        ("Links and pages left out", ("reason", "times"),
         _texts(record["dropped"] | record["not_parsed"])),
        ("URLs refused by rule", ("rule", "times"), _texts(record["refused_by"])),
        ("Types without a parser", ("type", "pages"), _texts(record["no_parser"])),
        (f"Best {BEST} by score", ("URL", "score"), best),
    )  # fmt: skip
    for title, (first, *heads), rows in sections:
        if rows:
            numbers = [Column(head, justify="right", overflow="fold") for head in heads]
            columns = [Column(first, overflow="fold"), *numbers]
            shown = Table(*columns, title=title, title_justify="left", title_style="bold")
            for row in rows:
                shown.add_row(*row)
            yield shown


def _texts(counts: dict[str, int]) -> list[tuple[str, str]]:
    return [(name, f"{number:,}") for name, number in counts.items()]
