"""explain: shows what the jobs decide about URLs, with reasons; requests at most robots.txt."""

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from ...policy.components.host_rows import Seeds
from ...policy.components.kinds import KINDS
from ...policy.components.views import shown_columns
from ...policy.components.vocabulary import record_of
from ...policy.generating.selection import GenerateOptions
from ...policy.schedules.due_rules import due_rule
from ...policy.schedules.reschedule import intervals_of_hosts
from ...policy.schedules.schedule import horizon
from ...policy.scope import TargetOptions, judge
from ...policy.scoring.depth import Depth
from ...policy.traps import DepthOptions
from ...policy.updating.update_rules import UpdateOptions
from ...transforms.wiring.plugin_groups import chosen_plugins
from ...web.base.dataclass import dataclass
from ...web.base.options import option, shared_option
from ...web.base.wording import format_count, in_words
from ...web.exchange.http_options import FileOptions, HttpOptions
from ...web.filters.verdicts import FILTER_TIMEOUT, UrlFilter, Verdict
from ...web.plugins.plugins import load_plugins
from ...web.rules.chains import EXEMPTION
from ...web.rules.url_rules import Scope
from ...web.urls import row_keys as urls
from ...web.urls.row_keys import BadUrl, from_key, to_key
from ..base.command import DONE, TABLE, Argument, Invocation, configuration
from ..checkers.checking import URLS, odd_delay_note, row_key, rules_of, say, urls_of
from ..checkers.reasons import NOT_FOLLOWED, NOT_INJECTED, in_brackets
from ..checkers.robotsparser import RequestedRobots
from ..generating.generate_rules import host_limits_record, settings_of_host
from ..launch.clock_warnings import warn_of_clocks
from .explain_row import (
    ShownRobotsOptions,
    TableAt,
    last_generate,
    not_generated,
    robots_of,
    wrong_clock,
)
from .history import VERSIONED, history_records
from .readlinkdb import link_line

NO_TABLE = "-"
_COLUMNS = shown_columns(KINDS["state"])
ARGUMENTS = (Argument("table", f"{TABLE.help[:-1]}; {NO_TABLE} for none."), URLS)
# Where URLs come from, and who counts those that are dropped.
_COUNTED = {
    "inject": NOT_INJECTED,
    "outlink": ("parse dropped", *NOT_FOLLOWED),
    "fetcher": NOT_FOLLOWED,
}
# How many inlinks and versions of a row are shown as text: all is to fit one screen.
_SHOWN = 5


@dataclass(frozen=True)
class Options(TargetOptions, DepthOptions, UpdateOptions, GenerateOptions, ShownRobotsOptions):
    """Options of explain: those of the jobs, and the source of the URLs."""

    GROUP = "checkers"

    found_as: str = option(
        "outlink",
        "Where the URLs come from: seeds, links, or redirects.",
        choices=tuple(_COUNTED),
    )
    source: str = option("", "URL of the page that leads to them, if any.")
    ask_robots: bool = option(
        False,
        "Ask each site for its robots.txt now, with one request.",
    )
    # For the request of robots.txt; users copy others, too, from the command lines of the jobs.
    timeout: float = shared_option(HttpOptions, "timeout")
    connect_to: tuple[str, ...] = shared_option(HttpOptions, "connect_to")
    allow_addresses: tuple[str, ...] = shared_option(HttpOptions, "allow_addresses")
    allowed_ports: tuple[str, ...] = shared_option(HttpOptions, "allowed_ports")
    ca_file: str = shared_option(HttpOptions, "ca_file")
    insecure_host: tuple[str, ...] = shared_option(HttpOptions, "insecure_host")
    http_proxy: str = shared_option(HttpOptions, "http_proxy")
    file_roots: tuple[str, ...] = shared_option(FileOptions, "file_roots")


def run(invocation: Invocation) -> int:
    """Explains each URL."""
    options, address = invocation.options, invocation.arguments["table"]
    explainer = explainer_of(invocation)
    if address != NO_TABLE:
        warn_of_clocks(address, options)
    print(f"rule files: {', '.join(explainer.rules.sources.values()) or 'none'}", file=sys.stderr)
    for url in urls_of(invocation.arguments["urls"]):
        record = explainer.explain(url)
        say(record, explained_lines(record, options), invocation.format)
    return DONE


def explainer_of(invocation: Invocation) -> "Explainer":
    """Returns what explains the URLs of a command."""
    options, address = invocation.options, invocation.arguments["table"]
    for group, names in chosen_plugins(options):
        load_plugins(group, names)
    return Explainer(options, None if address == NO_TABLE else TableAt(address))


# Stands for any local document; no URL has this row key.
_LOCAL_PAGE = ":file:"


