"""plugin: lists the plug-ins that are installed, and runs one of them alone."""

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from ...io.indexing.writer_kinds import INDEX_WRITERS
from ...transforms.parse_pages import PoolOptions
from ...transforms.wiring.plugin_groups import PLUGIN_GROUPS
from ...web.base.agent import require_agent
from ...web.base.errors import UsageError
from ...web.base.options import shared_option
from ...web.base.wording import quote_value
from ...web.clients.http_client import Client
from ...web.clients.protocol_plugins import PluginClient
from ...web.content.content_type import sniff, type_of_name
from ...web.engine.pace import FetchOptions
from ...web.exchange.http_options import HttpOptions
from ...web.pages.page import Source
from ...web.pages.parse_options import ParseOptions
from ...web.parsers.dispatch import parsed_types
from ...web.plugins.plugin_files import read_plugin_files
from ...web.plugins.plugins import PluginGroup, installed_plugins, load_plugin
from ...web.rules.url_plugins import PluginFilter, PluginNormalizer
from ...web.rules.url_rules import UrlOptions, UrlRules
from ...web.urls.schemes import scheme_of
from ..base.command import DONE, NOTHING_TO_DO, Argument, Invocation, configuration, is_page
from .checking import say, say_columns, urls_of
from .page_trials import Trial, try_on_page
from .parsechecker import Options as ParseCheckOptions
from .parsechecker import request_page
from .rule_checkers import NormalizerCheckOptions
from .time_limit import limited

ARGUMENTS = (
    Argument("action", "try, to run a plug-in; without it, all plug-ins are listed.", nargs="?"),
    Argument("kind", "Its kind, such as url_filter; the list shows the kinds.", nargs="?"),
    Argument("plugin", "Its name, or PATH.py:NAME for one in a file.", nargs="?"),
    Argument("target", "A URL, or a file: a page, or for URL filters and normalizers a list of URLs.",
             nargs="?"),
)  # fmt: skip
_SHOWN_TEXT = 300
_ANOTHER_URL = "http://localhost/"
_CALLS, _QUICK_S = 3, 0.5
# What tries the plug-ins that need rows of a table, or documents.
_OTHERS = {
    "schedule": "nutbeam updatedb TABLE --schedule {name} on a copy of a table",
    "scoring": "nutbeam updatedb TABLE --scoring {name} on a copy of a table",
    "index_filter": "nutbeam indexchecker URL --index_filters basic,{name}",
    "index_writer": "nutbeam indexchecker URL --do_index --writer {name}",
}


@dataclasses.dataclass(frozen=True)
class Options(FetchOptions, HttpOptions, ParseOptions):
    """Options of plugin: those of requests, and of parsers."""

    GROUP = "checkers"

    url_scope: str = shared_option(NormalizerCheckOptions, "url_scope")
    force_as: str = shared_option(ParseCheckOptions, "force_as")
    follow_redirects: bool = shared_option(ParseCheckOptions, "follow_redirects")
    parser_memory: int = shared_option(PoolOptions, "parser_memory")
    all_normalizers: bool = shared_option(ParseCheckOptions, "all_normalizers")


def run(invocation: Invocation) -> int:
    """Lists the plug-ins, or runs one; returns 1 if it fails."""
    action = invocation.arguments["action"]
    if action is None:
        return _list_plugins(invocation)
    words = [invocation.arguments[name] for name in ("kind", "plugin", "target")]
    if action != "try" or None in words:
        java = "" if action == "try" else "nutbeam runs no Java class: "
        raise UsageError(
            f"{java}expected nutbeam plugin, or nutbeam plugin try KIND NAME URL|FILE, got "
            f"{quote_value(' '.join(filter(None, [action, *words])))}"
        )
    kind, name, target = words
    group = _group_of(kind)
    if kind in _OTHERS:
        raise UsageError(f"a plug-in of kind {kind} is tried by: {_OTHERS[kind].format(name=name)}")
    if name in group.built_in:
        raise UsageError(
            f"{name!r} is built in, and no plug-in: filterchecker, normalizerchecker and "
            "parsechecker try such ones"
        )
    read_plugin_files([name])
    code = DONE
    for trial in _TRIALS[kind](group, name, target, invocation.options):
        code = NOTHING_TO_DO if trial.fault else code
        timing = {"fault": trial.fault or None, "ms": round(trial.seconds * 1000, 3)}
        lines = [*trial.lines, *([f"fault: {trial.fault}"] if trial.fault else [])]
        lines.append(f"time: {trial.seconds * 1000:.3f} ms")
        say({"kind": kind, "plugin": name} | trial.record | timing, lines, invocation.format)
    return code


