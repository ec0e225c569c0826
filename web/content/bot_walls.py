"""Recognizes bot walls: answers of a guard before a site, which say nothing about the page.

A guard such as Cloudflare's answers in place of the site, with a riddle for browsers or a refusal. Its
answer is no content of the page, whatever its status code is. The marks are those that only such answers
have: headers that guards set for them, and elements with their names. Each mark in a body begins with
``<`` or stands in a refusal, so that an article about walls, which quotes them as text, is none.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

# What a count and a message have before the name of the guard.
BOT_WALL = "bot_wall"
# Codes with which guards refuse or ask for a proof. AWS asks with 202 and 405.
_REFUSALS = frozenset({403, 405, 406, 428, 429, 503})
# An answer of a guard with another code is a small page.
_LARGEST_PAGE = 16 << 10
_LARGEST_REFUSAL = 256 << 10
# Headers that only answers of guards have: name, beginning of the value, guard.
_HEADERS = {
    "cf-mitigated": (("challenge", "cloudflare"),),
    "x-amzn-waf-action": (("challenge", "aws_waf"), ("captcha", "aws_waf")),
    "x-vercel-mitigated": (("challenge", "vercel"), ("deny", "vercel")),
    "x-sucuri-block": (("", "sucuri"),),
}
# Elements that only pages of guards have, with any code, after "<".
_ELEMENTS = {
    'script id="anubis_challenge"': "anubis",
    'iframe id="main-iframe" src="/_Incapsula_Resource': "imperva",
    'div id="px-captcha': "perimeterx",
    'div id="sec-if-cpt-container"': "akamai",
    'div id="sec-cpt-if"': "akamai",
    'meta http-equiv="refresh" content="5; URL=': "akamai",
    'div id="challenge-container"></div>': "aws_waf",
    'p id="cmsg">': "datadome",
    "title>Just a moment...</title>": "cloudflare",
    "title>Attention Required! | Cloudflare</title>": "cloudflare",
    "title>DDoS-Guard</title>": "ddos_guard",
    "title>Sucuri WebSite Firewall": "sucuri",
    "title>Vercel Security Checkpoint</title>": "vercel",
}
# Without groups, and with one first byte: 6,000 bytes take 10 µs, and over 100 with groups.
_ELEMENT = re.compile(f"<(?:{'|'.join(map(re.escape, _ELEMENTS))})".encode())
# What such an element needs beside it, because it alone could be a page's own.
_BESIDE = {
    "akamai": (b"bm-verify=", b"sec-if-cpt", b"sec-cpt-if"),
    "aws_waf": (b"gokuProps", b"awswaf"),
    "datadome": (b"captcha-delivery.com",),
    "cloudflare": (b"_cf_chl_opt", b"/cdn-cgi/", b"cf-error-details"),
}
# Texts in refusals.
_TEXTS = (
    (b"_cf_chl_opt", "cloudflare"),
    (b'id="cf-error-details"', "cloudflare"),
    (b"captcha-delivery.com", "datadome"),
    (b"errors.edgesuite.net", "akamai"),
    (b"window._pxAppId", "perimeterx"),
    (b"Incapsula incident ID", "imperva"),
    (b"window.gokuProps", "aws_waf"),
    (b"window.KPSDK", "kasada"),
)


class BotWall(NamedTuple):
    """A guard's answer in place of a page.

    Attributes:
        guard: Name of the guard, such as ``cloudflare``.
    """

    guard: str

    @property
    def message(self) -> str:
        """The reason, as pages and counts have it.

        >>> BotWall("cloudflare").message
        'bot_wall_cloudflare'
        """
        return f"{BOT_WALL}_{self.guard}"


def find_bot_wall(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> BotWall | None:
    """Returns the wall that an answer is; None if it is an answer of the site.

    Args:
        status: HTTP's status code; 0 without an answer.
        headers: (name, value) of the answer, names in any case.
        body: Its body, decoded.

    >>> find_bot_wall(403, [("CF-Mitigated", "challenge")], b"")
    BotWall(guard='cloudflare')
    >>> find_bot_wall(200, [], b'<html><script id="anubis_challenge" type="application/json">')
    BotWall(guard='anubis')
    >>> find_bot_wall(403, [("Server", "nginx")], b"<h1>403 Forbidden</h1>") is None
    True
    """
    for name, value in headers:
        for start, guard in _HEADERS.get(name.lower(), ()):
            if value.strip().lower().startswith(start):
                return BotWall(guard)
    refuses = status in _REFUSALS
    if not body or len(body) > (_LARGEST_REFUSAL if refuses else _LARGEST_PAGE):
        return None
    if not (refuses or 200 <= status < 300):
        return None
    return _wall_of_page(body) or (_wall_of_refusal(body) if refuses else None)


def _wall_of_page(body: bytes) -> BotWall | None:
    for match in _ELEMENT.finditer(body):
        guard = _ELEMENTS[match[0][1:].decode()]
        beside = _BESIDE.get(guard)
        if beside is None or any(text in body for text in beside):
            return BotWall(guard)
    return None


def _wall_of_refusal(body: bytes) -> BotWall | None:
    return next((BotWall(guard) for text, guard in _TEXTS if text in body), None)
