"""Users and passwords are taken out of texts, in steps in proportion to their length."""

import random
import re
import time

import pytest

from nutbeam.web.robots.robots_text import MAX_ROBOTS_BYTES, decode_robots
from nutbeam.web.urls.userinfo import mask_headers, mask_users

# The same as one expression: quadratic, so of short texts only.
USER = re.compile(r"((?:https?|ftp|wss?):[/\\]*|[/\\]{2})[^/\\?#\s\"'<>]*@", re.IGNORECASE)
PIECES = [
    *("http:", "https:", "HTTP:", "ftp:", "ws:", "s", "http", "/", "//", "\\", "@", "@@", "u", "pw"),
    *(":", "?", "#", " ", "'", '"', "<", ">", "a.b", "\n", "x@"),
]  # fmt: skip


def test_random_texts_have_no_user_left():
    chance = random.Random(5)
    for _ in range(20_000):
        text = "".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 12)))
        masked = mask_users(text)
        assert not USER.search(masked), text
        assert mask_users(masked) == masked, text
        assert (masked == text) == (not USER.search(text)), text


@pytest.mark.parametrize(
    "text",
    [
        "Sitemap: " + "http:" * 100_000 + "/@",
        "//" * 250_000 + "@",
        "@" + "//" * 250_000,
        "http:/" * 80_000 + "@",
        "a@" * 250_000,
        "http:@" * 80_000,
    ],
)
def test_long_texts_take_steps_by_their_length(text):
    """A quadratic search would take minutes for each: the bound is far from both."""
    began = time.process_time()
    mask_users(text)
    decode_robots(f"Sitemap: {text}".encode()[:MAX_ROBOTS_BYTES])
    mask_headers([("Link", text), ("Location", text[:65_000])], "http://a.example.com/")
    assert time.process_time() - began < 30