def _group_of(kind: str) -> PluginGroup:
    groups = {_kind_of(group): group for group in (*PLUGIN_GROUPS, INDEX_WRITERS)}
    if kind not in groups:
        raise UsageError(f"there is no kind {kind!r} of plug-ins: there are {', '.join(groups)}")
    return groups[kind]


def _kind_of(group: PluginGroup) -> str:
    return group.kind.replace(" ", "_")


def _list_plugins(invocation: Invocation) -> int:
    """Prints a line for each plug-in: kind, name, package, version, and its object."""
    own = version("nutbeam")
    for group in (*PLUGIN_GROUPS, INDEX_WRITERS):
        kind = _kind_of(group)
        built_in = group.built_in or (parsed_types() if kind == "parser" else ())
        rows = [(name, "nutbeam", own, "built in") for name in built_in]
        for name, point in installed_plugins(group).items():
            package, number = (point.dist.name, point.dist.version) if point.dist else ("?", "?")
            unused = " (not used: nutbeam has one of this name)" * (name in group.built_in)
            rows.append((name, package, number, point.value + unused))
        for name, package, number, place in rows:
            values = {"name": name, "package": package, "version": number, "object": place}
            say_columns({"kind": kind} | values, [kind, *values.values()], invocation.format)
    return DONE


def _timed(call: Callable[[], Any], limit: float) -> tuple[Any, float]:
    """Returns the result of a call and its time; a quick one is repeated: the first takes longer."""
    times: list[float] = []
    while not times or (len(times) < _CALLS and sum(times) < _QUICK_S):
        start = time.perf_counter()
        with limited(limit):
            result = call()
        times.append(time.perf_counter() - start)
    return result, min(times)


def _try_url_filter(
    group: PluginGroup, name: str, target: str, options: Options
) -> Iterator[Trial]:
    url_filter = PluginFilter(name, load_plugin(group, name))
    urls, faults = list(urls_of([target])), 0
    for url in urls:
        decide = functools.partial(url_filter.decide, url)
        verdict, seconds = _timed(decide, options.parser_timeout)
        with limited(options.parser_timeout):
            fault = url_filter.rule(0, url) if verdict.slow else ""
        word = url_filter.rule(verdict.line) if verdict.line else ""
        shown = f"{'+' if verdict.accept else '-'}{url}" + (f"\t{word}" if word else "")
        record = {"url": url, "accepted": None if fault else verdict.accept, "reason": word or None}
        faults += bool(fault)
        yield Trial(record, [f"!{url}" if fault else shown], fault, seconds)
    if not faults:
        yield from _try_at_once(url_filter, urls, options)


def _try_at_once(
    step: PluginFilter | PluginNormalizer, urls: list[str], options: Options
) -> Iterator[Trial]:
    """Yields the fault that a plug-in has only with several URLs in a column, as in a crawl."""
    column = pl.Series([*urls, _ANOTHER_URL]).unique(maintain_order=True)
    start = time.perf_counter()
    with limited(options.parser_timeout):
        fault = step.fault_at_once(column)
    if fault:
        at_once = f"with {len(column)} URLs at once: {fault}"
        yield Trial({"url": None}, [], at_once, time.perf_counter() - start)


