"""The URL schemes that can be crawled."""

import re
from collections.abc import Collection, Iterable

import polars as pl

from ..base.dataclass import dataclass
from ..base.options import option
from ..plugins.plugin_options import PluginOptions
from ..plugins.plugins import PluginGroup

SCHEMES = ("http", "https", "file", "ftp")
WEB = ("http", "https")
FTP_PORT = 21
# Strict, so that no special character gets into a command.
_FTP = re.compile(
    r"ftp://(?:[^/?#@]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?"
    r"(/[\x21\x22\x24-\x3e\x40-\x7e]*)?(?:[?#][\x21-\x7e]*)?"
)


PROTOCOLS = PluginGroup("nutbeam.protocols", "protocol", SCHEMES, keyed="protocols")


@dataclass(frozen=True)
class SchemeOptions(PluginOptions):
    """Options of the accepted URL schemes, and of the plug-ins that fetch."""

    schemes: tuple[str, ...] = option(
        WEB,
        "Schemes of the URLs that are accepted: http, https, file, ftp, and those of --protocols. "
        "file: URLs are accepted only from seeds and from file: documents.",
        pattern="[a-z][a-z0-9+.-]*",
        nutch="plugin.includes",
        group="url",
    )
    protocols: tuple[str, ...] = option(
        (),
        "Plug-ins that fetch URLs, as SCHEME:=NAME, which --schemes must have, too, or as "
        "HOST=NAME for all URLs of a host.",
        pattern=r"(?:[a-z][a-z0-9+.-]*:|[A-Za-z0-9._-]+)=[^=+]+",
        form="SCHEME:=NAME or HOST=NAME",
        group="url",
        plugins=True,
    )

    def __post_init__(self) -> None:
        if not self.schemes:
            raise ValueError(f"schemes must be some of {', '.join(SCHEMES)}, got none")

    def check_given(self, _: Collection[str]) -> None:
        """Checks that each scheme has a client: one of nutbeam, or a plug-in.

        Raises:
            ValueError: A scheme has none, or a protocol is given twice.
        """
        keys = [text.partition("=")[0] for text in self.protocols]
        for scheme in self.schemes:
            if scheme not in SCHEMES and f"{scheme}:" not in keys:
                raise ValueError(
                    f"--schemes must be some of {', '.join(SCHEMES)}, or those of --protocols, got "
                    f"{scheme!r}: a plug-in for it is --protocols {scheme}:=NAME"
                )
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"--protocols may have {key!r} once")


def scheme_of(url: str) -> str:
    """Returns the scheme of a normalized URL.

    >>> scheme_of("ftp://a.example/x"), scheme_of("")
    ('ftp', '')
    """
    scheme, colon, _ = url.partition(":")
    return scheme if colon else ""


def is_web(url: str) -> bool:
    """Returns whether a URL or origin is HTTP; only these have a robots.txt."""
    return scheme_of(url) in WEB


def split_ftp(url: str) -> tuple[str, int, str]:
    """Returns (host, port, path) of an FTP URL; user info and query are dropped.

    Raises:
        ValueError: It is not an FTP URL.

    >>> split_ftp("ftp://u:p@Ftp.Example.com/a%20b?c")
    ('ftp.example.com', 21, '/a%20b')
    """
    match = _FTP.fullmatch(url)
    port = int(match[2]) if match and match[2] else FTP_PORT
    if match is None or not 0 < port < 65536:
        raise ValueError(f"expected an ftp URL in ASCII, got {url!r}")
    return match[1].lower(), port, match[3] or "/"


def allowed_keys(keys: pl.Series, schemes: Iterable[str]) -> pl.Series:
    """Returns which row keys are of one of the schemes.

    >>> keys = pl.Series(["com.foo:http/", ":file/a", "com.foo:ftp:2121/", "[::1]:https/x:ftp/"])
    >>> allowed_keys(keys, ["http", "https"]).to_list()
    [True, False, False, True]
    """
    taken = set(schemes)
    names = "|".join(map(re.escape, sorted(taken)))
    exact = rf"^(?:\[[^\]]*\]|[^:\[]*):(?:{names})[:/]"
    if not taken.issuperset(WEB):
        return keys.str.contains(exact)
    # Cheap tests: most keys are of HTTP and need no further test.
    doubtful = keys.str.starts_with(":") | keys.str.contains(":ftp", literal=True)
    doubtful |= ~keys.str.contains(":http", literal=True)
    if not doubtful.any():
        return ~doubtful
    return keys.to_frame("key").select(~doubtful | pl.col("key").str.contains(exact)).to_series()


def plugin_schemes(schemes: Iterable[str]) -> tuple[str, ...]:
    """Returns the schemes that only plug-ins fetch.

    >>> plugin_schemes(["http", "gemini"])
    ('gemini',)
    """
    return tuple(scheme for scheme in schemes if scheme not in SCHEMES)
