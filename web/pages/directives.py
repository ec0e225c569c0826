"""Reads directives for robots: robots meta elements and X-Robots-Tag."""

import datetime
import functools
import re
from collections.abc import Collection, Sequence
from email.utils import parsedate_to_datetime

from ..base.agent import DEFAULT_NAME
from .page import Page, Source
from .parse_options import ParseOptions
from .spans import Span

_HEADER = "x-robots-tag"

_MAX_DATE_CHARS = 100
_TOKENS = {
    "none": ("noindex", "nofollow"),
    "noindex": ("noindex",),
    "nofollow": ("nofollow",),
    "noarchive": ("noarchive",),
    "nocache": ("noarchive",),
    "noai": ("noai",),
    "noimageai": ("noimageai",),
}
_UNAVAILABLE = "unavailable_after"
# Rules with a value; any other word before a colon is the name of one robot.
_RULES = frozenset({"max-snippet", "max-image-preview", "max-video-preview", _UNAVAILABLE})
_SEPARATOR = re.compile("[,;]")
_DAY_CHARS = len("2026-01-02")
# A day with a zone, and the name of a zone after a date of ISO 8601.
_ZONE_OF_DAY = re.compile(r"(?ai)\A(\d{4}-\d\d-\d\d)\s?(Z|[+-]\d\d:?\d\d)\Z")
_UTC = re.compile(r"(?ai)\A(\d{4}-\d\d-\d\d[T ][\d:.]{1,20})\s?(?:UTC|GMT)\Z")
_WEEKDAY = re.compile(r"\s*[a-z]+\s*")


def header_directives(source: Source, options: ParseOptions) -> set[str]:
    """Returns the directives in the ``X-Robots-Tag`` headers of any document.

    >>> headers = [("x-robots-tag", "otherbot: none"), ("x-robots-tag", "nofollow")]
    >>> header_directives(Source("http://a/", b"", headers=headers), ParseOptions())
    {'nofollow'}
    """
    directives: set[str] = set()
    for name, value in source.headers:
        if name == _HEADER:  # each by itself: a robot's name counts to the end of its header
            directives |= robots_directives(value, robot_names(options), source.fetch_time)
    return directives


@functools.lru_cache(maxsize=64)
def robot_names(options: ParseOptions) -> frozenset[str]:
    """Returns the names of robots that are this crawler, in lower case.

    >>> sorted(robot_names(ParseOptions(agent_name="Bot", robots_agents=("OtherBot",))))
    ['bot', 'otherbot']
    """
    names = (options.agent_name or DEFAULT_NAME, *options.robots_agents)
    return frozenset(name.lower() for name in names)


def robots_directives(
    value: str, names: Collection[str] = (), fetch_time: int | None = None
) -> set[str]:
    """Returns the directives in a robots meta or an ``X-Robots-Tag``.

    Directives after the name of a robot are for that robot only, up to the next name. They count
    if the name is ours.

    Args:
        value: Directives, with commas or semicolons between them.
        names: Of robots that are this crawler, in lower case.
        fetch_time: When the document was fetched, UTC ms: after the date of
            ``unavailable_after`` it counts as ``noindex``. None leaves dates out.

    >>> sorted(robots_directives("None, max-image-preview:none"))
    ['nofollow', 'noindex']
    >>> robots_directives("noarchive, googlebot: noindex, bot: nofollow", {"bot"}) == {
    ...     "noarchive", "nofollow"}
    True
    """
    directives: set[str] = set()
    to_us = True
    parts = iter(_SEPARATOR.split(value.lower()))
    for part in parts:
        rule, colon, argument = part.partition(":")
        if colon and rule.strip() not in _RULES:
            to_us = rule.strip() in names
            rule, _, argument = argument.partition(":")
        if rule.strip() == _UNAVAILABLE:
            if _WEEKDAY.fullmatch(argument):
                argument += f", {next(parts, '')}"
            rule = "noindex" if _is_over(argument[:_MAX_DATE_CHARS], fetch_time) else ""
        if to_us:
            for word in rule.split():
                directives.update(_TOKENS.get(word, ()))
    return directives


def _is_over(date: str, now: int | None) -> bool:
    moment = None if now is None else parse_moment(date)
    return now is not None and moment is not None and moment < now


def parse_moment(text: str) -> int | None:
    """Returns a date of RFC 822, RFC 850 or ISO 8601 as UTC ms, or None if it is no date.

    Without a time it is the start of its day, without a zone that is known, UTC. A day may have a
    zone, too (XML Schema 2, 3.3.9).

    >>> parse_moment("Wednesday, 25-Jun-25 15:00:00 GMT"), parse_moment("2025-06-25T17:00+02:00")
    (1750863600000, 1750863600000)
    >>> parse_moment("2026-01-02+01:00")
    1767308400000
    >>> parse_moment("soon") is None
    True
    """
    text = text.strip()
    if len(text) > _DAY_CHARS:  # most dates in sitemaps are a day alone
        text = _ZONE_OF_DAY.sub(r"\1T00:00:00\2", _UTC.sub(r"\1Z", text))
    with_time = text if ":" in text else f"{text} 00:00:00"
    for read, date in (
        (datetime.datetime.fromisoformat, text.upper()),
        (parsedate_to_datetime, with_time),
    ):
        try:
            moment = read(date)
            utc = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
            return round(utc.timestamp() * 1000)
        except (ValueError, OverflowError, IndexError, TypeError):
            continue
    return None


def obey(page: Page, text: str, text_spans: Sequence[Span] = ()) -> None:
    """Gives a page its text and its spans, and leaves it its links, as far as its directives allow."""
    if "noindex" in page.directives:
        page.title = ""
    else:
        page.text, page.spans = text, list(text_spans)
    obey_nofollow(page)


def obey_nofollow(page: Page) -> None:
    """Removes the links of a page that has ``nofollow``."""
    if "nofollow" in page.directives:
        page.drop("page_nofollow", len(page.hrefs))
        page.hrefs, page.anchors, page.rels, page.unfollowed = [], [], [], []
