"""parsechecker: fetches single URLs, parses them, and shows the results; needs no table."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.parsing.documents import DocumentOptions
from ...policy.parsing.parse_results import status_text, success_status
from ...transforms.fetching import (
    FETCHED,
    PAGES_OUTPUT,
    RequestOptions,
    RowsFetching,
    admit,
    fetch_pages,
)
from ...transforms.parsing import PoolOptions, parse_pages, parse_pool
from ...web.base.dataclass import dataclass
from ...web.base.options import option, shared_option
from ...web.engine.engine import Engine
from ...web.engine.tasks import HostRecord, Task
from ...web.rules.url_rules import UrlRules
from ..base.command import DONE, NOTHING_TO_DO, Argument, Invocation
from .checking import URLS, rules_of, say, urls_of
from .left_out import left_out_by_reason
from .reasons import NOT_FETCHED, NOT_PARSED, in_brackets

ARGUMENTS: tuple[Argument, ...] = (URLS,)
# The same number as in Nutch's parsechecker if http.redirect.max is 0.
_HOPS = 3


@dataclass(frozen=True)
class Options(RequestOptions, DocumentOptions):
    """Options of parsechecker. robots.txt is obeyed."""

    GROUP = "checkers"

    parser_memory: int = shared_option(PoolOptions, "parser_memory")
    all_normalizers: bool = option(
        False, "First normalize the URLs with all normalizers, not only with basic.",
        nutch="parsechecker -normalize, indexchecker -normalize",
    )  # fmt: skip
    follow_redirects: bool = option(False, f"Follow redirects, {_HOPS} at most.")
    dump_text: bool = option(False, "Show the text, too.")
    force_as: str = option(
        "", "Content type to parse as, instead of the server's.",
        pattern=r"|[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+",
    )  # fmt: skip


def run(invocation: Invocation) -> int:
    """Prints the result for each URL; returns 1 if one of them was not parsed."""
    return check_pages(invocation, _parse_page, _lines, "parse")


def check_pages(
    invocation: Invocation,
    check: Callable[[Mapping[str, Any], Any], dict[str, Any]],
    lines: Callable[[Mapping[str, Any], Any], list[str]],
    wanted: str,
) -> int:
    """Requests each URL of a command, and prints what a check makes of the answers.

    Args:
        invocation: The command.
        check: Function of an answer and the options; returns fields of the record.
        lines: Function that shows a record to people.
        wanted: A field that the check adds if the URL passes; without it for a URL the code is 1.
    """
    options, code = invocation.options, DONE
    rules = rules_of(options)
    for url in urls_of(invocation.arguments["urls"]):
        record, page = request_page(url, options, rules)
        if page is not None:
            record |= check(page, options)
        code = code if wanted in record else NOTHING_TO_DO
        say(record, lines(record, options), invocation.format)
    return code


def request_page(
    first_url: str,
    options: Options,
    rules: UrlRules,
    known_hosts: dict[str, HostRecord] | None = None,
) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Requests a URL, and follows redirects if that is wanted.

    Args:
        first_url: The URL.
        options: How to request it.
        rules: Its normalizers.
        known_hosts: What earlier requests have found about hosts; gets what these find.

    Returns:
        (``url``, and ``fetch`` or ``error``; the answer, or None if there is none).
    """
    url: str | None = first_url
    if options.all_normalizers:
        url, _, reason = rules.admit(pl.Series([first_url]), "fetcher", filters=False).row(0)
        if url is None:
            return {"url": first_url, "error": {"reason": reason, "message": None}}, None
    record: dict[str, Any] = {"url": first_url, "redirects": []}
    hosts = {} if known_hosts is None else known_hosts
    hops = _HOPS if options.follow_redirects else 0
    while True:
        kind, page = _fetch_page(str(url), options, hosts)
        if kind != PAGES_OUTPUT:
            return record | {"error": {name: page[name] for name in ("reason", "message")}}, None
        target = page["redirect"]
        if target is None or len(record["redirects"]) >= hops:
            break
        record["redirects"].append(page["url"])
        url = target
    shown = ("url", "fetch_status", "protocol_status", "message", "http_code", "content_type", "ip",
             "response_ms", "truncated", "redirect")  # fmt: skip
    record["fetch"] = {name: page[name] for name in shown} | {"bytes": len(page["body"] or b"")}
    return record, page


class _PageFetching(RowsFetching):
    """Fetches a page with what earlier requests have found about hosts: robots.txt and cookies."""

    def __init__(
        self, wanted: pl.DataFrame, options: Options, hosts: dict[str, HostRecord]
    ) -> None:
        super().__init__(wanted, options)
        self.known_hosts = self._hosts_by_name = hosts

    def tasks(self, engine: Engine) -> Iterator[Task]:
        self._engine = engine
        return super().tasks(engine)

    def end(self) -> Iterator[tuple[str, dict[str, Any]]]:
        self._hosts_by_name.update((record.host, record) for record in self._engine.hosts())
        return super().end()


