"""Hosts whose bytes come too late, without end, or not as HTTP says (RFC 9112).

The last ones have bodies that are small on the wire and large, or nothing, when decoded.
"""

import asyncio
import base64
import functools
import zlib

from .answers import HEAD, HostileWire, Request, honest_answer

_BOMB_BYTES = 256 << 20
_MEMBER_BYTES = 1 << 20
# 256 MiB of spaces by Brotli (quality 9), packed once more.
_BROTLI = (
    "c-lMv|9?G$io>Ig4n^<(|NQ@-zk$U;My%o8U;F?6|1(Zt=s3)DVekLv|Nq-F2r(2!FzovN|Ih#b><&x{eB2J-|IG)g"
    "V(?%%lF0bt-v7`4|I0IQHdyE|-2Gku@Be>h1xA5()&<r7&x0*tc(j3`gm#wL0{{@UY*P"
)


async def slow(wire: HostileWire, request: Request) -> None:
    """Sends 100 bytes of HTML, one each 0.2 seconds."""
    body = b"<title>slow</title>".ljust(100)
    wire.write(HEAD + b"Content-Length: 100\r\n\r\n")
    for place in range(len(body)):
        wire.write(body[place : place + 1])
        await asyncio.sleep(0.2)


async def slow_headers(wire: HostileWire, request: Request) -> None:
    """Sends its headers one byte each 0.2 seconds."""
    for byte in HEAD + b"Content-Length: 0\r\n\r\n":
        wire.write(bytes([byte]))
        await asyncio.sleep(0.2)


async def hang(wire: HostileWire, request: Request) -> None:
    """Accepts the request and sends nothing for an hour."""
    await asyncio.sleep(3600)


async def garbage(wire: HostileWire, request: Request) -> None:
    """Answers with a line that is not a status line."""
    wire.write(b"\x00\xffBANANA 200\r\n\r\n<title>garbage</title>")


async def http09(wire: HostileWire, request: Request) -> None:
    """Sends a page without status line and headers, as HTTP/0.9 did."""
    wire.write(b"<title>http09</title>\r\n\r\n<p>page</p>\r\n")


async def bad_status(wire: HostileWire, request: Request) -> None:
    """Sends a word where the status code belongs."""
    wire.write(b"HTTP/1.1 fine OK\r\nContent-Length: 4\r\n\r\npage")


async def big_status(wire: HostileWire, request: Request) -> None:
    """Answers with the status 99999."""
    wire.write(b"HTTP/1.1 99999 OK\r\nContent-Length: 4\r\n\r\npage")


async def endless(wire: HostileWire, request: Request) -> None:
    """Sends a body without end."""
    wire.write(HEAD + b"Connection: close\r\n\r\n")
    await _send_forever(wire, b"<p>and on and on</p>\n" * 1000)


async def endless_headers(wire: HostileWire, request: Request) -> None:
    """Sends header after header, without end."""
    wire.write(HEAD)
    await _send_forever(wire, b"X-More: and on and on\r\n" * 100)


async def long_header(wire: HostileWire, request: Request) -> None:
    """Sends one header line without end."""
    wire.write(HEAD + b"X-Long: ")
    await _send_forever(wire, b"and on and on " * 1000)


async def interim(wire: HostileWire, request: Request) -> None:
    """Sends interim answers (103) without end."""
    await _send_forever(wire, b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)


async def _send_forever(wire: HostileWire, data: bytes) -> None:
    while True:
        wire.write(data)
        await wire.drain()
        await asyncio.sleep(0)


async def reset(wire: HostileWire, request: Request) -> None:
    """Resets the connection in the middle of the body."""
    wire.write(HEAD + b"Content-Length: 1000\r\n\r\n<title>reset")
    await asyncio.sleep(0.05)
    wire.abort()


async def cut(wire: HostileWire, request: Request) -> None:
    """Promises 1000 bytes, sends 500 and closes."""
    wire.write(HEAD + b"Content-Length: 1000\r\n\r\n" + b"<title>cut</title>".ljust(500))


