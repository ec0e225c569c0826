"""Reports how a crawl ended: its exit code, the reason in one line, and the pages left out."""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ...io.snapshots.manifest import Manifest
from ...io.storage.least_free import DISK_LOW, DiskLow
from ...policy.components.reasons import PluginFault, drops_of_tasks, plugin_faults
from ...policy.components.vocabulary import iso
from ...policy.generating.selection import DUE, LEFT_OUT
from ...policy.indexing.writer_documents import refusals
from ...web.base.dataclass import dataclass
from ...web.base.wording import format_count
from ...web.plugins.plugin_files import plugin_label
from ...web.plugins.plugin_options import plugin_names
from ..base.command import DONE, NOTHING_FETCHED, NOTHING_TO_DO
from ..checkers.reasons import (
    NOT_CHOSEN,
    NOT_FETCHED,
    NOT_FOLLOWED,
    NOT_INJECTED,
    explain_reasons,
    in_brackets,
)
from .next_due import NextUrl

DISK_IS_LOW = DiskLow.exit_code
_FETCHED = ("protocol/success", "protocol/notmodified")
REDIRECTED = ("moved", "temp_moved")
# What a site answers that wants a cookie.
_DENIED = {"http_401", "http_403"}
# Why pages were not fetched though all went well: the site's last word.
_FINAL = {"http_404", "http_410", "robots_denied", *REDIRECTED}
# Options that cut off parts of pages: count, what it counts, option, what was done.
_CUTS = (
    ("dropped/max_outlinks", "links", "max_outlinks",
     "left out of pages with more than {limit:,} links"),
    ("truncated/content_limit", "pages", "content_limit", "cut at {limit:,} bytes{parsed}"),
    ("truncated/document_limit", "documents", "document_limit", "cut at {limit:,} bytes{parsed}"),
)  # fmt: skip


@dataclass(frozen=True)
class Work:
    """What the jobs of a crawl did.

    Attributes:
        rounds: Number of rounds.
        seeds: Number of seeds that are in the table.
        refused: Seeds that are not, by reason.
        tried: Whether a fetch had URLs.
        requests: Page requests that were sent.
        fetched: Pages that were fetched, and those that a server reported as not modified.
        failed: URLs without a page, by reason; redirects, too.
        stayed_due: URLs that a fetch left out, by reason.
        targets: Targets of redirects that are not in the table, by reason.
        unchosen: Counts of the last generate, if it chose nothing of what was due.
        index: Counts of the runs of ``index``.
        others: Pages that other runs fetched in this time, counted as ``fetched``.
    """

    rounds: int = 0
    seeds: int = 0
    refused: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tried: bool = False
    requests: int = 0
    fetched: int = 0
    failed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    stayed_due: Mapping[str, int] = dataclasses.field(default_factory=dict)
    targets: Mapping[str, int] = dataclasses.field(default_factory=dict)
    unchosen: Mapping[str, int] = dataclasses.field(default_factory=dict)
    index: Mapping[str, int] = dataclasses.field(default_factory=dict)
    others: int = 0


class CrawlStop(NamedTuple):
    """What stopped a crawl.

    Attributes:
        file: Name of the file that stops it; None if there is none.
        time_up: Whether its time was over.
        disk_low: Why the disk of the table has too little room; None if it has enough.
    """

    file: str | None = None
    time_up: bool = False
    disk_low: str | None = None


@dataclass(frozen=True)
class CrawlEnding:
    """How a crawl ended.

    Attributes:
        code: Exit code of the command.
        reason: A word for scripts: ``done``, ``stopped``, ``time_limit``, ``nothing_due``,
            ``none_chosen``, ``nothing_fetched``, ``seeds_refused``, ``no_rounds`` or ``disk_low``.
        text: One line for people; empty if there is nothing more to say.
    """

    code: int
    reason: str
    text: str = ""


