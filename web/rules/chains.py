"""Builds the filters and normalizers in the options, with their rule files.

Rule files are in ``url_rules_dir``, with the same names as in Nutch's conf/.
"""

import functools
import pathlib
from collections.abc import Callable, Mapping

import polars as pl

from ..filters.list_filters import DomainFilter, FastFilter, FastLimits, PrefixFilter, SuffixFilter
from ..filters.regex_filter import RegexFilter, Validator, exclude_filter, include_filter
from ..filters.verdicts import FilterChain, UrlFilter
from ..normalizers.basic import Ajax, Basic, Querystring
from ..normalizers.host_rules import Host, Protocol, Slash
from ..normalizers.normalizer_chain import Normalizer
from ..normalizers.normalizer_step import SCOPES, Pass, Step
from ..normalizers.regex_rules import RegexNormalizer
from ..patterns.brics import compile_automaton
from ..plugins.plugin_files import is_plugin_file
from ..plugins.plugins import installed_plugins, load_plugins
from ..rule_files.rule_files import RuleFile, read_rule_file
from .url_options import (
    FILTER_FILES,
    FILTERS,
    NORMALIZER_FILES,
    NORMALIZERS,
    URL_FILTERS,
    URL_NORMALIZERS,
    UrlOptions,
)

EXEMPTION = "ignoreexempt"

# Rule files of this package.
_BUILT_IN = ("regex-urlfilter.txt", "regex-normalize.xml")
_HERE = pathlib.Path(__file__).parent
_PER_HOST = {step.name: step for step in (Slash, Host, Protocol)}


def normalizers_in(options: UrlOptions, scope: str) -> tuple[str, ...]:
    """Returns the names of the normalizers of a scope, in order.

    Raises:
        ValueError: The options name a scope twice.
    """
    if options.no_normalize:
        return ("basic",)
    named: dict[str, str] = {}
    for text in options.url_normalizers_in:
        name, _, steps = text.partition("=")
        if name in named:
            raise ValueError(f"url_normalizers_in may name a scope once, got {name!r} twice")
        named[name] = steps
    names = tuple(named[scope].split("+")) if scope in named else tuple(options.url_normalizers)
    return names if "basic" in names else (*names, "basic")


def missing_plugins(options: UrlOptions) -> list[str]:
    """Returns the names of URL filters and normalizers that are neither built in, installed nor files."""
    steps = {name for scope in SCOPES for name in normalizers_in(options, scope)}
    filters = () if options.no_filter else options.url_filters
    return [
        name
        for group, names in ((URL_FILTERS, filters), (URL_NORMALIZERS, sorted(steps)))
        for name in names
        if name not in group.built_in and not is_plugin_file(name)
        if name not in installed_plugins(group)
    ]


def read_files(options: UrlOptions) -> dict[str, RuleFile]:
    """Reads the rule files that the options require.

    Returns:
        The files by their names in Nutch's conf/; the file of a scope by
        ``regex-normalize-SCOPE.xml``.

    Raises:
        ValueError: The folder or a file is missing, or cannot be read.
    """
    if options.url_rules_dir and not pathlib.Path(options.url_rules_dir).is_dir():
        raise ValueError(
            f"url_rules_dir must be a folder that can be read, got {options.url_rules_dir!r}"
        )
    wanted = [FILTER_FILES.get(name, "") for name in options.url_filters if not options.no_filter]
    steps = {name for scope in SCOPES for name in normalizers_in(options, scope)}
    wanted += [NORMALIZER_FILES[name] for name in NORMALIZERS if name in steps]
    files = {name: _find_file(options, name) for name in wanted if name}
    if "regex" in steps and options.url_rules_dir:
        for scope in SCOPES:
            name = f"regex-normalize-{scope}.xml"
            path = pathlib.Path(options.url_rules_dir, name)
            if path.exists():
                files[name] = read_rule_file(path, name, xml=True)
    return files


def _find_file(options: UrlOptions, name: str) -> RuleFile:
    named = {
        "regex-urlfilter.txt": options.url_filter_file,
        "regex-normalize.xml": options.url_normalizer_file,
    }.get(name, "")
    xml = name.endswith(".xml")
    if named:
        return read_rule_file(named, xml=xml)
    if options.url_rules_dir:
        path = pathlib.Path(options.url_rules_dir, name)
        if path.exists() or name not in _BUILT_IN:
            return read_rule_file(path, name, xml=xml)
    if name in _BUILT_IN:
        return read_rule_file(_HERE / name, name, f"built-in {name}", xml)
    users = [
        each for each, file in (*FILTER_FILES.items(), *NORMALIZER_FILES.items()) if file == name
    ]
    raise ValueError(
        f"url_rules_dir must be a folder with {name}, which {users[0]} needs, "
        f"got {options.url_rules_dir!r}"
    )


