"""Which URLs are taken, under which URL and row key; whole columns at a time."""

import dataclasses
import functools
import pathlib
from typing import Literal

import polars as pl

from .columns import column_accepts, is_column_pattern
from .domains import registered_domain
from .filters import RegexFilter
from .normalize import Normalizer, RegexNormalizer, normalize_basic
from .options import option
from .resolve import HOST, PORT, query, resolve, segment
from .urls import MAX_KEY_BYTES, BadUrl, from_host_key, to_key

__all__ = ["Mode", "Scope", "UrlOptions", "UrlRules", "host_keys", "in_scope", "resolve"]

Scope = Literal["inject", "outlink", "fetcher", "generate", "update", "linkdb", "indexer"]
Mode = Literal["domain", "host", "any"]

_DEFAULT_FILTER = "regex-urlfilter.txt"
_DEFAULT_NORMALIZER = "regex-normalize.xml"
_SCHEMES = ("http://", "https://")
_MAX_LABEL = 63

# Escapes that the basic normalizer keeps, and what it leaves as it is after the host.
_ESCAPE = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
_NORMAL_REST = rf"^(?:{segment(_ESCAPE)}/)*{segment(_ESCAPE)}?{query(_ESCAPE)}$"
_NORMAL_SITE = rf"^{HOST}{PORT}$"


@dataclasses.dataclass(frozen=True)
class UrlOptions:
    """How URLs are normalized and filtered."""

    url_filter_file: str = option(
        "",
        "File of URL filter rules, as Nutch's regex-urlfilter.txt; empty for the built-in rules.",
        nutch="urlfilter.regex.file",
    )
    url_normalizer_file: str = option(
        "",
        "File of URL rewriting rules, as Nutch's regex-normalize.xml; empty for the built-in ones.",
        nutch="urlnormalizer.regex.file",
    )
    max_url_length: int = option(
        4096,
        "Longest URL that is taken, before normalizing; -1 for any that the row key can hold.",
        unit="characters",
        nutch="db.max.outlink.length",
        minimum=-1,
    )
    no_filter: bool = option(False, "Take URLs whatever the URL filter says.")
    no_normalize: bool = option(
        False, "Leave out the URL rewriting rules; the form that row keys need remains."
    )


