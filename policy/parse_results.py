"""What came of parsing a page, with Nutch's codes: major, minor, message."""

from typing import Any

from ..web.parsers.page import NoParser, ParseFailed
from .schema import ParseMinor, ParseStatus

Result = dict[str, Any]

# Reasons that begin so say that a document is not what it should be.
_INVALID = ("malformed", "not_text")
# Types that are counted by name where no parser takes them; of others the first half is.
_SUBTYPES = {
    "application": "gzip java-archive javascript json msword octet-stream pdf rtf vnd.ms-excel "
    "vnd.ms-powerpoint x-7z-compressed x-bzip2 x-executable x-rar-compressed "
    "x-shockwave-flash x-tar x-xz xml zip",
    "audio": "flac mp4 mpeg ogg wav",
    "font": "otf ttf woff woff2",
    "image": "avif bmp gif jpeg png svg+xml tiff webp x-icon",
    "text": "calendar css csv javascript markdown rtf vcard xml",
    "video": "mp4 mpeg ogg quicktime webm x-msvideo",
}


def succeeded(refresh: str | None) -> Result:
    """Returns the status of a page that was parsed.

    Args:
        refresh: Where its meta refresh leads, if it has one.
    """
    minor = ParseMinor.OK if refresh is None else ParseMinor.REDIRECT
    return _status(ParseStatus.SUCCESS, minor)


def not_parsed(error: NoParser, mime: str) -> tuple[Result, tuple[str, str]]:
    """Returns (the status of a page that no parser takes, names to count it under).

    Servers make up types at will, so few of them are counted by name.

    >>> not_parsed(NoParser(), "image/png")[1]
    ('skipped/no_parser', 'no_parser/image/png')
    >>> [not_parsed(NoParser(), m)[1][1] for m in ("image/x-mine", "x/y")]
    ['no_parser/image/other', 'no_parser/other']
    """
    top, _, subtype = mime.partition("/")
    kind = "other"
    if top in _SUBTYPES:
        kind = mime if subtype in _SUBTYPES[top].split() else f"{top}/other"
    said = mime if error.__cause__ is None else str(error.__cause__)  # what would take it
    status = _status(ParseStatus.NOTPARSED, ParseMinor.OK, f"{error.reason}: {said}"[:200])
    return status, (f"skipped/{error.reason}", f"no_parser/{kind}")


def failed(error: Exception, truncated: bool) -> tuple[Result, str]:
    """Returns (the status of a page that a parser failed at, the name to count it under).

    Args:
        error: Why.
        truncated: Whether the page was cut, which may be why.
    """
    reason = failure_of(error)
    cause = error.__cause__ if isinstance(error, ParseFailed) else error
    message = reason if cause is None else f"{reason}: {_said(cause, reason)}"[:200]
    status = _status(ParseStatus.FAILED, minor_of(reason, truncated), message)
    return status, f"failed/{reason}"


def _said(cause: BaseException, reason: str) -> str:
    """Returns what an exception says: of a plug-in's, and one nobody expected, its type as well."""
    try:
        words = str(cause.args[0] if isinstance(cause, KeyError) and cause.args else cause)
        expected = words and reason != "parser_error" and not reason.startswith("filter_")
        said = words if expected else repr(cause)
    except Exception:  # noqa: BLE001 - of a plug-in's own
        said = type(cause).__name__
    return said[:200].encode("utf-8", "replace").decode()


def failure_of(error: Exception) -> str:
    """Returns a failure in one word."""
    return error.reason if isinstance(error, ParseFailed) else "parser_error"


def minor_of(reason: str, truncated: bool = False) -> ParseMinor:
    """Returns the minor status of a failure.

    >>> minor_of("timeout"), minor_of("malformed"), minor_of("malformed", truncated=True)
    (<ParseMinor.EXCEPTION: 200>, <ParseMinor.INVALID_FORMAT: 203>, <ParseMinor.TRUNCATED: 202>)
    """
    if truncated:
        return ParseMinor.TRUNCATED
    return ParseMinor.INVALID_FORMAT if reason.startswith(_INVALID) else ParseMinor.EXCEPTION


def status_text(major: int | None, minor: int | None, message: str | None) -> str | None:
    """Returns a parse status as Nutch writes it; of rows of old tables the minor is a guess.

    >>> status_text(1, 0, None), status_text(2, 203, "malformed"), status_text(0, 0, "no_parser")
    ('success(1,0)', 'failed(2,203): malformed', 'notparsed(0,0): no_parser')
    >>> status_text(2, None, None), status_text(None, None, None)
    ('failed(2,200)', None)
    """
    if major is None:
        return None
    if minor is None:
        failure = major == ParseStatus.FAILED
        minor = int(ParseMinor.EXCEPTION if failure else ParseMinor.OK)
    said = f": {message}" if message else ""
    return f"{ParseStatus(major).name.lower()}({major},{minor}){said}"


def _status(major: ParseStatus, minor: ParseMinor, message: str | None = None) -> Result:
    return {"parse_status": int(major), "parse_minor": int(minor), "parse_message": message}