def filter_chain(options: UrlOptions, files: Mapping[str, RuleFile]) -> FilterChain:
    """Returns the filters that every URL must pass: --exclude first, then those of rule files.

    Raises:
        ValueError: A pattern does not compile, or a file has a line that cannot be read.
        UsageError: A plug-in is unknown, or cannot be imported.
    """
    names = () if options.no_filter else options.url_filters
    limits = FastLimits(
        options.fast_url_max_length, options.fast_path_max_length, options.fast_query_max_length
    )
    filters: list[UrlFilter] = [_exclusion_filter(options.exclude)] if options.exclude else []
    plugins = load_plugins(URL_FILTERS, tuple(name for name in names if name not in FILTERS))
    functions = dict(plugins)
    for name in dict.fromkeys(names):
        if name in functions:
            from .url_plugins import PluginFilter  # most crawls have none

            filters.append(PluginFilter(name, functions[name]))
        elif name != EXEMPTION:
            file = files.get(FILTER_FILES[name], RuleFile(""))
            filters.append(_filter(name, file, limits, options.tld_max_length))
    return FilterChain(filters)


_exclusion_filter = functools.lru_cache(maxsize=64)(exclude_filter)


@functools.lru_cache(maxsize=64)
def inclusion_filter(patterns: tuple[str, ...]) -> FilterChain:
    """Returns the filter of ``--include``, which links must pass, too; none accepts all.

    Raises:
        ValueError: A pattern does not compile.
    """
    return FilterChain([include_filter(patterns)] if patterns else [])


def exemptions(options: UrlOptions, files: Mapping[str, RuleFile]) -> RegexFilter | None:
    """Returns the filter that accepts links out of the scope, or None."""
    if EXEMPTION not in options.url_filters or options.no_filter:
        return None
    file = files[FILTER_FILES[EXEMPTION]]
    exemption_filter = _filter(EXEMPTION, file, FastLimits(), -1)
    assert isinstance(exemption_filter, RegexFilter)
    return exemption_filter


@functools.lru_cache(maxsize=64)
def _filter(name: str, file: RuleFile, limits: FastLimits, max_tld: int) -> UrlFilter:
    text_and_name = file.text, file.name
    match name:
        case "automaton":
            return RegexFilter(*text_and_name, compile_automaton, "dk.brics expression")
        case "domain" | "domaindenylist":
            return DomainFilter(*text_and_name, deny=name == "domaindenylist")
        case "fast":
            return FastFilter(*text_and_name, limits)
        case "validator":
            return Validator(max_tld)
    return {"prefix": PrefixFilter, "suffix": SuffixFilter}.get(name, RegexFilter)(*text_and_name)


def normalizer(
    options: UrlOptions,
    files: Mapping[str, RuleFile],
    scope: str,
    is_normal: Callable[[pl.Series], pl.Series] | None = None,
) -> Normalizer:
    """Returns the chain of normalizers of a scope.

    Raises:
        ValueError: A file has a line that cannot be read.
        UsageError: A plug-in is unknown, or cannot be imported.
    """
    steps: list[Step] = []
    last: list[Step] = []
    names = normalizers_in(options, scope)
    plugins = tuple(name for name in names if name not in NORMALIZERS)
    functions = dict(load_plugins(URL_NORMALIZERS, plugins))
    for name in dict.fromkeys(names):
        if name == "basic":
            steps.append(Basic(is_normal))
            continue
        if name in functions:
            from .url_plugins import PluginNormalizer

            steps.append(PluginNormalizer(name, functions[name], scope))
            continue
        file = files.get(NORMALIZER_FILES[name], RuleFile(""))
        if name == "regex":
            file = files.get(f"regex-normalize-{scope}.xml", file)
        step = _step(name, file, scope == "indexer")
        # Before other steps, basic would remove the fragments that ajax restores.
        (last if name == "ajax" and scope == "indexer" else steps).append(step)
    return Normalizer(tuple(steps), options.url_normalizer_loop_count, tuple(last))


@functools.lru_cache(maxsize=64)
def _step(name: str, file: RuleFile, indexer: bool) -> Step:
    match name:
        case "regex":
            return RegexNormalizer(file.xml, file.name)
        case "querystring":
            return Querystring()
        case "ajax":
            return Ajax("indexer" if indexer else "default")
        case "slash" | "host" | "protocol":
            return _PER_HOST[name](file.text, file.name)
    return Pass()
