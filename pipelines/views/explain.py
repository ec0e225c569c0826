"""explain: what would happen to URLs, step by step, and why. Nothing is changed, no server is asked."""

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import polars as pl

from ...policy.scope import Seeds, TargetOptions, judge
from ...policy.selection import GenerateOptions
from ...policy.status import UpdateOptions
from ...policy.traps import DepthOptions
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.filters.filter_chain import place
from ...web.filters.verdicts import UrlFilter, Verdict
from ...web.rules.chains import EXEMPT
from ...web.rules.url_rules import UrlRules
from ...web.urls import row_keys as urls
from ...web.urls.row_keys import BadUrl, from_key, to_key
from ..checkers.checking import URLS, say, urls_of
from ..command_line.command import DONE, TABLE, Argument, Invocation
from ..command_line.url_rules import rules_of
from ..launch.job import warn_of_clocks
from .explain_row import Known, RobotsView, not_generated, robots_of, wrong_clock
from .row_records import record_of

NO_TABLE = "-"
ARGUMENTS = (
    Argument("table", f"{TABLE.help[:-1]}; {NO_TABLE} for none."),
    URLS,
)
_SCOPES = ("inject", "outlink", "fetcher")


@dataclasses.dataclass(frozen=True)
class Options(TargetOptions, DepthOptions, UpdateOptions, GenerateOptions, RobotsView):
    """Options of explain: those that the jobs would be given, and where the URLs come from."""

    found_as: str = option(
        "outlink", "Where the URLs come from: seeds, links, or redirects.", choices=_SCOPES,
        group="checkers",
    )  # fmt: skip
    source: str = option("", "URL of the page that leads to them, if any.", group="checkers")


def run(invocation: Invocation) -> int:
    """Prints what becomes of each URL."""
    options: Options = invocation.options
    rules = rules_of(options)
    print(f"rule files: {', '.join(rules.sources.values()) or 'none'}", file=sys.stderr)
    source = _source(options, rules)
    known = None
    if invocation.arguments["table"] != NO_TABLE:
        known = Known(invocation.arguments["table"])
        warn_of_clocks(invocation.arguments["table"], options)
    for url in urls_of(invocation.arguments["urls"]):
        record = explain(url, rules, options, source, known)
        say(record, _lines(record), invocation.format)
    return DONE


def _source(options: Options, rules: UrlRules) -> str | None:
    if not options.source:
        return None
    _, key, reason = rules.admit(pl.Series([options.source]), "default", filters=False).row(0)
    if key is None:
        raise UsageError(f"--source is no URL that can be crawled ({reason}): {options.source!r}")
    return str(key)


def explain(
    url: str,
    rules: UrlRules,
    options: Options,
    source: str | None = None,
    known: Known | None = None,
) -> dict[str, Any]:
    """Returns what happens to a URL, as a record.

    Args:
        url: The URL as it was found.
        rules: Those of the options.
        options: What the jobs would be told.
        source: Row key of the page that leads to it.
        known: The table, if there is one.

    Returns:
        ``parsed``, ``steps``, ``normalized``, ``key``, ``key_bytes``, ``filters``, ``scope``;
        ``exemption`` of a URL out of the scope, if there are rules of exemptions; ``reason`` why it would not come into a table, or None; of a table ``row`` or None,
        ``clock`` where its times cannot be, ``generate`` (reasons why it is not chosen),
        ``robots``.
    """
    record: dict[str, Any] = {"url": url, "parsed": urls.parse(url), "steps": []}
    record |= _normalized(url, rules, options)
    normalized = record["normalized"]
    record["filters"] = [
        _said(each, said, normalized, rules)
        for each, said in (rules.filters.each(normalized) if normalized else ())
    ]
    reason = _dropped(url, rules, options, source, known)
    strict = _without_exemptions(reason, url, rules, options, source, known)
    record["scope"] = None if normalized is None else _scope(strict, options, source, known)
    if rules.exemptions and strict == "out_of_scope" and normalized:
        said = rules.exemptions.decide(normalized)
        record["exemption"] = _said(rules.exemptions, said, normalized, rules)
    key = record["key"]
    row = known.row(key) if known and key else None
    if known and key and reason is None:
        reason = _not_let_in(key, row, options, source, known)
    record["reason"] = reason
    if known is None or key is None:
        return record
    record["row"] = None if row is None else record_of(row)
    if row is not None:
        if clock := wrong_clock(row, known, options):
            record["clock"] = clock
        record["generate"] = [why._asdict() for why in not_generated(row, known, options)]
        if 0 <= options.max_depth <= (row["distance"] or 0):
            record["links_too_deep"] = True
    record["robots"] = robots_of(from_key(key), known.host(key), options)
    return record


def _said(by: UrlFilter, said: Verdict, url: str, rules: UrlRules) -> dict[str, Any]:
    """Returns what a filter says of a URL, and where that stands."""
    return {
        "by": place(by.name, said.line), "rule": by.rule(said.line, url), "accepted": said.accept,
        "slow": said.slow, "file": rules.sources.get(by.name),
    }  # fmt: skip


