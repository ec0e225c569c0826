"""Raw answers of odd and hostile servers, and what both HTTP clients make of each.

The page is ``PAGE`` wherever nothing else is said. An answer that is read by a
leniency, or that the server ends by closing, must not leave a connection that
carries another request.
"""

from typing import NamedTuple

PAGE = b"<title>page</title>"
SIZE = len(PAGE)
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: %d\r\n" % SIZE
REST = LENGTH + b"\r\n" + PAGE
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%s\r\n" % (SIZE, PAGE)
LAST = b"0\r\n\r\n"
SECOND = OK + b"Content-Length: 6\r\n\r\npoison"


class Answer(NamedTuple):
    """An answer.

    Attributes:
        name: Unique.
        wire: Its bytes.
        expected: The error's reason; None where the whole answer is taken.
        status: Status code that is taken.
        body: What is taken of the body.
        closes: Whether the server closes the connection after it.
        kept: Whether the connection may carry another request.
        truncated: Why the body is not whole.
    """

    name: str
    wire: bytes
    expected: str | None = None
    status: int = 200
    body: bytes = PAGE
    closes: bool = False
    kept: bool = False
    truncated: str | None = None


def _pages(kind, wires, **more):
    return [Answer(f"{kind} {number}", wire, **more) for number, wire in enumerate(wires)]


def _broken(kind, wires, reason, **more):
    """Answers of which nothing is taken."""
    return _pages(kind, wires, expected=reason, status=0, body=b"", closes=True, **more)


def _cut(kind, wires, body=b"", reason="incomplete", closes=True):
    """Answers whose body breaks off."""
    more = {"expected": reason, "body": body, "truncated": "disconnect", "closes": closes}
    return _pages(kind, wires, **more)


def _status(line):
    return line + b"\r\n" + REST


