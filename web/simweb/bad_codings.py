"""Hosts whose bodies are small on the wire and large, or nothing, when decoded."""

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


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(data) + packer.flush()


@functools.cache
def _bomb() -> bytes:
    # Many members (RFC 1952 2.2): fast to make, and decoded as one body.
    return _gzip(b" " * _MEMBER_BYTES) * (_BOMB_BYTES // _MEMBER_BYTES)


def _coded(body: bytes, coding: str) -> bytes:
    return honest_answer(body, 200, f"Content-Encoding: {coding}")


async def gzip_bomb(wire: HostileWire, request: Request) -> None:
    """Sends 256 MiB of spaces as 255 KiB of gzip."""
    wire.write(_coded(_bomb(), "gzip"))


async def double_bomb(wire: HostileWire, request: Request) -> None:
    """Sends the same gzipped twice: some 700 bytes."""
    wire.write(_coded(_gzip(_bomb()), "gzip, gzip"))


async def nested_codings(wire: HostileWire, request: Request) -> None:
    """Sends a page gzipped five times."""
    body = b"<title>nested</title>"
    for _ in range(5):
        body = _gzip(body)
    wire.write(_coded(body, ", ".join(["gzip"] * 5)))


async def brotli_bomb(wire: HostileWire, request: Request) -> None:
    """Sends 256 MiB of spaces as some hundred bytes of Brotli, accepted or not."""
    wire.write(_coded(zlib.decompress(base64.b85decode(_BROTLI)), "br"))


async def bad_gzip(wire: HostileWire, request: Request) -> None:
    """Sends gzip that is damaged after its header."""
    wire.write(_coded(_bomb()[:20] + b"banana" * 100, "gzip"))


async def cut_gzip(wire: HostileWire, request: Request) -> None:
    """Sends a tenth of a gzipped page, as if it were whole."""
    body = _gzip(b"".join(b"<p>%d</p>" % n for n in range(5000)))
    wire.write(_coded(body[: len(body) // 10], "gzip"))


async def no_gzip(wire: HostileWire, request: Request) -> None:
    """Claims gzip, and sends a plain page."""
    wire.write(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n<title>plain</title>")