def _fetch_page(
    url: str, options: Options, hosts: dict[str, HostRecord]
) -> tuple[str, Mapping[str, Any]]:
    wanted, dead = admit(pl.DataFrame({"url": [url]}), options.schemes)
    if len(dead):
        return "", dead.row(0, named=True)
    first, *_ = fetch_pages(_PageFetching(wanted, options, hosts))
    return first


def _parse_page(page: Mapping[str, Any], options: Options) -> dict[str, Any]:
    parsed, counts, error = parse_answer(page, options)
    if error:
        return {"error": error}
    document, *parts = parsed.to_dicts()
    shown = _document_record(document)
    shown["dropped"], shown["faults"] = left_out_by_reason(counts)
    shown["status"] = status_text(*success_status(document["refresh"]).values())
    return {"parse": shown | {"parts": [{"url": p["url"], **_document_record(p)} for p in parts]}}


def parse_answer(
    page: Mapping[str, Any], options: Options
) -> tuple[pl.DataFrame, Mapping[str, int], dict[str, Any]]:
    """Parses an answer; returns (PARSED rows, the page first; counts; the error, or nothing)."""
    if page["fetch_status"] != "success":
        moved = str(page["fetch_status"]).startswith("redir_")
        reason = "redirected" if moved else f"http_{page['http_code']}"
        return pl.DataFrame(), {}, {"reason": reason, "message": page["redirect"]}
    row = dict(page) | ({"content_type": options.force_as} if options.force_as else {})
    pool = parse_pool(PoolOptions(1, options.parser_memory))
    parsed, failed, counts = parse_pages(pa.Table.from_pylist([row], FETCHED), options, pool)
    if len(failed):
        letter = failed.row(0, named=True)
        error = {name: letter[name] for name in ("reason", "message")}
        return parsed, counts, error | {"status": letter["parse"]}
    return parsed, counts, {}


def _document_record(document: Mapping[str, Any]) -> dict[str, Any]:
    names = ("title", "text", "language", "charset", "directives", "refresh", "canonical", "links")
    return {name: document[name] for name in names} | {
        "metadata": dict(document["metadata"] or {}),
        "signature": document["signature"].hex(),
        "structured_data": [
            item | {"properties": json.loads(item["properties"])}
            for item in document["structured_data"]
        ],
        "extracted": extracted_records(document),
    }


def extracted_records(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns what the rules of ``--extract`` have taken from a page."""
    return [one | {"fields": json.loads(one["fields"])} for one in document["extracted"]]


def extracted_lines(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns a line for each record that rules have taken."""
    return [
        f"extracted: {one['rules']}.{one['rule']} {one['position']} "
        f"{json.dumps(one['fields'], ensure_ascii=False)}"
        for one in records
    ]


def _lines(record: Mapping[str, Any], options: Options) -> list[str]:
    lines = [f"given: {record['url']}"]
    lines += [f"redirect from: {url}" for url in record.get("redirects", ())]
    fetch = record.get("fetch")
    if fetch:
        seen = {None, record["url"]}
        lines += [f"{name}: {value}" for name, value in fetch.items() if value not in seen]
    if "error" in record:
        return [*lines, *error_lines(record, options), ""]
    parse = record["parse"]
    for name in ("status", "title", "language", "charset", "signature", "refresh", "canonical"):
        if parse[name]:
            lines.append(f"{name}: {parse[name]}")
    if parse["directives"]:
        lines.append(f"robots: {', '.join(parse['directives'])}")
    texts = {name: " / ".join(value.splitlines()) for name, value in parse["metadata"].items()}
    lines += [f"meta {name}: {text}" for name, text in texts.items()]
    lines += [
        f"item: {item['syntax']} {item['type']}".rstrip() for item in parse["structured_data"]
    ]
    lines += extracted_lines(parse["extracted"])
    lines.append(f"outlinks: {len(parse['links'])}")
    lines += [f"  {link['url']} {link['anchor']}".rstrip() for link in parse["links"]]
    if parse["dropped"]:
        counts = (f"{reason} {number}" for reason, number in sorted(parse["dropped"].items()))
        lines.append(f"dropped: {', '.join(counts)}")
    lines += [f"fault: {reason} {number}" for reason, number in sorted(parse["faults"].items())]
    lines += [f"part: {part['url']} {part['title']}".rstrip() for part in parse["parts"]]
    lines.append(f"text: {len(parse['text'])} characters")
    if options.dump_text:
        lines += parse["text"].split("\n")
    return [*lines, ""]


def error_lines(record: Mapping[str, Any], options: Options) -> list[str]:
    """Returns why a URL was not fetched or parsed, as lines."""
    lines, error = [], record["error"]
    if error.get("status"):
        lines.append(f"status: {error['status']}")
    message, reason = error["message"], error["reason"]
    counted = NOT_PARSED if "status" in error else NOT_FETCHED
    explanation = in_brackets(reason, counted, options, record["url"])
    return [*lines, f"not parsed: {reason}{f' ({message})' if message else ''}{explanation}"]