@dataclasses.dataclass(frozen=True)
class UrlRules:
    """The normalizers and filters that options ask for.

    The files are read here, and once: a copy on another machine needs none.

    Attributes:
        options: Which files, and how.
        filter_text: The filter file's text, if it is known already.
        normalizer_text: The same for the normalizer file.

    Raises:
        ValueError: A file cannot be read, or has a rule that cannot be used.
    """

    options: UrlOptions = UrlOptions()
    filter_text: str | None = None
    normalizer_text: str | None = None

    def __post_init__(self) -> None:
        if self.filter_text is None:
            text = _read(self.options.url_filter_file, _DEFAULT_FILTER)
            object.__setattr__(self, "filter_text", text)
        if self.normalizer_text is None:
            text = _read(self.options.url_normalizer_file, _DEFAULT_NORMALIZER)
            object.__setattr__(self, "normalizer_text", text)
        # Now, not in a worker, is when a bad rule must show.
        self._compiled()

    def _compiled(self) -> tuple[RegexFilter, Normalizer]:
        filter_name = self.options.url_filter_file or _DEFAULT_FILTER
        normalizer_name = self.options.url_normalizer_file or _DEFAULT_NORMALIZER
        rewriting = None if self.options.no_normalize else self.normalizer_text or ""
        return (
            _regex_filter(self.filter_text or "", filter_name),
            _normalizer(rewriting, normalizer_name),
        )

    @property
    def _filter(self) -> RegexFilter:
        return self._compiled()[0]

    @property
    def _normalizer(self) -> Normalizer:
        return self._compiled()[1]

    def admit(
        self, urls: pl.Series, scope: Scope = "outlink", filters: bool = True
    ) -> pl.DataFrame:
        """Normalizes and filters URLs.

        Args:
            urls: Absolute URLs, as they were found.
            scope: Where they come from; all scopes have the same rules so far.
            filters: Whether to filter them, unless the options say not to.

        Returns:
            As many rows in the same order: ``url`` (normalized) and ``key``, or
            nulls and a ``reason``: ``malformed`` (nulls too),
            ``scheme_not_allowed``, ``url_too_long``, ``key_too_long``,
            ``normalizer_loop``, ``filtered``.

        >>> UrlRules().admit(pl.Series(["HTTP://Foo.com", "ftp://foo.com/"])).rows()
        [('http://foo.com/', 'com.foo:http/', None), (None, None, 'scheme_not_allowed')]
        """
        raw = urls.cast(pl.String).rename("raw")
        unique = raw.unique(maintain_order=True)
        admitted = self._admit_unique(unique.drop_nulls(), filters and not self.options.no_filter)
        if len(admitted) < len(raw):
            admitted = raw.to_frame().join(admitted, on="raw", how="left", maintain_order="left")
        missing = pl.col("key").is_null() & pl.col("reason").is_null()
        reason = pl.when(missing).then(pl.lit("malformed")).otherwise("reason")
        return admitted.select("url", "key", reason.alias("reason"))

    def _admit_unique(self, raw: pl.Series, filters: bool) -> pl.DataFrame:
        frame = pl.DataFrame(
            {"raw": raw, "url": raw, "key": self._keys_of_normal(raw)},
            schema_overrides={"raw": pl.String, "url": pl.String},
        ).with_columns(reason=pl.lit(None, pl.String))
        rest = frame.get_column("key").is_null()
        if rest.any():
            slow = pl.DataFrame(
                [self._admit_one(url) for url in raw.filter(rest)],
                schema={"url": pl.String, "key": pl.String, "reason": pl.String},
                orient="row",
            )
            at = rest.arg_true()
            frame = frame.with_columns(
                frame.get_column(name).scatter(at, slow.get_column(name)) for name in slow.columns
            )
        return self._filtered(frame) if filters else frame

    def _filtered(self, frame: pl.DataFrame) -> pl.DataFrame:
        accepted = column_accepts(self._filter, frame.get_column("url"))
        dropped = pl.col("url").is_not_null() & ~accepted
        return frame.with_columns(
            pl.when(~dropped).then("url").alias("url"),
            pl.when(~dropped).then("key").alias("key"),
            pl.when(dropped).then(pl.lit("filtered")).otherwise("reason").alias("reason"),
        )

    def _admit_one(self, raw: str) -> tuple[str | None, str | None, str | None]:
        """Returns the URL and key, or the reason for neither."""
        if 0 <= self.options.max_url_length < len(raw):
            return None, None, "url_too_long"
        try:
            url = self._normalizer.normalize(raw)
            if not url.startswith(_SCHEMES):
                return None, None, "scheme_not_allowed"
            return url, to_key(url), None
        except BadUrl as error:
            return None, None, error.reason

    def _keys_of_normal(self, urls: pl.Series) -> pl.Series:
        """Returns the keys of URLs that are surely normal; null of the others."""
        changes = self._changes
        if changes is None:
            return pl.Series("key", [None] * len(urls), dtype=pl.String)
        parts = urls.str.splitn("/", 4).struct.unnest()
        parts.columns = ["scheme", "empty", "site", "rest"]
        longest = self.options.max_url_length if self.options.max_url_length >= 0 else MAX_KEY_BYTES
        normal = (
            parts.get_column("rest").str.contains(_NORMAL_REST)
            & (parts.get_column("empty") == "")
            & (urls.str.len_bytes() <= longest)
        )
        if changes:
            normal &= ~urls.str.contains(changes)
        parts = parts.with_columns(normal.alias("normal"))
        starts = _key_starts(parts.filter("normal").select("scheme", "site").unique())
        parts = parts.join(starts, on=["scheme", "site"], how="left", maintain_order="left")
        key = pl.concat_str("start", pl.lit("/"), "rest")
        fits = pl.col("normal") & (key.str.len_bytes() <= MAX_KEY_BYTES)
        return parts.select(pl.when(fits).then(key).alias("key")).to_series()

    @property
    def _changes(self) -> str | None:
        """Pattern that finds every URL which a normalizer rule may change; None if unknown."""
        rules = self._normalizer.rules
        patterns = tuple(rule.pattern for rule in rules.rules) if rules else ()
        if any(pattern.column is None for pattern in patterns):
            return None
        changes = "|".join(f"(?:{pattern.column})" for pattern in patterns)
        return changes if is_column_pattern(changes) else None

    def explain(self, url: str) -> list[str]:
        """Returns what happens to a URL and why, a line for each step.

        >>> UrlRules().explain("http://foo.com/logo.PNG")[1][:50]
        'rejected: filtered by regex-urlfilter.txt line 17:'
        """
        lines = [f"url: {url}"]
        normalized, key, reason = self._admit_one(url)
        if reason != "url_too_long":
            lines += self._explain_normalizing(url)
        if normalized is None:
            return [*lines, f"rejected: {reason}"]
        if self.options.no_filter:
            return [*lines, "filter: none", f"accepted: key {key}"]
        rule = self._filter.decide(normalized)
        by = f"{self._filter.name} {rule}" if rule else f"{self._filter.name}: no rule takes it"
        if rule is None or not rule.accept:
            return [*lines, f"rejected: filtered by {by}"]
        return [*lines, f"filter: accepted by {by}", f"accepted: key {key}"]

    def _explain_normalizing(self, url: str) -> list[str]:
        try:
            return [f"{name}: {after}" for name, after in self._normalizer.steps(url)]
        except BadUrl:
            return []