async def too_much(wire: HostileWire, request: Request) -> None:
    """Promises 20 bytes and sends 1000."""
    wire.write(HEAD + b"Content-Length: 20\r\n\r\n" + b"<title>first</title>".ljust(1000, b"x"))


async def bad_length(wire: HostileWire, request: Request) -> None:
    """Promises -5 bytes."""
    wire.write(HEAD + b"Content-Length: -5\r\n\r\n<title>bad length</title>")


async def two_lengths(wire: HostileWire, request: Request) -> None:
    """Promises 19 bytes, and 1000 bytes."""
    wire.write(HEAD + b"Content-Length: 19\r\nContent-Length: 1000\r\n\r\n<title>two</title>\n")


async def bad_chunks(wire: HostileWire, request: Request) -> None:
    """Sends a chunk whose size is not a number."""
    wire.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n7\r\n<title>\r\nbanana\r\nx\r\n0\r\n\r\n")


async def cut_chunks(wire: HostileWire, request: Request) -> None:
    """Closes in the middle of a chunk."""
    wire.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\n<title>cut")


async def endless_chunks(wire: HostileWire, request: Request) -> None:
    """Sends chunks without end."""
    wire.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    await _send_forever(wire, b"15\r\n<p>and on and on</p>\n\r\n" * 100)


async def injection(wire: HostileWire, request: Request) -> None:
    """Has bare line breaks, a NUL and escape sequences in its headers, and two of Location."""
    wire.write(
        b"HTTP/1.1 200 O\x1b[2JK\r\nContent-Type: text/html\r\nX-One: a\rSet-Cookie: a=b\r\n"
        b"X-Two: a\nLocation: http://127.0.0.1/\r\nX-Three: a\x00b\r\nContent-Length: 26\r\n\r\n"
        b"<title>injection</title>\r\n"
    )


async def mislabelled(wire: HostileWire, request: Request) -> None:
    """Serves a page in Windows-1251, with UTF-8 in its header and Shift_JIS in its meta."""
    text = "<title>Привет</title><meta charset=shift_jis><p>Добрый день, мир!</p>"
    wire.write(honest_answer(text.encode("cp1251")))


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(data) + packer.flush()


@functools.cache
def _bomb() -> bytes:
    # Many members (RFC 1952 2.2): fast to make, and decoded as one body.
    return _gzip(b" " * _MEMBER_BYTES) * (_BOMB_BYTES // _MEMBER_BYTES)


def _coded_answer(body: bytes, coding: str) -> bytes:
    return honest_answer(body, 200, f"Content-Encoding: {coding}")


async def gzip_bomb(wire: HostileWire, request: Request) -> None:
    """Sends 256 MiB of spaces as 255 KiB of gzip."""
    wire.write(_coded_answer(_bomb(), "gzip"))


async def double_bomb(wire: HostileWire, request: Request) -> None:
    """Sends the same gzipped twice: some 700 bytes."""
    wire.write(_coded_answer(_gzip(_bomb()), "gzip, gzip"))


async def nested_codings(wire: HostileWire, request: Request) -> None:
    """Sends a page gzipped five times."""
    body = b"<title>nested</title>"
    for _ in range(5):
        body = _gzip(body)
    wire.write(_coded_answer(body, ", ".join(["gzip"] * 5)))


async def brotli_bomb(wire: HostileWire, request: Request) -> None:
    """Sends 256 MiB of spaces as some hundred bytes of Brotli, accepted or not."""
    wire.write(_coded_answer(zlib.decompress(base64.b85decode(_BROTLI)), "br"))


async def bad_gzip(wire: HostileWire, request: Request) -> None:
    """Sends gzip that is damaged after its header."""
    wire.write(_coded_answer(_bomb()[:20] + b"banana" * 100, "gzip"))


async def cut_gzip(wire: HostileWire, request: Request) -> None:
    """Sends a tenth of a gzipped page, as if it were whole."""
    body = _gzip(b"".join(b"<p>%d</p>" % n for n in range(5000)))
    wire.write(_coded_answer(body[: len(body) // 10], "gzip"))


async def no_gzip(wire: HostileWire, request: Request) -> None:
    """Claims gzip, and sends a plain page."""
    wire.write(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n<title>plain</title>")
