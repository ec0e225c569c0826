"""plugin: lists the plug-ins that are installed, and runs one of them alone."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from ...io.indexing.writer_kinds import INDEX_WRITERS
from ...transforms.parsing import PoolOptions
from ...transforms.wiring.plugin_groups import PLUGIN_GROUPS
from ...web.base.agent import require_agent
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import shared_option
from ...web.base.wording import quote_value
from ...web.content.content_type import sniff, type_of_name
from ...web.pages.page import Source
from ...web.parsers.dispatch import parsed_types
from ...web.plugins.plugin_files import read_plugin_files
from ...web.plugins.plugins import PluginGroup, check_plugins, installed_plugins
from ...web.rules.url_rules import UrlOptions, UrlRules
from ...web.urls.schemes import scheme_of
from ..base.command import DONE, NOTHING_TO_DO, Argument, Invocation, configuration, is_page
from .checking import say, say_columns, urls_of
from .parsechecker import Options as ParseCheckOptions
from .parsechecker import request_page
from .trial_process import TrialOptions, run_trials

ARGUMENTS = (
    Argument("action", "try, to run a plug-in; without it, all plug-ins are listed.", nargs="?"),
    Argument("kind", "Its kind, such as url_filter; the list shows the kinds.", nargs="?"),
    Argument("plugin", "Its name, or PATH.py:NAME for one in a file.", nargs="?"),
    Argument("target", "A URL, or a file: for parsers, parse filters, tokenizers and embeddings a page, for the others a list of URLs.",
             nargs="?"),
)  # fmt: skip
_ANOTHER_URL = "http://localhost/"
# What tries the plug-ins that need documents.
_OTHERS = {
    "index_filter": "nutbeam indexchecker URL --index_filters basic,{name}",
    "index_writer": "nutbeam indexchecker URL --do_index --writer {name}",
}


@dataclass(frozen=True)
class Options(TrialOptions):
    """Options of plugin: those of requests, and of parsers."""

    GROUP = "checkers"

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
    check_plugins(group, (name,), installed_plugins(group))
    code = DONE
    targets = _targets_of(kind, target, invocation.options)
    for trial in run_trials(kind, name, targets, invocation.options):
        if trial.record["url"] is None and (code != DONE or not trial.fault):
            continue  # several URLs at once, which only matters if each alone was no fault
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


def _targets_of(kind: str, target: str, options: Options) -> list[Any]:
    """Returns the URLs, or the page, on which a plug-in is tried.

    Raises:
        UsageError: The file cannot be read, or the URL cannot be fetched.
    """
    if kind in ("schedule", "scoring"):
        return list(urls_of([target]))
    if kind in ("url_filter", "url_normalizer"):
        urls = list(urls_of([target]))
        return [*urls, tuple(dict.fromkeys([*urls, _ANOTHER_URL]))]
    if kind == "protocol":
        return [_checked_url(target, options)]
    return [_source_of(target, options)]


def _checked_url(target: str, options: Options) -> str:
    with configuration():
        require_agent(options)
    rules = UrlRules(UrlOptions(schemes=(scheme_of(target),), no_filter=True, no_normalize=True))
    url, _, reason = rules.admit(pl.Series([target]), "fetcher", filters=False).row(0)
    if url is None:
        raise UsageError(f"{target!r} is no URL that can be fetched: {reason}")
    return str(url)
