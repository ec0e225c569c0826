"""Normalizes and filters URLs and makes their row keys, whole columns at a time; warns of rules."""

import dataclasses
import functools
import logging
import pathlib
import re
from collections.abc import Iterator

import polars as pl

from ..base.columns import falses, nulls, put, text_frame
from ..base.dataclass import dataclass
from ..base.option_checks import Launch
from ..base.wording import quote_value
from ..filters.regex_filter import RegexFilter
from ..filters.verdicts import FilterChain
from ..normalizers.basic import MAX_LABEL, normalize_basic
from ..normalizers.normalizer_chain import Normalizer
from ..normalizers.normalizer_step import SCOPES, Scope
from ..normalizers.regex_rules import RegexNormalizer
from ..rule_files.rule_files import RuleFile, lines_of
from ..urls.absolute_links import HOST, PORT, absolute_urls, query, segment
from ..urls.row_keys import MAX_KEY_BYTES, BadUrl, to_key
from ..urls.schemes import WEB, scheme_of
from .chains import (
    exemptions,
    filter_chain,
    inclusion_filter,
    missing_plugins,
    normalizer,
    normalizers_in,
    read_files,
)
from .url_options import UrlOptions

__all__ = ["Scope", "UrlOptions", "UrlRules", "absolute_urls"]


# Fewer URLs than this are normalized one after the other.
FEW = 200
VERY_FEW = 16  # if a plug-in is called

# Escapes that the basic normalizer keeps, and paths and queries that it does not change.
_ESCAPE = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
_NORMAL_REST = rf"^(?:{segment(_ESCAPE)}/)*{segment(_ESCAPE)}?{query(_ESCAPE)}$"
_NORMAL_SITE = rf"^{HOST}{PORT}$"