def _read(path: str, default: str) -> str:
    if not path:
        return pathlib.Path(__file__).with_name(default).read_text("utf-8")
    try:
        return pathlib.Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not utf-8 text"
        raise ValueError(f"a file of url rules must be readable, got {path!r}: {why}") from error


@functools.lru_cache(maxsize=32)
def _regex_filter(text: str, name: str) -> RegexFilter:
    return RegexFilter(text, name)


@functools.lru_cache(maxsize=32)
def _normalizer(text: str | None, name: str) -> Normalizer:
    return Normalizer(None if text is None else RegexNormalizer(text, name))


def _key_starts(sites: pl.DataFrame) -> pl.DataFrame:
    """Returns the start of the row keys of each scheme and site (host, port), if it is normal."""
    scheme, site = pl.col("scheme").str.strip_suffix(":"), pl.col("site")
    name = site.str.splitn(":", 2)
    plain = (
        site.str.contains(_NORMAL_SITE)
        & (site.str.len_bytes() <= _MAX_LABEL)
        & ~site.str.contains("xn--", literal=True)
        & scheme.is_in(["http", "https"])
    )
    start = pl.concat_str(
        name.struct.field("field_0").str.split(".").list.reverse().list.join("."),
        pl.lit(":"),
        scheme,
        (":" + name.struct.field("field_1")).fill_null(""),
    )
    sites = sites.with_columns(start=pl.when(plain).then(start))
    rest = sites.get_column("start").is_null()
    found = [_key_start(*row) for row in sites.filter(rest).select("scheme", "site").iter_rows()]
    starts = sites.get_column("start").scatter(rest.arg_true(), pl.Series(found, dtype=pl.String))
    return sites.with_columns(starts)


def _key_start(scheme: str, site: str) -> str | None:
    url = f"{scheme}//{site}/"
    try:
        normal = url.startswith(_SCHEMES) and normalize_basic(url) == url
        return to_key(url)[:-1] if normal else None
    except BadUrl:
        return None


def host_keys(keys: pl.Series) -> pl.Series:
    """Returns the reversed hosts that row keys begin with.

    >>> host_keys(pl.Series(["com.foo:http:8080/x", "[::1]:http/"])).to_list()
    ['com.foo', '[::1]']
    """
    key = pl.col("key")
    end = key.str.find(":", literal=True)
    names = keys.alias("key").to_frame().select(key.str.slice(0, end))["key"]
    bracketed = keys.str.starts_with("[")
    if bracketed.any():
        literal = keys.str.extract(r"^(\[[^\]]*\])", 1)
        names = names.zip_with(~bracketed.fill_null(False), literal)
    return names.alias(keys.name)


def in_scope(
    sources: pl.Series,
    targets: pl.Series,
    mode: Mode,
    seed_domains: frozenset[str] = frozenset(),
) -> pl.Series:
    """Returns which links stay within the crawl.

    Args:
        sources: Row keys or hosts of the linking pages.
        targets: Row keys of what they link to, as many.
        mode: ``any``; or the ``host`` or registered ``domain`` of the target
            must be that of its source or among ``seed_domains``.
        seed_domains: Hosts (mode ``host``) or registered domains of the seeds.

    Returns:
        As many booleans; false where either is null, unless the mode is ``any``.

    >>> in_scope(pl.Series(["a.foo.com"]), pl.Series(["com.foo.b:http/"]), "domain").to_list()
    [True]
    """
    if mode == "any":
        return pl.repeat(True, len(targets), dtype=pl.Boolean, eager=True)
    if mode not in ("host", "domain"):
        raise ValueError(f"scope must be domain, host or any, got {mode!r}")
    wanted = _sites(targets, mode)
    return ((wanted == _sites(sources, mode)) | wanted.is_in(list(seed_domains))).fill_null(False)


def _sites(keys: pl.Series, mode: Mode) -> pl.Series:
    """Returns the host or registered domain of each row key or host."""
    keys = keys.cast(pl.String)
    names = pl.DataFrame({"name": host_keys(keys), "is_key": keys.str.contains(r"\]?:[a-z]+[:/]")})
    unique = names.unique()
    sites = [
        name if name is None else _site(from_host_key(name) if is_key else name, mode)
        for name, is_key in unique.iter_rows()
    ]
    unique = unique.with_columns(pl.Series("site", sites, dtype=pl.String))
    return names.join(unique, on=["name", "is_key"], how="left", maintain_order="left").get_column(
        "site"
    )


def _site(host: str, mode: Mode) -> str:
    return registered_domain(host) if mode == "domain" else host
