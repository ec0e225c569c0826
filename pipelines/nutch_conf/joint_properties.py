"""Converts properties of Nutch whose meaning depends on other properties, or on a syntax of their own."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...web.base.wording import quote_value
from ...web.pages.metadata import is_kept_meta
from .property_catalogue import (
    ConvertedProperty,
    no_such_class,
    properties_of_options,
    read_catalogue,
    split_list,
)

_PLUGIN = re.compile(r"[\w-]+\([^()]*\)|[\w-]+")


def _convert_scope(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``db.ignore.external.links``, with its mode."""
    if value.lower() not in ("true", "false"):
        return ConvertedProperty(fault=f"it must be true or false, got {quote_value(value)}")
    if value.lower() == "false":
        return ConvertedProperty({"scope": "any"})
    mode = properties.get("db.ignore.external.links.mode", "").strip() or "byHost"
    scope = {"byhost": "host", "bydomain": "domain"}.get(mode.lower())
    if scope is None:
        text = f"db.ignore.external.links.mode must be byHost or byDomain, got {quote_value(mode)}"
        return ConvertedProperty(fault=text)
    return ConvertedProperty({"scope": scope})


def _convert_proxy(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``http.proxy.host``, with its port and its type."""
    if not value:
        return ConvertedProperty(note="it is empty: there is no proxy")
    kind = properties.get("http.proxy.type", "").strip() or "HTTP"
    if kind.upper() != "HTTP":
        return ConvertedProperty(fault=f"a proxy must be of the type HTTP, got {quote_value(kind)}")
    port = properties.get("http.proxy.port", "").strip() or "8080"
    if not (port.isascii() and port.isdigit()):
        return ConvertedProperty(fault=f"http.proxy.port must be a number, got {quote_value(port)}")
    return ConvertedProperty({"http_proxy": f"http://{value}:{port}"})


def _convert_static_fields(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``index.static``, with its separators."""
    between, after_name, in_value = (
        properties.get(f"index.static.{name}sep") or usual
        for name, usual in (("field", ","), ("key", ":"), ("value", " "))
    )
    fields = []
    for field in value.split(between):
        name, separator, words = field.strip().partition(after_name)
        if not field.strip():
            continue
        if not separator:
            return ConvertedProperty(fault=f"a field must be NAME:VALUE, got {quote_value(field)}")
        texts = " ".join(word.strip() for word in words.split(in_value) if word.strip())
        fields.append(f"{name.strip()}:{texts}".replace(",", "\\,"))
    return ConvertedProperty({"index_static": ",".join(fields)})


def _convert_elastic(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``elastic.rest.host`` of Nutch before 1.15, with port and index."""
    if not value:
        return ConvertedProperty(note="it is empty")
    is_safe = properties.get("elastic.rest.https", "").strip().lower() == "true"
    port = properties.get("elastic.rest.port", "").strip() or "9200"
    index = properties.get("elastic.rest.index", "").strip() or "nutch"
    url = f"http{'s' if is_safe else ''}://{value}:{port}"
    return ConvertedProperty(
        {"writer": "elasticsearch", "writer_parameters": f"url={url},index={index}"}
    )


def _convert_solr(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``solr.server.url`` of Nutch before 1.15."""
    if not value:
        return ConvertedProperty(note="it is empty")
    return ConvertedProperty(
        {"writer": "solr", "writer_parameters": f"url={value}".replace(",", "\\,")}
    )


def _convert_plugins(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``plugin.includes``: the lists of options that its plug-ins are in."""
    tables = read_catalogue()
    included, excluded = _pattern(value), _pattern(properties.get("plugin.excludes", ""))
    if included is None or excluded is None:
        return ConvertedProperty(fault=f"it must be a regular expression, got {quote_value(value)}")
    built_in = tables["plugins_built_in"]["names"].split()
    lists: dict[str, list[str]] = {words.split()[0]: [] for words in tables["plugins"].values()}
    for plugin, words in tables["plugins"].items():
        if included.fullmatch(plugin) and not excluded.fullmatch(plugin):
            option, *names = words.split()
            lists[option] = list(dict.fromkeys([*lists[option], *names]))
    unknown = [
        name for name in _plugin_names(value)
        if name not in tables["plugins"] and name not in built_in and not excluded.fullmatch(name)
    ]  # fmt: skip
    for option, property_name in (("url_filters", "urlfilter.order"),
                                  ("url_normalizers", "urlnormalizer.order"),
                                  ("scoring", "scoring.filter.order"),
                                  ("index_filters", "indexingfilter.order")):  # fmt: skip
        lists[option] = _in_order(lists[option], property_name, properties)
    options = {option: ",".join(names) for option, names in lists.items() if names}
    if not lists["url_filters"]:
        options["no_filter"] = "true"
    if "metadata" in lists["index_filters"] and "index.parse.md" not in properties:
        options["index_parse_md"] = "description,keywords"
    if "language" in lists["index_filters"] and "lang.extraction.policy" not in properties:
        options["detect_language"] = "true"
    if "feed" in lists["index_filters"]:
        options["feed_documents"] = "true"
    fault = ""
    if unknown:
        fault = f"no counterpart of {', '.join(unknown)}: leave them out, or write a plug-in"
    return ConvertedProperty(options, fault=fault)


def _pattern(value: str) -> re.Pattern[str] | None:
    """Returns a regular expression of plug-ins; None if it is wrong."""
    try:
        return re.compile("".join(value.split()) or "(?!)")
    except re.error:
        return None


def _plugin_names(value: str) -> list[str]:
    """Returns the names in a list of plug-ins, as far as they are written out.

    >>> _plugin_names("protocol-http|parse-(html|tika)|index-.*")
    ['protocol-http', 'parse-html', 'parse-tika']
    """
    names = []
    for part in re.split(r"\|(?![^()]*\))", "".join(value.split())):
        if not _PLUGIN.fullmatch(part):
            continue
        head, _, group = part.rstrip(")").partition("(")
        names += [f"{head}{tail}" for tail in group.split("|")]
    return names


def _in_order(names: list[str], property_name: str, properties: Mapping[str, str]) -> list[str]:
    """Returns names in the order that another property gives; those that it leaves out come last."""
    by_class = read_catalogue()["lists"][property_name]
    classes = re.split(r"[\s,]+", properties.get(property_name, ""))
    first = [by_class.get(each.rpartition(".")[2]) for each in classes]
    return [each for each in first if each in names] + [each for each in names if each not in first]


def convert_classes(name: str, value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts an order of classes of Java, with white space or commas between, to names.

    >>> convert_classes("urlfilter.order", "a.b.FastURLFilter a.b.RegexURLFilter", {}).options
    {'url_filters': 'fast,regex'}
    """
    by_class = read_catalogue()["lists"][name]
    words = re.split(r"[\s,]+", value.strip()) if value.strip() else []
    names = [by_class.get(word.rpartition(".")[2]) for word in words]
    if None in names:
        return ConvertedProperty(fault=no_such_class(words[names.index(None)]))
    if not names:
        return ConvertedProperty(note="it is empty: the usual order counts")
    if "plugin.includes" in properties:
        return ConvertedProperty(note="it is part of plugin.includes")
    option = properties_of_options()[name][0].name
    return ConvertedProperty({option: ",".join(dict.fromkeys(names))})


def _convert_credentials(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``http.auth.file``."""
    if not value.lower().endswith(".xml"):
        return ConvertedProperty({"http_credentials": value})
    return ConvertedProperty(
        fault="give a file of lines ORIGIN basic USER PASSWORD as --http_credentials; "
        "nutbeam import_nutch makes it from Nutch's"
    )


def _convert_robots_agents(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``http.robots.agents``, which in old versions has the agent's name and a star, too."""
    own = properties.get("http.agent.name", "").strip()
    names = [name for name in split_list(value) if name not in ("*", own)]
    return ConvertedProperty({"robots_agents": ",".join(names)})


def _convert_metatags(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``metatags.names``: only some meta elements are kept."""
    lost = [name for name in split_list(value.replace(";", ",")) if not is_kept_meta(name.lower())]
    if not lost or lost == ["*"]:
        return ConvertedProperty(
            note="author, description, keywords, dc.*, og: and the like are kept"
        )
    return ConvertedProperty(
        fault=f"meta elements {', '.join(lost)} are not kept; write a parse filter as a plug-in"
    )


def _convert_parse_metadata(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``index.parse.md`` and, of Nutch 2, ``index.metadata``."""
    names = [name.removeprefix("metatag.") for name in split_list(value)]
    return ConvertedProperty(
        {"index_parse_md": ",".join(names)}, note="fields have no prefix metatag."
    )


def _convert_sitemap_size(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``sitemap.size.max``; in Nutch 2 it may be -1."""
    limit = 52_428_800
    try:
        size = int(value or limit)
    except ValueError:
        return ConvertedProperty(fault=f"it must be a whole number, got {quote_value(value)}")
    return ConvertedProperty({"sitemap_size_max": str(limit if size < 0 else size)})


def _convert_redirects(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``http.redirect.max``, where negative numbers are 0."""
    try:
        return ConvertedProperty({"redirect_max": str(max(0, int(value or 0)))})
    except ValueError:
        return ConvertedProperty(fault=f"it must be a whole number, got {quote_value(value)}")


def _convert_other_limit(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``file.content.limit`` and ``ftp.content.limit``: there is one limit for all schemes."""
    if properties.get("http.content.limit", "").strip() == value:
        return ConvertedProperty(note="it is the same as http.content.limit")
    return ConvertedProperty(fault="--content_limit is that of all schemes")


def _convert_unreachable(value: str, properties: Mapping[str, str]) -> ConvertedProperty:
    """Converts ``http.filter.ipaddress.exclude``: private addresses are refused anyway."""
    special = ("localhost", "loopback", "sitelocal", "127.0.0.0/8", "10.0.0.0/8",
               "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "::1/128", "::1", "fc00::/7")  # fmt: skip
    public = [each for each in split_list(value) if each.lower() not in special]
    if public:
        advice = read_catalogue()["always"]["http.filter.ipaddress.exclude"][1]
        return ConvertedProperty(fault=f"{', '.join(public)}: {advice}")
    return ConvertedProperty(
        note="private and special addresses are refused without --allow_addresses"
    )


def convert_scope_of_normalizers(name: str, value: str) -> ConvertedProperty:
    """Converts ``urlnormalizer.scope.SCOPE``: the normalizers of one scope.

    >>> convert_scope_of_normalizers("urlnormalizer.scope.inject", "a.BasicURLNormalizer").options
    {'url_normalizers_in': 'inject=basic'}
    """
    by_class = read_catalogue()["lists"]["urlnormalizer.order"]
    names = []
    for word in re.split(r"[\s,]+", value):
        own = by_class.get(word.rpartition(".")[2])
        if word and own is None:
            return ConvertedProperty(fault=no_such_class(word))
        names += [own] if own else []
    if not names:
        return ConvertedProperty(note="it is empty")
    scope = name.removeprefix("urlnormalizer.scope.")
    return ConvertedProperty({"url_normalizers_in": f"{scope}={'+'.join(names)}"})


JOINT_PROPERTIES: Mapping[str, Callable[[str, Mapping[str, str]], ConvertedProperty]] = (
    MappingProxyType(
        {
            "db.ignore.external.links": _convert_scope,
            "elastic.rest.host": _convert_elastic,
            "file.content.limit": _convert_other_limit,
            "ftp.content.limit": _convert_other_limit,
            "http.auth.file": _convert_credentials,
            "http.filter.ipaddress.exclude": _convert_unreachable,
            "http.proxy.host": _convert_proxy,
            "http.redirect.max": _convert_redirects,
            "http.robots.agents": _convert_robots_agents,
            "index.metadata": _convert_parse_metadata,
            "index.parse.md": _convert_parse_metadata,
            "index.static": _convert_static_fields,
            "metatags.names": _convert_metatags,
            "plugin.includes": _convert_plugins,
            "sitemap.size.max": _convert_sitemap_size,
            "solr.server.url": _convert_solr,
        }
    )
)