@dataclass(frozen=True)
class UrlRules:
    """The normalizers and filters that the options name.

    The files are read once, here; a copy on another machine needs none.

    Attributes:
        options: Which files, and how.
        files: The rule files by their names in Nutch's conf/, if they are known already.

    Raises:
        ValueError: A file cannot be read, or has a rule that cannot be used.
        UsageError: A plug-in is unknown, or cannot be imported.
    """

    options: UrlOptions = UrlOptions()
    files: tuple[tuple[str, RuleFile], ...] | None = None

    def __post_init__(self) -> None:
        if self.files is None:
            object.__setattr__(self, "files", tuple(read_files(self.options).items()))
        # A bad rule must fail here, not in a worker.
        for scope in {"default", *(name.partition("=")[0] for name in self._scopes)}:
            self.normalizer(scope)
        self.filters
        self.inclusion
        self.exemptions

    def __reduce__(self) -> tuple[object, ...]:
        return UrlRules, (self.options, self.files)  # the rules are compiled again

    @property
    def _scopes(self) -> list[str]:
        """Scopes that may differ from the default."""
        files = [name for name, _ in self.files or () if name.startswith("regex-normalize-")]
        own = [name.removeprefix("regex-normalize-").removesuffix(".xml") for name in files]
        return [*self.options.url_normalizers_in, *own]

    @functools.cached_property
    def filters(self) -> FilterChain:
        """The filters that every URL must pass."""
        return filter_chain(self.options, dict(self.files or ()))

    @functools.cached_property
    def inclusion(self) -> FilterChain:
        """The filter of ``--include``, which all links must pass but redirects of seeds."""
        return inclusion_filter(self.options.include)

    @property
    def link_filters(self) -> FilterChain:
        """All filters that links must pass."""
        return FilterChain([*self.filters.filters, *self.inclusion.filters])

    @functools.cached_property
    def exemptions(self) -> RegexFilter | None:
        """The filter of links that are followed although they leave the scope."""
        return exemptions(self.options, dict(self.files or ()))

    @functools.cached_property
    def sources(self) -> dict[str, str]:
        """The source of each file by its name in messages: its path, or "built-in …"."""
        return {file.name: file.source for _, file in self.files or ()}

    def source_of(self, by: str) -> str | None:
        """Returns the file of a ``FILE:LINE`` or of a filter's name; None if there is none."""
        return self.sources.get(by) or self.sources.get(by.rpartition(":")[0])

    def normalizer(self, scope: str = "default") -> Normalizer:
        """Returns the chain of normalizers of a scope."""
        return normalizer(self.options, dict(self.files or ()), scope, self._is_basic)

    def admit(
        self, urls: pl.Series, scope: Scope = "outlink", filters: bool = True, by: bool = False
    ) -> pl.DataFrame:
        """Normalizes and filters URLs.

        Args:
            urls: Absolute URLs, as they were found.
            scope: Where they come from; scopes may have normalizers of their own.
            filters: Whether to filter them. ``inclusion`` is a filter of links, and left out.
            by: Whether to say which rule refused a URL.

        Returns:
            As many rows in the same order: ``url`` (normalized) and ``key``, or
            nulls and a ``reason``: ``malformed`` (nulls too),
            ``scheme_not_allowed``, ``file_elsewhere`` (a file: URL with a host),
            ``url_too_long``, ``key_too_long``, ``normalizer_loop``, ``normalizer_timeout``,
            ``excluded``, ``filtered``, ``filter_timeout``. With ``by`` also that, as ``FILE:LINE``,
            of the latter three.

        >>> UrlRules().admit(pl.Series(["HTTP://Foo.com", "ftp://foo.com/"])).rows()
        [('http://foo.com/', 'com.foo:http/', None), (None, None, 'scheme_not_allowed')]
        """
        raw = urls.cast(pl.String).rename("raw")
        unique = raw if raw.n_unique() == len(raw) else raw.unique(maintain_order=True)
        admitted = self._admit_unique(unique.drop_nulls(), scope, filters, by)
        if len(admitted) < len(raw):
            admitted = raw.to_frame().join(admitted, on="raw", how="left", maintain_order="left")
        missing = pl.col("key").is_null() & pl.col("reason").is_null()
        reason = pl.when(missing).then(pl.lit("malformed")).otherwise("reason")
        return admitted.select("url", "key", reason.alias("reason"), *(["by"] if by else []))

    def _admit_unique(self, raw: pl.Series, scope: str, filters: bool, by: bool) -> pl.DataFrame:
        frame = self._normalize_unique(raw, scope)
        if not filters:
            return frame.with_columns(by=pl.lit(None, pl.String))
        judged = self.filters.judge_column(frame.get_column("url"), "refused" if by else "none")
        dropped = judged.get_column("reason").is_not_null()
        if not dropped.any():
            return frame.with_columns(judged.get_column("by"))
        accepted = [pl.when(~dropped).then(name).alias(name) for name in ("url", "key")]
        reason = pl.when(dropped).then(judged.get_column("reason")).otherwise("reason")
        return frame.with_columns(*accepted, reason.alias("reason"), judged.get_column("by"))

    def _normalize_unique(self, raw: pl.Series, scope: str) -> pl.DataFrame:
        """Returns raw, url, key and reason of URLs without nulls."""
        chain = self.normalizer(scope)
        keys = self._keys_of_normal(raw)
        normal = keys.is_not_null().arg_true()
        whole = len(normal) == len(raw)
        touched = chain.touches(raw if whole else raw.gather(normal)) if len(normal) else falses(0)
        done = ~touched if whole else put(falses(len(raw)), normal.filter(~touched), True)
        frame = pl.DataFrame(
            {"raw": raw, "url": raw, "key": keys},
            schema_overrides={"raw": pl.String, "url": pl.String},
        ).with_columns(reason=pl.lit(None, pl.String))
        at = (~done).arg_true()
        if not len(at):
            return frame
        if len(at) < (VERY_FEW if chain.in_columns else FEW):
            rows = [self._admit_one(url, chain) for url in raw.gather(at)]
            slow = text_frame(rows, "url", "key", "reason")
        else:
            slow = self._normalize(raw.gather(at), chain)
        return frame.with_columns(
            put(frame.get_column(name), at, slow.get_column(name)) for name in slow.columns
        )

    def _normalize(self, raw: pl.Series, chain: Normalizer) -> pl.DataFrame:
        """Returns url, key and reason of URLs that may not be normal."""
        longest = self.options.max_url_length
        long = raw.str.len_chars() > longest if longest >= 0 else falses(len(raw))
        short = raw.set(long, None)
        at = short.is_not_null().arg_true()
        normalized = chain.normalize_column(raw.gather(at))
        urls = put(short, at, normalized.get_column("url"))
        frame = pl.DataFrame({"url": urls, "key": self._keys_of_normal(urls), "long": long})
        frame = frame.with_columns(reason=put(nulls(len(raw)), at, normalized.get_column("reason")))
        rest = (pl.col("url").is_not_null() & pl.col("key").is_null()).alias("rest")
        at = frame.select(rest).to_series().arg_true()
        keys = (_key_of(url, self.options.schemes) for url in urls.gather(at))
        key_frame = text_frame(keys, "key", "reason")
        frame = frame.with_columns(
            put(frame.get_column(name), at, key_frame.get_column(name))
            for name in key_frame.columns
        )
        url = pl.when(pl.col("reason").is_null()).then("url").alias("url")
        reason = pl.when("long").then(pl.lit("url_too_long")).otherwise("reason")
        return frame.select(url, "key", reason.alias("reason"))

    def _admit_one(
        self, raw: str, chain: Normalizer | None = None
    ) -> tuple[str | None, str | None, str | None]:
        """Returns the URL and key, or the reason for neither; without filters."""
        chain = chain or self.normalizer("outlink")
        if 0 <= self.options.max_url_length < len(raw):
            return None, None, "url_too_long"
        try:
            url = chain.normalize(raw)
        except BadUrl as error:
            return None, None, error.reason
        key, reason = _key_of(url, self.options.schemes)
        return None if reason else url, key, reason

    def key_of(self, url: str, scope: Scope = "outlink") -> str | None:
        """Returns the row key of the normal form of one URL, None if it has none; without filters.

        >>> UrlRules().key_of("http://foo.com/x?")
        'com.foo:http/x'
        """
        return self._admit_one(url, self.normalizer(scope))[1]

    def refusal(self, url: str, scope: Scope = "outlink") -> str | None:
        """Returns the reason why a URL is refused before the filters; see ``admit``.

        Steps after all rounds, as in scope ``indexer``, do not count.
        """
        return self._admit_one(url, dataclasses.replace(self.normalizer(scope), last=()))[2]

    def _is_basic(self, urls: pl.Series) -> pl.Series:
        """Returns which URLs are known to be normal for the basic normalizer."""
        return self._keys_of_normal(urls).is_not_null()

    def _keys_of_normal(self, urls: pl.Series) -> pl.Series:
        """Returns the keys of URLs that are known to be normal for the basic normalizer.

        Null for other URLs, and for those that are too long.
        """
        parts = urls.str.splitn("/", 4).struct.unnest()
        parts.columns = ["scheme", "empty", "site", "rest"]
        longest = self.options.max_url_length if self.options.max_url_length >= 0 else MAX_KEY_BYTES
        normal = (
            parts.get_column("rest").str.contains(_NORMAL_REST)
            & (parts.get_column("empty") == "")
            & (urls.str.len_bytes() <= longest)
        )
        parts = parts.with_columns(normal.alias("normal"))
        starts = _key_starts(
            parts.filter("normal").select("scheme", "site").unique(), self.options.schemes
        )
        parts = parts.join(starts, on=["scheme", "site"], how="left", maintain_order="left")
        key = pl.concat_str("start", pl.lit("/"), "rest")
        fits = pl.col("normal") & (key.str.len_bytes() <= MAX_KEY_BYTES)
        return parts.select(pl.when(fits).then(key).alias("key")).to_series()


