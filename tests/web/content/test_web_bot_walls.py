"""Answers of guards are recognized by their marks; pages about them are pages."""

import pytest

from nutbeam.web.content.bot_walls import find_bot_wall

CHALLENGE = (
    b'<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head><body>'
    b"<script>(function(){window._cf_chl_opt={cvId:'3'};}());</script></body></html>"
)
WALLS = {
    "cloudflare": [
        (403, [("cf-mitigated", "challenge")], b"anything"),
        (503, [], CHALLENGE),
        (200, [], CHALLENGE),
        (403, [], b'<title>Attention Required! | Cloudflare</title><div id="cf-error-details">'),
    ],
    "datadome": [
        (403, [], b'<p id="cmsg">Please enable JS</p><script src="https://ct.captcha-delivery.com/c.js">'),
    ],
    "akamai": [
        (403, [], b"<H1>Access Denied</H1> Reference&#32;&#35;18&#46; https://errors.edgesuite.net/18.1"),
        (200, [], b'<meta http-equiv="refresh" content="5; URL=\'/?bm-verify=AAQ\'" />'),
        (428, [], b'<div id="sec-if-cpt-container" role="main">'),
    ],
    "perimeterx": [(403, [], b"<script>window._pxAppId = 'PX1';</script><div id=\"px-captcha\"></div>")],
    "aws_waf": [
        (202, [("X-Amzn-Waf-Action", "challenge")], b""),
        (405, [], b"<script>window.gokuProps = {};</script>"),
        (202, [], b'<script>window.gokuProps={}</script><div id="challenge-container"></div>'),
    ],
    "imperva": [(200, [], b'<iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31">')],
    "anubis": [(200, [], b'<script id="anubis_challenge" type="application/json">{}</script>')],
    "ddos_guard": [(403, [], b"<title>DDoS-Guard</title>")],
    "sucuri": [(403, [("X-Sucuri-Block", "GEO02")], b"")],
    "vercel": [(429, [("x-vercel-mitigated", "challenge")], b"")],
    "kasada": [(429, [], b"<script>window.KPSDK={};</script>")],
}  # fmt: skip


@pytest.mark.parametrize("guard", WALLS)
def test_walls_are_recognized(guard):
    walls = [find_bot_wall(*answer) for answer in WALLS[guard]]
    assert [wall and wall.guard for wall in walls] == [guard] * len(walls)


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, [("X-DataDome", "protected")], b"<h1>A page</h1>"),
        (200, [], b"<p>Walls have &lt;title&gt;Just a moment...&lt;/title&gt; and _cf_chl_opt"),
        (200, [], b"<script>window._pxAppId = 'PX1'</script><h1>A shop that uses it</h1>"),
        (200, [], b"<title>Just a moment...</title><p>A poem"),
        (404, [], CHALLENGE),
        (200, [], CHALLENGE + b" " * (16 << 10)),
        (403, [], b"<h1>403 Forbidden</h1>"),
        (0, [], b""),
    ],
)
def test_answers_of_sites_are_none(status, headers, body):
    assert find_bot_wall(status, headers, body) is None