def _without_exemptions(
    reason: str | None,
    url: str,
    rules: UrlRules,
    options: Options,
    source: str | None,
    known: Known | None,
) -> str | None:
    """Returns why a URL would be dropped, if no link could be exempt from the scope."""
    if reason is not None or rules.exemptions is None:
        return reason
    names = tuple(name for name in options.url_filters if name != EXEMPT)
    strict = dataclasses.replace(options, url_filters=names)
    return _dropped(url, UrlRules(strict), strict, source, known)


def _normalized(url: str, rules: UrlRules, options: Options) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(("normalized", "key", "key_bytes"))
    if 0 <= options.max_url_length < len(url):
        return found
    chain = rules.normalizer(options.found_as)
    try:
        found["steps"] = [{"by": by, "url": after} for by, after in chain.trace(url)]
        found["normalized"] = normalized = chain.normalize(url)
        found["key"] = key = to_key(normalized)
        found["key_bytes"] = len(key)
    except BadUrl:
        return found  # ``admit`` has the reason
    return found


def _dropped(
    url: str, rules: UrlRules, options: Options, source: str | None, known: Known | None
) -> str | None:
    """Returns why inject, parse or update drops a URL when it meets it."""
    found = pl.Series([url])
    if options.found_as == "inject":
        reason: str | None = rules.admit(found, "inject").get_column("reason").item()
        return reason
    seeds = known.seeds if known else Seeds()
    if not known and source is None:  # nobody knows what the scope is
        options = dataclasses.replace(options, scope="any", ignore_internal_links=False)
    links = pl.DataFrame({"source": [source]}, schema={"source": pl.String})
    use = "fetcher" if options.found_as == "fetcher" else "outlink"
    judged = judge(links, found, use, options, seeds)  # type: ignore[arg-type]
    answer: str | None = judged.get_column("reason").item()
    return answer


def _scope(reason: str | None, options: Options, source: str | None, known: Known | None) -> str:
    if options.found_as == "inject" or options.scope == "any":
        return "any"
    if not known and source is None:
        return "not known without a table or --source"
    return f"outside {options.scope}" if reason == "out_of_scope" else options.scope


def _not_let_in(
    key: str, row: dict[str, Any] | None, options: Options, source: str | None, known: Known
) -> str | None:
    """Returns why a URL that is good does not come into the table all the same."""
    if known.blocklist.blocks(pl.Series([key])).item():
        return "purged"
    if row is not None or options.found_as == "inject":
        return None
    page = known.row(source) if source else None
    if page and options.found_as == "outlink" and 0 <= options.max_depth <= (page["distance"] or 0):
        return "too_deep"
    if not options.additions_allowed:
        return "additions_not_allowed"
    if 0 <= options.max_per_host <= known.rows_of_host(key):
        return "host_total"
    return None


def verdict(record: Mapping[str, Any]) -> str:
    """Returns in a few words what a record comes to.

    >>> verdict({"reason": "filtered"}), verdict({"reason": None})
    ('dropped: filtered', 'accepted')
    """
    row, reason = record.get("row"), record["reason"]
    if row is None:
        if reason is not None:
            return f"dropped: {reason}"
        return "accepted, and not in the table yet" if "row" in record else "accepted"
    waits = ", ".join(why["reason"] for why in record["generate"])
    robots = record["robots"]["verdict"]
    if waits:
        said = f"in the table, not chosen now: {waits}"
    elif robots in ("denied", "deferred", "too_costly"):
        said = f"in the table, would be chosen and not fetched: robots_{robots}"
    else:
        said = "in the table, chosen next if its score is enough"
    return f"{said}; as a link dropped: {reason}" if reason else said


def _lines(record: Mapping[str, Any]) -> list[str]:
    lines = [f"url: {record['url']}"]
    if record["parsed"] != record["url"]:
        lines.append(f"parsed: {record['parsed'] or 'no URL'}")
    lines += [f"{step['by']}: {step['url']}" for step in record["steps"]]
    lines += [_verdict_line("filter", said) for said in record["filters"]]
    if record["scope"]:
        lines.append(f"scope: {record['scope']}")
    if "exemption" in record:
        lines.append(_verdict_line("exemption", record["exemption"]))
    if record["key"]:
        lines.append(f"key: {record['key']} ({record['key_bytes']} bytes)")
    if "row" in record:
        lines += _table_lines(record)
    return [*lines, f"verdict: {verdict(record)}", ""]


def _verdict_line(kind: str, said: Mapping[str, Any]) -> str:
    word = "takes it" if said["accepted"] else "out of time" if said["slow"] else "refuses it"
    return f"{kind}: {said['by']} {word}: {said['rule']}"


def _table_lines(record: Mapping[str, Any]) -> list[str]:
    row, robots = record["row"], record["robots"]
    lines = ["row: none"]
    if row is not None:
        parts = [f"{n} {row[n]}" for n in ("status", "fetch_time", "score", "distance", "retries",
                                           "http_code", "protocol_message") if row[n] is not None]  # fmt: skip
        lines = [f"row: {', '.join(parts)}"]
        lines += [f"clock: {record['clock']}"] if "clock" in record else []
        lines += [f"not chosen: {why['reason']}: {why['said']}" for why in record["generate"]]
    if record.get("links_too_deep"):
        lines.append("its links: dropped: too_deep")
    rule = f" by line {robots['line']}: {robots['rule']}" if robots["line"] else ""
    read = f", read {robots['read']}" if robots["read"] else ""
    return [*lines, f"robots.txt: {robots['verdict']}{rule}{read}"]