def _key_of(url: str, schemes: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Returns the row key of a normalized URL, or the reason why it has none."""
    if scheme_of(url) not in schemes:
        return None, "scheme_not_allowed"
    if url.startswith("file:") and not url.startswith("file:///"):
        return None, "file_elsewhere"
    try:
        return to_key(url), None
    except BadUrl as error:
        return None, error.reason


def _key_starts(sites: pl.DataFrame, schemes: tuple[str, ...]) -> pl.DataFrame:
    """Adds ``start`` to schemes and sites (host, port): how row keys begin; null if unknown.

    A site that normalizing changes has none. Only http and https have one: with other schemes a
    URL may change although its site does not.
    """
    web = [name for name in WEB if name in schemes]
    scheme, site = pl.col("scheme").str.strip_suffix(":"), pl.col("site")
    name = site.str.splitn(":", 2)
    plain = (
        site.str.contains(_NORMAL_SITE)
        & (site.str.len_bytes() <= MAX_LABEL)
        & ~site.str.contains("xn--", literal=True)
        & scheme.is_in(web)
    )
    start = pl.concat_str(
        name.struct.field("field_0").str.split(".").list.reverse().list.join("."),
        pl.lit(":"),
        scheme,
        (":" + name.struct.field("field_1")).fill_null(""),
    )
    sites = sites.with_columns(start=pl.when(plain).then(start))
    # Sites with these characters always change.
    tried = sites.select(
        pl.col("start").is_null() & scheme.is_in(web) & ~site.str.contains(r"[A-Z@%\\]")
    ).to_series().fill_null(False)  # fmt: skip
    starts = [_key_start(*row) for row in sites.filter(tried).select("scheme", "site").iter_rows()]
    new = pl.Series(starts, dtype=pl.String)
    return sites.with_columns(put(sites.get_column("start"), tried.arg_true(), new))


def _key_start(scheme: str, site: str) -> str | None:
    url = f"{scheme}//{site}/"
    try:
        return to_key(url)[:-1] if normalize_basic(url) == url else None
    except BadUrl:
        return None


# Largest number of warnings for lines of one file.
_MOST = 3
_ASCII_ONLY = "urls are ascii when rules see them, with hosts in punycode and paths in escapes"
# Lines whose text is compared with URLs unchanged; host names are converted to punycode.
_LOOKED_FOR = {
    "regex-urlfilter.txt": re.compile(r"[+-]"),
    "automaton-urlfilter.txt": re.compile(r"[+-]"),
    "db-ignore-external-exemptions.txt": re.compile(r"[+-]"),
    "prefix-urlfilter.txt": re.compile(r"[^ #]"),
    "suffix-urlfilter.txt": re.compile(r"\s*[^\s#]"),
    "fast-urlfilter.txt": re.compile(r"\s*DenyPath[^#]*[^\x00-\x7f#]"),
}
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckedUrlOptions(UrlOptions):
    """URL options whose rules are read before a command starts."""

    def check_setup(self, _: Launch) -> None:
        """Reads the rules, and logs those that have no effect, if all plug-ins are here.

        Plug-ins may be on workers only.
        """
        if not missing_plugins(self):
            checked_rules(self)


def checked_rules(options: UrlOptions) -> UrlRules:
    """Returns the URL rules for options; logs rules in rule files that have no effect.

    Raises:
        ValueError: A file is missing, or has a rule that cannot be used.
    """
    rules = UrlRules(options)
    for warning in warnings_of(rules):
        _LOG.warning(warning)
    return rules


def warnings_of(rules: UrlRules) -> list[str]:
    """Returns warnings for the user: lines that never match, files that are never read.

    Rules get URLs in ASCII, so a pattern with other letters never matches. The function reads only
    the names in the folder of rule files, and tries no patterns.

    >>> warnings_of(UrlRules())
    []
    """
    flags = [("--include", text) for text in rules.options.include]
    flags += [("--exclude", text) for text in rules.options.exclude]
    warnings = [_ascii_warning(flag, text) for flag, text in flags if not text.isascii()]
    for name, file in rules.files or ():
        lines = list(_non_ascii_lines(name, file.text))
        if file.xml and _basic_comes_first(rules):
            step = RegexNormalizer(file.xml, file.name)
            patterns = [(rule.line, rule.pattern.text) for rule in step.rules]
            lines = [(line, text) for line, text in patterns if not text.isascii()]
        warnings += [_ascii_warning(f"{file.name}:{line}", text) for line, text in lines[:_MOST]]
        if len(lines) > _MOST:
            warnings.append(f"{file.name}: {len(lines) - _MOST} more lines are never found")
    return [*warnings, *_no_scopes(rules)]


def _ascii_warning(where: str, text: str) -> str:
    return f"{where}: never found: {_ASCII_ONLY}, got {quote_value(text)}"


def _non_ascii_lines(name: str, text: str) -> Iterator[tuple[int, str]]:
    wanted = _LOOKED_FOR.get(name)
    if wanted is None or text.isascii():
        return
    for number, line in enumerate(lines_of(text), start=1):
        if not line.isascii() and wanted.match(line):
            yield number, line.strip()


def _basic_comes_first(rules: UrlRules) -> bool:
    names = normalizers_in(rules.options, "default")
    return "regex" not in names or names.index("basic") < names.index("regex")


def _no_scopes(rules: UrlRules) -> list[str]:
    folder = rules.options.url_rules_dir
    if not folder or "regex-normalize.xml" not in dict(rules.files or ()):
        return []
    scopes = {path.name: path.stem.removeprefix("regex-normalize-")
              for path in sorted(pathlib.Path(folder).glob("regex-normalize-*.xml"))}  # fmt: skip
    return [
        f"{name} is not read: {scope!r} is none of the scopes {', '.join(SCOPES)}"
        for name, scope in scopes.items()
        if scope not in SCOPES
    ]
