"""What a request to a replay asks for: an archived URL, a page about the archive, or nothing."""

import calendar
import datetime
import enum
import re
from typing import NamedTuple

from ..urls.row_keys import parse_url

_SCHEMES = r"https?|ftp|file"
_ABSOLUTE = re.compile(rf"(?:{_SCHEMES})://", re.IGNORECASE)
# /20261128163224id_/http://a/ as in Wayback and pywb; slashes of the URL may have become one.
_BY_PATH = re.compile(
    rf"/(?:(?P<time>[0-9]{{4,14}}|\*)?(?P<kind>[a-z]{{2,4}}_)?/)?"
    rf"(?P<scheme>{_SCHEMES}):/{{1,2}}(?P<rest>[^/].*|/[^/].*)",
    re.IGNORECASE | re.DOTALL,
)
# /20261128163224/a.com/ is http.
_WITHOUT_SCHEME = re.compile(
    r"(/(?:[0-9]{4,14}|\*)(?:[a-z]{2,4}_)?/)([^/].*)", re.IGNORECASE | re.DOTALL
)
_RAW, FRAMED = "id_", "mp_"
_FIRST = "00000101000000"


class Asked(enum.Enum):
    """What a request asks for."""

    ORIGINAL = "the answer as its server gave it"
    PAGE = "the page below the address of the replay"
    RAW = "its body without changes"
    CAPTURES = "the list of the captures of a URL"
    OWN = "a page of the replay itself"


class ReplayRequest(NamedTuple):
    """A request.

    Attributes:
        asked: What it asks for.
        url: The archived URL, as browsers parse it; of ``OWN`` the path and query.
        time: As many digits of a time as were given; empty if none were.
        framed: Whether it is for the frame of a page.
    """

    asked: Asked
    url: str
    time: str = ""
    framed: bool = False


def parse_request(target: str, host: str, *, own: bool, secure: bool) -> ReplayRequest | None:
    """Returns what a request asks for; None if it is no request that a replay answers.

    Args:
        target: The request's target: a whole URL for proxies, or a path (RFC 9112 3.2).
        host: The value of Host.
        own: Whether that names the replay itself.
        secure: Whether the request came by TLS.

    >>> parse_request("http://a.com/x", "a.com", own=False, secure=False).url
    'http://a.com/x'
    >>> parse_request("/x", "a.com", own=False, secure=True).url
    'https://a.com/x'
    >>> parse_request("/2026id_/http://a.com", "localhost:80", own=True, secure=False)
    ReplayRequest(asked=<Asked.RAW: 'its body without changes'>, url='http://a.com/', time='2026', framed=False)
    """
    if _ABSOLUTE.match(target):
        return _of_url(Asked.ORIGINAL, target)
    if not target.startswith("/"):
        return None
    if not own:
        return _of_url(Asked.ORIGINAL, f"http{'s' * secure}://{host}{target}") if host else None
    match = _BY_PATH.fullmatch(target) or _BY_PATH.fullmatch(
        _WITHOUT_SCHEME.sub(r"\1http://\2", target, count=1)
    )
    if match is None:
        return ReplayRequest(Asked.OWN, target)
    time, kind = match["time"] or "", match["kind"] or ""
    slashes = "//" if match["scheme"].lower() != "file" else "///"
    url = f"{match['scheme']}:{slashes}{match['rest'].lstrip('/')}"
    if time == "*":
        return _of_url(Asked.CAPTURES, url)
    asked = Asked.RAW if kind == _RAW else Asked.PAGE
    return _of_url(asked, url, time, framed=kind == FRAMED)


def _of_url(
    asked: Asked, text: str, time: str = "", *, framed: bool = False
) -> ReplayRequest | None:
    url = parse_url(text)
    if url is None:
        return None
    return ReplayRequest(asked, url.partition("#")[0], time, framed)


def page_path(url: str, time: str = "", kind: str = "") -> str:
    """Returns the path of an archived URL below the address of the replay.

    >>> page_path("http://a.com/x?y", "20261128000000"), page_path("http://a.com/")
    ('/20261128000000/http://a.com/x?y', '/http://a.com/')
    """
    return f"/{time}{kind}/{url}" if time or kind else f"/{url}"


def time_of_digits(digits: str) -> int:
    """Returns the time that digits begin to name, UTC ms: 2026 is its last moment.

    So the newest capture of a year, a month or a day is the nearest to it.

    Raises:
        ValueError: They are no time.

    >>> time_of_digits("20261128163224") == 1_795_883_544_000, time_of_digits("2026") % 1000
    (True, 999)
    """
    if not (digits.isascii() and digits.isdigit() and 4 <= len(digits) <= 14) or len(digits) % 2:
        raise ValueError(f"expected a time as 4 to 14 digits, such as 20261128, got {digits!r}")
    whole = digits + _FIRST[len(digits) :]
    try:
        moment = datetime.datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=datetime.UTC)
        milliseconds = calendar.timegm(moment.timetuple()) * 1000
        if len(digits) == 14:
            return milliseconds
        return milliseconds + _length_ms(moment, len(digits)) - 1
    except (ValueError, OverflowError) as error:
        raise ValueError(f"expected a time such as 20261128163224, got {digits!r}") from error


def _length_ms(moment: datetime.datetime, digits: int) -> int:
    """Returns the length of the year, month, day, hour or minute that begins at a moment."""
    days = {4: 366 if calendar.isleap(moment.year) else 365,
            6: calendar.monthrange(moment.year, moment.month)[1], 8: 1}  # fmt: skip
    return days[digits] * 86_400_000 if digits in days else {10: 3_600_000, 12: 60_000}[digits]