class Explainer:
    """Explains URLs, one at a time.

    Args:
        options: The options of the jobs.
        table: The table, if there is one.
    """

    def __init__(self, options: Options, table: TableAt | None) -> None:
        self.rules = rules_of(options)
        self._options, self._table = options, table
        self._last = last_generate(table.pinned.address, options) if table else None
        with configuration():
            self._hosts = intervals_of_hosts(options)
        self._requested = RequestedRobots(options) if options.ask_robots else None
        # The row key of the page that leads to the URLs.
        source = options.source
        self._source = row_key(source, "--source", self.rules) if source else None

    def explain(self, url: str) -> dict[str, Any]:
        """Returns a record of the decisions about a URL.

        Args:
            url: The URL as it was found.

        Returns:
            ``parsed``, ``steps``, ``normalized``, ``key``, ``key_bytes``, ``filters``, ``scope``;
            ``exemption`` of a URL out of the scope, if there are rules of exemptions; ``reason``
            why the URL is not added to a table, or None. With a table also: ``row`` or None,
            ``clock`` if the row has impossible times, ``due`` (the rule that set its next fetch),
            ``generate`` (reasons why it is not chosen), ``last_generate`` (what the newest one
            did with it), ``history`` of the row in the snapshots that are kept, the newest first,
            ``host`` (its settings and limits), ``inlinks`` (the best, and the anchors), ``robots``.
        """
        record: dict[str, Any] = {"url": url, "parsed": urls.parse_url(url), "steps": []}
        record |= self._normalize_url(url)
        normalized, key, rules = record["normalized"], record["key"], self.rules
        chain = rules.filters if self._needs_no_include() else rules.link_filters
        verdicts = chain.list_verdicts(normalized) if normalized else ()
        record["filters"] = [self._decision(*verdict, normalized) for verdict in verdicts]
        reason = self._drop_reason(url, self._options)
        reason_without_exemptions = self._without_exemptions(url) if reason is None else reason
        record["scope"] = None if normalized is None else self._scope(reason_without_exemptions)
        if rules.exemptions and reason_without_exemptions == "out_of_scope" and normalized:
            verdict = rules.exemptions.decide(normalized)
            record["exemption"] = self._decision(rules.exemptions, verdict, normalized)
        if self._table is None or key is None:
            if self._requested and key is not None:
                record["robots"] = self._robots(key, None)
            return record | {"reason": reason}
        return record | self._table_record(key, reason, self._table)

    def _table_record(self, key: str, reason: str | None, table: TableAt) -> dict[str, Any]:
        """Returns what the table says of a URL, with the reason why the URL is not added to it."""
        row = table.find("state", key)
        record: dict[str, Any] = {
            "reason": reason or self._not_added(key, row, table),
            "row": None if row is None else record_of(row, _COLUMNS),
        }
        if row is not None:
            record |= self._of_row(row, key, table)
        if self._last is not None:
            record["last_generate"] = self._last.fate(key)
        host = table.find("hosts", urls.host_key_of(key))
        return record | {
            "history": history_records(table.pinned.address, key),
            "host": host_limits_record(table.pinned, self._options, key, table.now),
            "inlinks": table.inlinks(key),
            "robots": self._robots(key, host),
        }

    def _of_row(self, row: dict[str, Any], key: str, table: TableAt) -> dict[str, Any]:
        """Returns when a row is due, whether it is chosen then, and what is wrong with it."""
        clock = wrong_clock(row, table, self._options)
        reasons = not_generated(row, table, self._options)
        own = settings_of_host(table.pinned, urls.host_key_of(key))
        bounds = own.min_interval, own.max_interval
        due = due_rule(row, self._options, self._hosts, bounds)._asdict()
        due["detail"] += self._early(row, table.now)
        not_chosen = [{"reason": name, "detail": detail} for name, detail in reasons]
        record: dict[str, Any] = {"clock": clock} if clock else {}
        record |= {"due": due, "generate": not_chosen}
        return record | ({"links_too_deep": True} if self._too_deep(row) else {})

    def _early(self, row: dict[str, Any], now: int) -> str:
        """Returns a sentence if a row is due before its time; else an empty text."""
        times = {name: row[name] for name in ("fetch_time", "fixed_interval", "retries")}
        beyond = pl.col("fetch_time") > horizon(now, self._options)
        if not pl.DataFrame([times]).select(beyond).item():
            return ""
        most = in_words(self._options.max_fetch_interval)
        return f"; that is later than max_fetch_interval, {most}, allows, so it is due now"

    def _robots(self, key: str, host: dict[str, Any] | None) -> dict[str, Any]:
        """Returns what robots.txt says: the table's copy, or one that is requested now."""
        url = from_key(key)
        requested_host = self._requested.host_of(url) if self._requested else None
        verdict = robots_of(url, requested_host or host, self._options)
        error = requested_host["error"] if requested_host else None
        return verdict | {"requested": requested_host is not None, "error": error}

    def _decision(self, rules: UrlFilter, verdict: Verdict, url: str) -> dict[str, Any]:
        """Returns the decision of a filter, and the line of its rule."""
        return {
            "by": rules.place(verdict.line), "rule": rules.rule(verdict.line, url),
            "accepted": verdict.accept, "slow": verdict.slow,
            "file": self.rules.sources.get(rules.name),
            **({"failed": True} if verdict.slow and rules.slow_reason != FILTER_TIMEOUT else {}),
        }  # fmt: skip

    def _without_exemptions(self, url: str) -> str | None:
        """Returns the reason why a URL is dropped without the rules of exemptions, or None."""
        if self.rules.exemptions is None:
            return None
        names = tuple(name for name in self._options.url_filters if name != EXEMPTION)
        return self._drop_reason(url, dataclasses.replace(self._options, url_filters=names))

    def _normalize_url(self, url: str) -> dict[str, Any]:
        record: dict[str, Any] = dict.fromkeys(("normalized", "key", "key_bytes"))
        if 0 <= self._options.max_url_length < len(url):
            return record
        chain = self.rules.normalizer(self._options.found_as)
        with contextlib.suppress(BadUrl):  # ``_drop_reason`` has the reason
            record["steps"] = [{"by": by, "url": after} for by, after in chain.trace(url)]
            record["normalized"] = normalized = chain.normalize(url)
            record["key"] = key = to_key(normalized)
            record["key_bytes"] = len(key)
        return record

    def _drop_reason(self, url: str, options: Options) -> str | None:
        """Returns the reason why inject, parse or update drops a URL, or None."""
        url_column = pl.Series([url])
        if options.found_as == "inject":
            judged = self.rules.admit(url_column, "inject")
        else:
            if self._scope_is_unknown():
                options = dataclasses.replace(options, scope="any", skip_internal_links=False)
            schema = {"source": pl.String, "distance": pl.Int32}
            links = pl.DataFrame({"source": [self._source_of(url)], "distance": [None]}, schema)
            if self._needs_no_include():
                links = links.with_columns(distance=pl.lit(0))
            use: Scope = "fetcher" if options.found_as == "fetcher" else "outlink"
            links = links.with_columns(url_column.alias("url"))
            judged = judge(links, use, options, self._table.seeds if self._table else Seeds())
        reason: str | None = judged.get_column("reason").item()
        return reason

    def _source_of(self, url: str) -> str | None:
        """Returns the row key of the page that leads to a URL; None if it may be any page.

        Only local documents may link to a local file.
        """
        local = (urls.parse_url(url) or "").startswith("file:")
        return _LOCAL_PAGE if self._source is None and local else self._source

    def _needs_no_include(self) -> bool:
        """Returns whether the URLs are seeds, or redirects of a seed."""
        if self._options.found_as == "inject":
            return True
        page = self._table.find("state", self._source) if self._table and self._source else None
        return self._options.found_as == "fetcher" and page is not None and page["distance"] == 0

    def _scope_is_unknown(self) -> bool:
        return self._table is None and self._source is None

    def _scope(self, reason: str | None) -> str:
        scope = self._options.scope
        if self._options.found_as == "inject" or scope == "any":
            return "any"
        if self._scope_is_unknown():
            return "not known without a table or --source"
        return f"outside {scope}" if reason == "out_of_scope" else scope

    def _not_added(self, key: str, row: dict[str, Any] | None, table: TableAt) -> str | None:
        """Returns the reason why a URL that the rules accept is not added to the table, or None."""
        options = self._options
        if table.is_purged(key):
            return "purged"
        if row is not None or options.found_as == "inject":
            return None
        page = table.find("state", self._source) if self._source else None
        if page and options.found_as == "outlink" and self._too_deep(page):
            return "too_deep"
        if not options.additions_allowed:
            return "additions_not_allowed"
        return "host_total" if 0 <= options.max_per_host <= table.rows_of_host(key) else None

    def _too_deep(self, row: Mapping[str, Any]) -> bool:
        options, limit = self._options, math.inf
        if "depth" in options.scoring:
            page = {"key": row["key"], "max_depth": row["max_depth"]}
            limit = Depth(options).limits(pl.DataFrame([page])).item()
        depth = 0 if row["distance"] is None else row["distance"] + 1
        return depth >= limit or 0 <= options.depth <= (row["distance"] or 0)


