"""The result of parsing a page, with Nutch's codes: major, minor, message."""

import re
from typing import Any

from ...web.pages.page import NoParser, ParseFailed
from ..components.document_schema import ParseMinor
from ..components.schema import ParseStatus

ParseResult = dict[str, Any]

# Reasons with these prefixes mean that a document is not of its type.
_INVALID = ("malformed", "not_text")
# Syntax of names of registered types (RFC 6838 4.2).
_NAME = "[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"
_TYPE = re.compile(f"{_NAME}/{_NAME}")


def success_status(refresh: str | None) -> ParseResult:
    """Returns the status of a page that was parsed with success.

    Args:
        refresh: Target of its meta refresh, or None.
    """
    minor = ParseMinor.OK if refresh is None else ParseMinor.REDIRECT
    return _status(ParseStatus.SUCCESS, minor)


def not_parsed(error: NoParser, mime: str) -> tuple[ParseResult, tuple[str, str]]:
    """Returns (the status of a page without a parser for its type, names of its counts).

    Servers invent types, so ``cap_rule_counts`` limits the number of names.

    >>> [not_parsed(NoParser(), m)[1] for m in ("image/x-mine", "'/`")]
    [('skipped/no_parser', 'no_parser/image/x-mine'), ('skipped/no_parser', 'no_parser/other')]
    """
    kind = mime if _TYPE.fullmatch(mime) else "other"
    missing = mime if error.__cause__ is None else str(error.__cause__)  # its parser
    status = _status(ParseStatus.NOTPARSED, ParseMinor.OK, f"{error.reason}: {missing}"[:200])
    return status, (f"skipped/{error.reason}", f"no_parser/{kind}")


def cut_off(why: str) -> ParseResult:
    """Returns the status of a page that is not parsed because its body was cut.

    Args:
        why: Why the body is incomplete, such as ``length``.
    """
    return _status(ParseStatus.NOTPARSED, ParseMinor.TRUNCATED, f"truncated: {why}")


def failure_status(error: Exception, truncated: bool) -> tuple[ParseResult, str]:
    """Returns (the status of a page that failed to parse, the name of its count).

    Args:
        error: The failure.
        truncated: Whether the page was truncated, which may be the cause.
    """
    reason = error.reason if isinstance(error, ParseFailed) else "parser_error"
    cause = error.__cause__ if isinstance(error, ParseFailed) else error
    message = reason if cause is None else f"{reason}: {_text_of(cause, reason)}"[:200]
    status = _status(ParseStatus.FAILED, minor_of(reason, truncated), message)
    return status, f"failed/{reason}"


def _text_of(cause: BaseException, reason: str) -> str:
    """Returns the text of an exception, with its type if it is unexpected or of a plug-in."""
    try:
        words = str(cause.args[0] if isinstance(cause, KeyError) and cause.args else cause)
        expected = words and not reason.startswith(("filter_", "parser_"))
        text = words if expected else repr(cause)
    except Exception:  # noqa: BLE001 - of a plug-in's own
        text = type(cause).__name__
    return text[:200].encode("utf-8", "replace").decode()


def minor_of(reason: str, truncated: bool = False) -> ParseMinor:
    """Returns the minor status of a failure.

    >>> minor_of("timeout"), minor_of("malformed"), minor_of("malformed", truncated=True)
    (<ParseMinor.EXCEPTION: 200>, <ParseMinor.INVALID_FORMAT: 203>, <ParseMinor.TRUNCATED: 202>)
    """
    if truncated:
        return ParseMinor.TRUNCATED
    return ParseMinor.INVALID_FORMAT if reason.startswith(_INVALID) else ParseMinor.EXCEPTION


def status_text(major: int | None, minor: int | None, message: str | None) -> str | None:
    """Returns a parse status in Nutch's notation; assumes a minor status for old rows without one.

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
    suffix = f": {message}" if message else ""
    return f"{ParseStatus(major).name.lower()}({major},{minor}){suffix}"


def _status(major: ParseStatus, minor: ParseMinor, message: str | None = None) -> ParseResult:
    return {"parse_status": int(major), "parse_minor": int(minor), "parse_message": message}
