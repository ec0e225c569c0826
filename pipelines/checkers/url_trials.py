"""Runs a URL filter, a URL normalizer or a protocol of a plug-in on URLs."""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from ...web.clients.http_client import Client
from ...web.clients.protocol_plugins import PluginClient
from ...web.plugins.plugins import load_plugin
from ...web.rules.url_options import URL_FILTERS, URL_NORMALIZERS
from ...web.rules.url_plugins import PluginFilter, PluginNormalizer, fault_at_once
from ...web.urls.schemes import PROTOCOLS, scheme_of
from .time_limit import Trial, limited

_SHOWN_TEXT = 300
_CALLS, _QUICK_S = 3, 0.5


def _timed(call: Callable[[], Any], limit: float) -> tuple[Any, float]:
    """Returns the result of a call and its time; a quick one is repeated: the first takes longer."""
    times: list[float] = []
    while not times or (len(times) < _CALLS and sum(times) < _QUICK_S):
        start = time.perf_counter()
        with limited(limit):
            result = call()
        times.append(time.perf_counter() - start)
    return result, min(times)


def try_url_filter(name: str, url: str, options: Any) -> Trial:
    """Returns the verdict of a URL filter on a URL."""
    url_filter = _filter_of(name)
    decide = functools.partial(url_filter.decide, url)
    verdict, seconds = _timed(decide, options.parser_timeout)
    with limited(options.parser_timeout):
        fault = url_filter.rule(0, url) if verdict.slow else ""
    word = url_filter.rule(verdict.line) if verdict.line else ""
    shown = f"{'+' if verdict.accept else '-'}{url}" + (f"\t{word}" if word else "")
    record = {"url": url, "accepted": None if fault else verdict.accept, "reason": word or None}
    return Trial(record, [f"!{url}" if fault else shown], fault, seconds)


@functools.cache
def _filter_of(name: str) -> PluginFilter:
    return PluginFilter(name, load_plugin(URL_FILTERS, name))


def try_url_normalizer(name: str, url: str, options: Any) -> Trial:
    """Returns what a URL normalizer makes of a URL."""
    normalizer, fault = _normalizer_of(name, options.url_scope), ""
    normalize = functools.partial(normalizer.apply_column, pl.Series([url]))
    column, seconds = _timed(normalize, options.parser_timeout)
    normalized = column.urls[0]
    if normalized is None:
        with limited(options.parser_timeout):
            fault = normalizer.fault_of(url)
    elif (again := normalizer.apply_column(pl.Series([normalized])).urls[0]) != normalized:
        fault = f"it must leave its own results as they are, and makes {again!r} of {normalized!r}"
    shown = normalized if normalized is not None else "" if fault else "refused"
    return Trial({"url": url, "normalized": normalized}, [shown], fault, seconds)


@functools.cache
def _normalizer_of(name: str, scope: str) -> PluginNormalizer:
    return PluginNormalizer(name, load_plugin(URL_NORMALIZERS, name), scope)


def try_at_once(kind: str, name: str, urls: Sequence[str], options: Any) -> Trial:
    """Returns the fault that a URL filter or normalizer has only with several URLs in a column."""
    is_filter = kind == "url_filter"
    step = _filter_of(name) if is_filter else _normalizer_of(name, options.url_scope)
    start = time.perf_counter()
    with limited(options.parser_timeout):
        fault = fault_at_once(step, pl.Series(urls))
    text = f"with {len(urls)} URLs at once: {fault}" if fault else ""
    return Trial({"url": None}, [], text, time.perf_counter() - start)


def try_protocol(name: str, url: str, options: Any) -> Trial:
    """Returns what a protocol fetches."""
    options = dataclasses.replace(options, schemes=(scheme_of(url),), protocols=())
    client = PluginClient(name, load_plugin(PROTOCOLS, name), options, Client(options).dialer)
    start = time.perf_counter()
    response = client.get(url, content_limit=options.content_limit)
    seconds = time.perf_counter() - start
    record = {
        "url": url, "status": response.status, "error": response.error, "ip": response.ip or None,
        "headers": response.headers, "bytes": len(response.body), "truncated": response.truncated,
    }  # fmt: skip
    lines = [f"url: {url}", f"status: {response.status}"]
    lines += [f"error: {response.error}"] if response.error else []
    lines += [f"{header}: {value}" for header, value in response.headers]
    lines.append(f"body: {len(response.body):,} bytes")
    lines += response.body[:_SHOWN_TEXT].decode("utf-8", "replace").splitlines()
    return Trial(record, lines, client.fault, seconds)