def work_of(manifests: Sequence[Manifest], others: Sequence[Manifest] = ()) -> Work:
    """Returns what the jobs of a crawl did, from the manifests of their snapshots.

    Args:
        manifests: The snapshots of the crawl.
        others: The snapshots that others made meanwhile.
    """
    counts = {job: _sum(manifests, job) for job in ("inject", "fetch", "update", "index")}
    fetch = counts["fetch"]
    redirects = {name: fetch[f"protocol/{name}"] for name in REDIRECTED}
    return Work(
        rounds=sum(manifest.job == "dedup" for manifest in manifests),
        seeds=counts["inject"]["injected"],
        refused=by_reason(counts["inject"], "dropped/"),
        tried=any(manifest.job == "fetch" for manifest in manifests),
        requests=fetch["requests"],
        fetched=_sum_fetched(fetch),
        failed=by_reason(fetch, "not_fetched/") | {n: c for n, c in redirects.items() if c},
        stayed_due={n: c for n, c in by_reason(fetch, "dropped/").items() if n in drops_of_tasks()},
        targets=by_reason(counts["update"], "dropped/redirect_"),
        unchosen=_unchosen(manifests),
        index=counts["index"],
        others=_sum_fetched(_sum(others, "fetch")),
    )


def had_final_answers(work: Work) -> bool:
    """Returns whether each URL that was tried has no page, is denied by robots.txt or redirects.

    >>> had_final_answers(Work(failed={"http_404": 1, "moved": 2}))
    True
    >>> had_final_answers(Work(failed={"http_404": 1, "dns": 1})), had_final_answers(Work())
    (False, False)
    """
    return bool(work.failed) and work.failed.keys() <= _FINAL and not work.stayed_due


def _sum_fetched(counts: Mapping[str, int]) -> int:
    return sum(counts.get(name, 0) for name in _FETCHED)


def _unchosen(manifests: Sequence[Manifest]) -> Mapping[str, int]:
    """Returns the counts of the last generate, if URLs were due and it chose none."""
    last = next((manifest for manifest in reversed(manifests) if manifest.job == "generate"), None)
    if last is None or last.batch in last.batches or not last.counts.get(DUE):
        return {}
    return last.counts