def verdict(record: Mapping[str, Any]) -> str:
    """Returns the conclusion of a record as a short text.

    >>> verdict({"reason": "filtered"}), verdict({"reason": None})
    ('dropped: filtered', 'accepted')
    """
    row, reason = record.get("row"), record["reason"]
    if row is None:
        if reason is not None:
            return f"dropped: {reason}"
        return "accepted, and not in the table yet" if "row" in record else "accepted"
    waits = ", ".join(why["reason"] for why in record["generate"])
    robots, state = record["robots"]["verdict"], "chosen next if its score is enough"
    if waits:
        state = f"not chosen now: {waits}"
    elif robots in ("denied", "deferred", "too_costly"):
        state = f"would be chosen and not fetched: robots_{robots}"
    return f"in the table, {state}" + (f"; as a link dropped: {reason}" if reason else "")


def explained_lines(record: Mapping[str, Any], options: Options) -> list[str]:
    """Returns a record of ``Explainer`` as lines for people; the last one is empty."""
    lines = [f"url: {record['url']}"]
    if record["parsed"] != record["url"]:
        lines.append(f"parsed: {record['parsed'] or 'no URL'}")
    lines += [f"{step['by']}: {step['url']}" for step in record["steps"]]
    lines += [_decision_line("filter", decision) for decision in record["filters"]]
    if record["scope"]:
        lines.append(f"scope: {record['scope']}")
    if "exemption" in record:
        lines.append(_decision_line("exemption", record["exemption"]))
    if record["key"]:
        lines.append(f"key: {record['key']} ({record['key_bytes']} bytes)")
    if "row" in record:
        lines += _table_lines(record)
    elif "robots" in record:
        lines.append(_robots_line(record["robots"]))
    counted, reason = _COUNTED[options.found_as], record["reason"]
    explanation = in_brackets(reason, counted, options, record["url"]) if reason else ""
    return [*lines, f"verdict: {verdict(record)}{explanation}", ""]