ODD_STATUS_LINES = (
    *(b"HTTP/1.1 200: OK", b"HTTP/1.1 200:OK", b"HTTP/1.1 200:", b"HTTP/1.1 200:: OK"),
    *(b"HTTP/1.1 200OK", b"HTTP/1.1 200;OK", b"HTTP/1.1 200, OK", b"HTTP/1.1 200.1 OK"),
    *(b"HTTP/1.1 200-OK", b"HTTP/1.1 200/OK", b"HTTP/1.1 200=OK"),
    *(b"HTTP/1.1  200  OK", b"HTTP/1.1\t200\tOK", b"HTTP/1.1 \t 200 OK"),
    *(b"HTTP/1.2 200 OK", b"HTTP/1.10 200 OK", b"HTTP/9.9 200 OK", b"HTTP/2 200", b"HTTP/2.0 200 OK"),
    *(b"HTTP/3 200 OK", b"HTTP/1 200 OK", b"HTTP/1.1.1 200 OK", b"HTTP/01.01 200 OK"),
    *(b"HTTP/ 200 OK", b"HTTP 200 OK", b"HTTP/x 200 OK", b"HTTP/-1.1 200 OK", b"HTTPS/1.1 200 OK"),
    *(b"http/1.1 200 OK", b"Http/1.1 200 OK", b"hTTP/1.1 200 ok", b"HTTP/1.1 200 O\0K"),
    *(b"HTTP/1.1 200 OK\r", b"HTTP/1.1 200 O\rK", b"HTTP/1.1 200 \x1b[2JOK"),
    *(b" HTTP/1.1 200 OK", b"\tHTTP/1.1 200 OK", b"\r\nHTTP/1.1 200 OK", b"\nHTTP/1.1 200 OK"),
    *(b"\r\n\r\nHTTP/1.1 200 OK", b"\xef\xbb\xbfHTTP/1.1 200 OK", b"HTTP/0.9 200 OK"),
    *(b"\r\n" * 256 + b"HTTP/1.1 200 OK", b"\xef\xbb\xbf" + b" " * 509 + b"HTTP/1.1 200 OK"),
)  # fmt: skip
PLAIN_STATUS_LINES = (
    *(b"HTTP/1.1 200 OK", b"HTTP/1.1 200 ", b"HTTP/1.1 200", b"HTTP/1.1 200 Gef\xc3\xa4llt \xe9"),
    *(b"HTTP/1.1 200 200 OK", b"HTTP/1.1 200 Ok: fine", b"HTTP/1.1 200 : OK", b"HTTP/1.1 200 \t"),
)
BAD_STATUS_LINES = (
    *(b"HTTP/1.1 fine OK", b"HTTP/1.1", b"HTTP/1.1 ", b"HTTP/1.1 OK", b"HTTP/1.1 2", b"HTTP/1.1 20 OK"),
    *(b"HTTP/1.1 2000 OK", b"HTTP/1.1 99999 OK", b"HTTP/1.1 099 OK", b"HTTP/1.1 000 OK"),
    *(b"HTTP/1.1 +20 OK", b"HTTP/1.1 -200 OK", b"HTTP/1.1 2\xb20 OK", b"HTTP/1.1 0x200 OK"),
    *(b"HTTP/1.1 \xd9\xa2\xd9\xa0\xd9\xa0 OK", b"HTTP/1.1200 OK", b"HTTP/1.1 : 200", b"HTTP/1.1 2 00"),
    *(b"HTTP/1.1\0200 OK", b"HTTP", b"http/1.1", b"HTTP/1.1,200,OK"),
    *(b" " * 513 + b"HTTP/1.1 200 OK", b"\r\n" * 5000 + b"HTTP/1.1 200 OK"),
)  # fmt: skip
ROBOTS = b"User-agent: *\nDisallow: /private\n"
HEADLESS = (
    *(PAGE, b"<html>hello", b"<html>\nhello", b"<!DOCTYPE html>\n<html>\n<body>x</body></html>"),
    *(b"<!DOCTYPE html>\r\n\r\n<title>x</title>", b"<?xml version='1.0'?>\n<a/>", b"<HTML>"),
    *(b"\n<html>", b"\r\n\r\n  <html>x", b"   <html>", b"\t<p>x", b"\xef\xbb\xbf<html>x", b"<"),
    *(b"Not a page of HTML", b"This is a text: \xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", b"text\n\nmore"),
    *(b'{"a": 1}', b"%PDF-1.4\nnot really", b"User-agent: *\nDisallow: /\n", ROBOTS, b"a"),
    *(b"<p>HTTP/1.1 200 OK\r\n\r\nis how it begins", b"Server: x\r\nContent-Length: 1\r\n\r\nx"),
    *(b"Content-Type: text/html\r\n\r\n<p>x", b"\xe4\xf6\xfc <b>latin-1</b>", b"H", b"HT", b"HTT"),
    *(b"HTML is what this is", b"hello\x0cworld", b"<!-- " + b"x" * 70_000 + b" -->", b"<p>" * 60_000),
    *(b"garbage\r\n\r\n", b"2000 years of history"),
)  # fmt: skip
NO_PAGES = (
    *(b"\x00\xffBANANA 200\r\n\r\n<title>x</title>", b"\x16\x03\x01\x02\x00\x01", b"\x15\x03\x01\x00\x02\x02\x16"),
    *(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x1f\x8b\x08\0\0\0\0\0", b"PK\x03\x04\x14\0", b"\x7fELF\x02"),
    *(b"GIF89a\x01\0\x01\0", b"\0", b"\0" * 5000, b"<html>\x00\x01\x02", b"\x00\x00\x12\x04\0\0\0\0\0"),
    *(b"SSH-2.0-OpenSSH_9.2\r\n", b"SSH-1.99-x\r\n", b"220 mail.example.com ESMTP Postfix\r\n"),
    *(b"220-Welcome to FTP\r\n220 x\r\n", b"+OK POP3 ready\r\n", b"* OK IMAP4rev1\r\n", b"+PONG\r\n"),
    *(b"-ERR wrong number of arguments for 'get' command\r\n", b"-ERR unknown command\r\n$6\r\nsecret"),
    *(b"RFB 003.008\n", b"ICY 200 OK\r\nicy-name: x\r\n\r\n", b"RTSP/1.0 200 OK\r\n\r\n"),
    *(b"SIP/2.0 200 OK\r\n\r\n", b"ERROR\r\nERROR\r\n", b"200 OK\r\n", b"421 Too many connections\r\n"),
    *(b"\r\n", b"\n\n\n", b"  ", b"", b"@RSYNCD: 31.0\n", b"AMQP\0\0\x09\x01", b"500 5.5.1 unknown command\r\n"),
    *(b"404 ways to say no\n", b"555-1234 is a number\n", b"https://a.example.com/\n", b"Http is a protocol"),
    *(b"\n" * 100_000, b" " * 513 + PAGE),
)  # fmt: skip
NO_LENGTHS = (
    *(b"thousand", b"", b" ", b"-5", b"-0", b"-1", b"+5", b"+19", b"5.0", b"19.0", b"1e3", b"0x13", b"19;"),
    *(b"19 bytes", b"19B", b'"19"', b"(19)", b"1_9", b"1 9", b"\xd9\xa1\xd9\xa9", b"\xb9", b"NaN", b"null"),
    *(b"9" * 19, b"9" * 25, b"18446744073709551635", b"9" * 5000, b"None", b"undefined", b"%d", b"19\0"),
    *(b"\0", b"unknown", b"bytes=19", b"19\x0b", b"\xa019"),
)  # fmt: skip
REPEATED_LENGTHS = (
    b"%d, %d",
    b"%d,%d",
    b"%d , %d",
    b"%d\r\nContent-Length: %d",
    b"%d\r\ncontent-length:%d",
)
TWO_LENGTHS = (
    *(b"5, 6", b"5,6", b"19, 20", b"19\r\nContent-Length: 20", b"20\r\nContent-Length: 19"),
    *(b"19\r\nContent-Length: thousand", b"thousand\r\nContent-Length: 19", b"19, thousand", b"19,"),
    *(b",19", b"19, -5", b"-5, 19", b"0, 19", b"19\r\ncontent-length: 0", b"19, 019", b"19, +19", b"one, two"),
    *(b"19, " + b"9" * 30, b"19\r\nCONTENT-LENGTH: 18", b"19, 19, 18", b"19, 19, 19, ", b"-1, -2"),
)  # fmt: skip
ODD_HEADERS = (
    *(b"no colon\r\n", b"D : e\r\n", b": e\r\n", b":\r\n", b"A: a\0b\r\n", b"A: a\rb\r\n", b"A: a\r\r\n"),
    *(b"A: a\x01b\r\n", b"A B: a\r\n", b"A(B): a\r\n", b"\xe9: \xe9\r\n", b"A: b\r\n  c\r\n", b"A: b\r\n\tc\r\n"),
    *(b"A: b\r\n \r\n", b" leading: x\r\n", b"\tleading: x\r\n", b"A: b\n", b"A\0: b\r\n", b"\0: b\r\n", b"A:\r\n b\r\n"),
    *(b"A\x7f: b\r\n", b"A: \x7f\r\n", b"Content Length: 3\r\n", b"Content-Length : %d\r\n" % SIZE, b"=\r\n"),
    *(b"HTTP/1.1 200 OK\r\n", b"<p>: x\r\n", b"\x80\r\n"),
)  # fmt: skip
KEPT_HEADERS = (
    *(b"A: b\r\n", b"A:b\r\n", b"A:\r\n", b"A: \t b \t \r\n", b"X-E: \xe9\r\n"),
    *(b"Upgrade: h2,h2c\r\n", b"Client-Transfer-Encoding: chunked\r\n", b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"),
    *(b"A: " + b"b" * 60_000 + b"\r\n", b"A: b\r\n" * 200, b"Content-Type: \r\n", b"Connection: keep-alive\r\n"),
)  # fmt: skip
CLOSING = (
    b"Connection: close\r\n",
    b"Connection: Close\r\n",
    b"Connection: x, close\r\n",
    b"Connection: close, x\r\n",
)
TOO_LARGE = (
    *(OK + b"X: " + b"a" * 70_000, OK + b"X: y\r\n" * 1000, OK + (b"X: " + b"y" * 60_000 + b"\r\n") * 6),
    *(OK + b"a" * 70_000, OK + b"X: y\r\n " + b"z" * 70_000, OK + b"X: y\r\n" + b" z\r\n" * 90_000),
    *(b"HTTP/1.1 200 " + b"O" * 70_000 + b"\r\n\r\n", b"HTTP/1.1 " + b" " * 70_000, b"HTTP/" + b"1" * 70_000),
    OK + b"\0\r\n" * 90_000,
)  # fmt: skip
NOT_CHUNKED = (
    *(
        b"identity",
        b"gzip",
        b"xchunked",
        b"chunkedx",
        b"chunked, gzip",
        b"chunked;",
        b"\x0bchunked",
    ),
    *(b"", b"deflate", b"chunk", b"'chunked'", b"identity\r\nTransfer-Encoding: gzip"),
)
ODDLY_CHUNKED = (
    *(b"CHUNKED", b"Chunked", b"gzip, chunked", b"identity, chunked", b"identity\r\nTransfer-Encoding: chunked"),
    *(b"chunked, chunked", b"chunked\r\nTransfer-Encoding: chunked", b"chunked\r\nContent-Length: 5"),
    *(b"chunked\r\nContent-Length: thousand", b"chunked\r\nContent-Length: 5, 6", b" , chunked", b"x, chunked"),
    b"chunked\0",
)  # fmt: skip
GOOD_CHUNKS = (
    *(CHUNK + LAST, b"1\r\n<\r\n12\r\n" + PAGE[1:] + b"\r\n" + LAST, b"0013\r\n" + PAGE + b"\r\n000\r\n\r\n"),
    *(b"13;a\r\n" + PAGE + b"\r\n" + LAST, b"13;a=b;c=d\r\n" + PAGE + b"\r\n0;e\r\n\r\n"),
    *(b'13;a="b;c"\r\n' + PAGE + b"\r\n" + LAST, b"13 ; a = b\r\n" + PAGE + b"\r\n" + LAST),
    *(CHUNK + b"0\r\nT: v\r\n\r\n", CHUNK + b"0\r\nT: v\r\nContent-Length: 5\r\nT: w\r\n\r\n"),
    b"".join(b"1\r\n%c\r\n" % byte for byte in PAGE) + LAST,
    CHUNK + b"0\r\n" + b"T: v\r\n" * 100 + b"\r\n",
    b"".join(b"1;%s\r\n%c\r\n" % (b"e" * 500, byte) for byte in PAGE) + LAST,
)  # fmt: skip
LENIENT_CHUNKS = (
    *(
        b"13\n" + PAGE + b"\n0\n\n",
        b"13\r\n" + PAGE + b"\n0\r\n\r\n",
        CHUNK + b"0\r\nno colon\r\n\r\n",
    ),
    *(CHUNK + b"0\r\nT: v\n\n", CHUNK + b"0\n\n", b"13\n" + PAGE + b"\r\n" + LAST),
    *(b"13\t\r\n" + PAGE + b"\r\n" + LAST, b"13   \r\n" + PAGE + b"\r\n" + LAST),
)
# With the end of the connection where the empty line belongs, as browsers take it.
ENDED_CHUNKS = (
    CHUNK + b"0\r\n",
    CHUNK + b"0\r\nT: v\r\n",
    CHUNK + b"0\r\nT: v",
    CHUNK + b"0\r\n\r",
)
BAD_SIZES = (
    *(b"banana", b"-1", b"+13", b"0x13", b"", b" ", b"1_3", b"13 13", b"13,", b"g", b"\xb9\xb3", b"13\0"),
    *(b"F" * 17, b"f" * 100, b"1" * 5000, b"13 a", b"13=a", b"13\x0b", b" 13", b"\t13", b"13\r", b"1\r3"),
)  # fmt: skip
BROKEN_CHUNKS = (
    *(b"13\r\n" + PAGE + b"XY0\r\n\r\n", b"13\r\n" + PAGE + LAST, b"13\r\n" + PAGE + b"extra\r\n" + LAST),
    *(CHUNK, CHUNK + b"0", CHUNK + b"1", CHUNK + b"\r\n", CHUNK + b"5\r\n", CHUNK + b"0;x", CHUNK + b"5;"),
    *(b"13\r\n" + PAGE, b"13\r\n" + PAGE + b"\r", b"13\r\n" + PAGE + b"\rX", CHUNK + b"-1\r\nx\r\n" + LAST),
    *(CHUNK + b"zz\r\nx\r\n" + LAST, CHUNK + b"ffffffffffffffffff\r\nx", CHUNK + b"\r\n" + LAST),
)  # fmt: skip
MANY = 3000
TOO_MUCH_FRAMING = (
    *(CHUNK + b"0\r\n" + b"T: v\r\n" * MANY, CHUNK + b"0\r\n" + b"T: v\r\n" * 257 + b"\r\n"),
    *(CHUNK + b"0\r\nT: " + b"v" * 70_000, CHUNK + b"0\r\n" + (b"T: " + b"v" * 15_000 + b"\r\n") * 9),
    *(CHUNK + b"0\r\n" + b"v" * 70_000 + b"\r\n\r\n", CHUNK + b"0;" + b"e" * 70_000 + b"\r\n\r\n"),
    *(CHUNK + b"1;" + b"e" * 70_000, CHUNK + b"1" + b";e" * MANY + b"\r\nx\r\n" + LAST, CHUNK + b"0" * 70_000),
    *(CHUNK + b"1" + b" " * 70_000, CHUNK + b"0\r\n" + b" v\r\n" * MANY),
)  # fmt: skip
# (More of the page comes before the bound is reached.)
MANY_EXTENSIONS = b"".join(b"1;%s\r\nx\r\n" % (b"e" * 1000) for _ in range(100)) + LAST
SURPLUS = (
    *(OK + REST + b"xyz", OK + REST + SECOND, OK + REST + b"\r\n", OK + REST + b"\0" * 20_000),
    *(CHUNKED + CHUNK + LAST + b"xyz", CHUNKED + CHUNK + LAST + SECOND, CHUNKED + CHUNK + LAST + b"\r\n"),
    *(OK + b"Content-Length: 0\r\n\r\n" + SECOND, b"HTTP/1.1 204 No\r\n\r\n" + SECOND),
    *(b"HTTP/1.1 304 No\r\n\r\n" + SECOND, b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello"),
    *(b"HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n" + LAST, OK + REST + b"HTTP/1.1 ", OK + REST + PAGE),
)  # fmt: skip
INTERIM = (
    b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 102 x\r\n\r\n",
)


def _surplus(number, wire):
    status = int(wire[9:12])
    body = PAGE if PAGE in wire[:90] and b"Content-Length: 0" not in wire else b""
    return Answer(f"surplus {number}", wire, status=status, body=body)


ANSWERS = (
    *_pages("odd status line", map(_status, ODD_STATUS_LINES)),
    *_pages("plain status line", map(_status, PLAIN_STATUS_LINES), kept=True),
    *_pages("old version", [b"HTTP/1.0 200 OK\r\n" + REST, b"HTTP/1.0 200 OK\r\n\r\n" + PAGE], closes=True),
    *_broken("bad status line", map(_status, BAD_STATUS_LINES), "protocol_error"),
    *(Answer(f"no head {n}", wire, body=wire, closes=True) for n, wire in enumerate(HEADLESS)),
    *(a for n, w in enumerate(NO_PAGES)
      for a in _broken(f"no page {n}", [w], "reset" if w == b"" else "protocol_error")),
    *_pages("no length", [OK + b"Content-Length: %s\r\n\r\n" % v + PAGE for v in NO_LENGTHS], closes=True),
    *_pages("repeated length", [OK + b"Content-Length: " + v % (SIZE, SIZE) + b"\r\n\r\n" + PAGE
                                for v in REPEATED_LENGTHS]),
    *_pages("zeros", [OK + b"Content-Length: %s19\r\n\r\n" % zeros + PAGE for zeros in (b"0", b"0" * 40)], kept=True),
    *_broken("two lengths", [OK + b"Content-Length: %s\r\n\r\n" % v + PAGE for v in TWO_LENGTHS], "protocol_error"),
    *_cut("short", [OK + b"Content-Length: %d\r\n\r\n" % n + PAGE for n in (36, 1000, 10**9, 10**18 - 1)], PAGE),
    *_pages("a byte too long", [OK + b"Content-Length: 20\r\n\r\n" + PAGE], closes=True, truncated="frame"),
    *_pages("odd header", [OK + header + REST for header in ODD_HEADERS]),
    *_pages("bare line feeds", [(OK + REST).replace(b"\r\n", b"\n"), OK + LENGTH + b"\n" + PAGE]),
    Answer("two ends", OK + b"A: b\r\n\n\r\n" + PAGE, body=b"\r\n" + PAGE, closes=True),
    *_pages("header", [OK + header + REST for header in KEPT_HEADERS], kept=True),
    *_pages("closing", [OK + header + REST for header in CLOSING]),
    *_pages("head without end", [OK, OK + b"A: b\r\n", OK + b"A: b", OK[:-2], OK[:-1]], body=b"", closes=True),
    *_broken("too large", TOO_LARGE, "headers_too_large"),
    *_pages("not chunked", [OK + b"Transfer-Encoding: %s\r\n\r\n" % v + PAGE for v in NOT_CHUNKED], closes=True),
    *_pages("oddly chunked", [OK + b"Transfer-Encoding: %s\r\n\r\n" % v + CHUNK + LAST
                              for v in ODDLY_CHUNKED[2:]]),
    *_pages("spelled chunked", [OK + b"Transfer-Encoding: %s\r\n\r\n" % v + CHUNK + LAST
                                for v in ODDLY_CHUNKED[:2]], kept=True),
    *_pages("chunks", [CHUNKED + wire for wire in GOOD_CHUNKS], kept=True),
    *_pages("lenient chunks", [CHUNKED + wire for wire in LENIENT_CHUNKS]),
    *_pages("ended chunks", [CHUNKED + wire for wire in ENDED_CHUNKS], closes=True),
    *_cut("bad chunk size", [CHUNKED + size + b"\r\n" + PAGE + b"\r\n" + LAST for size in BAD_SIZES]),
    *_cut("bad chunk line", [CHUNKED + b"\xff\n", CHUNKED + b"13;\r", CHUNKED]),
    *_cut("broken chunks", [CHUNKED + wire for wire in BROKEN_CHUNKS], PAGE),
    *_cut("too much framing", [CHUNKED + wire for wire in TOO_MUCH_FRAMING], PAGE, "framing_too_large"),
    *_cut("many extensions", [CHUNKED + MANY_EXTENSIONS], b"x" * 16, "framing_too_large"),
    *(_surplus(*numbered) for numbered in enumerate(SURPLUS)),
    *_pages("interim", [head + OK + REST for head in INTERIM] + [INTERIM[0] * 9 + OK + REST], kept=True),
    *_pages("switch", [b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + OK + REST], kept=True),
    *_broken("only interim", [INTERIM[1] * 50, INTERIM[0] + PAGE, INTERIM[1] + b"SSH-2.0-x\r\n"], "protocol_error"),
    *_broken("interim and the end", [INTERIM[1]], "reset"),
    *_pages("status", [b"HTTP/1.1 %d What\r\n" % code + REST for code in (404,)], status=404, kept=True),
    *_pages("redirect with a broken body", [
        b"HTTP/1.1 302 Found\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\nNot a valid chunk."],
        status=302, expected="incomplete", truncated="disconnect", body=b"", closes=True),
    *_pages("until the end", [OK + b"\r\n" + PAGE, OK + b"Content-Type: text/html\r\n\r\n" + PAGE], closes=True),
)  # fmt: skip
