import bz2
import codecs
import gzip
import lzma
import time
import zlib

import brotli
import pytest
from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.robots.robots import RobotsRecord, RobotsRules, fetch_robots
from nutbeam.web.robots.robots_text import MAX_ROBOTS_BYTES, absolute_sitemaps, decode_robots

pytestmark = pytest.mark.usefixtures("each_client")
ORIGIN = "http://a.example.com"
DENY_ALL = b"User-agent: *\nDisallow: /\n"
WIDE = (
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
)


def fetch(answer, origin=ORIGIN, **options):
    with serve(lambda path, connection: answer(path)) as server:
        options = {"agent_name": "nutbot", "connect_to": connect_to(server.port)} | options
        return fetch_robots(Client(HttpOptions(**options)), origin), server


def rules_of(text, token="nutbot"):
    return RobotsRules(RobotsRecord(200, text, 0), token)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((200, "rules"), (203, "rules"), (204, "rules")),
        *((400, "allow"), (401, "allow"), (403, "allow"), (404, "allow"), (410, "allow")),
        *(
            (425, "defer"),
            (429, "defer"),
            (500, "defer"),
            (502, "defer"),
            (503, "defer"),
            (599, "defer"),
        ),
        *((304, "defer"), (301, "defer"), (999, "defer")),
    ],
)
def test_each_status(status, state):
    body = b"" if status in (204, 304) else DENY_ALL
    rules, _ = fetch(lambda _: reply(body, f"{status} Why"))
    assert (rules.status, rules.state) == (status, state)
    denied = state == "defer" or (state == "rules" and body)
    assert rules.allows(f"{ORIGIN}/x") == (not denied)
    assert abs(rules.fetched_at / 1000 - time.time()) < 5


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (b"\0nonsense\r\n\r\n", "protocol_error"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\nUser", None),
    ],
)
def test_no_whole_answer_defers(wire, error):
    rules, _ = fetch(lambda _: wire, timeout=0.3)
    assert (rules.status, rules.state) == (0, "defer")
    assert rules.error == (error or "timeout")
    assert not rules.allows(f"{ORIGIN}/x")


@pytest.mark.parametrize(
    ("framing", "state"),
    [
        ("Content-Length: {more}\r\n\r\n{text}", "rules"),  # two bytes too many
        ("Content-Length: {much}\r\n\r\n{text}", "rules"),  # the same again
        ("Content-Length: {much}\r\n\r\n", "defer"),
        ("Content-Length: {much}\r\n\r\n{text}#{request}", "defer"),
        ("Transfer-Encoding: chunked\r\n\r\n{chunk}\r\n{text}\r\n", "rules"),
        ("Transfer-Encoding: chunked\r\n\r\n{longer}\r\n{text}", "rules"),
        ("Content-Encoding: gzip\r\n\r\n\x1f\x8b", "defer"),
        # The same part of a coded file again is no whole file.
        ("Content-Encoding: gzip\r\nContent-Length: {much}\r\n\r\n{cut_gzip}", "defer"),
        ("Content-Encoding: br\r\nContent-Length: {much}\r\n\r\n{cut_brotli}", "defer"),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_a_robots_txt_with_a_wrong_frame_counts_if_it_is_whole(framing, state, kept):
    text = "User-agent: *\r\nDisallow: /private\r\n"
    sizes = {"more": len(text) + 2, "much": len(text) + 100}
    chunks = {"chunk": f"{len(text):x}", "longer": f"{len(text) + 5:x}"}
    packed = {"cut_gzip": gzip.compress(text.encode())[:-20].decode("latin-1")}
    packed["cut_brotli"] = brotli.compress(text.encode() * 99)[:-2].decode("latin-1")

    def answer(_, connection):
        wire = framing.format(text=text, request=len(server.paths), **sizes, **chunks, **packed)
        connection.sendall(f"HTTP/1.1 200 OK\r\n{wire}".encode("latin-1"))

    with serve(answer) as server:
        options = {"agent_name": "nutbot", "keep_incomplete": kept}
        client = Client(HttpOptions(connect_to=connect_to(server.port), **options))
        rules = fetch_robots(client, ORIGIN)
    assert rules.state == state
    assert rules.allows(f"{ORIGIN}/open") == (state == "rules")
    assert not rules.allows(f"{ORIGIN}/private")


@pytest.mark.parametrize(
    ("second", "state"),
    [
        (reply(b"Disallow: /"), "rules"),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "defer"),
        (reply(b"", "404 Not Found"), "defer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nDis", "defer"),
    ],
)
def test_a_robots_txt_that_ended_early_counts_as_its_second_answer(second, state):
    wires = iter([b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nDisallow", second])
    with serve(lambda _, connection: connection.sendall(next(wires))) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port), agent_name="nutbot"))
        assert fetch_robots(client, ORIGIN).state == state


