"""Fuzzing of rule files: each of Nutch's formats, and what the rules then say of URLs."""

import re
from collections.abc import Callable

import polars as pl

from nutbeam.web.filters.list_filters import (
    DomainFilter,
    FastFilter,
    FastLimits,
    PrefixFilter,
    SuffixFilter,
)
from nutbeam.web.filters.regex_filter import RegexFilter, Validator
from nutbeam.web.filters.verdicts import UrlFilter
from nutbeam.web.normalizers.host_rules import Host, Protocol, Slash
from nutbeam.web.normalizers.normalizer_step import Step
from nutbeam.web.normalizers.regex_rules import RegexNormalizer
from nutbeam.web.patterns.brics import compile_automaton
from nutbeam.web.urls.row_keys import BadUrl

from .target import DATA, Clock, Target

NAME = "rules.txt"
# Rules are the operator's: a pattern may be slow, and has its time limit for each URL.
SECONDS = 20
URLS = (
    "http://www.foo.com/a/b/a/b/a/b/?q=1&sid=2;x#f", "https://bar.co.uk:8443/x.GIF", "ftp://foo.com/",
    "file:///etc/passwd", "http://[::1]/", "http://10.0.0.1/%7E/%C3%A4", "mailto:a@b", "", "http://",
    "http://xn--mnchen-3ya.de/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "no url", "http://ä.de/ß",
)  # fmt: skip
READERS: list[Callable[[str], UrlFilter | Step]] = [
    lambda text: RegexFilter(text, NAME),
    lambda text: RegexFilter(text, NAME, compile_automaton, "dk.brics expression"),
    lambda text: PrefixFilter(text, NAME),
    lambda text: SuffixFilter(text, NAME),
    lambda text: DomainFilter(text, NAME),
    lambda text: DomainFilter(text, NAME, deny=True),
    lambda text: FastFilter(text, NAME, FastLimits(200, 100, 50)),
    lambda text: Validator(len(text) % 9),
    lambda text: RegexNormalizer(text, NAME),
    lambda text: Slash(text, NAME),
    lambda text: Host(text, NAME),
    lambda text: Protocol(text, NAME),
]
WORDS = [
    *(b"+", b"-", b"^http://", b"\\.", b"(?i)", b"(?<!:)", b"[a-z]", b"[^/]+", b"*+", b"{2,}", b"\\1"),
    *(b"(", b")", b"|", b"$", b"\\Q", b"\\E", b"&&", b"\n", b"\r\n", b"#", b" ", b"\t", b"> foo.com\n"),
    *(b"<\n", b"Host foo.com\n", b"Domain .\n", b"DenyPath ", b"DenyPathQuery ", b".*", b"*.foo.com "),
    *(b"<regex>", b"<pattern>", b"</pattern>", b"<substitution>", b"$1", b"${name}", b"&amp;", b"\\"),
    *(b"<1-9>", b"~", b"@", b'"', b"\\p{L}", b"(?<name>", b"\\b", b"\\uFFFF", b"\xc3\x9f", b"\xef\xbb\xbf"),
    *(b"foo.com https", b"co.uk\n", b".gif\n", b"+PI\n", b"{1000}", b"(?:", b"(?=", b"\\x{41}", b"\\d"),
]  # fmt: skip


def check(data: bytes) -> None:
    """The first byte chooses the reader; the rest is the file."""
    if not data:
        return
    text = data[1:].decode("utf-8", "replace")
    with Clock(SECONDS):
        try:
            rules = READERS[data[0] % len(READERS)](text)
        except ValueError as error:
            said = str(error)
            assert re.match(rf"{re.escape(NAME)}:\d+: ", said), said
            assert len(said) < 1200, said
            return
        if hasattr(rules, "decide"):
            _check_filter(rules)
        else:
            _check_normalizer(rules)


def _check_filter(rules: UrlFilter) -> None:
    column = rules.decide_column(pl.Series([*URLS, None], dtype=pl.String))
    assert len(column.accept) == len(URLS) + 1
    assert not column.accept[-1]
    for url, accept, line, slow in zip(URLS, *column, strict=False):
        one = rules.decide(url)
        if not (slow or one.slow):  # which depends on what else there is to do
            assert one == (accept, line, slow), (url, one, accept, line)
        assert isinstance(rules.rule(one.line), str)


def _check_normalizer(rules: Step) -> None:
    touched = rules.touches(pl.Series([*URLS, None], dtype=pl.String))
    applied = rules.apply_column(pl.Series(URLS))
    for at, url in enumerate(URLS):
        try:
            after, reason = rules.apply(url), None
        except BadUrl as error:
            after, reason = None, error.reason
        if "normalizer_timeout" in (reason, applied.reasons[at]):
            continue
        assert (after, reason) == (applied.urls[at], applied.reasons[at]), (
            url,
            after,
            applied.urls[at],
        )
        assert touched[at] or after == url, (url, after)
    assert not touched[-1]


def seeds() -> list[bytes]:
    """Returns the files that ship, and one of each format."""
    web = DATA.parent / "web" / "rules"
    shipped = [(0, "regex-urlfilter.txt"), (8, "regex-normalize.xml")]
    found = [bytes([n]) + (web / name).read_bytes() for n, name in shipped if (web / name).exists()]
    rule = b"<regex-normalize><regex><pattern>%s</pattern><substitution>%s</substitution></regex></regex-normalize>"
    made = [
        (
            0,
            b"# all\n-(?i)\\.(gif|jpg)$\n> foo.com\n-[?*!@=]\n<\n-.*(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+.\n",
        ),
        (0, b"+^https?://([a-z0-9]*\\.)*foo.com/\n-(?<!a)b{2,3}+\\Q.+\\E[a-z&&[^b]]\n"),
        (1, b'-.*\\.(gif|jpg)\n+https?://~(.*foo.*)<1-20>@\n+[a-z]{2,}"x"&.*\n'),
        (2, b"http://www\nftp://\n# no\n"),
        (3, b"+PI\n.gif\n.JPG\n"),
        (4, b"net\napache.org\nco.uk\nwww.foo.com\n10.0.0.1\n"),
        (5, b"foo.com # x\n[::1]\n"),
        (
            6,
            b"Host www.foo.com\n  DenyPath /a/.*\n  DenyPathQuery ^/x[?]y\nDomain .\n DenyPath .*\n",
        ),
        (7, b"xxx"),
        (8, rule % (b"(?i)(;|\\b)(sid=)[^&amp;#]*", b"$1")),
        (8, rule % (b"(?&lt;!:)/{2,}", b"/")),
        (8, rule % (b"(?&lt;name&gt;a)(b)?", b"${name}$2\\$")),
        (9, b"www.foo.com\t+\nbar.co.uk -\n"),
        (10, b"*.foo.com foo.com\nbar.co.uk [::1]\n"),
        (11, b"foo.com\thttps\n*.bar.co.uk http\n"),
    ]
    return [*(bytes([n]) + text for n, text in made), *found]


TARGETS = (Target("rules", check, seeds, WORDS, 4096),)
