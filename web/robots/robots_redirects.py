"""Follows the redirects of a robots.txt (RFC 9309 2.3.1.2), and asks again with a new cookie."""

import contextlib
from collections.abc import Generator
from typing import NamedTuple

from ..exchange.status import Response, redirect_target
from ..network.dialer import request_url
from .robots_text import decode_robots
from .rules import number_of_lines

# RFC 9309 2.3.1.2: only after more redirects a robots.txt may count as unavailable.
_LEAST_REDIRECTS = 5
_DENIED = (401, 403)


class RobotsAnswer(NamedTuple):
    """The last answer to the requests for a robots.txt.

    Attributes:
        response: The answer.
        error: Why it is a redirect that says neither what the rules are nor that there are none:
            redirect_loop, too_many_redirects, no_location; else None.
    """

    response: Response
    error: str | None = None


def follow_redirects(url: str, redirects: int) -> Generator[str, Response, RobotsAnswer]:
    """Yields the URLs to request, receives the responses, and returns the last one.

    A URL is requested again after a new cookie: at most once if the answer is no redirect.

    Args:
        url: The URL of a robots.txt.
        redirects: Largest number of redirects to follow.
    """
    followed, since_cookie, places = 0, set[str](), [_place(url)]
    sets_cookies = is_repeated = False
    while True:
        response = yield url
        target = _target(response)
        if target is None and not is_repeated and is_wall(response):
            is_repeated = True
            continue
        if target is None or not target.startswith(("http://", "https://")):
            no_location = 300 <= response.status < 400 and not response.header("location")
            return RobotsAnswer(response, "no_location" if no_location else None)
        sets_cookies |= response.header("set-cookie") is not None
        if response.new_cookie:
            since_cookie.clear()
        else:
            since_cookie.add(url)
        if target in since_cookie:
            return RobotsAnswer(response, "redirect_loop")
        places.append(_place(target))
        if followed == redirects:
            is_endless = sets_cookies or len(set(places)) < len(places)
            is_open = followed >= _LEAST_REDIRECTS and not is_endless
            return RobotsAnswer(response, None if is_open else "too_many_redirects")
        url, followed = target, followed + 1


def _target(response: Response) -> str | None:
    """Returns the URL that a redirect leads to; None if there is none."""
    target = redirect_target(response) if 300 <= response.status < 400 else None
    if target is not None:
        with contextlib.suppress(ValueError):  # an unsendable URL gives an error response
            return request_url(target)
    return target


def _place(url: str) -> str:
    return url.partition("?")[0]


def is_wall(answer: Response) -> bool:
    """Returns whether the same request may give rules now, with the cookie of its first answer."""
    return answer.new_cookie and not answer.cookies and _hides_rules(answer)


def is_outdated(answer: Response, cookies: str) -> bool:
    """Returns whether the same request may give another answer, because it has other cookies.

    Args:
        answer: The answer.
        cookies: The cookies that the request would send now.
    """
    if answer.cookies == cookies:
        return False
    return 300 <= answer.status < 400 or (not answer.cookies and _hides_rules(answer))


def _hides_rules(answer: Response) -> bool:
    """Returns whether an answer is the kind that a server gives to clients without its cookie."""
    if not 200 <= answer.status < 300:
        return answer.status in _DENIED
    return not number_of_lines(decode_robots(answer.body, answer.header("content-type")))