def test_a_host_that_does_not_resolve_defers():
    client = Client(HttpOptions(agent_name="bot", agent_email="a@b"))
    rules = fetch_robots(client, "http://no-such-host.invalid")
    assert (rules.state, rules.error) == ("defer", "dns")


def test_five_redirects_are_followed():
    def answer(path):
        number = 0 if path == "/robots.txt" else int(path[1:])
        if number == 5:
            return reply(DENY_ALL)
        return reply(b"", "302 Found", f"Location: http://b.example.com/{number + 1}")

    rules, server = fetch(answer)
    assert server.paths == ["/robots.txt", "/1", "/2", "/3", "/4", "/5"]
    assert (rules.status, rules.allows(f"{ORIGIN}/")) == (200, False)


def test_bytes_of_a_redirect_that_are_not_utf_8_are_requested_as_they_are():
    def answer(path):
        if path == "/robots.txt":
            return reply(b"", "302 Found", "Location: /caf\xe9.txt")
        return reply(DENY_ALL) if path == "/caf%E9.txt" else reply(b"", "404 Not Found")

    rules, server = fetch(answer)
    assert server.paths == ["/robots.txt", "/caf%E9.txt"]
    assert not rules.allows(f"{ORIGIN}/")


def test_bytes_of_a_sitemap_that_are_not_utf_8_are_escaped_as_they_are():
    body = b"Sitemap: http://a.example/caf\xe9.xml\r\nSITEMAP:http://a.example/\xc3\xa9.xml\r\n"
    rules = rules_of(decode_robots(b"User-agent: *\nDisallow: /\xe9\n" + body))
    assert rules.sitemaps == ("http://a.example/caf%E9.xml", "http://a.example/é.xml")
    assert not rules.allows(f"{ORIGIN}/%E9")


def moved(path, number=1, *headers):
    """Redirects to a longer path each time."""
    target = f"{path}x" * bool(number) or "/robots.txt"
    return reply(b"", "301 Moved", f"Location: {target}", *headers)


def test_a_sixth_redirect_allows_all():
    rules, server = fetch(moved)
    assert len(server.paths) == 6
    assert (rules.status, rules.state, rules.error) == (301, "allow", None)


@pytest.mark.parametrize(
    ("answer", "error", "requests"),
    [
        (lambda _: reply(b"", "301 Moved", "Location: /robots.txt#again"), "redirect_loop", 1),
        (lambda _: reply(b"", "301 Moved", "Location: //A.Example.com:80/x"), "redirect_loop", 2),
        (lambda path: moved(path, path != "/robots.txtxx"), "redirect_loop", 3),
        # It never ends, with another query each time, or because a cookie is not sent back.
        (lambda path: moved(f"{path}?"), "too_many_redirects", 6),
        (lambda path: moved(path, 1, "Set-Cookie: a=1"), "too_many_redirects", 6),
        (lambda _: reply(b"", "302 Found"), "no_location", 1),
    ],
)
def test_redirects_that_do_not_end_defer(answer, error, requests):
    rules, server = fetch(answer)
    assert (rules.state, rules.error, len(server.paths)) == ("defer", error, requests)
    assert not rules.allows(f"{ORIGIN}/x")
    # As while a server fails, also when the record is read again; see the 30 days below.
    assert rules.failing_since == rules.fetched_at
    assert RobotsRules(rules.record, "nutbot").state == "defer"