def _decision_line(kind: str, decision: Mapping[str, Any]) -> str:
    slow = "fails" if "failed" in decision else "out of time"
    refusal = slow if decision["slow"] else "refuses it"
    word = "takes it" if decision["accepted"] else refusal
    return f"{kind}: {decision['by']} {word}: {decision['rule']}"


def _table_lines(record: Mapping[str, Any]) -> list[str]:
    row, robots = record["row"], record["robots"]
    lines = ["row: none"]
    if row is not None:
        parts = [f"{n} {row[n]}" for n in ("status", "fetch_time", "score", "distance", "retries",
                                           "http_code", "protocol_message") if row[n] is not None]  # fmt: skip
        due = record["due"]
        lines = [f"row: {', '.join(parts)}", f"due: {due['name']}: {due['detail']}"]
        lines += [f"shown as: {row['repr_url']}"] if row["repr_url"] else []
        lines += [f"clock: {record['clock']}"] if "clock" in record else []
        lines += [f"not chosen: {why['reason']}: {why['detail']}" for why in record["generate"]]
    if last := record.get("last_generate"):
        lines.append(f"last generate: {last['time']}: {last['reason']}: {last['detail']}")
    lines += [*_history_lines(record["history"]), *_host_lines(record["host"])]
    if inlinks := record["inlinks"]:
        lines.append(f"anchors: {json.dumps(inlinks['anchors'], ensure_ascii=False)}")
        lines += [f"linked from: {link_line(link)}" for link in inlinks["best"][:_SHOWN]]
    if record.get("links_too_deep"):
        lines.append("its links: dropped: too_deep")
    return [*lines, _robots_line(robots)]


def _robots_line(robots: Mapping[str, Any]) -> str:
    rule = f" by line {robots['line']}: {robots['rule']}" if robots["line"] else ""
    read = f", read {robots['read']}" if robots["read"] else ""
    read += ", requested now" if robots["requested"] else ""
    read += f", {robots['error']}" if robots["error"] else ""
    if robots["odd_delay"]:
        read += f"; {odd_delay_note(robots['odd_delay'])}"
    return f"robots.txt: {robots['verdict']}{rule}{read}"


def _history_lines(versions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for version in versions[:_SHOWN]:
        values = ", ".join(f"{n} {version[n]}" for n in VERSIONED if version.get(n) is not None)
        yield f"history: {version['time']}: {version['job']}: {values or 'no row'}"
    if len(versions) > _SHOWN:
        yield f"history: {format_count(len(versions) - _SHOWN, 'older versions')}: see --format json"


def _host_lines(host: Mapping[str, Any]) -> Iterator[str]:
    if host["settings"]:
        yield f"host settings: {', '.join(f'{n} {value}' for n, value in host['settings'].items())}"
    limits = [f"{name} {host[name]:g}" for name in ("max_count", "delay", "boost")
              if host[name] is not None]  # fmt: skip
    if limits:
        yield f"generate uses for its host: {', '.join(limits)}"
