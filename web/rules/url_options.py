"""Options of URL filters and normalizers."""

from typing import Any

from ..base.dataclass import dataclass
from ..base.options import option
from ..normalizers.normalizer_step import SCOPES
from ..plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ..plugins.plugins import PluginGroup
from ..urls.schemes import SchemeOptions

# The rule file of each filter; empty if it has none.
FILTER_FILES = {
    "regex": "regex-urlfilter.txt",
    "automaton": "automaton-urlfilter.txt",
    "prefix": "prefix-urlfilter.txt",
    "suffix": "suffix-urlfilter.txt",
    "domain": "domain-urlfilter.txt",
    "domaindenylist": "domaindenylist-urlfilter.txt",
    "fast": "fast-urlfilter.txt",
    "validator": "",
    "ignoreexempt": "db-ignore-external-exemptions.txt",
}
FILTERS = tuple(FILTER_FILES)

NORMALIZER_FILES = {
    "basic": "",
    "regex": "regex-normalize.xml",
    "querystring": "",
    "ajax": "",
    "slash": "slashes.txt",
    "host": "host-urlnormalizer.txt",
    "protocol": "protocols.txt",
    "pass": "",
}
NORMALIZERS = tuple(NORMALIZER_FILES)
SCOPED = rf"(?:{'|'.join(SCOPES)})=[^=+]+(?:\+[^=+]+)*"
# A pattern of the reasons of URLs for which a plug-in fails.
PLUGIN_FAULTS = "^url_(?:filter|normalizer)_"
URL_FILTERS = PluginGroup("nutbeam.url_filters", "url filter", FILTERS, "url_filters")
URL_NORMALIZERS = PluginGroup(
    "nutbeam.url_normalizers",
    "url normalizer",
    NORMALIZERS,
    "url_normalizers",
    "url_normalizers_in",
)


def _fast_limit(part: str, nutch: str) -> Any:
    text = f"Longest {part} that the filter fast accepts; -1: no limit."
    return option(-1, text, unit="characters", nutch=nutch, minimum=-1)


@dataclass(frozen=True)
class UrlOptions(SchemeOptions):
    """Options for normalizing and filtering URLs."""

    include: tuple[str, ...] = option(
        (),
        "Follow only links whose URL matches this regular expression. May be repeated: one match is "
        "enough. The other rules still refuse links. Seeds, and the targets of their redirects, "
        "need no match.",
        unit="pattern",
        separator=" ",
    )
    exclude: tuple[str, ...] = option(
        (),
        "Refuse URLs that match this regular expression, even if --include matches. May be "
        "repeated.",
        unit="pattern",
        separator=" ",
    )
    url_filter_file: str = option(
        "",
        "File of URL filter rules, as Nutch's regex-urlfilter.txt, in place of the built-in rules, "
        "which refuse images, archives and other files that are not text.",
        nutch="urlfilter.regex.file",
        takes="path",
    )
    url_normalizer_file: str = option(
        "",
        "File of URL rewriting rules, as Nutch's regex-normalize.xml; empty for the built-in ones.",
        nutch="urlnormalizer.regex.file",
        takes="path",
    )
    max_url_length: int = option(
        4096,
        "Longest URL that is accepted, before normalizing; -1: any that a row key can hold.",
        unit="characters",
        nutch="db.max.outlink.length",
        minimum=-1,
    )
    no_filter: bool = option(
        False, "Do not apply the URL filters; --include and --exclude still count."
    )
    no_normalize: bool = option(
        False, "Leave out the URL rewriting rules; the form that row keys need remains."
    )
    url_rules_dir: str = option(
        "",
        "Folder with the rule files of URL filters and normalizers, under the names they have in "
        "Nutch's conf/. Without regex-urlfilter.txt or regex-normalize.xml in it the built-in one "
        "is used.",
        takes="path",
    )
    url_filters: tuple[str, ...] = option(
        ("regex",),
        "URL filters, in this order, built-in ones and plug-ins; a URL must pass all of them. "
        "ignoreexempt refuses nothing: it names links that are followed although they lead out of "
        "the scope.",
        nutch="urlfilter.order",
        choices=FILTERS,
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
    )
    url_normalizers: tuple[str, ...] = option(
        ("basic", "regex"),
        "URL normalizers, in this order, built-in ones and plug-ins; basic, which row keys need, is "
        "added if it is missing.",
        nutch="urlnormalizer.order",
        choices=NORMALIZERS,
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
    )
    url_normalizers_in: tuple[str, ...] = option(
        (),
        "Other URL normalizers for URLs from one source, as SCOPE=NAME+NAME: inject, outlink, "
        "fetcher (redirects) or another scope of Nutch. For this scope, a file "
        "regex-normalize-SCOPE.xml in url_rules_dir replaces regex-normalize.xml.",
        nutch="urlnormalizer.scope.SCOPE",
        pattern=SCOPED,
        plugins=True,
    )
    url_normalizer_loop_count: int = option(
        5,
        "Most rounds through the normalizers until nothing changes; URLs that still change then "
        "are dropped. 1: one round only.",
        nutch="urlnormalizer.loop.count",
        minimum=1,
        maximum=100,
    )
    tld_max_length: int = option(
        -1,
        "Longest last label of a host that the filter validator accepts; -1: no limit.",
        unit="characters",
        nutch="urlfilter.tld.length",
        minimum=-1,
    )
    fast_url_max_length: int = _fast_limit("URL", "urlfilter.fast.url.max.length")
    fast_path_max_length: int = _fast_limit("path", "urlfilter.fast.url.path.max.length")
    fast_query_max_length: int = _fast_limit("query", "urlfilter.fast.url.query.max.length")