def _sum(manifests: Sequence[Manifest], job: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for manifest in manifests:
        if manifest.job == job:
            total.update(manifest.counts)
    return total


def by_reason(counts: Mapping[str, int], prefix: str) -> dict[str, int]:
    """Returns the counts whose names have a prefix, without it, the most frequent first.

    >>> by_reason({"dropped/filtered": 1, "pages": 9, "dropped/nofollow": 2}, "dropped/")
    {'nofollow': 2, 'filtered': 1}
    """
    matching = {n.removeprefix(prefix): c for n, c in counts.items() if n.startswith(prefix)}
    return dict(sorted(matching.items(), key=lambda item: -item[1]))


def ending_of(
    work: Work, options: Any, end: CrawlStop, waiting: NextUrl | None, examples: Mapping[str, str]
) -> CrawlEnding:
    """Returns how a crawl ended.

    Args:
        work: What its jobs did.
        options: Its options.
        end: What stopped it.
        waiting: The URL that is due next, or None.
        examples: A URL by reason.
    """
    if end.file is not None:
        return CrawlEnding(DONE, "stopped", f"stopped by {end.file}: remove it to go on")
    has_more = waiting is not None and not waiting.add_days
    if end.disk_low is not None and (has_more or work.stayed_due.get(DISK_LOW)):
        text = f"{end.disk_low}; what was fetched is kept, and the rest stays due"
        return CrawlEnding(DISK_IS_LOW, DISK_LOW, text)
    if work.fetched or (work.rounds and not work.tried):  # or an open batch was finished
        if end.time_up and waiting is not None:
            text = (
                f"--time_limit, {options.time_limit:g} s, is over: what was fetched is kept, and "
            )
            return CrawlEnding(DONE, "time_limit", f"{text}the same command goes on")
        if work.unchosen:
            return CrawlEnding(DONE, "done", none_chosen(work.unchosen, _due_later(waiting)))
        return CrawlEnding(DONE, "done", "" if work.fetched else _by_others(work))
    if work.tried:
        return CrawlEnding(
            NOTHING_FETCHED, "nothing_fetched", _why(work, options, waiting, examples)
        )
    if work.refused and not work.seeds:
        why = explain_reasons(work.refused, NOT_INJECTED, examples, options)
        return CrawlEnding(NOTHING_FETCHED, "seeds_refused", f"every seed was refused: {why}")
    if getattr(options, "rounds", 1) == 0:
        return CrawlEnding(NOTHING_TO_DO, "no_rounds", "no page was fetched: --rounds is 0")
    if work.unchosen:
        reason, text = "none_chosen", none_chosen(work.unchosen, _due_later(waiting))
    else:
        reason, text = "nothing_due", nothing_due(waiting)
    parts = [text, _by_others(work)]
    return CrawlEnding(NOTHING_TO_DO, reason, "; ".join(filter(None, parts)))


def _by_others(work: Work) -> str:
    """Returns that others have done the work meanwhile; empty if they have not."""
    if not work.others:
        return ""
    return f"another run has fetched {format_count(work.others, 'pages')} meanwhile"


def _due_later(waiting: NextUrl | None) -> NextUrl | None:
    """Returns the URL that is due next, if it is not due yet."""
    return waiting if waiting is not None and waiting.add_days else None


def _why(work: Work, options: Any, waiting: NextUrl | None, examples: Mapping[str, str]) -> str:
    """Returns why no page was fetched."""
    reasons = Counter(work.failed) + Counter(work.stayed_due)
    if "crawl_delay" in examples and "robots_denied" not in examples:
        reasons["crawl_delay"] = reasons.pop("robots_denied", 0)
    advice = _advice_on_redirects(reasons, work.targets, waiting)
    why = explain_reasons(reasons, NOT_FETCHED, examples, options, advice)
    parts = [f"no page was fetched: {why}"]
    if work.targets:
        targets = explain_reasons(work.targets, NOT_FOLLOWED, {}, options)
        parts.append(f"targets that are left out: {targets}")
    same = waiting is not None and set(examples.values()) == {waiting.url}
    return "; ".join([*parts, *_retry_hints(waiting, "it" if same else "")])


def _advice_on_redirects(
    reasons: Mapping[str, int], targets: Mapping[str, int], waiting: NextUrl | None
) -> dict[str, str]:
    """Returns what became of the targets of redirects, by reason; nothing if they are due.

    Args:
        reasons: URLs without a page, by reason.
        targets: Targets that are not in the table, by reason.
        waiting: The URL that is due next, or None.
    """
    if sum(targets.values()) >= sum(reasons.get(name, 0) for name in REDIRECTED):
        return dict.fromkeys(REDIRECTED, "")
    if waiting is not None and not waiting.add_days:
        return {}
    others = {name for name, number in reasons.items() if number} - {*REDIRECTED}
    redirects = others <= _DENIED
    fate = "its target redirects, too; {cookies}" if redirects else "its target has no page, either"
    return dict.fromkeys(REDIRECTED, fate)


def nothing_due(waiting: NextUrl | None) -> str:
    """Returns why there was no round."""
    if waiting is None:
        return "the table has no URL: give seeds"
    held = [why for why in waiting.reasons if why[0] != "not_due"]
    if held:
        reason, condition = held[0]
        return f"no URL can be fetched now: {waiting.url}: {reason}: {condition}"
    return "; ".join(["nothing is due", *_retry_hints(waiting)])


def none_chosen(counts: Mapping[str, int], waiting: NextUrl | None) -> str:
    """Returns why generate has chosen none of the URLs that are due.

    Args:
        counts: The counts of its snapshot.
        waiting: The URL that is due next, of those that are not due now.

    >>> none_chosen({"due": 3, "left_out/expr": 1, "left_out/in_batch": 2}, None)
    '3 URLs are due, and none was chosen: 2 in_batch (an open batch has it; another crawl may be at \
work on it, or else the next crawl finishes it), 1 expr (--expr is not true of it)'
    """
    due = format_count(counts[DUE], "URLs")
    why = ", ".join(
        f"{number:,} {name}{in_brackets(name, NOT_CHOSEN, None)}"
        for name, number in by_reason(counts, LEFT_OUT).items()
    )
    verb = "is" if counts[DUE] == 1 else "are"
    return "; ".join([f"{due} {verb} due, and none was chosen: {why}", *_retry_hints(waiting)])


def _retry_hints(waiting: NextUrl | None, name: str = "") -> list[str]:
    """Returns when the next URL is due, and how to fetch it earlier; nothing if one is due now."""
    if waiting is None or not waiting.add_days:
        return []
    when, days = iso(waiting.time), waiting.add_days
    failed = f" (its last try failed: {waiting.failure})" if waiting.failure else ""
    name = name or f"the next URL, {waiting.url}{failed},"
    return [f"{name} is due at {when}: --add_days {days} fetches it now"]


def crawl_warnings(
    work: Work,
    counts: Mapping[str, int],
    options: Any,
    odd_delay: tuple[str, str] = ("", ""),
    fault_pages: Mapping[str, str] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Returns what a crawl has left out because of limits, and what it could not read or index.

    Each has its count, its reason, and a line for people.

    Args:
        work: What its jobs did.
        counts: Counts of all its jobs.
        options: Its options.
        odd_delay: An origin whose crawl delay is no time, and its value.
        fault_pages: A page for which a plug-in failed, by the reason that is counted.
    """
    warnings = [
        _warning(name, counts[name], things, options, option, what)
        for name, things, option, what in _CUTS
        if counts.get(name)
    ]
    for reason, number in work.stayed_due.items():
        why = in_brackets(reason, NOT_FETCHED, options)
        text = f"{format_count(number, 'URLs')} stayed due: {reason}{why}"
        warnings.append({"count": number, "reason": f"dropped/{reason}", "message": text})
    if number := counts.get("odd_crawl_delay", 0):
        origin, value = odd_delay
        such = f": {value[:100]!r} in {origin}/robots.txt" if origin else ""
        verb = "has" if number == 1 else "have"
        text = f"{format_count(number, 'hosts')} {verb} a crawl delay that is no time, so it is not obeyed"
        warnings.append({"count": number, "reason": "odd_crawl_delay", "message": f"{text}{such}"})
    warnings += [
        {
            "count": fault.number,
            "reason": f"{fault.kind}_{fault.name}",
            "message": _fault_line(fault, options, fault_pages),
        }
        for fault in plugin_faults(counts)
    ]
    warnings += [
        {"count": refusal.number, "reason": "refused", "message": refusal.line}
        for refusal in refusals(work.index)
    ]
    return warnings


def _fault_line(fault: PluginFault, options: Any, fault_pages: Mapping[str, str]) -> str:
    typed_names = (name for name in plugin_names(options) if plugin_label(name) == fault.name)
    name, url = next(typed_names, fault.name), fault_pages.get(fault.reason, "")
    words = ("nutbeam", "plugin", "try", fault.kind, name, url or "URL")
    return (
        f"the plug-in {fault.name} ({fault.kind.replace('_', ' ')}) failed "
        f"{format_count(fault.number, 'times')}, counted as {fault.reason}: {shlex.join(words)} "
        "shows why" + "; the log of the job names a URL" * (not url)
    )


def _warning(
    reason: str, number: int, things: str, options: Any, option: str, what: str
) -> dict[str, Any]:
    limit = getattr(options, option)
    if option == "document_limit":
        limit = max(limit, options.content_limit)
    parsed = ", and not parsed" if options.skip_truncated else ""
    verb = "was" if number == 1 else "were"
    text = f"{format_count(number, things)} {verb} {what.format(limit=limit, parsed=parsed)}"
    return {"count": number, "reason": reason, "option": f"--{option}",
            "message": f"{text} (--{option})"}  # fmt: skip


def unfetched_of(number: int, work: Work, options: Any, waiting: NextUrl | None) -> str:
    """Returns a sentence about the work that is left for a later crawl; empty if nothing is due now.

    Args:
        number: Number of URLs that were never fetched.
        work: What the jobs of this crawl did.
        options: Its options.
        waiting: The URL that is due next.
    """
    if waiting is None or waiting.reasons or not work.rounds:
        return ""
    what = f"{format_count(number, 'URLs')} {'is' if number == 1 else 'are'} not fetched yet"
    reached = 0 <= getattr(options, "rounds", -1) <= work.rounds
    limit = f" after --rounds {options.rounds}" if reached else ""
    return f"{what if number else 'URLs are due'}{limit}: the same command goes on"