def test_fewer_redirects_than_five_allow_nothing():
    with serve(lambda path, connection: moved(path)) as server:
        client = Client(HttpOptions(agent_name="nutbot", connect_to=connect_to(server.port)))
        states = [fetch_robots(client, ORIGIN, most).state for most in (0, 4, 5, 6)]
    assert states == ["defer", "defer", "allow", "allow"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://127.0.0.1/"])
def test_redirects_to_other_schemes_are_not_followed(target):
    rules, _ = fetch(lambda _: reply(b"", "301 Moved", f"Location: {target}"))
    assert rules.state == "allow"


def test_redirects_pass_the_guard():
    with serve(lambda path, connection: reply(DENY_ALL)) as canary:
        target = f"http://127.0.0.1:{canary.port}/"
        rules, _ = fetch(
            lambda _: reply(b"", "301 Moved", f"Location: {target}"),
            allowed_ports=("1-65535",),
            agent_email="a@b",
        )
        assert canary.connections == 0
    assert (rules.state, rules.error) == ("defer", "address_denied")


def test_the_agents_own_group_counts():
    text = "User-agent: *\nDisallow: /\n\nUser-agent: NutBot\nDisallow: /x\nCrawl-delay: 2.5\n"
    assert rules_of(text).allows(f"{ORIGIN}/y")
    assert not rules_of(text).allows(f"{ORIGIN}/x")
    assert rules_of(text).crawl_delay == 2.5
    assert not rules_of(text, "other").allows(f"{ORIGIN}/y")
    assert rules_of(text, "other").crawl_delay is None


def test_the_longest_match_wins():
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b$\nDisallow: /*.pdf$\n"
    allowed = {path: rules_of(text).allows(ORIGIN + path) for path in ("/a", "/a/b", "/c.pdf")}
    assert allowed == {"/a": False, "/a/b": True, "/c.pdf": False}


@pytest.mark.parametrize(
    "delay",
    ["-1", "nan", "inf", "soon", "1_0", "１０", "٣", "1e3", "0x10", "1.5.2", "10/1", "9" * 400],  # noqa: RUF001
)
def test_a_crawl_delay_that_is_no_time_is_not_obeyed_and_kept_for_the_operator(delay):
    rules = rules_of(f"User-agent: *\nCrawl-delay: {delay}\nDisallow: /x")
    assert (rules.crawl_delay, rules.odd_delay) == (None, delay)
    rules = rules_of(f"User-agent: *\nCrawl-delay: 3\nCrawl-delay: {delay}")
    assert (rules.crawl_delay, rules.odd_delay) == (3, None)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("10s", 10), ("10 sec.", 10), ("10 seconds", 10), ("10 (seconds)", 10), ("10;", 10)),
        *(("0,5", 0.5), (".5", 0.5), ("5.", 5), ("+5", 5), ("0", 0), ("1,5 s", 1.5)),
        *(("500ms", 0.5), ("500 milliseconds", 0.5), ("1m", 60), ("2 Min", 120), ("1h", 3600)),
    ],
)
def test_crawl_delays_as_people_write_them(value, seconds):
    rules = rules_of(f"User-agent: *\nCrawl-delay: {value} # why\nDisallow: /x")
    assert (rules.crawl_delay, rules.odd_delay) == (seconds, None)


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + DENY_ALL,
        DENY_ALL.replace(b"\n", b"\r\n"),
        DENY_ALL.replace(b"\n", b"\r"),
        b"\xff\xfe\x00 bad bytes\n" + DENY_ALL,
        b"# \xe4\n" + DENY_ALL,
        *(mark + DENY_ALL.decode().encode(codec) for mark, codec in WIDE),
        *(mark + DENY_ALL.decode().replace("\n", "\r\n").encode(codec) for mark, codec in WIDE),
        *(DENY_ALL.decode().encode(codec) for _, codec in WIDE),
        *(
            "\ufeff\ufeff# Ä\r\n\ufeffUser-agent: *\r\nDisallow: /".encode(codec)
            for _, codec in WIDE
        ),
        # A second mark, and one after empty lines: files that were joined.
        b"\xef\xbb\xbf\xef\xbb\xbf" + DENY_ALL,
        b"\n \r\n\xef\xbb\xbf" + DENY_ALL,
        b"User-agent: other\rDisallow: /y\r\xef\xbb\xbf" + DENY_ALL,
        # What an editor makes of a mark; what nobody sees; one that is cut.
        "ï»¿".encode() + DENY_ALL,
        "\u200b\u00ad \u2060".encode() + DENY_ALL,
        "User-agent\u200b:\u200e *\u200b\r\nDisallow: \ufeff/\u200b # why".encode(),
        b"\xbb\xbf" + DENY_ALL,
        # Lines that were appended in another encoding.
        "\ufeffUser-agent: *\r\n".encode("utf-16-le") + b"Disallow: /\n",
        "\ufeffUser-agent: *\r\nAllow: /y\r\n".encode("utf-16-be") + b"Disallow: /\nDisallow: /z\n",
        b"User-agent: *\n" + "Disallow: /\r\n".encode("utf-16-le"),
        b"\xef\xbb\xbfUser-agent: *\n" + "\ufeffDisallow: /\r\n".encode("utf-16-le"),
        # Ends of lines and of files that a program has appended to the last rule in bytes of ASCII.
        *(
            DENY_ALL.decode().rstrip().encode(codec) + end
            for codec in ("utf-8", *(codec for _, codec in WIDE))
            for end in (b"\n", b"\r\n", b"\n\n", b"\0", b"\x1a", b"\r\n\x1a")
        ),
        # gzip without a header, also of members, and one that is cut.
        gzip.compress(DENY_ALL, mtime=0),
        gzip.compress(b"User-agent: *\n", mtime=0) + gzip.compress(b"\nDisallow: /\n", mtime=0),
        gzip.compress(
            "\ufeff".encode("utf-16-le") + DENY_ALL.decode().encode("utf-16-le"), mtime=0
        ),
        gzip.compress(DENY_ALL + b"# the end\n", mtime=0)[:-4],
        # zlib's data without a header.
        *(zlib.compress(DENY_ALL, level) for level in (0, 5, 6, 9)),
    ],
)
def test_odd_bytes(body):
    rules, _ = fetch(lambda _: reply(body))
    assert not rules.allows(f"{ORIGIN}/x")


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-32"])
def test_paths_beyond_ascii_are_read_in_each_encoding(codec):
    rules, _ = fetch(lambda _: reply("User-agent: *\r\nDisallow: /日本/ä\r\n".encode(codec)))
    assert not rules.allows(f"{ORIGIN}/%E6%97%A5%E6%9C%AC/%c3%a4")
    assert rules.allows(f"{ORIGIN}/%E6%97%A5%E6%9C%AC/a")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<html><body>\nUser-agent: *\nDisallow: /x\n</body></html>", "text/plain"),
        ("<!DOCTYPE html>\n<html><body><p>User-agent: *</p>\n<p>Disallow: /x</p>", "text/html"),
        ("<pre>User-agent: *\nDisallow: /x</pre>", "text/html; charset=utf-8"),
        ("<pre style='a'>User-agent: *\r\nDisallow: /x\r\n</pre>", "Text/HTML"),
        ("<html><head><title>robots</title></head><body>User-agent: *<br>Disallow: /x<br/>", None),
        ("<HTML><BODY><DIV>User-agent: *</DIV><DIV>Disallow: <B>/x</B></DIV></BODY></HTML>", None),
        ("\ufeff<html>\n<body>\nUser-agent: *<br />\nDisallow: /x<br />\n", None),
        (
            "<html\nlang='en'>\n<pre\r\n class='a'\r\n>User-agent: *<br\n/>Disallow: /x</pre\n>",
            None,
        ),
        ("<p>User-agent:&nbsp;*</p><p>&#160;Disallow&#58;&nbsp;&#x2F;x&nbsp;</p>", "text/html"),
        ("User-agent:&nbsp;*\nDisallow: /x", "text/html"),
        ("<dl><dt>User-agent: *<dd>Disallow: /x<hr>Allow: /y</dl>", "text/html"),
        ("<p\nUser-agent: *\nDisallow: /x\n>", "text/html"),
    ],
)
def test_rules_in_a_page_of_html_are_obeyed(body, content_type):
    header = [f"Content-Type: {content_type}"] if content_type else []
    for codec in ("utf-8", "utf-16"):
        rules, _ = fetch(lambda _, codec=codec: reply(body.encode(codec), "200 OK", *header))
        assert [rules.allows(f"{ORIGIN}/{path}") for path in "xy"] == [False, True]


def test_a_page_of_html_without_rules_allows_all_and_tags_elsewhere_are_parts_of_paths():
    page = b"<html><body><h1>Welcome</h1><p>Disallow: /</p></body></html>"
    assert fetch(lambda _: reply(page))[0].allows(f"{ORIGIN}/x")
    rules = rules_of(decode_robots(b"User-agent: *\nDisallow: /<a>/b\n", "text/plain"))
    assert (rules.allows(f"{ORIGIN}/<a>/b"), rules.allows(f"{ORIGIN}//b")) == (False, True)


def test_robots_txt_beyond_500_kib_is_not_read():
    filler = b"# " + b"x" * 97 + b"\n"
    body = DENY_ALL.replace(b"/", b"/x") + filler * 7000 + b"Disallow: /y\n"
    rules, _ = fetch(lambda _: reply(body), content_limit=1000)
    assert not rules.allows(f"{ORIGIN}/x")
    assert rules.allows(f"{ORIGIN}/y")
    assert len(decode_robots(body)) == MAX_ROBOTS_BYTES // 100 * 100 + len(DENY_ALL) + 1 - 100
    assert len(decode_robots(b"x" * 10**6)) == MAX_ROBOTS_BYTES


def test_a_robots_record_survives_a_round_trip():
    record = RobotsRecord(200, DENY_ALL.decode(), 123)
    assert RobotsRules(record, "nutbot").record == record
    assert not RobotsRules(record, "nutbot").allows(f"{ORIGIN}/x")
    record = RobotsRecord(404, "", 5)
    assert RobotsRules(record, "nutbot").record == record


def test_agents_of_robots_agents_are_obeyed_together():
    text = (
        "User-agent: nutbot\nDisallow: /a\n\nUser-agent: Other/1.0 # old\nDisallow: /b\n"
        "\nUser-agent: third\nDisallow: /c\n\nUser-agent: *\nDisallow: /\n"
    )
    rules = RobotsRules(RobotsRecord(200, text, 0), ("nutbot", "other"))
    allowed = {path: rules.allows(f"{ORIGIN}/{path}") for path in "abcd"}
    assert allowed == {"a": False, "b": False, "c": True, "d": True}
    assert rules.record.text == text
    # Without a group of theirs, the one for all counts.
    assert not RobotsRules(RobotsRecord(200, text, 0), ("x", "y")).allows(f"{ORIGIN}/d")


def test_sitemaps_are_kept_within_bounds():
    good = [f"https://a.example.com/{n}.xml" for n in range(120)]
    lines = ["Sitemap: none", "Sitemap: ftp://a/b", "Sitemap: http://a/" + "x" * 2048]
    text = "\n".join([*lines, *(f"sitemap: {url}" for url in [good[0], *good])])
    assert rules_of(text).sitemaps == tuple(good[:100])


def test_sitemaps_may_be_relative_to_robots_txt():
    text = (
        "Sitemap: /a.xml\nSitemap: b.xml\nSitemap: //c.example/d.xml\nSitemap: HTTP://e.example/f"
    )
    urls = absolute_sitemaps(rules_of(text).sitemaps, "https://a.example.com:81")
    assert urls == (
        "https://a.example.com:81/a.xml", "https://a.example.com:81/b.xml", "https://c.example/d.xml",
        "HTTP://e.example/f",
    )  # fmt: skip


@pytest.mark.parametrize("quoted", ['"{}"', "'{}'", "\u201c{}\u201d", "<{}>", "`{}`"])
def test_quotes_around_the_url_of_a_sitemap_do_not_count(quoted):
    text = f"Sitemap: {quoted.format('http://a.example/s.xml')}\nSitemap: {quoted.format('')}"
    assert rules_of(text).sitemaps == ("http://a.example/s.xml",)


DAY = 86_400_000


@pytest.mark.parametrize(
    ("status", "days", "text", "state"),
    [
        *((503, 29, "", "defer"), (503, 31, "", "allow"), (0, 31, "", "allow")),
        *((302, 29, "", "defer"), (302, 31, "", "allow"), (302, 31, DENY_ALL.decode(), "rules")),
        *((0, 29, DENY_ALL.decode(), "defer"), (503, 31, DENY_ALL.decode(), "rules")),
        (429, 31, "", "defer"),
    ],
)
def test_thirty_days_of_failures_are_as_if_there_were_none(status, days, text, state):
    now = int(time.time() * 1000)
    earlier = RobotsRecord(500, text, now - DAY, now - days * DAY)
    with serve(
        lambda *_: reply(b"", f"{status} No") if status else b"\0nonsense\r\n\r\n"
    ) as server:
        client = Client(HttpOptions(agent_name="nutbot", connect_to=connect_to(server.port)))
        rules = fetch_robots(client, ORIGIN, earlier=earlier)
    assert (rules.status, rules.state) == (status, state)
    assert rules.record.text == ("" if state == "allow" else text)  # the last copy is kept
    assert rules.failing_since == (0 if status == 429 else earlier.failing_since)
    assert rules.allows(f"{ORIGIN}/x") == (state == "allow")


def test_failures_count_from_the_first_and_end_with_an_answer():
    rules, _ = fetch(lambda _: reply(b"", "500 No"))
    assert rules.failing_since == rules.fetched_at
    rules, _ = fetch(lambda _: reply(b"", "404 No"))
    assert rules.failing_since == 0


@pytest.mark.parametrize(
    ("header", "state"),
    [
        *(("bytes 0-25/26", "rules"), ("bytes 0-25/90", "defer"), ("bytes 9-34/35", "defer")),
        *(("bytes 0-25/*", "defer"), ("", "defer")),
    ],
)
def test_a_part_of_a_robots_txt_defers(header, state):
    rules, _ = fetch(lambda _: reply(DENY_ALL, "206 Partial Content", f"Content-Range: {header}"))
    assert (rules.state, rules.error) == (state, "incomplete" if state == "defer" else None)


@pytest.mark.parametrize(
    ("coding", "body", "state"),
    [
        *(
            ("xz", lzma.compress(DENY_ALL * 50), "defer"),
            ("zstd", b"x" * 20, "defer"),
        ),
        *(("utf-8", DENY_ALL, "rules"), ("none", b"", "rules"), ("gzip", DENY_ALL, "rules")),
        *((None, lzma.compress(DENY_ALL * 50), "defer"), (None, b"\x1f\x8b\x08\x00\xff", "defer")),
        *((None, b"\xff\x00", "rules"), (None, bz2.compress(DENY_ALL), "defer")),
    ],
)
def test_a_robots_txt_in_a_coding_that_cannot_be_undone_defers(coding, body, state):
    headers = [f"Content-Encoding: {coding}"] if coding else []
    rules, _ = fetch(lambda _: reply(body, "200 OK", *headers))
    assert (rules.state, rules.error) == (state, "bad_encoding" if state == "defer" else None)


@pytest.mark.parametrize(("value", "seconds"), [("120", 120.0), ("-5", None), ("soon", None)])
def test_retry_after_of_robots_txt(value, seconds):
    rules, _ = fetch(lambda _: reply(b"", "503 No", f"Retry-After: {value}"))
    assert (rules.state, rules.retry_after) == ("defer", seconds)


def test_an_informational_status_is_no_answer_yet():
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    rules, _ = fetch(lambda _: early + reply(DENY_ALL))
    assert (rules.status, rules.allows(f"{ORIGIN}/x")) == (200, False)


def test_redirects_lead_over_hosts_and_their_rules_are_the_first_hosts():
    def answer(path):
        if path == "/robots.txt":
            return reply(b"", "301 Moved", "Location: http://b.example.com/elsewhere.txt")
        return reply(b"User-agent: *\nDisallow: /x\n")

    rules, server = fetch(answer)
    hosts = [head.split("Host: ")[1].split()[0] for _, head, _ in server.requests]
    assert hosts == ["a.example.com", "b.example.com"]
    assert not rules.allows(f"{ORIGIN}/x")


def test_a_robots_txt_of_10_mb_is_cut():
    body = DENY_ALL.replace(b"/", b"/x") + b"# filler\n" * (10_000_000 // 9) + b"Disallow: /y\n"
    rules, _ = fetch(lambda _: reply(body))
    assert not rules.allows(f"{ORIGIN}/x")
    assert rules.allows(f"{ORIGIN}/y")
    assert len(rules.record.text) <= MAX_ROBOTS_BYTES