def _try_url_normalizer(
    group: PluginGroup, name: str, target: str, options: Options
) -> Iterator[Trial]:
    normalizer = PluginNormalizer(name, load_plugin(group, name), options.url_scope)
    urls, faults = list(urls_of([target])), 0
    for url in urls:
        fault = ""
        normalize = functools.partial(normalizer.apply_column, pl.Series([url]))
        column, seconds = _timed(normalize, options.parser_timeout)
        normalized = column.urls[0]
        if normalized is None:
            with limited(options.parser_timeout):
                fault = normalizer.fault_of(url)
        elif (again := normalizer.apply_column(pl.Series([normalized])).urls[0]) != normalized:
            fault = (
                f"it must leave its own results as they are, and makes {again!r} of {normalized!r}"
            )
        faults += bool(fault)
        shown = normalized if normalized is not None else "" if fault else "refused"
        yield Trial({"url": url, "normalized": normalized}, [shown], fault, seconds)
    if not faults:
        yield from _try_at_once(normalizer, urls, options)


def _try_protocol(group: PluginGroup, name: str, target: str, options: Options) -> Iterator[Trial]:
    with configuration():
        require_agent(options)
    scheme = scheme_of(target)
    options = dataclasses.replace(options, schemes=(scheme,), protocols=())
    rules = UrlRules(UrlOptions(schemes=options.schemes, no_filter=True, no_normalize=True))
    url, _, reason = rules.admit(pl.Series([target]), "fetcher", filters=False).row(0)
    if url is None:
        raise UsageError(f"{target!r} is no URL that can be fetched: {reason}")
    client = PluginClient(name, load_plugin(group, name), options, Client(options).dialer)
    start = time.perf_counter()
    response = client.get(url, content_limit=options.content_limit)
    seconds = time.perf_counter() - start
    record = {
        "url": url, "status": response.status, "error": response.error, "ip": response.ip or None,
        "headers": response.headers, "bytes": len(response.body), "truncated": response.truncated,
    }  # fmt: skip
    lines = [f"url: {url}", f"status: {response.status}"]
    lines += [f"error: {response.error}"] if response.error else []
    lines += [f"{name}: {value}" for name, value in response.headers]
    lines.append(f"body: {len(response.body):,} bytes")
    lines += response.body[:_SHOWN_TEXT].decode("utf-8", "replace").splitlines()
    yield Trial(record, lines, client.fault, seconds)


def _source_of(target: str, options: Options) -> Source:
    """Returns the page of a URL, or in a file.

    Raises:
        UsageError: The file cannot be read, or the page cannot be fetched.
    """
    if is_page(target) or "://" in target:
        with configuration():
            require_agent(options)
        rules = UrlRules(UrlOptions(schemes=options.schemes, protocols=options.protocols))
        record, page = request_page(target, options, rules)  # type: ignore[arg-type]
        if page is None or not page["body"]:
            error = record.get("error", {})
            reason = error.get("message") or error.get("reason") or "it has no content"
            raise UsageError(f"the page {target!r} cannot be fetched: {reason}")
        headers = [(header["name"].lower(), header["value"]) for header in page["headers"] or ()]
        kind = options.force_as or page["content_type"]
        return Source(page["url"], page["body"], kind, headers, page["fetch_time"])
    path = Path(target)
    try:
        body = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"expected a URL or a file, got {target!r}: {reason}") from error
    kind = options.force_as or type_of_name(path.name) or sniff(body, None)
    return Source(f"http://localhost/{path.name}", body, kind)


def _try_on_page(group: PluginGroup, name: str, target: str, options: Options) -> Iterator[Trial]:
    load_plugin(group, name)
    yield try_on_page(_kind_of(group), name, _source_of(target, options), options)


_TRIALS: dict[str, Callable[[PluginGroup, str, str, Options], Iterator[Trial]]] = {
    "url_filter": _try_url_filter,
    "url_normalizer": _try_url_normalizer,
    "protocol": _try_protocol,
    "parser": _try_on_page,
    "parse_filter": _try_on_page,
}
