"""Makes links of pages absolute, a column at a time."""

import re
from collections.abc import Iterable

import polars as pl

from .row_keys import parse_url

# Patterns for polars: parts of URLs that WHATWG parsing does not change.
HOST = (
    r"(?:(?:[a-z0-9_-]+\.)*[a-z][a-z0-9_-]*"
    r"|(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}"
    r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9]))"
)
# Ports that are not the default of a scheme.
PORT = r"(?::(?:[1-9][0-9]{3}|[1-5][0-9]{4}))?"
_LEVELS = 8
_BASE = re.compile(r"(https?://[^/?]*)(/[^?]*)(?:\?.*)?", re.DOTALL)
# Schemes whose links lead to pages; plug-ins may add hierarchical ones, as scheme://host/path.
_KEPT = ("http:", "https:", "ftp:", "file:")


def segment(escape: str) -> str:
    """Returns a pattern for a path segment that is neither empty, ``.`` nor ``..``.

    Args:
        escape: Pattern for the percent-escapes that it may contain.
    """
    char = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{escape})"
    return rf"(?:(?:\.{{0,2}}(?:[A-Za-z0-9_~!$&'()*+,;=:@-]|{escape})|\.\.\.){char}*)"


def query(escape: str) -> str:
    """Returns a pattern for a query with its question mark, or nothing."""
    return rf"(?:\?(?:[A-Za-z0-9._~!$&()*+,;=:@/?-]|{escape})*)?"


# In WHATWG parsing, %2e is a dot; the parser handles links with it.
_SEGMENT, _QUERY = segment("%"), query("%")
_PATH = rf"(?:/{_SEGMENT}?)*"
_ABSOLUTE = rf"^https?://{HOST}{PORT}/{_SEGMENT}?{_PATH}{_QUERY}$"
_ROOTED = rf"^/(?:{_SEGMENT}{_PATH})?{_QUERY}$"
_NAMED = rf"^{_SEGMENT}{_PATH}{_QUERY}$"


def absolute_urls(bases: pl.Series, hrefs: pl.Series, schemes: Iterable[str] = ()) -> pl.Series:
    """Returns the absolute URLs of links, without fragment.

    Args:
        bases: URLs of the pages, or of their base elements; with null only links that are
            absolute have a URL.
        hrefs: Links as in the pages, one for each base.
        schemes: Schemes of plug-ins, besides http, https, ftp and file.

    Returns:
        One result of WHATWG parsing per link; null if it fails, or if the scheme is not http,
        https, ftp, file or one of ``schemes`` (but ``mailto:``, ``javascript:``).

    >>> absolute_urls(pl.Series(["http://a/b/c/d;p?q"] * 3), pl.Series(["../g#s", "?y", "tel:1"])).to_list()
    ['http://a/b/g', 'http://a/b/c/d;p?y', None]
    """
    parts = _read_bases(bases.cast(pl.String).unique())
    links = pl.DataFrame(
        {"base": bases.cast(pl.String), "href": _bare_hrefs(hrefs.cast(pl.String))}
    )
    links = links.join(
        parts.select("base", "code"), on="base", how="left", nulls_equal=True, maintain_order="left"
    ).drop("base")
    pairs = links.unique()
    starts = (*_KEPT, *(f"{scheme}://" for scheme in schemes))
    joined = pairs.join(parts, on="code", how="left", maintain_order="left")
    urls = _absolute_pairs(joined, starts)
    pairs = pairs.with_columns(urls.alias("url"))
    joined = links.join(pairs, on=["code", "href"], how="left", maintain_order="left")
    return joined.get_column("url")


def _bare_hrefs(hrefs: pl.Series) -> pl.Series:
    """Removes fragments, unless a space before the fragment would then be trimmed."""
    cut = hrefs.str.splitn("#", 2).struct.field("field_0")
    trimmed = cut.str.contains(r"[\x00-\x20]$")
    bare_href = pl.when(trimmed).then("href").otherwise(cut)
    return hrefs.to_frame("href").select(bare_href).to_series()


def _read_bases(bases: pl.Series) -> pl.DataFrame:
    """Returns columns ``code`` and ``valid`` of the bases; for plain bases also further parts.

    These are ``whole``, ``path``, ``origin`` and ``folders``: the folder of the base, its parent,
    and so on, up to ``_LEVELS`` levels.
    """
    rows = [(base, code, *_read_base(base)) for code, base in enumerate(bases)]
    return pl.DataFrame(
        rows,
        orient="row",
        schema={
            "base": pl.String,
            "code": pl.UInt32,
            "valid": pl.Boolean,
            **dict.fromkeys(("whole", "path", "origin"), pl.String),
            "folders": pl.List(pl.String),
        },
    )


def _read_base(
    base: str | None,
) -> tuple[bool, str | None, str | None, str | None, list[str] | None]:
    href = "" if base is None else parse_url(base)
    match = None if href is None else _BASE.fullmatch(href.partition("#")[0])
    if match is None:
        return href is not None, None, None, None, None
    origin, path = match.groups()
    folders = []
    for _ in range(_LEVELS + 1):
        path = path[: path.rindex("/") + 1]
        folders.append(origin + path)
        path = path[:-1] or "/"
    return True, match[0], origin + match[2], origin, folders


def _absolute_pairs(pairs: pl.DataFrame, starts: tuple[str, ...]) -> pl.Series:
    """Resolves links; the columns of ``_read_bases`` are in the same rows.

    Args:
        pairs: The links.
        starts: What the URLs of links that are kept begin with.
    """
    href = pl.col("href")
    plain = ~href.str.contains(r"(?i)%2e|xn--")
    pairs = pairs.with_columns(up=href.str.extract(r"^((?:\./)?(?:\.\./)*)", 1))
    pairs = pairs.with_columns(rest=href.str.slice(pl.col("up").str.len_bytes()))
    url = (
        pl.when(plain & pl.col("valid") & href.str.contains(_ABSOLUTE))
        .then(href)
        .when(href == "")
        .then("whole")
        .when(plain & href.str.contains(_ROOTED))
        .then(pl.concat_str("origin", "href"))
        .when(plain & href.str.contains("^" + _QUERY + "$"))
        .then(pl.concat_str("path", "href"))
        .when(plain & _is_below_folder())
        .then(pl.concat_str(_folder(), "rest"))
    )
    pairs = pairs.with_columns(url=url)
    rest = pairs.filter(pl.col("url").is_null() & href.is_not_null())
    rows = rest.select("base", "href").iter_rows()
    urls = [_absolute_url(base, link, starts) for base, link in rows]
    at = pairs.get_column("url").is_null() & pairs.get_column("href").is_not_null()
    return pairs.get_column("url").scatter(at.arg_true(), pl.Series(urls, dtype=pl.String))


def _is_below_folder() -> pl.Expr:
    """Returns a condition: ``rest`` is a path below one of the base's folders."""
    rest, bare = pl.col("rest"), pl.col("up") == ""
    named = rest.str.contains(_NAMED) & ~(bare & rest.str.contains("^[^/?]*:"))
    return named | (~bare & rest.str.contains("^" + _QUERY + "$"))


def _folder() -> pl.Expr:
    levels = pl.col("up").str.count_matches("../", literal=True)
    return pl.col("folders").list.get(levels, null_on_oob=True)


def _absolute_url(base: str | None, href: str, starts: tuple[str, ...]) -> str | None:
    url = parse_url(href, base)
    if url is None or not url.startswith(starts):
        return None
    return url.partition("#")[0]
